"""Retention of methods against their cost, and against what they learn."""

from __future__ import annotations

import math

from forgetmap.lab import LabResult, LabRun, MethodResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.lab import axes
from forgetmap.report.figures.lab.labels import place_names
from forgetmap.report.payloads.lab import BASELINE, NEEDS, Part
from forgetmap.results import Estimate
from forgetmap.text import counted, percent

WIDTH = 440
"""Width of a usual card, for placing names."""
NARROW = 400
"""Below this width, only names on the front are shown."""
TICKS = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)


def front(result: LabResult, part: Part) -> Figure | None:
    """Draw retention against compute; each method at its best setting."""
    methods = [method for method in result.methods if _lost(method, part).value is not None]
    if not methods:
        return None
    ends = _compute_ends(methods)
    y_ends = axes.domain([value for method in methods for value in _kept(method, part).values()])
    records = _records(methods, part, ends, y_ends)
    alt = "; ".join(
        f"{record['method']} kept {percent(record['value'])} for {record['compute']:.2g} times "
        "the compute"
        for record in records
    )
    return Figure(
        name=f"lab_front_{part}",
        title=f"Kept against compute: {part} items",
        caption=f"{axes.PART_WORDS[part]} Each point is a way to train at its best setting, at the "
        "same score on the new task. Best is the upper left: more kept for less compute. Full "
        "points on the dashed line are the Pareto front of near and far together: no other keeps "
        f"more for as little compute. {axes.INTERVALS} The dotted line is "
        f"plain fine-tuning.{_short(methods)}",
        alt=f"{alt}.",
        table=as_table([{name: record[name] for name in _TABLE} for record in records]),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT,
            "layer": _layers(result, ends, y_ends),
        },
    )


_TABLE = ("method", "needs", "compute", "value", "low", "high", "efficient", "reached", "rate",
          "strength")  # fmt: skip


def _short(methods: list[MethodResult]) -> str:
    short = [method for method in methods if method.reached < method.seeds]
    return " Faint points: not every seed reached the target." if short else ""


def _lost(method: MethodResult, part: Part) -> Estimate:
    return method.lost_near if part == "near" else method.lost_far


def _kept(method: MethodResult, part: Part) -> Record:
    return axes.shares(_lost(method, part), kept=True)


def _compute_ends(methods: list[MethodResult]) -> list[float]:
    costs = [method.compute for method in methods]
    return [min(costs) / 1.25, max(costs) * 1.25]


def _records(
    methods: list[MethodResult], part: Part, ends: list[float], y_ends: list[float]
) -> list[Record]:
    records: list[Record] = [
        _kept(method, part)
        | {
            "method": look.label_of(method.title), "needs": NEEDS[method.needs],
            "compute": method.compute, "efficient": method.is_efficient,
            "reached": method.reached == method.seeds, "rate": method.rate,
            "strength": method.strength, "plain": method.method == BASELINE,
        }
        for method in methods
    ]  # fmt: skip
    points = [
        (WIDTH * axes.part_of(math.log(record["compute"]), [math.log(end) for end in ends]),
         axes.HEIGHT * (1 - axes.part_of(record["value"], y_ends)))
        for record in records
    ]  # fmt: skip
    names = [record["method"] for record in records]
    places = place_names(points, names, WIDTH, axes.HEIGHT)
    return [record | place._asdict() for record, place in zip(records, places, strict=True)]


def _layers(result: LabResult, ends: list[float], y_ends: list[float]) -> list[Spec]:
    ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    x: Spec = {
        "field": "compute", "type": "quantitative",
        "title": "compute (plain fine-tuning is 1\u00d7)",
        "scale": {"type": "log", "domain": ends, "nice": False},
        "axis": {"values": ticks, "labelExpr": "format(datum.value, '~g') + '\u00d7'",
                 "grid": False},
    }  # fmt: skip
    y = axes.share_axis("value", "known items kept", y_ends)
    colour, shape = axes.by_needs(result)
    faint = {"condition": {"test": "datum.reached", "value": 1}, "value": 0.4}
    full = {"condition": {"test": "datum.efficient", "value": 1}, "value": 0.0}
    return [
        {
            "transform": [{"filter": "datum.plain"}],
            "mark": {"type": "rule", "strokeDash": [2, 4], "color": look.NEVER},
            "encoding": {"y": y},
        },
        {
            "transform": [{"filter": "datum.efficient"}],
            "mark": {"type": "line", "strokeDash": [6, 4], "color": look.NEVER},
            "encoding": {"x": x, "y": y, "order": {"field": "compute"}},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"},
                         "color": colour},
        },
        {
            "mark": {"type": "point", "size": 95, "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": colour, "fill": colour, "shape": shape,
                         "opacity": faint, "fillOpacity": full, "tooltip": _tips()},
        },
        *_names(x, y),
    ]  # fmt: skip


def _names(x: Spec, y: Spec) -> list[Spec]:
    """Return names with a halo, which keeps lines from crossing them."""
    mark: Spec = {
        "type": "text", "baseline": "middle", "fontSize": 12,
        "align": {"expr": "datum.align"}, "dx": {"expr": "datum.dx"}, "dy": {"expr": "datum.dy"},
        "opacity": {"expr": f"width < {NARROW} && !datum.efficient ? 0 : 1"},
    }  # fmt: skip
    halo = {
        "stroke": look.by_theme(look.GROUND), "strokeWidth": 4, "strokeJoin": "round",
        "color": look.by_theme(look.GROUND),
    }  # fmt: skip
    own: Spec = {"x": x, "y": y, "text": {"field": "method"}}
    return [{"mark": mark | halo, "encoding": own}, {"mark": mark, "encoding": own}]


def _tips() -> list[Spec]:
    shares = {"value": "kept", "low": "at least", "high": "at most"}
    return [
        {"field": "method"},
        {"field": "needs"},
        {"field": "compute", "format": ".2f"},
        *({"field": name, "title": title, "format": ".1%"} for name, title in shares.items()),
        {"field": "rate", "title": "learning rate", "format": ".1e"},
        {"field": "strength"},
    ]


def swept_runs(result: LabResult, part: Part) -> Figure | None:
    """Draw every training run: retention against the score on the new task."""
    needs = {method.method: method.needs for method in result.methods}
    names = axes.titles(result)
    records = [
        _run_record(run, part, names.get(run.method, run.method), needs.get(run.method, "nothing"))
        for run in result.runs
        if run.score is not None and run.lost(part) is not None
    ]
    if not records:
        return None
    reached = sum(record["reached"] for record in records)
    diverged = sum(run.diverged for run in result.runs)
    missing = f" {counted(diverged, 'run')} diverged: not drawn." if diverged else ""
    alt = f"{len(records):,} training runs, {reached:,} of which reached the target.{missing}"
    ends = axes.domain([*_of(records, "score"), result.target])
    left = axes.part_of(result.target, ends) < 0.5
    x = axes.share_axis("score", "share of the new task known", ends)
    y = axes.share_axis("value", "known items kept", axes.domain(_of(records, "value")))
    colour, shape = axes.by_needs(result)
    return Figure(
        name=f"lab_runs_{part}",
        title=f"Kept against learned: {part} items",
        caption=f"{axes.PART_WORDS[part]} Every training run of the sweep over learning rates and "
        "strengths. Best is the upper right: all of the new task and nothing lost. Hollow "
        "points did not reach the target; the others stopped there, which is what "
        f"makes methods comparable.{missing}",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT,
            "layer": [
                *_target_layers(result.target, x, left=left),
                _run_points(x, y, colour, shape),
            ],
        },
    )


def _target_layers(target: float, x: Spec, *, left: bool) -> list[Spec]:
    """Return a line at the target, and its label if there is room."""
    data = {"values": [{"score": target, "words": f"target {percent(target, 0)}"}]}
    words = {"type": "text", "align": "left" if left else "right", "dx": 5 if left else -5, "y": 8}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "strokeDash": [2, 4], "color": look.NEVER},
            "encoding": {"x": x},
        },
        {"data": data, "mark": words, "encoding": {"x": x, "text": {"field": "words"}}},
    ]


def _run_points(x: Spec, y: Spec, colour: Spec, shape: Spec) -> Spec:
    """Return a point for each run; hollow if it did not reach the target."""
    return {
        "mark": {"type": "point", "size": 24, "opacity": 0.7},
        "encoding": {
            "x": x, "y": y, "color": colour, "fill": colour, "shape": shape,
            "fillOpacity": {"condition": {"test": "datum.reached", "value": 0.6}, "value": 0},
            "tooltip": [
                {"field": "method"}, {"field": "rate", "format": ".1e"},
                {"field": "strength"}, {"field": "seed"},
                {"field": "score", "format": ".1%"},
                {"field": "value", "title": "kept", "format": ".1%"},
            ],
        },
    }  # fmt: skip


def _of(records: list[Record], name: str) -> list[float]:
    return [record[name] for record in records]


def _run_record(run: LabRun, part: Part, title: str, needs: str) -> Record:
    return {
        "method": title, "needs": NEEDS[needs], "strength": run.strength, "rate": run.rate,
        "seed": run.seed, "score": axes.cut(run.score or 0.0), "value": 1 - (run.lost(part) or 0.0),
        "reached": run.reached, "compute": run.compute,
    }  # fmt: skip
