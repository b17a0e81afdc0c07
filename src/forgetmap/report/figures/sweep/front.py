"""Retention against forgetting, one point per merge."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.sweep import axes
from forgetmap.sweep import PairResult, SweepResult, listed_points, point_name
from forgetmap.text import percent

_ALIGN = "datum.forgetting > 0.6 * domain('x')[1] ? 'right' : 'left'"


def pareto_front(result: SweepResult) -> Figure | None:
    """Draw the gains kept against forgetting."""
    records = [record for record in _records(result) if record["gain"] is not None]
    if not records:
        return None
    alt = " ".join(_front_words(pair) for pair in result.pairs)
    return Figure(
        name="front",
        title="Kept gains against forgetting",
        caption="Each point is a merge; a line follows the share of the tuned model from base "
        "(lower left) to tuned. Best is the upper left. Full points are on the Pareto "
        "front: no other merge forgets less and keeps more. Thin lines are simultaneous 95% "
        "intervals; the ring is the best merge by the rule.",
        alt=alt,
        table=as_table(records),
        spec=axes.spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT + 60,
            "transform": [axes.SELECTED_PAIR],
            "encoding": {"color": axes.method_colour(result)},
            "layer": _front_layers(result),
        },
    )


def _front_layers(result: SweepResult) -> list[Spec]:
    """Return intervals, paths, a ring around the best, points and names."""
    x: Spec = {
        "field": "forgetting", "type": "quantitative", "title": "forgotten, of all items",
        "axis": axes.SHARES,
    }  # fmt: skip
    y: Spec = {
        "field": "gain", "type": "quantitative", "title": "share of the gains kept",
        "scale": {"domain": [0, 1]}, "axis": axes.SHARES,
    }  # fmt: skip
    across = x | {"field": "forgetting_low"}
    up = y | {"field": "gain_low"}
    bars = {"type": "rule", "opacity": 0.3}
    path = {"x": x, "y": y, "order": {"field": "weight"}, "detail": {"field": "method"}}
    return [
        {"mark": bars, "encoding": {"x": across, "x2": {"field": "forgetting_high"}, "y": y}},
        {"mark": bars, "encoding": {"y": up, "y2": {"field": "gain_high"}, "x": x}},
        {"mark": {"type": "line", "opacity": 0.5, "strokeWidth": 1.5}, "encoding": path},
        {
            "transform": [{"filter": "datum.best"}],
            "mark": {"type": "point", "size": 330, "strokeWidth": 2.5, "filled": False,
                     "opacity": 1, "color": look.by_theme(look.TEXT)},
            "encoding": {"x": x, "y": y, "color": {"value": look.by_theme(look.TEXT)}},
        },
        {
            "mark": {"type": "point", "size": 70, "filled": True},
            "encoding": {
                "x": x, "y": y, "shape": axes.method_shape(result),
                "opacity": {"condition": {"test": "datum.front || datum.parent", "value": 1},
                            "value": 0.45},
                "tooltip": _front_tips(),
            },
        },
        {
            "transform": [{"filter": "isValid(datum.label)"}],
            "mark": {"type": "text", "dy": -16, "fontSize": 12, "align": {"expr": _ALIGN}},
            "encoding": {
                "x": x, "y": y, "text": {"field": "label"},
                "color": {"value": look.by_theme(look.TEXT)},
            },
        },
    ]  # fmt: skip


def _front_words(pair: PairResult) -> str:
    front = [pair.points[index] for index in listed_points(pair) if pair.points[index].on_front]
    points = "; ".join(
        f"{point.reused or point_name(point)} forgets {percent(point.forgetting.value)} and keeps "
        f"{percent(point.retained.value)}"
        for point in front
    )
    return f"Pareto front of {pair.name}: {points or 'no data'}."


def _front_tips() -> list[Spec]:
    shares = {
        "forgetting": "forgotten", "forgetting_low": "at least", "forgetting_high": "at most",
        "gain": "gains kept", "gain_low": "at least ", "gain_high": "at most ",
    }  # fmt: skip
    return [
        {"field": "merge"},
        *({"field": name, "title": title, "format": ".1%"} for name, title in shares.items()),
    ]


def _records(result: SweepResult) -> list[Record]:
    """Return one record per point of every path."""
    return [
        {
            "comparison": index,
            "merge": point.reused or point_name(point),
            "method": point.method,
            "weight": point.weight,
            "best": number == pair.best.point,
            "label": _label(pair, number),
            "front": point.on_front,
            "parent": point.reused is not None,
            "forgetting": point.forgetting.value,
            "forgetting_low": point.forgetting_all.low,
            "forgetting_high": point.forgetting_all.high,
            "gain": point.retained.value,
            "gain_low": point.retained_all.low,
            "gain_high": point.retained_all.high,
        }
        for index, pair in enumerate(result.pairs)
        for number, point in enumerate(pair.points)
    ]


def _label(pair: PairResult, number: int) -> str | None:
    """Return the label of a point: of the best, and once of each parent."""
    point = pair.points[number]
    if number == pair.best.point:
        return point_name(point)
    first = next(index for index, other in enumerate(pair.points) if other.reused == point.reused)
    return point.reused if point.reused and first == number else None
