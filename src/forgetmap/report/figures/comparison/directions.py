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
    groups = [group for group in data.groups(payload, 0, level) if group.n]
    if len(groups) < MIN_GROUPS:
        return None
    more = sum(group.forgotten > group.gained for group in groups)
    alt = f"{more:,} of {len(groups):,} {data.plural(level)} forgot more than they gained."
    return Figure(
        name="directions",
        title=f"Forgotten against gained, by {level}",
        caption=f"Each point is a {level}; larger points have more results. Above the line, more "
        "was forgotten than gained." + data.clipped_note(payload),
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
        "layer": [diagonal("forgotten", "gained"), _POINT],
    }


def side_by_side() -> list[Spec]:
    """Return transforms that join both directions of a group; a direction without data is empty."""
    columns = {"forgotten": "forgetting", "gained": "backward_transfer"}
    return [
        {"calculate": look.KEY, "as": "key"},
        *(
            {"calculate": f"datum.direction === '{direction}' ? datum.value : null", "as": name}
            for name, direction in columns.items()
        ),
        {
            "aggregate": [{"op": "max", "field": name, "as": name} for name in (*columns, "n")],
            "groupby": ["key", "group"],
        },
    ]


def diagonal(across: str, up: str) -> Spec:
    """Return the line of equality from 0, which also gives both axes the same upper end."""
    ends = [{"op": "max", "field": name, "as": name} for name in (across, up)]
    return {
        "transform": [
            {"filter": f"isValid(datum.{across}) && isValid(datum.{up})"},
            {"aggregate": ends},
            {"calculate": f"max(datum.{across}, datum.{up})", "as": "top"},
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


_X, _Y = axis("gained", "gained"), axis("forgotten", "forgotten")
_TOOLTIP: list[Spec] = [
    {"field": "group"},
    {"field": "forgotten", "format": ".1%"},
    {"field": "gained", "format": ".1%"},
    {"field": "n", "title": "results", "format": ","},
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
