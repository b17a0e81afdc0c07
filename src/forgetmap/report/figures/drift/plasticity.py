"""Gains on target tasks against the drift of each group."""

from __future__ import annotations

from forgetmap.capabilities import TARGET
from forgetmap.report.figures import look
from forgetmap.report.figures.drift.axes import CHANGE_AXIS, SCALE_TITLE, rows_at
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.schema import Capabilities, Payload

HEIGHT = 340
MAX_NAMES = 8
"""Maximum number of models with names."""


def plasticity(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw the figure if target tasks of the training are named."""
    records = _records(drift)
    if not records:
        return None
    models = drift.result.models
    first = [record for record in records if record["scale"] == drift.scales[0].name]
    costly = {record["after"] for record in first if record["learnt"] > 0 > record["drift"]}
    alt = (
        f"Of {len({record['after'] for record in first}):,} models, {len(costly):,} learned "
        "their target tasks and got worse in some group."
    )
    return Figure(
        name="plasticity",
        title="Learning and its cost",
        caption="Horizontal: drift of the tasks the models were trained for. Vertical: drift of "
        "each group of capabilities. Lower right: learned at the cost of other "
        "capabilities. Lines are 95% intervals. Groups where any change is drift go up if "
        "there is more.",
        alt=alt,
        table=as_table(records),
        spec=look.vega_lite(payload, alt, one=False)
        | {
            "data": {"values": records},
            "height": HEIGHT,
            "transform": [{"filter": "datum.scale === scale"}],
            "encoding": {"color": _colour(records)},
            "layer": [
                *_ZEROS,
                *_LIMITS,
                _point(records),
                *([_NAMES] if len(models) <= MAX_NAMES else []),
            ],
        },
    )


def _records(drift: Capabilities) -> list[Record]:
    rows = rows_at(drift, "group")
    learnt = {(row["after"], row["scale"]): row for row in rows if row["id"] == TARGET}
    return [
        {
            "after": row["after"],
            "group": row["id"],
            "scale": row["scale"],
            "learnt": target["value"],
            "learnt_low": target["low"],
            "learnt_high": target["high"],
            "drift": row["value"],
            "low": row["low"],
            "high": row["high"],
            "first": row["order"] == 0,
        }
        for row in rows
        if row["id"] != TARGET and row["value"] is not None
        and (target := learnt.get((row["after"], row["scale"]))) is not None
        and target["value"] is not None
    ]  # fmt: skip


def _groups(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(record["group"] for record in records))


def _colour(records: list[Record]) -> Spec:
    groups = _groups(records)
    return {
        "field": "group",
        "type": "nominal",
        "title": None,
        "scale": {"domain": groups, "range": look.MODELS[: len(groups)]},
        "legend": {"orient": "top", "symbolOpacity": 1},
    }


_X: Spec = {
    "field": "learnt",
    "type": "quantitative",
    "title": None,
    "axis": CHANGE_AXIS | {"title": {"signal": f"'target tasks: ' + ({SCALE_TITLE})"}},
}
_Y: Spec = {
    "field": "drift",
    "type": "quantitative",
    "title": None,
    "axis": CHANGE_AXIS | {"title": {"signal": f"'group: ' + ({SCALE_TITLE})"}},
}
_ZEROS: list[Spec] = [
    {"mark": look.ZERO_MARK, "encoding": {"x": {"datum": 0}, "color": {"value": look.NEVER}}},
    {"mark": look.ZERO_MARK, "encoding": {"y": {"datum": 0}, "color": {"value": look.NEVER}}},
]
_LIMITS: list[Spec] = [
    {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "opacity": 0.45},
        "encoding": {"x": _X, "y": _Y | {"field": "low"}, "y2": {"field": "high"}},
    },
    {
        "transform": [{"filter": "isValid(datum.learnt_low)"}],
        "mark": {"type": "rule", "opacity": 0.45},
        "encoding": {"y": _Y, "x": _X | {"field": "learnt_low"}, "x2": {"field": "learnt_high"}},
    },
]
_NAMES: Spec = {
    "transform": [{"filter": "datum.first"}],
    "mark": {"type": "text", "align": "left", "dx": 8, "dy": -8, "fontSize": 11},
    "encoding": {
        "x": _X,
        "y": _Y,
        "text": {"field": "after"},
        "color": {"value": look.by_theme(look.TEXT)},
    },
}


def _point(records: list[Record]) -> Spec:
    groups = _groups(records)
    return {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "x": _X,
            "y": _Y,
            "shape": {
                "field": "group",
                "title": None,
                "scale": {"domain": groups, "range": look.SHAPES[: len(groups)]},
            },
            "tooltip": [
                {"field": "after", "title": "model"},
                {"field": "group"},
                {"field": "learnt", "title": "target tasks", "format": "+.2f"},
                {"field": "drift", "format": "+.2f"},
                {"field": "low", "format": "+.2f"},
                {"field": "high", "format": "+.2f"},
            ],
        },
    }
