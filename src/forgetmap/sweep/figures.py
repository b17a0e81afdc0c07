"""The pictures of a sweep, in the style of all reports."""

from __future__ import annotations

import re
from typing import NamedTuple

from forgetmap.merge import WeightDrift
from forgetmap.report import NAME_AXIS, Figure, Record, Spec, as_table
from forgetmap.report.figures import look
from forgetmap.results import Estimate
from forgetmap.sweep.analyse import ALL
from forgetmap.sweep.render import signed, told
from forgetmap.sweep.result import PairResult, PointResult, SweepResult
from forgetmap.sweep.words import spot
from forgetmap.text import percent

MOST_GROUPS = 24
HEIGHT, LOW = 320, 220
DASHES = [[1, 0], [6, 4], [2, 3], [8, 3, 2, 3], [4, 2], [10, 4], [1, 2]]
"""Of methods: told apart by dashes and by shapes."""
FORGOTTEN, GAINED = "forgotten", "gained"
KEPT, RECOVERED = "gains kept", "forgetting recovered"
_SHARES: Spec = {"format": "~%", "labelFlush": False, "tickCount": 6}
_ALIGN = "datum.forgetting > 0.6 * domain('x')[1] ? 'right' : 'left'"
_ONE: Spec = {"filter": "datum.comparison === comparison"}


def sweep_figures(result: SweepResult) -> list[Figure]:
    """The most telling first."""
    shown = [
        _front(result),
        _path(result),
        _trade(result),
        _connectivity(result),
        _benefits(result) if len(result.pairs) > 1 else None,
        *_categories(result),
        _weights(result, "layers"),
        _weights(result, "kinds"),
    ]
    return [each for each in shown if each is not None]


def drift_figure(drift: WeightDrift) -> Figure:
    """How far each layer and each kind of module moved, of one pair."""
    records = _bars(0, drift, "layers") + _bars(0, drift, "kinds")
    found = _bar_figure(records, "weight_drift", "How far the weights moved")
    assert found is not None  # noqa: S101  # every tensor has a kind
    return found


def _spec(alt: str) -> Spec:
    return {
        "$schema": look.VEGA_LITE,
        "description": alt,
        "background": "transparent",
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": look.config(),
        "params": [{"name": "dark", "value": False}, {"name": "comparison", "value": 0}],
    }


def _records(result: SweepResult) -> list[Record]:
    """One record per point of every path."""
    return [
        {
            "comparison": place,
            "merge": point.reused or spot(point),
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
        for place, pair in enumerate(result.pairs)
        for number, point in enumerate(pair.points)
    ]


def _label(pair: PairResult, number: int) -> str | None:
    """What is written beside a point: of the best, and once of each parent."""
    point = pair.points[number]
    if number == pair.best.point:
        return spot(point)
    first = next(place for place, each in enumerate(pair.points) if each.reused == point.reused)
    return point.reused if point.reused and first == number else None


def _methods(result: SweepResult) -> list[str]:
    return list(dict.fromkeys(point.method for pair in result.pairs for point in pair.points))


def _method_colour(result: SweepResult) -> Spec:
    names = _methods(result)
    colours = [look.MODELS[place % len(look.MODELS)] for place in range(len(names))]
    return {
        "field": "method",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": colours},
        "legend": {"orient": "top", "symbolOpacity": 1} if len(names) > 1 else None,
    }


def _shape(result: SweepResult) -> Spec:
    names = _methods(result)
    shapes = [look.SHAPES[place % len(look.SHAPES)] for place in range(len(names))]
    return {"field": "method", "title": None, "scale": {"domain": names, "range": shapes}}


def _dash(result: SweepResult) -> Spec:
    names = _methods(result)
    dashes = [DASHES[place % len(DASHES)] for place in range(len(names))]
    return {
        "field": "method",
        "title": None,
        "scale": {"domain": names, "range": dashes},
        "legend": {
            "orient": "top",
            "symbolType": "stroke",
            "symbolSize": 260,
            "symbolStrokeWidth": 2,
        }
        if len(names) > 1
        else None,
    }


def _front(result: SweepResult) -> Figure | None:
    """Forgetting across, gains kept up."""
    records = [each for each in _records(result) if each["gain"] is not None]
    if not records:
        return None
    alt = " ".join(_front_words(pair) for pair in result.pairs)
    return Figure(
        name="front",
        title="What is kept against what is forgotten",
        caption="Each point is a merge; a line follows the share of the tuned model from base "
        "(lower left) to tuned. Best is the upper left. Full points are on the Pareto front: no "
        "other forgets less and keeps more. Thin lines are 95% limits for all merges at once; the "
        "ring is the best by the rule.",
        alt=alt,
        table=as_table(records),
        spec=_spec(alt)
        | {
            "data": {"values": records},
            "height": HEIGHT + 60,
            "transform": [_ONE],
            "encoding": {"color": _method_colour(result)},
            "layer": _front_layers(result),
        },
    )


def _front_layers(result: SweepResult) -> list[Spec]:
    """Limits, paths, the ring around the best, points, names."""
    x: Spec = {
        "field": "forgetting", "type": "quantitative", "title": "forgotten, of all items",
        "axis": _SHARES,
    }  # fmt: skip
    y: Spec = {
        "field": "gain", "type": "quantitative", "title": "of the gains, kept",
        "scale": {"domain": [0, 1]}, "axis": _SHARES,
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
                "x": x, "y": y, "shape": _shape(result),
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
    front = [pair.points[place] for place in told(pair) if pair.points[place].on_front]
    said = "; ".join(
        f"{point.reused or spot(point)} forgets {percent(point.forgetting.value)} and keeps "
        f"{percent(point.retained.value)}"
        for point in front
    )
    return f"Pareto front of {pair.name}: {said or 'no data'}."


def _front_tips() -> list[Spec]:
    shares = {
        "forgetting": "forgotten", "forgetting_low": "at least", "forgetting_high": "at most",
        "gain": "gains kept", "gain_low": "at least ", "gain_high": "at most ",
    }  # fmt: skip
    return [
        {"field": "merge"},
        *({"field": name, "title": title, "format": ".1%"} for name, title in shares.items()),
    ]


class _Words(NamedTuple):
    name: str
    title: str
    caption: str
    axis: str
    height: int = HEIGHT


def _curves(
    result: SweepResult, words: _Words, records: list[Record], colours: dict[str, str]
) -> Figure | None:
    """Shares along the path, with bands."""
    known = [each for each in records if each["value"] is not None]
    if not known:
        return None
    alt = f"{words.title}: {_ends(known)}"
    x: Spec = {
        "field": "weight", "type": "quantitative", "title": "share of the tuned model",
        "scale": {"domain": [0, 1]}, "axis": {"tickCount": 6, "labelFlush": False},
    }  # fmt: skip
    y: Spec = {"field": "value", "type": "quantitative", "title": words.axis, "axis": _SHARES}
    tips = [
        {"field": "what", "title": "what"},
        {"field": "method"},
        {"field": "weight"},
        *({"field": each, "format": ".1%"} for each in ("value", "low", "high")),
    ]
    detail = [{"field": "method"}, {"field": "what"}]
    return Figure(
        name=words.name,
        title=words.title,
        caption=words.caption,
        alt=alt,
        table=as_table(known),
        spec=_spec(alt)
        | {
            "data": {"values": known},
            "height": words.height,
            "transform": [_ONE],
            "encoding": {
                "color": {
                    "field": "what",
                    "title": None,
                    "scale": {"domain": list(colours), "range": list(colours.values())},
                    "legend": {"orient": "top", "symbolOpacity": 1, "symbolType": "circle"},
                }
            },
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.13},
                    "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"},
                                 "detail": detail},
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"x": x, "y": y, "strokeDash": _dash(result), "detail": detail},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                    "encoding": {"x": x, "y": y, "detail": detail, "tooltip": tips},
                },
            ],
        },
    )  # fmt: skip


def _ends(records: list[Record]) -> str:
    """The first and last of each curve of the first pair, in words."""
    said = []
    first = [each for each in records if each["comparison"] == 0]
    for what in dict.fromkeys(each["what"] for each in first):
        own = [each for each in first if each["what"] == what]
        most = max(own, key=lambda each: each["value"])
        said.append(f"{what} at most {percent(most['value'])}, at {most['weight']:g}")
    return "; ".join(said) + "."


def _curve_records(
    result: SweepResult, pick: dict[str, str], group: str | None = None
) -> list[Record]:
    """Long form: one record per point and measure."""
    records = []
    for place, pair in enumerate(result.pairs):
        for point in pair.points:
            source = point if group is None else _group_of(point, group)
            for what, name in pick.items():
                found: Estimate | None = None if source is None else getattr(source, name)
                if found is None:
                    continue
                records.append(
                    {
                        "comparison": place, "what": what, "method": point.method,
                        "weight": point.weight, "value": found.value, "low": found.low,
                        "high": found.high,
                    }
                )  # fmt: skip
    return records


def _group_of(point: PointResult, name: str) -> object | None:
    return next((group for group in point.groups if group.name == name), None)


_DIRECTIONS = {FORGOTTEN: "forgetting", GAINED: "backward_transfer"}
_COLOURS = {FORGOTTEN: look.FORGOTTEN, GAINED: look.GAINED}
EACH = "Bands are 95% limits of each point on its own; luck is included."


def _path(result: SweepResult) -> Figure | None:
    where = " Forgotten outside the target, gained within it." if result.targets else ""
    words = _Words(
        "path",
        "Forgotten and gained along the path",
        f"Against base, as shares of all items.{where} {EACH}",
        "share of all items",
    )
    return _curves(result, words, _curve_records(result, _DIRECTIONS), _COLOURS)


def _trade(result: SweepResult) -> Figure | None:
    pick = {KEPT: "retained", RECOVERED: "recovered"}
    words = _Words(
        "trade",
        "What a merge keeps of both parents",
        "Of what the tuned model gained, and of what it forgot, the share that the merge has "
        "right. Where the two add up to more than 100%, the merge is more than a mixture of its "
        f"parents' answers. {EACH}",
        "share",
    )
    colours = {KEPT: look.GAINED, RECOVERED: look.KEPT}
    return _curves(result, words, _curve_records(result, pick), colours)


def _categories(result: SweepResult) -> list[Figure | None]:
    """One each, so that they can be read on a phone; those with the greatest losses."""
    groups: dict[str, float] = {}
    for pair in result.pairs:
        for point in pair.points:
            for group in point.groups:
                loss = group.forgetting.value or 0.0
                groups[group.name] = max(groups.get(group.name, 0.0), loss)
    groups.pop(ALL, None)
    if len(groups) < 2:  # one category is all items
        return []
    order = sorted(groups, key=lambda name: (-groups[name], name))[:MOST_GROUPS]
    return [
        _curves(
            result,
            _Words(
                f"path_{place:02d}_{re.sub(r'[^A-Za-z0-9]+', '_', name)}",
                look.label_of(name),
                f"Forgotten and gained against base, of {_items(result, name):,} items. {EACH}",
                "share of these items",
                LOW,
            ),
            _curve_records(result, _DIRECTIONS, name),
            _COLOURS,
        )
        for place, name in enumerate(order, start=1)
    ]


def _items(result: SweepResult, name: str) -> int:
    found = _group_of(result.pairs[0].points[0], name)
    return int(getattr(found, "n", 0))


def _connectivity(result: SweepResult) -> Figure:
    """Accuracy along the path, and the line between its ends."""
    records = _line_records(result)
    heights = [each for each in result.pairs[0].barriers if each.group == ALL]
    alt = "Greatest distance below the line: " + "; ".join(
        f"{each.method} {signed(each.height.value)}"
        for each in heights
        if each.measure == "accuracy"
    )
    x: Spec = {
        "field": "weight", "type": "quantitative", "title": "share of the tuned model",
        "scale": {"domain": [0, 1]}, "axis": {"tickCount": 6, "labelFlush": False},
    }  # fmt: skip
    y: Spec = {
        "field": "accuracy", "type": "quantitative", "title": "accuracy, all items",
        "scale": {"zero": False}, "axis": _SHARES,
    }  # fmt: skip
    tips = [{"field": "method"}, {"field": "weight"}]
    tips += [{"field": each, "format": ".1%"} for each in ("accuracy", "line")]
    return Figure(
        name="connectivity",
        title="Is the way between the models level?",
        caption="Accuracy along the path, against the dashed line between its ends. A path that "
        "sinks below it crosses a barrier: the two models are not connected linearly. Bars are "
        "95% limits of the distance from the line, for all merges at once.",
        alt=f"{alt}.",
        table=as_table(records),
        spec=_spec(alt)
        | {
            "data": {"values": records},
            "height": HEIGHT,
            "transform": [_ONE],
            "encoding": {"color": _method_colour(result)},
            "layer": [
                {
                    "mark": {"type": "line", "strokeDash": [4, 4], "color": look.NEVER},
                    "encoding": {"x": x, "y": y | {"field": "line"},
                                 "color": {"value": look.NEVER}},
                },
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "opacity": 0.4},
                    "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
                },
                {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": x, "y": y}},
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"x": x, "y": y, "shape": _shape(result), "tooltip": tips},
                },
            ],
        },
    )  # fmt: skip


def _line_records(result: SweepResult) -> list[Record]:
    """Accuracy and the line, with limits of their distance."""
    records = []
    for place, pair in enumerate(result.pairs):
        ends = {point.reused: point.accuracy for point in pair.points if point.reused}
        for point in pair.points:
            line = (1 - point.weight) * ends["base"] + point.weight * ends["tuned"]
            below = point.below_line
            records.append(
                {
                    "comparison": place, "method": point.method, "weight": point.weight,
                    "accuracy": point.accuracy, "line": line,
                    "low": None if below.high is None or point.reused else line - below.high,
                    "high": None if below.low is None or point.reused else line - below.low,
                }
            )  # fmt: skip
    return records


def _weights(result: SweepResult, of: str) -> Figure | None:
    records = [
        each
        for place, pair in enumerate(result.pairs)
        if pair.drift is not None
        for each in _bars(place, pair.drift, of)
    ]
    title = "How far each layer moved" if of == "layers" else "How far each kind of module moved"
    return _bar_figure(records, f"drift_{of}", title)


def _bars(place: int, drift: WeightDrift, of: str) -> list[Record]:
    groups = drift.layers if of == "layers" else drift.kinds
    return [
        {
            "comparison": place,
            "name": look.label_of(each.name),
            "moved": each.relative,
            "cosine": each.cosine,
            "effective_rank": each.effective_rank,
            "rank_share": each.rank_share,
            "parameters": each.parameters,
        }
        for each in groups
    ]


def _bar_figure(records: list[Record], name: str, title: str) -> Figure | None:
    known = [each for each in records if each["moved"] is not None]
    if not known:
        return None
    most = max(known, key=lambda each: each["moved"])
    alt = f"{title}: most {most['name']}, by {percent(most['moved'], 2)} of its length."
    y: Spec = {
        "field": "name", "type": "nominal", "title": None, "sort": None,
        "axis": NAME_AXIS | {"grid": False},
    }  # fmt: skip
    x: Spec = {
        "field": "moved", "type": "quantitative", "title": "moved, of its length",
        "axis": _SHARES,
    }  # fmt: skip
    tips = [
        {"field": "name", "title": "of"},
        {"field": "moved", "format": ".2%"},
        {"field": "cosine", "format": ".5f"},
        {"field": "effective_rank", "title": "effective rank", "format": ",.1f"},
        {"field": "rank_share", "title": "of the most it could have", "format": ".0%"},
        {"field": "parameters", "format": ","},
    ]
    return Figure(
        name=name,
        title=title,
        caption="Length of the difference over the length of the base, in weight space; the number "
        "is the effective rank of the difference, mean over its matrices.",
        alt=alt,
        table=as_table(known),
        spec=_spec(alt)
        | {
            "data": {"values": known},
            "height": {"step": 24 if len(known) < 40 else 14},
            "transform": [_ONE],
            "encoding": {"y": y, "x": x},
            "layer": [
                {"mark": {"type": "bar", "color": look.GAINED, "height": {"band": 0.7}},
                 "encoding": {"tooltip": tips}},
                {
                    "transform": [
                        {"filter": "isValid(datum.effective_rank)"},
                        {"calculate": "'rank ' + format(datum.effective_rank, ',.0f')",
                         "as": "rank"},
                    ],
                    "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11},
                    "encoding": {"text": {"field": "rank"}},
                },
            ],
        },
    )  # fmt: skip


def _benefits(result: SweepResult) -> Figure | None:
    """Drift across, benefit up, one point per tuned model."""
    records = [
        {
            "model": look.label_of(pair.name),
            "moved": pair.drift.total.relative,
            "benefit": pair.greatest_benefit.value,
            "low": pair.greatest_benefit.low,
            "high": pair.greatest_benefit.high,
        }
        for pair in result.pairs
        if pair.drift is not None and pair.greatest_benefit.value is not None
    ]
    if not records:
        return None
    alt = result.correlation.words
    x: Spec = {
        "field": "moved", "type": "quantitative", "title": "weights moved, of their length",
        "axis": _SHARES,
    }  # fmt: skip
    y: Spec = {
        "field": "benefit", "type": "quantitative", "title": "greatest benefit of merging",
        "axis": _SHARES | {"labelExpr": "replace(datum.label, '-', '\N{MINUS SIGN}')"},
    }  # fmt: skip
    tips = [{"field": "model"}]
    tips += [{"field": each, "format": ".1%"} for each in ("moved", "benefit", "low", "high")]
    zero: Spec = {"type": "rule", "strokeDash": [3, 3], "color": look.NEVER}
    return Figure(
        name="drift_benefit",
        title="Does merging help where the weights moved less?",
        caption=f"{alt} Benefit: gains kept and forgetting recovered, beyond what mixing the "
        "answers of both parents would give, at the best of all merges; bars are 95% limits of "
        "that greatest benefit.",
        alt=alt,
        table=as_table(records),
        spec=_spec(alt)
        | {
            "data": {"values": records},
            "height": HEIGHT,
            "layer": [
                {"mark": zero, "encoding": {"y": {"datum": 0}}},
                {"mark": {"type": "rule", "opacity": 0.5, "color": look.GAINED},
                 "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}},
                {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1,
                          "color": look.GAINED},
                 "encoding": {"x": x, "y": y, "tooltip": tips}},
                {"mark": {"type": "text", "align": "left", "dx": 8, "dy": -8, "fontSize": 11},
                 "encoding": {"x": x, "y": y, "text": {"field": "model"},
                              "color": {"value": look.by_theme(look.TEXT)}}},
            ],
        },
    )  # fmt: skip
