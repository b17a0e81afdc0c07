"""Drift in long form: one row per cell, for figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forgetmap.capabilities import (
    EITHER_WAY,
    Cell,
    DriftResult,
    MetricCell,
    describe_cell,
    leaves_out_zero,
)
from forgetmap.report.figures.look import label_of
from forgetmap.report.payloads.schema import (
    DriftLevel,
    DriftRows,
    DriftScale,
    DriftState,
    ScaleWords,
)
from forgetmap.text import signed

SCALES: dict[DriftScale, str] = {
    "effect": "effect, comparable across metrics",
    "points": "percentage points, for shares",
    "relative": "relative change in %",
}
PUBLISHED: dict[DriftScale, str] = {"published": "relative change in %, averaged as published"}
STRONGEST_SHADE: dict[DriftScale, tuple[float, float]] = {
    "effect": (0.1, 0.6),
    "points": (5.0, 30.0),
    "relative": (10.0, 60.0),
    "published": (10.0, 60.0),
}
"""Bounds of the drift with the strongest colour; within them, the largest one of a capability."""
MAX_CAPABILITIES = 10_000
"""Maximum number of capabilities of a group."""
NOT_HERE = "n/a"
DIGITS: dict[DriftScale, int] = {"effect": 2, "points": 1, "relative": 1, "published": 1}
UNITS: dict[DriftScale, str] = {"effect": "", "points": "", "relative": "%", "published": "%"}
WHY_OFF: dict[DriftScale, str] = {
    "points": "no share, so no percentage points",
    "relative": "no relative change: the value before is too close to 0 or to guessing",
}


@dataclass(frozen=True, slots=True)
class Drift:
    """A value on some scale."""

    value: float | None
    low: float | None = None
    high: float | None = None


def make_drift_rows(result: DriftResult) -> tuple[DriftRows, list[ScaleWords]]:
    """Return all rows, and the available scales."""
    scales = PUBLISHED if result.aggregator == "captrack-relative" else SCALES
    columns: dict[str, list[object]] = {name: [] for name in DriftRows.model_fields}
    words = []
    for scale, label in scales.items():
        entries = [
            (index, level, order, cell, _on(scale, cell, result))
            for index, model in enumerate(result.models)
            for level, cells in _levels(result, model).items()
            for order, cell in cells.items()
        ]
        known = [abs(drift.value) for _, level, _, _, drift in entries
                 if level == "capability" and drift.value is not None]  # fmt: skip
        least, most = STRONGEST_SHADE[scale]
        strong = min(max([least, *known]), most)
        words.append(ScaleWords(name=scale, words=label, strong=strong))
        for index, level, order, cell, drift in entries:
            row = _row(result, index, level, order, cell, scale, drift, strong)
            for name, value in row.items():
                columns[name].append(value)
    return DriftRows.model_validate(columns), words


def _levels(result: DriftResult, model: str) -> dict[DriftLevel, dict[int, Cell | MetricCell]]:
    """Return the cells of each level by their order; a group is before its capabilities."""
    groups = [cell for cell in result.groups if cell.model == model]
    first = {cell.id: index * MAX_CAPABILITIES for index, cell in enumerate(groups)}
    own = [cell for cell in result.capabilities if cell.model == model]
    metrics = (cell for cell in result.metrics if cell.model == model)
    deep_dive = (cell for cell in result.deep_dive if cell.model == model)
    return {
        "group": {first[cell.id]: cell for cell in groups},
        "capability": {first[cell.group] + 1 + index: cell for index, cell in enumerate(own)},
        "metric": dict(enumerate(metrics)),
        "deep_dive": dict(enumerate(deep_dive)),
    }


def _row(
    result: DriftResult,
    index: int,
    level: DriftLevel,
    order: int,
    cell: Cell | MetricCell,
    scale: DriftScale,
    drift: Drift,
    strong: float,
) -> dict[str, object]:
    parent = cell.capability if isinstance(cell, MetricCell) else cell.group
    direction = _direction(cell, result)
    words = describe_cell(cell)
    state: DriftState = words.state
    note = cell.note
    if drift.value is None and state != "none":
        state, note = "off", WHY_OFF.get(scale)
    return {
        "comparison": index,
        "after": label_of(cell.model),
        "level": level,
        "id": cell.id,
        "name": label_of(words.title) + f" {EITHER_WAY}" * (direction != "better"),
        "parent": parent,
        "capability": {"group": "", "capability": cell.id}.get(level, parent),
        "order": order,
        "direction": direction,
        "scale": scale,
        "value": drift.value,
        "low": drift.low,
        "high": drift.high,
        "noise": cell.noise if scale == "effect" and drift.value is not None else None,
        "shade": None if drift.value is None else max(-1.0, min(1.0, drift.value / strong)),
        "shown": _value_text(cell, drift, scale),
        "state": state,
        "n": cell.n,
        "coverage": str(cell.coverage),
        "note": note,
    }


def _direction(cell: Cell | MetricCell, result: DriftResult) -> str:
    if result.aggregator == "captrack-relative":
        return "more"
    if isinstance(cell, MetricCell):
        return "more" if cell.polarity == "both" else "better"
    return cell.direction


def _value_text(cell: Cell | MetricCell, drift: Drift, scale: DriftScale) -> str:
    if drift.value is None:
        return describe_cell(cell).drift if cell.value is None else NOT_HERE
    return signed(drift.value, DIGITS[scale]) + UNITS[scale] + _mark(cell, drift)


def _mark(cell: Cell | MetricCell, drift: Drift) -> str:
    """Return the mark of the effect, unless value or interval on this scale disagree with it."""
    words = describe_cell(cell)
    if words.state != "sure" or drift.value is None or cell.value is None:
        return words.mark
    agrees = drift.value * cell.value > 0
    if drift.low is not None:
        agrees = agrees and leaves_out_zero(drift.value, drift.low, drift.high)
    return words.mark * agrees


def _on(scale: DriftScale, cell: Cell | MetricCell, result: DriftResult) -> Drift:
    """Return a cell on a scale; above metrics, points and percent are means of the level below."""
    if scale in ("effect", "published"):
        return Drift(cell.value, cell.low, cell.high)
    if isinstance(cell, MetricCell):
        return _of_metric(scale, cell)
    if cell.group:
        own = [
            metric
            for metric in result.metrics
            if metric.model == cell.model and metric.capability == cell.id and metric.weight
        ]
        parts = [(metric.weight, _of_metric(scale, metric)) for metric in own]
    else:
        members = [capability for capability in result.capabilities
                   if capability.model == cell.model and capability.group == cell.id]  # fmt: skip
        parts = [(1.0, _on(scale, member, result)) for member in members]
    known = [part for _, part in parts if part.value is not None]
    return known[0] if len(known) == 1 else Drift(_mean(parts))


def _mean(parts: Sequence[tuple[float, Drift]]) -> float | None:
    """Return the weighted mean of known values; None if there are none."""
    known = [(weight, part.value) for weight, part in parts if part.value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else None


def _of_metric(scale: DriftScale, cell: MetricCell) -> Drift:
    """Return the drift of a metric, with the sign changed so that positive is better."""
    sign = -1.0 if cell.polarity == "down" else 1.0
    if scale == "relative":
        return Drift(None if cell.relative is None else sign * cell.relative)
    if cell.points is None or cell.scale not in ("binary", "share"):
        return Drift(None)
    limits = [None if part is None else sign * part for part in (cell.points_low, cell.points_high)]
    low, high = limits if sign > 0 else limits[::-1]
    return Drift(sign * cell.points, low, high)
