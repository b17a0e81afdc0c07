"""Estimates in long form, one row per group, estimator and scale; and the verdicts of groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from forgetmap.comparison import (
    TONES,
    ComparisonResult,
    GroupResult,
    LimitsResult,
    all_estimators,
    verdict_words,
)
from forgetmap.report.payloads.schema import (
    FLIPS,
    PROVEN,
    Direction,
    Level,
    Rows,
    Scale,
    VerdictWords,
)
from forgetmap.results import Estimate, Estimates


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
    estimators = {row.estimator for row in rows if (row.value, row.high) != (None, None)}
    kept = [row for row in rows if row.estimator in estimators]
    return Rows(**{name: [getattr(row, name) for row in kept] for name in Row._fields})


def _of_comparison(index: int, result: ComparisonResult) -> Iterator[Row]:
    deciding = {row.name for row in all_estimators() if row.role == "decides"}
    for level, groups in groups_of(result).items():
        for group in groups:
            for estimator, direction, scale, estimate in _estimates(group, deciding):
                yield Row(
                    index, level, group.name, estimator, direction, scale,
                    estimate.value, estimate.low, estimate.high, group.n,
                )  # fmt: skip


def groups_of(result: ComparisonResult) -> dict[Level, list[GroupResult]]:
    """Return every group of a comparison by level; stages have their own names."""
    stages = result.stages or []
    return {
        "total": [result.total],
        "macro": [result.total_macro],
        "category": result.categories,
        "tag": result.tags,
        "task": result.tasks,
        "stage": [replace(stage.against_previous, name=stage.name) for stage in stages],
        "since_first": [replace(stage.against_first, name=stage.name) for stage in stages],
    }


def verdicts_of(result: ComparisonResult) -> dict[Level, list[VerdictWords]]:
    """Return the verdict of every group as it is shown."""
    return {
        level: [
            VerdictWords(words=verdict_words(group), tone=TONES[group.verdict]) for group in groups
        ]
        for level, groups in groups_of(result).items()
    }


def _estimates(
    group: GroupResult, deciding: Collection[str]
) -> Iterator[tuple[str, Direction, Scale, Estimate]]:
    """Yield what was counted, what is proven, and estimates that rest on assumptions."""
    shown = {name: each for name, each in group.estimators.items() if name not in deciding}
    counted = Estimates(forgetting=group.forgetting, backward_transfer=group.backward_transfer)
    proven = Estimates(forgetting=_proven(group.loss), backward_transfer=_proven(group.gain))
    before = group.acc_before
    wrong = None if before is None else 1 - before
    for name, estimates in {FLIPS: counted, PROVEN: proven, **shown}.items():
        lost, gained = estimates.forgetting, estimates.backward_transfer
        yield name, "forgetting", "items", lost
        yield name, "forgetting", "right_before", _divided(lost, before)
        yield name, "backward_transfer", "items", gained
        yield name, "backward_transfer", "right_before", _divided(gained, wrong)


def _proven(limits: LimitsResult) -> Estimate:
    """Return the limits of what is proven; no loss is below 0."""
    low = None if limits.low is None else max(limits.low, 0.0)
    return Estimate(value=None, low=low, high=limits.high, method=PROVEN)


def _divided(estimate: Estimate, by: float | None) -> Estimate:
    """Return an estimate as a share of what can be lost or gained; missing if that is 0."""

    def part(value: float | None) -> float | None:
        return None if value is None or not by else value / by

    return replace(
        estimate, value=part(estimate.value), low=part(estimate.low), high=part(estimate.high)
    )
