"""Forgotten against gained, one point per task (or category)."""

from __future__ import annotations

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Spec
from forgetmap.report.payloads.schema import Payload

MIN_GROUPS = 2
TICKS = 6


def directions(payload: Payload) -> Figure | None:
    """Draw losses against gains of each group."""
    level = data.fine_level(payload)
    lost = {estimate.group: estimate.middle for estimate in data.points(payload, level)}
    gained = {
        estimate.group: estimate.middle
        for estimate in data.points(payload, level, "backward_transfer")
    }
    both = [
        (loss, gain)
        for group, loss in lost.items()
        if loss is not None and (gain := gained.get(group)) is not None
    ]
    if len(both) < MIN_GROUPS:
        return None
    more = sum(loss > gain for loss, gain in both)
    alt = f"{more:,} of {len(both):,} {data.plural(level)} lost more than they gained."
    return Figure(
        name="directions",
        title=f"Forgotten against gained, by {level}",
        caption=f"Each point is a {level}; larger points have more results. Above the line, more "
        "was forgotten than gained. A cross without a point is a range in both directions."
        + data.clipped_note(payload),
        alt=alt,
        table=data.rows_at(payload, (level,)),
        spec=_spec(payload, alt),
    )


def _spec(payload: Payload, alt: str) -> Spec:
    return look.vega_lite(payload, alt) | {
        "data": {"name": "rows"},
        "height": 380,
        "transform": [
            {"filter": look.row_filter(payload, data.fine_level(payload))},
            *side_by_side(),
        ],
        "layer": [diagonal("lost", "gained"), *_CROSS, _POINT],
    }


def side_by_side() -> list[Spec]:
    """Return transforms that join both directions of a group; a direction without data is empty."""
    short = {"lost": "forgetting", "gained": "backward_transfer"}
    columns = [
        (f"{name}{end}", direction, field)
        for name, direction in short.items()
        for end, field in (("", "value"), ("_low", "low"), ("_high", "high"))
    ]
    return [
        {"calculate": look.KEY, "as": "key"},
        *(
            {
                "calculate": f"datum.direction === '{direction}' ? datum.{field} : null",
                "as": name,
            }
            for name, direction, field in columns
        ),
        {
            "aggregate": [
                {"op": "max", "field": name, "as": name} for name in [*(c[0] for c in columns), "n"]
            ],
            "groupby": ["key", "group"],
        },
        *(
            step
            for name in short
            for step in end_points(name, f"datum.{name}_low", f"datum.{name}_high")
        ),
    ]


def end_points(name: str, low: str, high: str) -> list[Spec]:
    """Return transforms for the position of a value or a range: its middle and its ends."""
    ends = {"at": f"({low} + {high}) / 2", "from": low, "to": high}
    return [
        {"calculate": f"isValid(datum.{name}) ? datum.{name} : {other}", "as": f"{name}_{end}"}
        for end, other in ends.items()
    ]


def diagonal(across: str, up: str) -> Spec:
    """Return the line of equality from 0, which also gives both axes the same upper end."""
    ends = [("max", f"{name}_to") for name in (across, up)]
    return {
        "transform": [
            {"filter": f"isFinite(datum.{across}_at) && isFinite(datum.{up}_at)"},
            {"aggregate": [{"op": op, "field": name, "as": name} for op, name in ends]},
            {"calculate": f"max(datum.{across}_to, datum.{up}_to)", "as": "top"},
            {"calculate": "0", "as": "bottom"},
        ],
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": look.NEVER},
        "encoding": {
            "x": {"field": "bottom", "type": "quantitative"},
            "y": {"field": "bottom", "type": "quantitative"},
            "x2": {"field": "top"},
            "y2": {"field": "top"},
        },
    }


def axis(name: str, title: str) -> Spec:
    """Return an axis of shares."""
    return {
        "field": name,
        "type": "quantitative",
        "title": title,
        "axis": {"format": look.SHARE, "tickCount": TICKS, "offset": 10, "labelFlush": False},
        "scale": {"nice": TICKS},
    }


_X, _Y = axis("gained", "gained"), axis("lost", "forgetting")
_TOOLTIP: list[Spec] = [
    {"field": "group"},
    {"field": "lost", "title": "forgetting", "format": ".1%"},
    {"field": "gained", "title": "gained", "format": ".1%"},
    {"field": "n", "title": "results", "format": ","},
]
_RANGE: Spec = {
    "mark": {"type": "rule", "size": 2, "opacity": 0.45, "color": look.FORGOTTEN},
}
_CROSS: list[Spec] = [
    _RANGE
    | {
        "encoding": {
            "x": _X | {"field": "gained_from"},
            "x2": {"field": "gained_to"},
            "y": _Y | {"field": "lost_at"},
            "tooltip": _TOOLTIP,
        }
    },
    _RANGE
    | {
        "encoding": {
            "y": _Y | {"field": "lost_from"},
            "y2": {"field": "lost_to"},
            "x": _X | {"field": "gained_at"},
            "tooltip": _TOOLTIP,
        }
    },
]
SIZE: Spec = {
    "field": "n",
    "type": "quantitative",
    "scale": {"range": [30, 220]},
    "legend": None,
}
_POINT: Spec = {
    "mark": {"type": "point", "filled": True, "color": look.FORGOTTEN, "opacity": 0.8},
    "encoding": {"x": _X, "y": _Y, "size": SIZE, "tooltip": _TOOLTIP},
}
