"""Estimates in long form: one row per group, estimator and scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from forgetmap.comparison import ComparisonResult, GroupResult, find_estimator, number_estimators
from forgetmap.report.payloads.schema import HEADLINE, NOISE_FLOOR, Direction, Level, Rows, Scale
from forgetmap.results import Estimate


class Row(NamedTuple):
    """One estimate with its group, estimator and scale."""

    comparison: int
    level: Level
    group: str
    estimator: str
    direction: Direction
    scale: Scale
    value: float | None
    low: float | None
    high: float | None
    n: int


def make_rows(results: Sequence[ComparisonResult]) -> Rows:
    """Return all rows of these comparisons, without estimators that have no value anywhere."""
    rows = [row for index, result in enumerate(results) for row in _of_comparison(index, result)]
    estimators = {
        row.estimator for row in rows if (row.value, row.low, row.high) != (None, None, None)
    }
    kept = [row for row in rows if row.estimator in estimators]
    return Rows(**{name: [getattr(row, name) for row in kept] for name in Row._fields})


def _of_comparison(index: int, result: ComparisonResult) -> Iterator[Row]:
    for level, group in groups_of(result):
        for estimator, direction, scale, estimate in _estimates(group):
            yield Row(
                index, level, group.name, estimator, direction, scale,
                estimate.value, estimate.low, estimate.high, group.n,
            )  # fmt: skip


def groups_of(result: ComparisonResult) -> Iterator[tuple[Level, GroupResult]]:
    """Yield every group of a comparison; stages have their own names."""
    yield "total", result.total
    yield "macro", result.total_macro
    for category in result.categories:
        yield "category", category
    for tag in result.tags:
        yield "tag", tag
    for task in result.tasks:
        yield "task", task
    for stage in result.stages or []:
        name = {"name": stage.name}
        yield "stage", stage.against_previous.model_copy(update=name)
        yield "since_first", stage.against_first.model_copy(update=name)


def _estimates(group: GroupResult) -> Iterator[tuple[str, Direction, Scale, Estimate]]:
    headline = group.headline
    rows = [(HEADLINE, headline.estimator, headline.forgetting, headline.backward_transfer)]
    for row in number_estimators():
        estimates = group.estimates(row.name)
        rows.append((row.name, row.name, estimates.forgetting, estimates.backward_transfer))
    for name, estimator, lost, gained in rows:
        there = _there_was(group, estimator)
        left = None if there is None else 1 - there
        of_known = headline.of_known if name == HEADLINE else _divided(lost, there)
        yield name, "forgetting", "items", lost
        yield name, "forgetting", "known", of_known
        yield name, "backward_transfer", "items", gained
        yield name, "backward_transfer", "known", _divided(gained, left)
    yield NOISE_FLOOR, "forgetting", "items", group.noise_floor
    yield NOISE_FLOOR, "forgetting", "known", _divided(group.noise_floor, group.acc_before)


def _there_was(group: GroupResult, estimator: str) -> float | None:
    """Return the share that can be lost; the rest can be gained.

    For estimators adjusted for luck it is the share known beyond luck.
    """
    on_knowledge = find_estimator(estimator).scale == "knowledge"
    return group.known_before if on_knowledge else group.acc_before


def _divided(estimate: Estimate, by: float | None) -> Estimate:
    """Return an estimate as a share of what can be lost or gained; missing if that is 0."""
    parts = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    if by is None or by <= 0:
        return estimate.model_copy(update=dict.fromkeys(parts))
    scaled = {name: None if part is None else part / by for name, part in parts.items()}
    return estimate.model_copy(update=scaled)
