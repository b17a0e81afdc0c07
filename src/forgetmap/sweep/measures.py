"""Shares along a path, with pointwise and simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from forgetmap.results import Estimate
from forgetmap.stats import (
    LEVEL,
    ClusterDesign,
    Interval,
    Reals,
    joint_quantile,
    mean_limits,
    normal_quantile,
    share_interval,
)
from forgetmap.sweep.states import Flags

SCORE = "score interval"
TOGETHER = "all merges at once"


@dataclass(frozen=True, slots=True)
class Rates:
    """One share at every point, with pointwise and simultaneous intervals."""

    alone: list[Estimate]
    together: list[Estimate]


def rates(hits: Flags, design: ClusterDesign, family: Sequence[int], why_none: str) -> Rates:
    """Compute shares of hits, one row per point.

    Args:
        hits: point x answer, among the answers of the denominator.
        design: dependence between answers.
        family: points from which one may be chosen.
        why_none: reason to state if there are no answers.
    """
    if not hits.shape[1]:
        nothing = [Estimate(value=None, method="share", reason=why_none)] * len(hits)
        return Rates(nothing, nothing)
    scores = hits.astype(float)
    alone, z = _quantiles(scores, design, family)
    return Rates(
        [share(row, design, one) for row, one in zip(scores, alone, strict=True)],
        [share(row, design, max(z, one), TOGETHER) for row, one in zip(scores, alone, strict=True)],
    )


def share(scores: Reals, design: ClusterDesign, z: float, note: str = "") -> Estimate:
    """Return a share with a Wilson-type interval, as in `compare`."""
    effect, _ = design.effect(scores)
    interval = share_interval(float(scores.sum()), scores.size, z=z, effect=effect)
    method = f"share, {SCORE}" + (f", {note}" if note else "")
    return Estimate(
        value=float(interval.value),
        low=max(float(interval.low), 0.0),
        high=min(float(interval.high), 1.0),
        method=method,
    )


def sum_less_one(
    first: Flags,
    second: Flags,
    designs: tuple[ClusterDesign, ClusterDesign],
    family: Sequence[int],
    why: str,
) -> Rates:
    """Return the sum of two shares of different answers, minus 1; intervals are combined.

    MOVER (Zou and Donner 2008): the distance of each bound is the root of the sum of squares.
    """
    if not first.shape[1] or not second.shape[1]:
        nothing = [Estimate(value=None, method="retained + recovered - 1", reason=why)] * len(first)
        return Rates(nothing, nothing)
    one, two = first.astype(float), second.astype(float)
    # Their influence on the sum: different answers, so concatenated.
    both = np.hstack([_influence(one), _influence(two)])
    z = joint_quantile(both[list(family)], _joined(designs, one.shape[1], two.shape[1]))
    kinds = []
    for quantile, note in ((normal_quantile(), ""), (z, TOGETHER)):
        estimates = []
        for a, b in zip(one, two, strict=True):
            parts = (share(a, designs[0], quantile), share(b, designs[1], quantile))
            estimates.append(_mover(parts, note))
        kinds.append(estimates)
    return Rates(*kinds)


def means(
    scores: Reals, design: ClusterDesign, family: Sequence[int], method: str
) -> list[Estimate]:
    """Return means of item scores with intervals for all points of the family at once."""
    if scores.shape[1] < 2:
        return [Estimate(value=None, method=method, reason="too few items")] * len(scores)
    z = joint_quantile(scores[list(family)], design) if len(family) else normal_quantile()
    return _estimates(mean_limits(scores, z, design), f"{method}, t intervals, {TOGETHER}")


def greatest(estimates: Sequence[Estimate], method: str) -> tuple[Estimate, int]:
    """Return the largest of several estimates with simultaneous intervals, and its index.

    The largest true value is between the largest lower and the largest upper bound.
    """
    known = [
        (estimate.value, index)
        for index, estimate in enumerate(estimates)
        if estimate.value is not None
    ]
    if not known:
        reason = estimates[0].reason if estimates else "no merges"
        return Estimate(value=None, method=method, reason=reason), 0
    value, index = max(known)
    lows = [estimate.low for estimate in estimates if estimate.low is not None]
    highs = [estimate.high for estimate in estimates if estimate.high is not None]
    return Estimate(value=value, low=max(lows), high=max(highs), method=method), index


def _quantiles(
    scores: Reals, design: ClusterDesign, family: Sequence[int]
) -> tuple[NDArray[np.float64], float]:
    """Return quantiles of each row alone, and of the family at once."""
    from scipy.special import stdtrit  # heavy, only here

    freedoms = [design.effect(row)[1] for row in scores]
    alone = [
        normal_quantile() if free == inf else float(stdtrit(free, 0.5 + LEVEL / 2))
        for free in freedoms
    ]
    joint = joint_quantile(scores[list(family)], design) if len(family) else normal_quantile()
    return np.array(alone), joint


def _influence(scores: Reals) -> Reals:
    return np.asarray((scores - scores.mean(1, keepdims=True)) / scores.shape[1])


def _joined(designs: tuple[ClusterDesign, ClusterDesign], first: int, second: int) -> ClusterDesign:
    if designs[0].cluster is None and designs[1].cluster is None:
        return ClusterDesign()
    numbers = [
        np.arange(size, dtype=np.int64) if estimate.cluster is None else estimate.cluster
        for estimate, size in zip(designs, (first, second), strict=True)
    ]
    # A cluster may contain answers of both kinds, which stay together.
    return ClusterDesign(np.concatenate(numbers))


def _mover(parts: tuple[Estimate, Estimate], note: str) -> Estimate:
    value = below = above = 0.0
    for part in parts:
        assert part.value is not None  # noqa: S101  # shares of some answers have all three
        assert part.low is not None  # noqa: S101
        assert part.high is not None  # noqa: S101
        value += part.value
        below += (part.value - part.low) ** 2
        above += (part.high - part.value) ** 2
    method = "retained + recovered - 1" + (f", {note}" if note else "")
    return Estimate(
        value=value - 1, low=value - 1 - sqrt(below), high=value - 1 + sqrt(above), method=method
    )


def _estimates(interval: Interval, method: str) -> list[Estimate]:
    return [
        Estimate(value=float(value), low=float(low), high=float(high), method=method)
        for value, low, high in zip(interval.value, interval.low, interval.high, strict=True)
    ]
