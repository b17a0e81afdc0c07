"""Accuracy change against forgetting, one point per task (or category)."""

from __future__ import annotations

from forgetmap.report.figures import data, look
from forgetmap.report.figures.comparison.directions import (
    MIN_GROUPS,
    SIZE,
    axis,
    diagonal,
)
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.payloads.schema import Payload


def conventional(payload: Payload) -> Figure | None:
    """Draw how much of the loss a drop in accuracy shows."""
    level = data.fine_level(payload)
    facts = _facts(payload)
    first = [fact for fact in facts if fact["comparison"] == 0]
    if len(first) < MIN_GROUPS:
        return None
    hidden = sum(fact["drop"] <= 0 and fact["forgotten"] > 0 for fact in first)
    alt = (
        f"{hidden:,} of {len(first):,} {data.plural(level)} forgot items although their accuracy "
        f"did not drop; the largest drop is {max(fact['drop'] for fact in first):.1%}, the "
        f"largest share forgotten {max(fact['forgotten'] for fact in first):.1%}."
    )
    return Figure(
        name="conventional",
        title=f"Accuracy drop and forgotten items, by {level}",
        caption=f"Each point is a {level}; larger points have more results. Horizontal: accuracy "
        "drop (left of 0, accuracy rose). Vertical: forgotten, counted item by item. The "
        "further a point is above the line, the more the average hides. Both are shares of "
        "all items.",
        alt=alt,
        table={
            name: [fact[name] for fact in facts]
            for name in ("comparison", "group", "drop", "forgotten")
        },
        spec=_spec(payload, alt, facts),
    )


def _facts(payload: Payload) -> list[Record]:
    level = data.fine_level(payload)
    return [
        {
            "key": look.key_of(index, level, group.name),
            "group": group.name,
            "label": look.label_of(group.name),
            "comparison": index,
            # Rounded: floating-point errors would look like a change.
            "drop": round(group.acc_before - group.acc_after, 9),
            "forgotten": data.counted_share(group),
        }
        for index in range(len(payload.comparisons))
        for group in data.groups(payload, index, level)
        if group.acc_before is not None
        and group.acc_after is not None
        and group.forgetting.value is not None
    ]


def _spec(payload: Payload, alt: str, facts: list[Record]) -> Spec:
    return look.vega_lite(payload, alt) | {
        "data": {"name": "rows"},
        "height": 380,
        "transform": [
            {
                "filter": look.row_filter(payload, data.fine_level(payload), scale="'items'")
                + " && datum.direction === 'forgetting'"
            },
            *look.with_facts(facts, "label", "drop"),
        ],
        "layer": [diagonal("drop", "value"), _POINT],
    }


_X, _Y = axis("drop", "accuracy drop"), axis("value", "forgotten, item by item")
_TOOLTIP: list[Spec] = [
    {"field": "label", "title": "group"},
    {"field": "drop", "title": "accuracy drop", "format": ".1%"},
    {"field": "value", "title": "forgotten", "format": ".1%"},
    {"field": "n", "title": "results", "format": ","},
]
_POINT: Spec = {
    "mark": {"type": "point", "filled": True, "color": look.FORGOTTEN, "opacity": 0.8},
    "encoding": {"x": _X, "y": _Y, "size": SIZE, "tooltip": _TOOLTIP},
}
