"""Heat map of pairs by category, the groups of a study one below the other."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.study import axes
from forgetmap.study import Effect, StudyDetail
from forgetmap.text import share

SHADES: dict[Effect, str] = {"forgetting": "oranges", "backward_transfer": "blues"}
DASH = "\N{EN DASH}"
MAX_PRINTED = 600
"""Maximum number of cells with printed values."""


def study_heat_map(detail: StudyDetail, effect: Effect) -> Figure | None:
    """Draw every pair, including missing ones, by category."""
    records = _records(detail, effect)
    known = [record for record in records if record["value"] is not None]
    if not known or len(detail.categories) < 2:
        return None
    most = max(known, key=lambda record: record["value"])
    what = axes.NAMES[effect]
    alt = (
        f"{what.capitalize()} of {len(detail.pairs)} pairs in {len(detail.categories) - 1} "
        f"categories: most is {share(most['value'])}, {most['name']} in {most['category']}."
    )
    return Figure(
        name=f"heat_{effect}",
        title=f"{what.capitalize()} of every pair in every category",
        caption="Pairs in rows, by stage; categories in columns, the total first; darker is "
        "more. A cell with a dash has no items, and a row without a run is empty, not 0."
        + axes.CLIPPED,
        alt=alt,
        table=as_table(records),
        spec=_spec(alt, records, effect),
    )


def _records(detail: StudyDetail, effect: Effect) -> list[Record]:
    records = []
    for order, row in enumerate(axes.declared_rows(detail)):
        pair = row.pair
        for place, category in enumerate(detail.categories):
            record = axes.estimate_record(pair.category(category) if pair else None, effect)
            words = share(record["value"]) if record["value"] is not None else DASH
            if pair is None:
                words = axes.NO_RUN if not place and not row.is_head else ""
            records.append(
                {
                    "name": row.name, "group": row.group, "order": order,
                    "category": look.label_of(category), "place": place, **record,
                    "shown": words,
                }
            )  # fmt: skip
    return records


def _spec(alt: str, records: list[Record], effect: Effect) -> Spec:
    x: Spec = {
        "field": "category", "type": "nominal", "title": None,
        "sort": {"field": "place", "op": "min"},
        "axis": {"orient": "top", "labelAngle": -30, "labelLimit": 160, "ticks": False,
                 "domain": False},
    }  # fmt: skip
    count = len({record["order"] for record in records})
    text = [_TEXT] if len(records) <= MAX_PRINTED else []
    tips = [
        {"field": "name", "title": "pair"},
        {"field": "group", "title": "stage"},
        {"field": "category"},
        {"field": "shown", "title": axes.NAMES[effect]},
        {"field": "low", "title": "at least", "format": ".1%"},
        {"field": "high", "title": "at most", "format": ".1%"},
    ]
    return look.base_spec(alt) | {
        "data": {"values": records},
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 40},  # a slanted heading needs room
        "height": (24 if len(records) <= MAX_PRINTED else 14) * count,
        "encoding": {"x": x, "y": axes.name_axis()},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": look.by_theme(look.GROUND), "strokeWidth": 1},
                "encoding": {
                    "color": {
                        "field": "value", "type": "quantitative", "title": None,
                        "scale": {"scheme": SHADES[effect], "zero": True},
                        "legend": {"format": look.SHARE, "orient": "bottom", "tickCount": 4},
                    },
                    "tooltip": tips,
                },
            },
            *text,
        ],
    }  # fmt: skip


_TEXT: Spec = {
    "mark": {
        "type": "text",
        "fontSize": 11,
        "color": {
            "expr": "!isValid(datum.value) ? (dark ? '#e6e6e6' : '#24292f') : "
            "luminance(scale('color', datum.value)) < 0.18 ? 'white' : 'black'"
        },
    },
    "encoding": {"text": {"field": "shown"}},
}
