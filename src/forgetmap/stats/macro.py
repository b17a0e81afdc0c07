"""Means over tasks of which some have few clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetmap.stats.results import Interval


def join_in_quadrature(parts: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Interval for a weighted mean of independent parts, each with an interval of its own.

    U = theta + sqrt(sum w^2 (U_j - theta_j)^2), L likewise. A part adds at most its weight times
    the width that is possible, so clip its limits first (`clip_interval`). For tasks with fewer
    than 30 degrees of freedom beside one part for all others from `weighted_interval`: over many
    tasks the errors of skewed intervals add up (lower miss .13).

    Args:
        parts: with limits; a limit on the wrong side of its estimate counts as the estimate.
        weights: of the parts; they sum to 1.
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
    """Limits no farther than what is possible: [0, 1] for raw shares, [-h, c] for other scores."""
    return Interval(
        interval.value,
        np.asarray(np.clip(interval.low, low, high)),
        np.asarray(np.clip(interval.high, low, high)),
    )
