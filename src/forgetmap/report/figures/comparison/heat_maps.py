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
    what = look.WORDS[direction]
    rows = "Stages" if payload.kind == "chain" else "Models"
    names = data.names_after(payload)
    summary = "; ".join(
        f"{names[index]}: {data.extremes(payload, level, direction, index)}"
        for index in data.each_pair(payload)
    )
    alt = f"{what.capitalize()} by {len(data.each_pair(payload))} {rows.lower()}: {summary}."
    return Figure(
        name=f"heat_{direction}",
        title=f"{what.capitalize()} by each {rows[:-1].lower()}, by {level}",
        caption=f"{rows} in columns, {data.plural(level)} in rows; darker is more. An empty cell "
        "has no data." + data.clipped_note(payload) + data.left_out(payload, level),
        alt=alt,
        table=data.rows_at(payload, (level,)),
        spec=_spec(payload, alt, direction, facts),
    )


def _facts(payload: Payload) -> list[Record]:
    """Return the same groups for all models: those that any of them forgot most of."""
    level = data.named_level(payload)
    names = data.names_after(payload)
    worst: dict[str, float] = {}
    for index in data.each_pair(payload):
        for group in data.groups(payload, index, level):
            forgotten = data.counted_share(group) or 0.0
            worst[group.name] = max(worst.get(group.name, 0.0), forgotten)
    drawn = sorted(worst, key=lambda name: (-worst[name], name))[: data.MAX_GROUPS]
    return [
        {
            "key": look.key_of(index, level, name),
            "label": look.label_of(name),
            "after": look.label_of(names[index]),
            "place": index,
        }
        for index in data.each_pair(payload)
        for name in drawn
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
            _SHOWN,
        ],
        "encoding": _PLACES,
        "layer": [_cells(direction), *text],
    }


_SHOWN: Spec = {
    "calculate": "isValid(datum.value) ? format(datum.value, '.1%') : 'no data'",
    "as": "shown",
}
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
        "sort": {"field": "value", "op": "max", "order": "descending"},
        "axis": look.NAME_AXIS,
    },
}
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


def _cells(direction: Direction) -> Spec:
    return {
        "mark": {"type": "rect", "stroke": look.by_theme(look.GROUND), "strokeWidth": 1},
        "encoding": {
            "color": {
                "field": "value",
                "type": "quantitative",
                "title": None,
                "scale": {"scheme": SHADES[direction], "zero": True},
                "legend": {"format": look.SHARE, "orient": "bottom", "tickCount": 4},
            },
            "tooltip": [
                {"field": "after", "title": "model"},
                {"field": "label", "title": "group"},
                {"field": "shown", "title": look.WORDS[direction]},
                {"field": "low", "format": ".1%"},
                {"field": "high", "format": ".1%"},
                {"field": "n", "title": "results", "format": ","},
            ],
        },
    }
