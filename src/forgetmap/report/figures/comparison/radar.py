"""Two radar charts, forgetting and gains by category, one line per model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Figure, Record, Spec
from forgetmap.report.payloads.schema import Direction, Payload

MIN_SPOKES, MAX_SPOKES = 3, 24
RADIUS = 120
RINGS = 4
NARROW = "containerSize()[0] < 700 ? 1 : 2"
"""One panel below the other on a phone; without a browser there is no container."""
KEYS = 1000
"""Larger than the number of spokes, so that a model and a spoke can be combined in one number."""


def radar(payload: Payload) -> Figure | None:
    """Draw the radar charts if there are several pairs, and a readable number of categories."""
    level = data.named_level(payload)
    spokes = _spokes(payload)
    if payload.kind != "many" or not MIN_SPOKES <= len(spokes) <= MAX_SPOKES:
        return None
    models = _models(payload)
    summary = "; ".join(
        f"{model['model']}: {data.extremes(payload, level, comparison=model['key'])}"
        for model in models
    )
    alt = f"Forgotten by {len(models)} models over {len(spokes)} {data.plural(level)}: {summary}."
    more = len(payload.comparisons) - len(models)
    return Figure(
        name="radar",
        title=f"Forgotten and gained by each model, by {level}",
        caption="One line per model; further out is more. Each axis is scaled to its data. A "
        "gap in a line is a category without data. The dashed ring is zero, if values are "
        "negative."
        + data.clipped_note(payload)
        + f" {more} more models are in the heat maps." * (more > 0),
        alt=alt,
        table=data.rows_at(payload, (level,)),
        spec=_spec(payload, alt, spokes, models),
    )


def _spokes(payload: Payload) -> list[Record]:
    """Return the groups in the order of their names."""
    level = data.named_level(payload)
    names = sorted({
        group.name
        for index in range(len(payload.comparisons))
        for group in data.groups(payload, index, level)
    })  # fmt: skip
    return make_spokes(names, level)


def make_spokes(names: Sequence[str], level: str) -> list[Record]:
    """Return groups around a circle, each with its direction from the centre."""
    step = 2 * math.pi / max(len(names), 1)
    return [
        {
            "key": f"{level}|{name}",
            "label": look.label_of(name),
            "spoke": index,
            "next": (index + 1) % len(names),
            "angle": index * step - math.pi / 2,
            "next_angle": (index + 1) * step - math.pi / 2,
        }
        for index, name in enumerate(names)
    ]


def _models(payload: Payload) -> list[Record]:
    names = data.names_after(payload)
    places = data.each_pair(payload)[: len(look.MODELS)]
    return make_models({index: names[index] for index in places})


def make_models(names: Mapping[int, str]) -> list[Record]:
    """Return the lines of a radar: number in the rows -> name."""
    return [
        {
            "key": index,
            "model": look.label_of(name),
        }
        for index, name in names.items()
    ]


def _spec(payload: Payload, alt: str, spokes: list[Record], models: list[Record]) -> Spec:
    level = data.named_level(payload)
    return radar_spec(
        alt,
        spokes,
        models,
        signals=look.switches(payload, one=False),
        rows={"name": "rows"},
        chosen=f"datum.level === '{level}' && datum.estimator === estimator && "
        "datum.scale === scale",
    )


def radar_spec(
    alt: str,
    spokes: list[Record],
    models: list[Record],
    *,
    signals: list[Record],
    rows: Spec,
    chosen: str = "true",
    most: Mapping[str, float] | None = None,
) -> Spec:
    """Return two panels, for forgetting and backward transfer.

    Args:
        alt: text for screen readers.
        spokes: groups from `make_spokes`.
        models: models from `make_models`.
        signals: switches of the page.
        rows: the data set: records with comparison, level, group, direction, value, low and high.
        chosen: test for the rows to draw.
        most: direction -> end of its axis; by default it follows the data.
    """
    ends = most or {}
    return {
        "$schema": look.VEGA,
        "description": alt,
        "background": "transparent",
        "config": look.config("signal"),
        "signals": signals,
        "layout": {"columns": {"signal": NARROW}, "padding": 24, "bounds": "full", "align": "each"},
        "data": [
            {"name": "spokes", "values": spokes},
            {"name": "models", "values": models},
            rows,
            {"name": "points", "source": rows["name"], "transform": _chosen(chosen)},
            {"name": "lines", "source": "points", "transform": _joined()},
            {
                "name": "rings",
                "transform": [
                    {"type": "sequence", "start": 0, "stop": 3 * RINGS, "as": "ring"},
                ],
            },
        ],
        "scales": _scales(),
        "marks": [_panel(direction, ends.get(direction)) for direction in look.WORDS],
        "legends": [
            {
                "fill": "colour",
                "shape": "shape",
                "orient": "bottom",
                "direction": "vertical",
                "columns": 2,
                "symbolSize": 80,
            }
        ],
    }


def _chosen(test: str) -> list[Spec]:
    """Return the drawn rows with their spokes; lines end at spokes without a value."""
    return [
        {"type": "filter", "expr": test},
        {"type": "formula", "as": "key", "expr": "datum.level + '|' + datum.group"},
        _lookup("spokes", "key", ["key"], ["spoke", "next", "angle", "next_angle"]),
        _lookup("models", "key", ["comparison"], ["model"]),
        {
            "type": "filter",
            "expr": "isValid(datum.spoke) && isValid(datum.model) && isValid(datum.value)",
        },
        {"type": "formula", "as": "here", "expr": _index("datum.spoke")},
        {"type": "formula", "as": "there", "expr": _index("datum.next")},
    ]


def _index(spoke: str) -> str:
    return f"datum.direction + (datum.comparison * {KEYS} + {spoke})"


def _joined() -> list[Spec]:
    """Return each point with that on the next spoke, if both have a value."""
    return [
        _lookup("points", "here", ["there"], ["value"], ["next_value"]),
        {"type": "filter", "expr": "isValid(datum.next_value)"},
    ]


def _lookup(
    source: str, key: str, fields: list[str], values: list[str], names: list[str] | None = None
) -> Spec:
    return {
        "type": "lookup",
        "from": source,
        "key": key,
        "fields": fields,
        "values": values,
        "as": names or values,
    }


def _scales() -> list[Spec]:
    models = {"data": "models", "field": "model"}
    return [
        {"name": "colour", "type": "ordinal", "domain": models, "range": look.MODELS},
        {"name": "shape", "type": "ordinal", "domain": models, "range": look.SHAPES},
    ]


def _radial(most: float | None) -> Spec:
    """Return the radial scale of a panel, which covers all of its values."""
    values = {"data": "panel_points", "field": "value"}
    return {
        "name": "radial",
        "type": "linear",
        "domain": values if most is None else [0, most],
        "range": [0, RADIUS],
        "nice": RINGS if most is None else False,
        "zero": True,
    }


def _at(value: str, angle: str, end: str = "") -> Spec:
    """Return a position from a value and a direction."""
    radius = value if value.isdigit() else f"scale('radial', {value})"
    return {
        f"x{end}": {"signal": f"{RADIUS} + {radius} * cos({angle})"},
        f"y{end}": {"signal": f"{RADIUS} + {radius} * sin({angle})"},
    }


def _panel(direction: Direction, most: float | None) -> Spec:
    return {
        "type": "group",
        "title": {"text": look.WORDS[direction], "frame": "group", "offset": 22},
        "encode": {"enter": {"width": {"value": 2 * RADIUS}, "height": {"value": 2 * RADIUS}}},
        "data": [
            {"name": own, "source": source, "transform": [_of(direction)]}
            for own, source in (("panel_points", "points"), ("panel_lines", "lines"))
        ],
        "scales": [_radial(most)],
        "signals": _STEP,
        "marks": [*_grid(), _line(), _point(), _ring_labels()],
    }


_STEP = [
    {"name": "rough", "update": f"span(domain('radial')) / {RINGS}"},
    {"name": "ten", "update": "pow(10, floor(log(rough) / LN10))"},
    {
        "name": "step",
        "update": "ten * (rough / ten >= sqrt(50) ? 10 : rough / ten >= sqrt(10) ? 5 : "
        "rough / ten >= sqrt(2) ? 2 : 1)",
    },
]
"""Distance between rings, from the rounded ends of the axis."""
_RING = "domain('radial')[0] + datum.ring * step"
_AWAY = f"min(scale('radial', {_RING}), {RADIUS})"
_WITHIN = f"{_RING} <= domain('radial')[1] + step / 100"


def _of(direction: str) -> Spec:
    return {"type": "filter", "expr": f"datum.direction === '{direction}'"}


def _circle(radius: Spec, stroke: Spec) -> Spec:
    return {
        "x": {"value": RADIUS},
        "y": {"value": RADIUS},
        "startAngle": {"value": 0},
        "endAngle": {"value": 2 * math.pi},
        "innerRadius": radius,
        "outerRadius": radius,
        "stroke": stroke,
    }


def _zero() -> Spec:
    """Return a separate ring for 0 if there are negative values."""
    opacity = {"signal": "domain('radial')[0] < 0 ? 1 : 0"}
    circle = _circle({"signal": "scale('radial', 0)"}, {"value": look.NEVER})
    dashes = {"strokeDash": {"value": [3, 3]}, "opacity": opacity}
    return {"type": "arc", "encode": {"update": circle | dashes}}


def _grid() -> list[Spec]:
    lines = look.by_theme(look.LINES, "signal")
    left = "cos(datum.angle) < -0.1 ? 'right' : cos(datum.angle) > 0.1 ? 'left' : 'center'"
    return [
        {
            "type": "arc",
            "from": {"data": "rings"},
            "encode": {
                "update": _circle({"signal": _AWAY}, lines)
                | {"opacity": {"signal": f"{_WITHIN} ? 1 : 0"}}
            },
        },
        _zero(),
        {
            "type": "rule",
            "from": {"data": "spokes"},
            "encode": {
                "update": {"stroke": lines, "x": {"value": RADIUS}, "y": {"value": RADIUS}}
                | _at(str(RADIUS), "datum.angle", "2")
            },
        },
        {
            "type": "text",
            "from": {"data": "spokes"},
            "encode": {
                "update": _at(str(RADIUS + 10), "datum.angle")
                | {"text": {"field": "label"}, "align": {"signal": left},
                   "baseline": {"value": "middle"}, "limit": {"value": 110}}
            },
        },
    ]  # fmt: skip


def _ring_labels() -> Spec:
    return {
        "type": "text",
        "from": {"data": "rings"},
        "encode": {
            "update": {
                "x": {"value": RADIUS + 3},
                "y": {"signal": f"{RADIUS} - {_AWAY} + 10"},
                "text": {"signal": f"{_WITHIN} ? format({_RING}, '.1~%') : ''"},
                "fontSize": {"value": 10},
            }
        },
    }


def _line() -> Spec:
    return {
        "type": "rule",
        "from": {"data": "panel_lines"},
        "encode": {
            "update": {
                "stroke": {"scale": "colour", "field": "model"},
                "strokeWidth": {"value": 1.8},
            }
            | _at("datum.value", "datum.angle")
            | _at("datum.next_value", "datum.next_angle", "2")
        },
    }


def _point() -> Spec:
    tooltip = (
        "{model: datum.model, group: datum.group, value: format(datum.value, '.1%'), "
        "low: isValid(datum.low) ? format(datum.low, '.1%') : 'none', "
        "high: isValid(datum.high) ? format(datum.high, '.1%') : 'none'}"
    )
    return {
        "type": "symbol",
        "from": {"data": "panel_points"},
        "encode": {
            "update": {
                "fill": {"scale": "colour", "field": "model"},
                "shape": {"scale": "shape", "field": "model"},
                "size": {"value": 45},
                "tooltip": {"signal": tooltip},
            }
            | _at("datum.value", "datum.angle")
        },
    }
