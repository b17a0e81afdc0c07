"""Each category (or task): forgetting and gains with their intervals."""

from __future__ import annotations

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.payloads.schema import NOISE_FLOOR, Payload

ALL = "all items"
MAX_TALL_ROWS = 20
ABOVE_ALL = 9
"""Sort key above every share."""


def forest(payload: Payload) -> Figure | None:
    """Draw one line per group, sorted by losses, with the total on top."""
    level = data.named_level(payload)
    estimates = data.points(payload, level)
    if not estimates:
        return None
    gained = data.points(payload, level, "backward_transfer")
    many = data.plural(level)
    alt = (
        f"Estimates of {len(estimates):,} {many}: forgetting {data.extremes(estimates)}; "
        f"gained {data.extremes(gained)}."
    )
    facts = _facts(payload)
    return Figure(
        name="categories" if level == "category" else "tasks",
        title=f"Forgotten and gained, by {level}",
        caption="Points are estimates, lines are their intervals. A thick bar without a point "
        "is a range: the data do not determine where in it the value is."
        + (
            " The grey band is the noise floor: the share of answers that flip one way between two "
            "runs of the same model. It is shown for raw counts; other estimators subtract it."
        )
        * (NOISE_FLOOR in payload.rows.estimator)
        + data.clipped_note(payload)
        + data.left_out(payload, level),
        alt=alt,
        table=data.rows_at(payload, ("total", level)),
        spec=_spec(payload, alt, facts),
    )


def _facts(payload: Payload) -> list[Record]:
    level = data.named_level(payload)
    facts: list[Record] = []
    for index, result in enumerate(payload.comparisons):
        names = set(data.drawn_groups(payload, index, level))
        lines = [(look.key_of(index, "total", result.total.name), ALL, result.total)]
        lines += [
            (look.key_of(index, level, group.name), look.label_of(group.name), group)
            for group in data.groups(payload, index, level)
            if group.name in names
        ]
        facts += [
            {
                "key": key,
                "label": label,
                "comparison": index,
                "raw": group.headline.estimator == "raw",
            }
            for key, label, group in lines
        ]
    return facts


def _spec(payload: Payload, alt: str, facts: list[Record]) -> Spec:
    lines = look.most_per_comparison([fact["comparison"] for fact in facts])
    return look.vega_lite(payload, alt) | {
        "data": {"name": "rows"},
        "height": lines * (30 if lines <= MAX_TALL_ROWS else 22),
        "transform": [
            {
                "filter": look.row_filter(
                    payload, "total", data.named_level(payload), beside=NOISE_FLOOR
                )
            },
            *look.with_facts(facts, "label", "raw"),
            *_ORDER,
        ],
        "layer": [
            _FLOOR,
            _ZERO,
            {
                "transform": [{"filter": "datum.estimator === estimator"}],
                "encoding": _LINE,
                "layer": [_LIMITS, _POINT],
            },
        ],
    }


_MIDDLE = "isValid(datum.value) ? datum.value : (datum.low + datum.high) / 2"
_ORDER: list[Spec] = [
    {
        "calculate": f"datum.level === 'total' ? {ABOVE_ALL} : "
        f"datum.estimator === estimator && datum.direction === 'forgetting' ? {_MIDDLE} : null",
        "as": "order",
    },
    {
        "calculate": "datum.direction === 'backward_transfer' ? 'gained' : datum.direction",
        "as": "what",
    },
    {
        "calculate": "isValid(datum.value) ? format(datum.value, '.1%') : 'within the range'",
        "as": "shown",
    },
]
_GROUP: Spec = {
    "field": "label",
    "type": "nominal",
    "title": None,
    "sort": {"field": "order", "op": "max", "order": "descending"},
    "axis": look.NAME_AXIS | {"grid": False},
}
_LINE: Spec = {
    "y": _GROUP,
    "yOffset": {
        "field": "direction",
        "scale": {"domain": ["forgetting", "backward_transfer"], "paddingOuter": 0.25},
    },
    "color": look.COLOUR,
    "tooltip": [
        {"field": "label", "title": "group"},
        {"field": "what", "title": "direction"},
        {"field": "shown", "title": "value"},
        {"field": "low", "format": ".1%"},
        {"field": "high", "format": ".1%"},
        {"field": "n", "title": "results", "format": ","},
    ],
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
_LIMITS: Spec = {
    "mark": {"type": "rule", "strokeCap": "butt"},
    "encoding": {
        "x": _VALUE | {"field": "low"},
        "x2": {"field": "high"},
        "size": {"condition": {"test": "!isValid(datum.value)", "value": 7}, "value": 1.5},
        "opacity": {"condition": {"test": "!isValid(datum.value)", "value": 0.75}, "value": 1},
    },
}
_POINT: Spec = {
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
    },
}

_ZERO: Spec = {
    "mark": look.ZERO_MARK,
    "encoding": {"x": {"datum": 0}},
}
_FLOOR: Spec = {
    "transform": [
        {
            "calculate": f"datum.estimator === '{NOISE_FLOOR}' && isValid(datum.value) && "
            "(estimator === 'raw' || estimator === 'headline' && datum.raw) ? datum.value : 0",
            "as": "floor",
        }
    ],
    "mark": {
        "type": "bar",
        "height": {"band": 0.9},
        "color": look.NEVER,
        "opacity": 0.3,
        "aria": False,
    },
    "encoding": {
        "y": _GROUP,
        "x": _VALUE | {"field": "floor", "stack": None},
        "tooltip": [{"field": "floor", "title": "noise floor", "format": ".1%"}],
    },
}
"""A band per group, only with raw shares: it is not comparable with other estimators."""
