"""Each category (or task): what was forgotten and gained, and what is proven."""

from __future__ import annotations

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.payloads.schema import PROVEN, Payload

ALL = "all items"
MAX_TALL_ROWS = 20


def forest(payload: Payload) -> Figure | None:
    """Draw one line per group, sorted by proven loss, with the total on top."""
    level = data.named_level(payload)
    count = len(data.groups(payload, 0, level))
    if not count:
        return None
    alt = (
        f"{count:,} {data.plural(level)}: forgotten {data.extremes(payload, level)}; "
        f"gained {data.extremes(payload, level, 'backward_transfer')}."
    )
    return Figure(
        name="categories" if level == "category" else "tasks",
        title=f"Forgotten and gained, by {level}",
        caption="Points are what was counted, with noise and luck, or another estimate; thin "
        "lines are their intervals. The wide bar is what is proven: at least, and at most."
        + data.clipped_note(payload, limits=True)
        + data.left_out(payload, level),
        alt=alt,
        table=data.rows_at(payload, ("total", level)),
        spec=_spec(payload, alt, _facts(payload)),
    )


def _facts(payload: Payload) -> list[Record]:
    level = data.named_level(payload)
    facts: list[Record] = []
    for index, result in enumerate(payload.comparisons):
        lines = [(look.key_of(index, "total", result.total.name), ALL)]
        lines += [
            (look.key_of(index, level, group.name), look.label_of(group.name))
            for group in data.drawn_groups(payload, index, level)
        ]
        facts += [
            {"key": key, "label": label, "comparison": index, "place": place}
            for place, (key, label) in enumerate(lines)
        ]
    return facts


def _spec(payload: Payload, alt: str, facts: list[Record]) -> Spec:
    lines = look.most_per_comparison([fact["comparison"] for fact in facts])
    rows = look.row_filter(payload, "total", data.named_level(payload), beside=PROVEN)
    return look.vega_lite(payload, alt) | {
        "data": {"name": "rows"},
        "height": lines * (30 if lines <= MAX_TALL_ROWS else 22),
        "transform": [
            {"filter": rows},
            *look.with_facts(facts, "label", "place"),
            {
                "calculate": "datum.direction === 'backward_transfer' ? 'gained' : 'forgotten'",
                "as": "what",
            },
        ],
        "layer": [_ZERO, {"encoding": _LINE, "layer": [_PROVEN, _LIMITS, _POINT]}],
    }


_LINE: Spec = {
    "y": {
        "field": "label",
        "type": "nominal",
        "title": None,
        "sort": {"field": "place", "op": "min"},
        "axis": look.NAME_AXIS | {"grid": False},
    },
    "yOffset": {
        "field": "direction",
        "scale": {"domain": ["forgetting", "backward_transfer"], "paddingOuter": 0.25},
    },
    "color": look.COLOUR,
}
_VALUE: Spec = {
    "type": "quantitative",
    "title": None,
    "axis": {
        "format": look.SHARE,
        "tickCount": 6,
        "labelFlush": False,
        "title": {"signal": look.SCALE_TITLE},
    },
}
_RULE: Spec = {"encoding": {"x": _VALUE | {"field": "low"}, "x2": {"field": "high"}}}
_PROVEN: Spec = {
    "transform": [{"filter": f"datum.estimator === '{PROVEN}'"}],
    "mark": {"type": "rule", "strokeCap": "butt", "size": 9, "opacity": 0.35},
    "encoding": _RULE["encoding"]
    | {
        "tooltip": [
            {"field": "label", "title": "group"},
            {"field": "what", "title": "direction"},
            {"field": "low", "title": "at least", "format": ".1%"},
            {"field": "high", "title": "at most", "format": ".1%"},
        ]
    },
}
_ESTIMATE: list[Spec] = [{"filter": "datum.estimator === estimator"}]
_LIMITS: Spec = _RULE | {"transform": _ESTIMATE, "mark": {"type": "rule", "size": 1.5}}
_POINT: Spec = {
    "transform": _ESTIMATE,
    "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
    "encoding": {
        "x": _VALUE | {"field": "value"},
        "shape": {
            "field": "direction",
            "title": None,
            "scale": {
                "domain": ["forgetting", "backward_transfer"],
                "range": ["circle", "diamond"],
            },
            "legend": look.COLOUR["legend"],
        },
        "tooltip": [
            {"field": "label", "title": "group"},
            {"field": "what", "title": "direction"},
            {"field": "value", "format": ".1%"},
            {"field": "low", "format": ".1%"},
            {"field": "high", "format": ".1%"},
            {"field": "n", "title": "results", "format": ","},
        ],
    },
}
_ZERO: Spec = {"mark": look.ZERO_MARK, "encoding": {"x": {"datum": 0}}}
