"""Drift as points with intervals: capabilities of a model, metrics of a capability."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.drift import axes
from forgetmap.report.figures.drift.axes import DEEP_DIVE, TOOLTIP, ZERO, MetricLevel
from forgetmap.report.figures.figure import Figure, PageName, Record, Spec, as_table
from forgetmap.report.payloads.schema import Capabilities, Payload

STEP = 24
_OF_OPEN = "datum.parent === capability && datum.comparison === comparison"
DOWN, UP, NOISE = "down", "up", "noise"
HOW_TO_READ = (
    "Points are drift, lines are 95% intervals; left is worse, or less. Filled: significant "
    "(5%); hollow: may be chance; grey: within the noise of the model before (the grey band, "
    "for effects)."
)


def of_model(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw groups and capabilities of the selected model."""
    rows = axes.rows_at(drift, "group", "capability")
    many = len(rows) // _per_line(drift)
    return _figure(
        payload,
        rows,
        name="drift_of_model",
        title="Drift of one model",
        caption=f"{HOW_TO_READ} Capabilities that were not measured are marked.",
        alt=f"Drift of {many:,} groups and capabilities. {drift.headlines[0]}",
        where=f"{axes.LEVELS['capability']} && datum.comparison === comparison",
    )


def of_all_metrics(
    payload: Payload, drift: Capabilities, level: MetricLevel = "metric"
) -> Figure | None:
    """Draw all metrics with a value, of a single model."""
    rows = [row for row in axes.rows_at(drift, level) if row["state"] != "none"]
    deep = level == "deep_dive"
    many = f"{len(rows) // _per_line(drift):,} metrics"
    return _figure(
        payload,
        rows,
        name="drift_each_deep_dive" if deep else "drift_each_metric",
        title="Drift of the deep dive" if deep else "Drift of all metrics",
        caption=f"{DEEP_DIVE} {HOW_TO_READ}" if deep else HOW_TO_READ,
        alt=f"Drift of {many}{' of the deep dive' * deep} with intervals.",
        where=f"{axes.LEVELS[level]} && datum.state !== 'none'",
    )


def of_capability(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw the metrics of the open capability."""
    return _figure(
        payload,
        axes.rows_at(drift, "metric"),
        name="drift_of_metrics",
        title="Its metrics",
        caption=f"{HOW_TO_READ} Positive is better, or more where any change is "
        "drift (\N{UP DOWN ARROW}).",
        alt="Drift of the metrics of this capability with intervals; the table below has the "
        "numbers.",
        where=f"{axes.LEVELS['metric']} && {_OF_OPEN}",
        page="capability",
    )


def deep_dive_of_capability(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw the metrics that explain the open capability."""
    rows = [row for row in axes.rows_at(drift, "deep_dive") if row["state"] != "none"]
    return _figure(
        payload,
        rows,
        name="drift_of_deep_dive",
        title="Its deep dive",
        caption=f"{DEEP_DIVE} {HOW_TO_READ}",
        alt="Drift of the metrics that explain this capability, with intervals; the table below "
        "has the numbers.",
        where=f"{axes.LEVELS['deep_dive']} && datum.state !== 'none' && {_OF_OPEN}",
        page="capability",
    )


def of_capability_in_all(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw the open capability in every model."""
    if len(drift.result.models) == 1:
        return None
    return _figure(
        payload,
        axes.rows_at(drift, "capability"),
        name="drift_of_models",
        title="In all models",
        caption=HOW_TO_READ,
        alt=f"Drift of this capability in {len(drift.result.models):,} models.",
        where="datum.level === 'capability' && datum.id === capability",
        page="capability",
        down="after",
    )


def _per_line(drift: Capabilities) -> int:
    return len(drift.scales) * len(drift.result.models)


_TABLE = ("comparison", "after", "capability", "id", "name", "scale", "value", "low", "high",
          "state", "n", "coverage", "note")  # fmt: skip


def _columns(down: str) -> list[str]:
    """Return the columns of the table; a figure of all models has no selected one."""
    return [name for name in _TABLE if name != "comparison" or down != "after"]


def _figure(  # noqa: PLR0913  # what a figure is made of
    payload: Payload,
    rows: list[Record],
    *,
    name: str,
    title: str,
    caption: str,
    alt: str,
    where: str,
    page: PageName = "overview",
    down: str = "name",
) -> Figure | None:
    if not rows:
        return None
    spec = look.vega_lite(payload, alt) | {
        "data": {"name": "rows"},
        "height": {"step": STEP},
        "transform": [{"filter": f"{where} && datum.scale === scale"}, *_LOOKS],
        "encoding": {"y": _down(down)},
        "layer": [_FLOOR, ZERO, _LIMITS, _POINT, _NOTHING],
    }
    return Figure(
        name=name,
        title=title,
        caption=caption,
        alt=alt,
        table=as_table([{column: line[column] for column in _columns(down)} for line in rows]),
        spec=spec,
        page=page,
    )


def _down(field: str) -> Spec:
    labels = axes.MODEL_LABELS if field == "after" else {}
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": {"field": "comparison" if field == "after" else "order", "op": "min"},
        "axis": axes.NAME_AXIS | {"grid": False, "labelFontWeight": axes.BOLD_GROUPS} | labels,
    }


_LOOKS: list[Spec] = [
    {
        "calculate": f"datum.state === 'noise' ? '{NOISE}' : datum.value < 0 ? '{DOWN}' : '{UP}'",
        "as": "look",
    },
    {"calculate": "isValid(datum.noise) ? -datum.noise : 0", "as": "floor_low"},
    {"calculate": "isValid(datum.noise) ? datum.noise : 0", "as": "floor_high"},
]
_X: Spec = {
    "type": "quantitative",
    "title": None,
    "scale": {"zero": True},
    "axis": axes.CHANGE_AXIS | {"title": {"signal": axes.SCALE_TITLE}},
}
_COLOUR: Spec = {
    "field": "look",
    "type": "nominal",
    "title": None,
    "scale": {
        "domain": [DOWN, UP, NOISE],
        "range": [look.FORGOTTEN, look.GAINED, look.NEVER],
    },
    "legend": {"orient": "top"},
}
_HAS = [{"filter": "isValid(datum.value)"}]
_FLOOR: Spec = {
    "mark": {
        "type": "bar",
        "height": {"band": 0.8},
        "color": look.NEVER,
        "opacity": 0.22,
        "aria": False,
    },
    "encoding": {"x": _X | {"field": "floor_low", "stack": None}, "x2": {"field": "floor_high"}},
}
_LIMITS: Spec = {
    "transform": _HAS,
    "mark": {"type": "rule", "size": 2},
    "encoding": {"x": _X | {"field": "low"}, "x2": {"field": "high"}, "color": _COLOUR},
}
_POINT: Spec = {
    "transform": _HAS,
    "mark": {
        "type": "point",
        "filled": True,
        "size": 70,
        "opacity": 1,
        "cursor": "pointer",
        "strokeWidth": 2,
    },
    "encoding": {
        "x": _X | {"field": "value"},
        "color": _COLOUR,
        "stroke": _COLOUR,
        "fillOpacity": {"condition": {"test": "datum.state === 'open'", "value": 0}, "value": 1},
        "tooltip": TOOLTIP,
    },
}
_NOTHING: Spec = {
    "transform": [{"filter": "!isValid(datum.value)"}],
    "mark": {
        "type": "text",
        "align": "left",
        "dx": 6,
        "fontSize": 11,
        "fontStyle": "italic",
        "color": look.by_theme({"light": "#57606a", "dark": "#a3abb5"}),
        "cursor": "pointer",
    },
    "encoding": {"x": {"datum": 0}, "text": {"field": "shown"}},
}
