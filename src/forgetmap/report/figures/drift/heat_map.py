"""Heat map of capabilities (or metrics) by model, with a colour for each direction of drift."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures import look
from forgetmap.report.figures.drift import axes
from forgetmap.report.figures.drift.axes import DEEP_DIVE, MapLevel
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.schema import Capabilities, Payload

SHADES = ["#9c4500", "#d55e00", "#f2a673", "#f4f4f2", "#8cc0e3", "#0072b2", "#004f7c"]
"""Colours from down to up: orange and blue are distinct for colour-blind readers."""
WITHIN_NOISE = "#c3c7cc"
MAX_PRINTED = 400
"""Maximum number of cells with printed values."""
WIDE = 10
"""Maximum number of models with room for words."""
LONG_NAME = 10
"""Length above which names of models are vertical; slanted ones would be too wide."""
STEP = 23
NAMES: dict[MapLevel, str] = {
    "capability": "drift",
    "metric": "drift_metrics",
    "deep_dive": "drift_deep_dive",
}
MANY: dict[MapLevel, str] = {
    "capability": "all capabilities",
    "metric": "all metrics",
    "deep_dive": "the deep dive",
}

HOW_TO_READ = (
    "Orange is worse, blue is better; where any change is drift (\N{UP DOWN ARROW}), orange is "
    "less and blue is more. * significant (false discovery rate 5%). Grey with ~: within the "
    "noise of the model before. Hatched: no data, which is not 0; n/a: no value on this scale. "
    "On the scales of points and percent, levels above metrics are means. Click a cell to open "
    "the capability."
)


def heat_map(
    payload: Payload, drift: Capabilities, level: MapLevel = "capability"
) -> Figure | None:
    """Draw every cell of every model; cells without data are hatched and have no number."""
    lines = _lines(drift, level)
    if not lines:
        return None
    alt = _alt(drift, lines, "capabilities" if level == "capability" else "metrics")
    first = f"{DEEP_DIVE} " if level == "deep_dive" else ""
    return Figure(
        name=NAMES[level],
        title=f"Drift of {MANY[level]}",
        caption=first + HOW_TO_READ,
        alt=alt,
        table=as_table([{name: line[name] for name in _TABLE} for line in lines]),
        spec=_spec(payload, drift, alt, lines, level),
    )


_TABLE = ("after", "level", "id", "name", "scale", "value", "low", "high", "state", "n",
          "coverage", "note")  # fmt: skip


def _lines(drift: Capabilities, level: MapLevel) -> list[Record]:
    if level == "capability":
        return axes.rows_at(drift, "group", "capability")
    cells = drift.result.metrics if level == "metric" else drift.result.deep_dive
    known = {cell.id for cell in cells if cell.value is not None}
    return [row for row in axes.rows_at(drift, level) if row["id"] in known]


def _alt(drift: Capabilities, lines: list[Record], many: str) -> str:
    cells = [
        line for line in lines if line["scale"] == drift.scales[0].name and line["level"] != "group"
    ]
    sure = [row for row in cells if row["state"] == "sure"]
    down = sum(row["value"] < 0 for row in sure)
    empty = sum(row["state"] == "none" for row in cells)
    return (
        f"{len(cells):,} cells of {len(drift.result.models):,} models and their {many}: {down:,} "
        f"significantly down, {len(sure) - down:,} significantly up, {empty:,} without data."
    )


def _spec(
    payload: Payload, drift: Capabilities, alt: str, lines: list[Record], level: MapLevel
) -> Spec:
    models = len(drift.result.models)
    each_scale = len(lines) // len(drift.scales)
    metrics = level != "capability"
    having = " && datum.has" if metrics else ""
    return look.vega_lite(payload, alt, one=False) | {
        "data": {"name": "rows"},
        "height": STEP * (each_scale // models),
        "transform": [
            *(_HAS if metrics else []),
            {"filter": f"{axes.LEVELS[level]} && datum.scale === scale{having}"},
        ],
        "encoding": {"x": _across(drift.result.models), "y": _DOWN},
        "layer": [
            _CELLS,
            _HATCHED,
            *([_TEXT] if each_scale <= MAX_PRINTED else []),
        ],
    }


_HAS: list[Spec] = [
    {"calculate": "datum.state === 'none' ? 0 : 1", "as": "there"},
    {"joinaggregate": [{"op": "max", "field": "there", "as": "has"}], "groupby": ["level", "id"]},
]
"""A metric without data in any model is not drawn."""


def _across(models: Sequence[str]) -> Spec:
    flat = len(models) <= WIDE and max(map(len, models)) <= LONG_NAME
    return {
        "field": "after",
        "type": "nominal",
        "title": None,
        "sort": {"field": "comparison", "op": "min"},
        "axis": {
            "orient": "top",
            "labelAngle": -30 if flat else -90,
            "labelOverlap": False,
            "ticks": False,
            "domain": False,
        }
        | axes.MODEL_LABELS,
    }


_DOWN: Spec = {
    "field": "name",
    "type": "nominal",
    "title": None,
    "sort": {"field": "order", "op": "min"},
    "axis": axes.NAME_AXIS | {"labelFontWeight": axes.BOLD_GROUPS},
}
_CELLS: Spec = {
    "mark": {
        "type": "rect",
        "stroke": look.by_theme(look.GROUND),
        "strokeWidth": 1,
        "cursor": "pointer",
    },
    "encoding": {
        "color": {
            "condition": [
                {"test": "datum.state === 'noise'", "value": WITHIN_NOISE},
                {"test": "!isValid(datum.shade)", "value": "transparent"},
            ],
            "field": "shade",
            "type": "quantitative",
            "title": None,
            "scale": {
                "domain": [-1, -0.66, -0.33, 0, 0.33, 0.66, 1],
                "range": SHADES,
                "interpolate": "rgb",
            },
            "legend": {
                "orient": "bottom",
                "values": [-1, 0, 1],
                "gradientLength": {"expr": "windowSize()[0] < 600 ? 170 : 300"},
                "labelExpr": "datum.value < 0 ? 'worse, less' : "
                "datum.value > 0 ? 'better, more' : '0'",
            },
        },
        "tooltip": [*axes.TOOLTIP, {"field": "note"}],
    },
}
_TEXT: Spec = {
    "transform": [{"filter": "datum.state !== 'none'"}],
    "mark": {
        "type": "text",
        "text": {"expr": "bandwidth('x') < 40 ? '' : datum.shown"},
        "fontSize": 11,
        "cursor": "pointer",
        "color": {
            "expr": "datum.state === 'off' ? (dark ? '#a3abb5' : '#57606a') : "
            "datum.state === 'noise' ? '#3a414a' : "
            "abs(datum.shade) > 0.55 ? 'white' : 'black'"
        },
    },
}
_HATCHED: Spec = {
    "transform": [{"filter": "datum.state === 'none'"}],
    "mark": {
        "type": "text",
        "text": {
            "expr": "bandwidth('x') < 28 ? '//' : bandwidth('x') < 75 ? '////' : '// no data //'"
        },
        "fontSize": 10,
        "color": look.NEVER,
        "cursor": "pointer",
    },
}
