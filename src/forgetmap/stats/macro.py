"""Means over tasks, some of which have few clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetmap.stats.intervals import score_interval, weighted_interval
from forgetmap.stats.mean_scores import ScoreSums
from forgetmap.stats.results import Interval


def join_in_quadrature(parts: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Return the interval of a weighted mean of independent parts with intervals of their own.

    U = theta + sqrt(sum w^2 (U_j - theta_j)^2), L likewise. A part adds at most its weight times
    the width that is possible, so clip its bounds first (`clip_interval`). For tasks with fewer
    than 30 degrees of freedom beside one part for all others from `weighted_interval`: over many
    tasks the errors of skewed intervals add up (lower miss .13).

    Args:
        parts: intervals; a bound on the wrong side of its estimate counts as the estimate.
        weights: weights of the parts; they sum to 1.
    """
    w = np.asarray(weights, float)
    value, low, high = (
        np.asarray([getattr(part, name) for part in parts], float)
        for name in ("value", "low", "high")
    )
    mean = np.asarray(w @ value)
    below = np.sqrt(w**2 @ np.maximum(value - low, 0.0) ** 2)
    above = np.sqrt(w**2 @ np.maximum(high - value, 0.0) ** 2)
    return Interval(mean, np.asarray(mean - below), np.asarray(mean + above))


def clip_interval(interval: Interval, low: float, high: float) -> Interval:
    """Clip an interval to possible values: [0, 1] for raw shares, [-h, c] for other scores."""
    return Interval(
        interval.value,
        np.asarray(np.clip(interval.low, low, high)),
        np.asarray(np.clip(interval.high, low, high)),
    )


MIN_FREEDOM = 30
"""Degrees of freedom of a task below which it keeps its own interval, as its spread is
uncertain."""


@dataclass(frozen=True, slots=True)
class TaskPart:
    """A task in a mean over tasks.

    Attributes:
        sums: sums of the score.
        quantile: t quantile of its clusters, or the normal one.
        inflate: design effect of its clusters.
        worst: design effect of the loss, for the upper bound.
        freedom: degrees of freedom of its clusters; `inf` without clusters.
        span: smallest and largest possible score.
    """

    sums: ScoreSums
    quantile: float
    inflate: float = 1.0
    worst: float | None = None
    freedom: float = np.inf
    span: tuple[float, float] = (0.0, 1.0)


def tasks_interval(parts: Sequence[TaskPart], *, z: float, at_least: bool = False) -> Interval:
    """Return the interval of the plain mean over tasks.

    Tasks with `MIN_FREEDOM` or more share one quadratic. A task with fewer keeps its own interval,
    clipped to possible scores, and is joined in quadrature: then it adds at most its weight, while
    its t quantile for all tasks would make the mean useless.
    """
    many = [part for part in parts if part.freedom >= MIN_FREEDOM]
    few = [part for part in parts if part.freedom < MIN_FREEDOM]
    intervals = [clip_interval(_own_interval(part, at_least=at_least), *part.span) for part in few]
    weights = [1 / len(parts)] * len(few)
    if many:
        joint = weighted_interval(
            [part.sums for part in many],
            [1 / len(many)] * len(many),
            z=z,
            inflate=[part.inflate for part in many],
            worst=[part.inflate if part.worst is None else part.worst for part in many],
            at_least=at_least,
        )
        if not few:
            return joint
        intervals.append(joint)
        weights.append(len(many) / len(parts))
    return join_in_quadrature(intervals, weights)


def _own_interval(part: TaskPart, *, at_least: bool) -> Interval:
    return score_interval(
        part.sums, z=part.quantile, inflate=part.inflate, worst=part.worst, at_least=at_least
    )
