"""Reasons for forgotten items: the outcomes of the answers after."""

from __future__ import annotations

from forgetmap.comparison import REASON_LABELS
from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.schema import Payload

TABLE = ("comparison", "group", "reason", "forgotten")
COLOURS = ["#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#0072B2", "#009E73", "#8c8c8c"]


def reasons(payload: Payload) -> Figure | None:
    """Draw one bar per group by reason; None if no outcomes were recorded."""
    records = _records(payload)
    if all(record["reason"] == REASON_LABELS["unknown"] for record in records):
        return None
    total = payload.comparisons[0].total
    counts = {REASON_LABELS[name]: count for name, count in total.reasons.items() if count}
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])
    summary = ", ".join(f"{name} {count:,}" for name, count in ordered) or "nothing was forgotten"
    alt = f"Of {total.n10:,} forgotten results: {summary}."
    level = data.named_level(payload)
    return Figure(
        name="reasons",
        title=f"Reasons for forgetting, by {level}",
        caption="Results that were right before and wrong after, by the outcome of the answer "
        "after. All outcomes except a wrong answer may be a failure to answer rather than a "
        "loss of knowledge." + data.left_out(payload, level),
        alt=alt,
        table=as_table([{name: record[name] for name in TABLE} for record in records]),
        spec=_spec(payload, alt, records),
    )


def _records(payload: Payload) -> list[Record]:
    level = data.named_level(payload)
    return [
        {
            "comparison": index,
            "group": group.name,
            "label": look.label_of(group.name),
            "reason": words,
            "place": order,
            "forgotten": group.reasons[name],
        }
        for index in range(len(payload.comparisons))
        for group in data.drawn_groups(payload, index, level)
        for order, (name, words) in enumerate(REASON_LABELS.items())
        if group.reasons.get(name)
    ]


def _spec(payload: Payload, alt: str, records: list[Record]) -> Spec:
    reasons = {record["reason"] for record in records}
    colours = {
        name: colour
        for name, colour in zip(REASON_LABELS.values(), COLOURS, strict=True)
        if name in reasons
    }
    bars = {(record["comparison"], record["group"]) for record in records}
    return look.vega_lite(payload, alt) | {
        "data": {"values": records},
        "height": 22 * look.most_per_comparison([index for index, _ in bars]),
        "transform": [{"filter": look.of_one(payload)}],
        "mark": {"type": "bar"},
        "encoding": {
            "y": {
                "field": "label",
                "type": "nominal",
                "title": None,
                "sort": {"field": "forgotten", "op": "sum", "order": "descending"},
                "axis": look.NAME_AXIS,
            },
            "x": {
                "field": "forgotten",
                "type": "quantitative",
                "title": "results forgotten",
                "axis": {"tickMinStep": 1, "tickCount": 6, "format": ",d"},
            },
            "color": {
                "field": "reason",
                "title": None,
                "scale": {"domain": list(colours), "range": list(colours.values())},
                "legend": {"orient": "top", "columns": 3},
            },
            "order": {"field": "place"},
            "tooltip": [
                {"field": "label", "title": "group"},
                {"field": "reason"},
                {"field": "forgotten", "title": "results", "format": ","},
            ],
        },
    }
