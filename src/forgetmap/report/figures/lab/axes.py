"""Colours and axes that the figures of the lab share."""

from __future__ import annotations

import math
from collections.abc import Iterable

from forgetmap.lab import LabResult, LabRun
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Record, Spec
from forgetmap.report.payloads.lab import NEEDS, PARTS
from forgetmap.results import Estimate

PART_WORDS = {
    "near": "Near items: relations of the new task, with other subjects.",
    "far": "Far items: categories other than those of the new task.",
}
HEIGHT = 340
LINE_HEIGHT = 30
_COLOURS = [look.KEPT, look.GAINED, "#E69F00"]
_SHAPES = ["circle", "square", "triangle-up"]
INTERVALS = "Thin lines are 95% intervals over seeds, drawn between 0% and 100%."


def cut(value: float | None) -> float | None:
    """Clip a share for drawing: t intervals of a few seeds can exceed 0% or 100%."""
    return None if value is None else min(max(value, 0.0), 1.0)


def shares(estimate: Estimate, *, kept: bool = False) -> Record:
    """Return a share with its interval, or its complement."""
    low, value, high = estimate.low, estimate.value, estimate.high
    if kept:
        low, value, high = _rest(high), _rest(value), _rest(low)
    return {"value": cut(value), "low": cut(low), "high": cut(high)}


def _rest(value: float | None) -> float | None:
    return None if value is None else 1 - value


def domain(values: Iterable[float | None], *, zero: bool = False) -> list[float]:
    """Return rounded ends within 0 and 1 that include all shares; kept ones end at 1, lost at 0."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    step = 0.1 if high - low > 0.15 else 0.05
    below = 0.0 if zero else max(0.0, math.floor(low / step + 1e-9) * step)
    above = min(1.0, math.ceil(high / step - 1e-9) * step) if zero else 1.0
    return [round(below, 4), round(max(above, below + step), 4)]


def part_of(value: float, ends: list[float]) -> float:
    """Return the position of a value on an axis, from 0 to 1."""
    return (value - ends[0]) / (ends[1] - ends[0])


def share_axis(field: str, title: str, ends: list[float], ticks: int = 6) -> Spec:
    """Return an axis of shares."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": ends, "nice": False},
        "axis": {"format": look.SHARE, "tickCount": ticks, "labelFlush": False},
    }


def legend() -> Spec:
    """Return a legend above the picture with two columns: a width-dependent number cuts the top."""
    return {"orient": "top", "symbolOpacity": 1, "symbolSize": 90, "columns": 2}


def by_needs(result: LabResult) -> tuple[Spec, Spec]:
    """Return colour and shape by the old data that a method needs."""
    present = {method.needs for method in result.methods}
    names = [name for name in NEEDS if name in present]
    places = [list(NEEDS).index(name) for name in names]
    words = [NEEDS[name] for name in names]
    common = {"field": "needs", "type": "nominal", "title": "needs"}
    return (
        common
        | {
            "scale": {"domain": words, "range": [_COLOURS[place] for place in places]},
            "legend": legend(),
        },
        common | {"scale": {"domain": words, "range": [_SHAPES[place] for place in places]}},
    )


def titles(result: LabResult) -> dict[str, str]:
    """Return name of a method -> label."""
    return {method.method: look.label_of(method.title) for method in result.methods}


def mean_lost(runs: Iterable[LabRun]) -> float | None:
    """Return the mean of the shares forgotten, near and far, over runs."""
    known = [lost for run in runs for part in PARTS if (lost := run.lost(part)) is not None]
    return sum(known) / len(known) if known else None
