"""Methods compared with the baselines, by category, learning rate and strength."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from forgetmap.lab import LabResult, LabRun, MethodResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.lab import axes
from forgetmap.report.figures.lab.labels import place_names
from forgetmap.report.figures.panels import panels
from forgetmap.report.payloads.lab import BASELINE, Part
from forgetmap.text import percent

BASELINES = {
    "best learning rate": "at its best learning rate",
    "equal compute": "given the same compute",
}
_BASELINE_COLOURS = [look.GAINED, "#CC79A7"]
SHADES = {"forgetting": "oranges", "backward_transfer": "blues"}
PANEL = 120
"""Width and height of a panel on paper in pixels; on a page it is wider."""
_POINTS = "datum.value ? format(100 * datum.value, '+~g') : '0'"
WORD_WIDTH = 26
"""Width of a share in a cell."""
MAX_PRINTED = 15
"""Maximum number of columns with printed values."""


def differences(result: LabResult, part: Part) -> Figure | None:
    """Draw the share lost by each method minus that of both baselines."""
    records = _difference_records(result, part)
    if not records:
        return None
    sure = {r["method"] for r in records if r["high"] is not None and r["high"] < 0}
    names = dict.fromkeys(record["method"] for record in records)
    alt = f"{len(sure)} of {len(names)} methods lose significantly less than a baseline."
    y: Spec = {
        "field": "method", "type": "nominal", "title": None,
        "sort": {"field": "order", "op": "min"}, "axis": look.NAME_AXIS | {"grid": True},
    }  # fmt: skip
    words = list(BASELINES.values())
    x: Spec = {
        "field": "value", "type": "quantitative",
        "title": "lost, minus plain fine-tuning (percentage points)",
        "axis": {"labelExpr": _POINTS, "tickCount": 6},
    }  # fmt: skip
    scale = {"domain": words, "range": _BASELINE_COLOURS}
    shape = {"domain": words, "range": ["circle", "diamond"]}
    own: Spec = {
        "y": y,
        "yOffset": {"field": "baseline", "scale": {"domain": words, "paddingOuter": 0.3}},
        "color": {"field": "baseline", "type": "nominal", "scale": scale,
                  "title": "compared with plain fine-tuning", "legend": {"orient": "top"}},
    }  # fmt: skip
    return Figure(
        name=f"lab_differences_{part}",
        title=f"Compared with plain fine-tuning: {part} items",
        caption=f"{axes.PART_WORDS[part]} Left of the line, a method loses less than plain "
        "fine-tuning at the same score on the new task. Lines are 95% intervals over seeds; "
        "the difference is significant if a line does not touch the dashed line.",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": axes.LINE_HEIGHT * len(names),
            "layer": _difference_layers(own, x, shape),
        },
    )


def _difference_layers(own: Spec, x: Spec, shape: Spec) -> list[Spec]:
    """Return intervals and points beside the line of no difference."""
    ends = {"x": x | {"field": "low"}, "x2": {"field": "high"}}
    points = {"x": x, "tooltip": _difference_tips(), "shape": {"field": "baseline", "scale": shape}}
    return [
        {"mark": look.ZERO_MARK, "encoding": {"x": {"datum": 0}}},
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": own | ends,
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": own | points,
        },
    ]


def _difference_records(result: LabResult, part: Part) -> list[Record]:
    """Return the records; bounds of few seeds are clipped, as they may exceed all items."""
    return [
        {
            "method": look.label_of(method.title), "order": order,
            "baseline": BASELINES.get(row.baseline, row.baseline), "rate": row.rate,
            "ratio": row.ratio, "value": row.difference.value, "low": _within(row.difference.low),
            "high": _within(row.difference.high),
        }
        for order, method in enumerate(result.methods)
        for row in method.differences
        if row.part == part and row.difference.value is not None
    ]  # fmt: skip


def _within(value: float | None) -> float | None:
    return None if value is None else min(max(value, -1.0), 1.0)


def _difference_tips() -> list[Spec]:
    shares = {"value": "difference", "low": "from", "high": "to"}
    return [
        {"field": "method"},
        {"field": "baseline"},
        *({"field": name, "title": title, "format": "+.1%"} for name, title in shares.items()),
        {"field": "ratio", "title": "ratio", "format": ".2f"},
        {"field": "rate", "title": "its learning rate", "format": ".1e"},
    ]


def categories(result: LabResult) -> list[Figure]:
    """Draw heat maps of methods by category: forgotten, and gained."""
    return [
        _heat_map(result, "forgetting", "forgotten"),
        _heat_map(result, "backward_transfer", "gained"),
    ]


def _heat_map(result: LabResult, direction: str, word: str) -> Figure:
    records: list[Record] = [
        {
            "method": look.label_of(method.title), "down": down,
            "group": look.label_of(f"{row.category} ({row.part})"), "across": across,
            "value": axes.cut(getattr(row, direction).value),
            "low": axes.cut(getattr(row, direction).low),
            "high": axes.cut(getattr(row, direction).high),
        }
        for down, method in enumerate(result.methods)
        for across, row in enumerate(method.categories)
    ]  # fmt: skip
    known = [record for record in records if record["value"] is not None]
    most = max(known, key=lambda record: record["value"], default=None)
    alt = f"Share of all items {word}, by method and category."
    if most:
        alt += f" Most: {most['method']}, {most['group']}, {percent(most['value'])}."
    columns = len({record["group"] for record in records})
    narrow = f"width < {WORD_WIDTH * columns}"
    place: Spec = {
        "x": {
            "field": "group", "type": "nominal", "title": None,
            "sort": {"field": "across", "op": "min"},
            "axis": {"orient": "top", "labelAngle": {"expr": f"{narrow} ? -90 : -35"},
                     "labelLimit": 150, "ticks": False, "domain": False},
        },
        "y": {
            "field": "method", "type": "nominal", "title": None,
            "sort": {"field": "down", "op": "min"}, "axis": look.NAME_AXIS,
        },
    }  # fmt: skip
    return Figure(
        name=f"lab_{word}",
        title=f"{word.capitalize()}, by category",
        caption=f"Share of all items of a category that was {word}, mean over seeds; methods "
        "that forget least come first. Near: relations of the new task, with other "
        "subjects. Far: other categories.",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "padding": {"left": 5, "top": 20, "right": 34, "bottom": 5},  # slanted names need room
            "height": 25 * len(result.methods),
            "encoding": place,
            "layer": [_cells(direction), *([_printed(narrow)] if columns <= MAX_PRINTED else [])],
        },
    )


def _cells(direction: str) -> Spec:
    return {
        "mark": {"type": "rect", "stroke": look.by_theme(look.GROUND), "strokeWidth": 1},
        "encoding": {
            "color": {
                "field": "value", "type": "quantitative", "title": None,
                "scale": {"scheme": SHADES[direction], "zero": True},
                "legend": {"format": look.SHARE, "orient": "bottom", "tickCount": 4},
            },
            "tooltip": [
                {"field": "method"}, {"field": "group", "title": "category"},
                *({"field": name, "format": ".1%"} for name in ("value", "low", "high")),
            ],
        },
    }  # fmt: skip


def _printed(narrow: str) -> Spec:
    """Return the values in the cells, if these are wide enough."""
    return {
        "mark": {
            "type": "text",
            "fontSize": 11,
            "color": {"expr": "luminance(scale('color', datum.value)) < 0.18 ? 'white' : 'black'"},
            "opacity": {"expr": f"{narrow} ? 0 : 1"},
        },
        "encoding": {"text": {"field": "value", "format": ".0%"}},
    }


def rates(result: LabResult) -> Figure | None:
    """Draw the lost share by learning rate, one panel per method; plain fine-tuning is grey."""
    names = axes.titles(result)
    records = [
        record
        for order, method in enumerate(result.methods)
        for record in _rate_records(result, method, order, names[method.method])
    ]
    if len({record["rate"] for record in records}) < 2:
        return None
    tried = sorted({record["rate"] for record in records})
    ends = [tried[0] / 1.2, tried[-1] * 1.2]
    alt = (
        f"Share lost by {len(names)} methods at learning rates from {tried[0]:g} to {tried[-1]:g}."
    )
    x: Spec = {
        "field": "rate", "type": "quantitative", "title": None,
        "scale": {"type": "log", "domain": ends, "nice": False},
        "axis": {"values": _few(tried), "format": ".0e", "grid": False, "labelFlush": False},
    }  # fmt: skip
    most = [record["value"] for record in records]
    y = axes.share_axis("value", "lost", axes.domain(most, zero=True), ticks=4)
    return Figure(
        name="lab_rates",
        title="Lost, by learning rate",
        caption="Share of the known items lost, near and far together, by learning rate. Grey: "
        "plain fine-tuning. Thin: other strengths. The ring is the setting chosen on the "
        "development seed; hollow points did not reach the target.",
        alt=alt,
        table=as_table(records),
        spec=panels(alt, records, _rate_layers(x, y), columns=3, height=110, names="method"),
    )


def _few(tried: Sequence[float]) -> list[float]:
    return list(tried) if len(tried) <= 3 else [tried[0], tried[len(tried) // 2], tried[-1]]


def _rate_records(result: LabResult, method: MethodResult, order: int, name: str) -> list[Record]:
    """Return every setting of a method, and those of plain fine-tuning."""
    own = [run for run in result.runs if run.method == method.method]
    plain = [run for run in result.runs if run.method == BASELINE]
    lines = [("plain", plain)] if method.method != BASELINE else []
    for strength in sorted({run.strength for run in own}):
        kind = "chosen" if strength == method.strength else "other"
        lines.append((kind, [run for run in own if run.strength == strength]))
    return [
        {
            "method": name, "order": order, "line": kind, "strength": runs[0].strength,
            "rate": rate, "value": axes.mean_lost(at), "reached": all(r.reached for r in at),
            "chosen": kind == "chosen" and rate == method.rate,
        }
        for kind, runs in lines
        for rate in sorted({run.rate for run in runs})
        if (at := [run for run in runs if run.rate == rate and not run.diverged])
    ]  # fmt: skip


def _rate_layers(x: Spec, y: Spec) -> list[Spec]:
    kinds = ["plain", "other", "chosen"]
    colour: Spec = {
        "field": "line", "type": "nominal", "legend": None,
        "scale": {"domain": kinds, "range": [look.NEVER, look.REGAINED, look.GAINED]},
    }  # fmt: skip
    size = {"condition": {"test": "datum.line === 'chosen'", "value": 2.5}, "value": 1.2}
    detail = [{"field": "line"}, {"field": "strength"}]
    return [
        {
            "mark": {"type": "line"},
            "encoding": {"x": x, "y": y, "color": colour, "detail": detail, "strokeWidth": size},
        },
        {
            "transform": [{"filter": "datum.line !== 'plain'"}],
            "mark": {"type": "point", "size": 30, "opacity": 1},
            "encoding": {
                "x": x, "y": y, "color": colour, "fill": colour,
                "fillOpacity": {"condition": {"test": "datum.reached", "value": 1}, "value": 0},
                "tooltip": [
                    {"field": "method"}, {"field": "rate", "format": ".1e"}, {"field": "strength"},
                    {"field": "value", "title": "lost", "format": ".1%"},
                    {"field": "reached", "title": "reached the target"},
                ],
            },
        },
        {
            "transform": [{"filter": "datum.chosen"}],
            "mark": {"type": "point", "size": 170, "strokeWidth": 2, "filled": False,
                     "color": look.by_theme(look.TEXT)},
            "encoding": {"x": x, "y": y},
        },
    ]  # fmt: skip


def strengths(result: LabResult) -> Figure | None:
    """Draw plasticity against stability: each strength of a method at its best learning rate."""
    names = axes.titles(result)
    records = [
        record
        for order, method in enumerate(result.methods)
        for record in _strength_records(result, method, order, names[method.method])
    ]
    if not records:
        return None
    x_ends, y_ends = _learned_ends(records), axes.domain([r["value"] for r in records])
    records = _with_places(records, x_ends, y_ends)
    panel_count = len({record["panel"] for record in records})
    alt = f"What {panel_count} methods learn and keep, by strength."
    x = axes.share_axis("score", "share of the new task known", x_ends, ticks=3)
    y = axes.share_axis("value", "kept", y_ends, ticks=4)
    return Figure(
        name="lab_strengths",
        title="Plasticity against stability",
        caption="Each point is a strength of a method at the learning rate with the smallest "
        "loss, mean over runs: further right it learned more, further up it kept more, near "
        "and far together. Lines follow the strength.",
        alt=alt,
        table=as_table([{name: record[name] for name in _STRENGTHS} for record in records]),
        spec=panels(alt, records, _strength_layers(x, y), columns=3, height=PANEL, names="panel"),
    )


_STRENGTHS = ("panel", "strength", "rate", "score", "value", "runs")


def _with_places(records: list[Record], x_ends: list[float], y_ends: list[float]) -> list[Record]:
    """Return each point with the position of its name, by panel."""
    placed: list[Record] = []
    for panel in dict.fromkeys(record["panel"] for record in records):
        own = [record for record in records if record["panel"] == panel]
        points = [
            (PANEL * axes.part_of(record["score"], x_ends),
             PANEL * (1 - axes.part_of(record["value"], y_ends)))
            for record in own
        ]  # fmt: skip
        places = place_names(points, [record["label"] for record in own], PANEL, PANEL)
        placed += [r | place._asdict() for r, place in zip(own, places, strict=True)]
    return placed


def _learned_ends(records: list[Record]) -> list[float]:
    """Return the ends of the axis, with room on the right for names; matched scores are close."""
    scores = [record["score"] for record in records]
    low = max(0.0, math.floor(20 * min(scores) - 0.5) / 20)
    return [low, max(min(1.0, math.ceil(20 * max(scores)) / 20), low + 0.1)]


def _strength_records(
    result: LabResult, method: MethodResult, order: int, name: str
) -> list[Record]:
    own = [run for run in result.runs if run.method == method.method and run.score is not None]
    tried = sorted({run.strength for run in own})
    if len(tried) < 2:
        return []
    records = []
    for strength in tried:
        runs = _best_rate([run for run in own if run.strength == strength])
        lost = axes.mean_lost(runs)
        records.append(
            {
                "panel": name, "order": order, "strength": strength,
                "rate": runs[0].rate, "score": _mean_score(runs),
                "value": 1 - (lost or 0.0), "label": f"{method.strength_of} {strength:g}",
                "runs": len(runs),
            }
        )  # fmt: skip
    return records


def _best_rate(runs: list[LabRun]) -> list[LabRun]:
    """Return the runs of one strength at the rate that reached the target and forgot least."""
    by_rate = [[run for run in runs if run.rate == rate] for rate in {run.rate for run in runs}]
    reached = [group for group in by_rate if all(run.reached for run in group)]
    if reached:
        return min(reached, key=lambda group: axes.mean_lost(group) or 0.0)
    return max(by_rate, key=_mean_score)


def _mean_score(runs: list[LabRun]) -> float:
    """Return the mean score of runs that did not diverge."""
    return fmean(run.score for run in runs if run.score is not None)


def _strength_layers(x: Spec, y: Spec) -> list[Spec]:
    return [
        {
            "mark": {"type": "line", "color": look.NEVER},
            "encoding": {"x": x, "y": y, "order": {"field": "strength"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "color": look.GAINED,
                     "opacity": 1},
            "encoding": {
                "x": x, "y": y,
                "tooltip": [
                    {"field": "strength"}, {"field": "rate", "format": ".1e"},
                    {"field": "score", "format": ".1%"},
                    {"field": "value", "title": "kept", "format": ".1%"}, {"field": "runs"},
                ],
            },
        },
        {
            "mark": {"type": "text", "fontSize": 11, "baseline": "middle",
                     "align": {"expr": "datum.align"}, "dx": {"expr": "datum.dx"},
                     "dy": {"expr": "datum.dy"}},
            "encoding": {"x": x, "y": y, "text": {"field": "label"}},
        },
    ]  # fmt: skip
