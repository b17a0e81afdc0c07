"""Heat maps of several models after by category."""

from __future__ import annotations

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.payloads.schema import Direction, Payload

MIN_COMPARISONS = 2
MAX_PRINTED = 240
"""Maximum number of cells with printed values."""

SHADES: dict[Direction, str] = {"forgetting": "oranges", "backward_transfer": "blues"}


def heat_maps(payload: Payload) -> list[Figure]:
    """Draw one heat map for each direction."""
    if len(data.each_pair(payload)) < MIN_COMPARISONS:
        return []
    figures = [_heat_map(payload, direction) for direction in SHADES]
    return [figure for figure in figures if figure is not None]


def _heat_map(payload: Payload, direction: Direction) -> Figure | None:
    level = data.named_level(payload)
    facts = _facts(payload)
    if not facts:
        return None
    what = direction.replace("_", " ")
    rows = "Stages" if payload.kind == "chain" else "Models"
    names = data.names_after(payload)
    summary = "; ".join(
        f"{names[index]}: {data.extremes(data.points(payload, level, direction, index))}"
        for index in data.each_pair(payload)
    )
    alt = f"{what.capitalize()} of {len(data.each_pair(payload))} {rows.lower()}: {summary}."
    return Figure(
        name=f"heat_{direction}",
        title=f"{what.capitalize()} of each {rows[:-1].lower()} by {level}",
        caption=f"{rows} in columns, {data.plural(level)} in rows; darker is more. A range is "
        "shaded by its middle; an empty cell has no data."
        + data.clipped_note(payload)
        + data.left_out(payload, level),
        alt=alt,
        table=data.rows_at(payload, (level,)),
        spec=_spec(payload, alt, direction, facts),
    )


def _facts(payload: Payload) -> list[Record]:
    """Return the same groups for all models: those with the largest losses in any of them."""
    level = data.named_level(payload)
    names = data.names_after(payload)
    worst: dict[str, float] = {}
    for index in data.each_pair(payload):
        for estimate in data.points(payload, level, comparison=index):
            worst[estimate.group] = max(worst.get(estimate.group, -1.0), estimate.middle or -1.0)
    groups = sorted(worst, key=lambda name: (-worst[name], name))[: data.MAX_GROUPS]
    return [
        {
            "key": look.key_of(index, level, group),
            "label": look.label_of(group),
            "after": look.label_of(names[index]),
            "place": index,
        }
        for index in data.each_pair(payload)
        for group in groups
    ]


def _spec(payload: Payload, alt: str, direction: Direction, facts: list[Record]) -> Spec:
    level = data.named_level(payload)
    text = [_TEXT] if len(facts) <= MAX_PRINTED else []
    return look.vega_lite(payload, alt, one=False) | {
        "data": {"name": "rows"},
        "height": 24 * look.most_per_comparison([fact["place"] for fact in facts]),
        "transform": [
            {
                "filter": f"datum.level === '{level}' && datum.direction === '{direction}' && "
                "datum.estimator === estimator && datum.scale === scale"
            },
            *look.with_facts(facts, "label", "after", "place"),
            *_CELL_STEPS,
        ],
        "encoding": _PLACES,
        "layer": [_cells(direction), *text],
    }


_CELL_STEPS: list[Spec] = [
    {
        "calculate": "isValid(datum.value) ? datum.value : "
        "isValid(datum.low) ? (datum.low + datum.high) / 2 : null",
        "as": "shade",
    },
    {
        "calculate": "isValid(datum.value) ? format(datum.value, '.1%') : isValid(datum.low) ? "
        "format(100 * datum.low, '.0f') + ' to ' + format(datum.high, '.0%') : 'no data'",
        "as": "shown",
    },
]
_PLACES: Spec = {
    "x": {
        "field": "after",
        "type": "nominal",
        "title": None,
        "sort": {"field": "place", "op": "min"},
        "axis": {
            "orient": "top",
            "labelAngle": -30,
            "labelLimit": 160,
            "ticks": False,
            "domain": False,
        },
    },
    "y": {
        "field": "label",
        "type": "nominal",
        "title": None,
        "sort": {"field": "shade", "op": "max", "order": "descending"},
        "axis": look.NAME_AXIS,
    },
}
_TEXT: Spec = {
    "mark": {
        "type": "text",
        "fontSize": 11,
        "color": {
            "expr": "!isValid(datum.shade) ? (dark ? '#e6e6e6' : '#24292f') : "
            "luminance(scale('color', datum.shade)) < 0.18 ? 'white' : 'black'"
        },
    },
    "encoding": {"text": {"field": "shown"}},
}


def _cells(direction: Direction) -> Spec:
    return {
        "mark": {"type": "rect", "stroke": look.by_theme(look.GROUND), "strokeWidth": 1},
        "encoding": {
            "color": {
                "field": "shade",
                "type": "quantitative",
                "title": None,
                "scale": {"scheme": SHADES[direction], "zero": True},
                "legend": {"format": look.SHARE, "orient": "bottom", "tickCount": 4},
            },
            "tooltip": [
                {"field": "after", "title": "model"},
                {"field": "label", "title": "group"},
                {"field": "shown", "title": "value"},
                {"field": "low", "format": ".1%"},
                {"field": "high", "format": ".1%"},
                {"field": "n", "title": "results", "format": ","},
            ],
        },
    }
