"""Intervals that hold their level, also with few flips. Never Wald."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.mean_scores import ScoreSums
from forgetmap.stats.results import Interval, Reals

LEVEL = 0.95
"""Of every interval."""


def normal_quantile(level: float = LEVEL) -> float:
    """The two-sided standard normal quantile."""
    from scipy.special import ndtri  # heavy, only here

    return float(ndtri(0.5 + level / 2))


def score_interval(
    sums: ScoreSums, *, z: ArrayLike | None = None, inflate: ArrayLike = 1.0
) -> Interval:
    """Interval for the mean of scores s = c[10] - h[E].

    Solves (estimate - theta)^2 = z^2 V(theta) with V(theta) = a1 theta - a2 theta^2 + Q + q0, where
    q0 adds one pseudo item in E and a quarter of a pseudo loss. For raw rates this is Wilson's
    interval apart from q0. Covers at least .935 of .95 where Wald falls to .40
    (`docs/statistics.md`).

    Args:
        sums: of the scores.
        z: quantile; 1.96 by default, or a t quantile for clustered data.
        inflate: design effect that V is multiplied with, 1 for independent items.
    """
    z2 = np.asarray(normal_quantile() if z is None else z, float) ** 2 * np.asarray(inflate, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        cbar = sums.c / sums.n
        q = np.maximum(sums.a, sums.s2 - cbar * sums.s) / sums.n**2
        q0 = (sums.b / sums.n + cbar**2 / 4) / sums.n**2
        return _solve(sums.mean, cbar / sums.n, 1 / sums.n, q + q0, z2)


def weighted_interval(
    parts: Sequence[ScoreSums],
    weights: Sequence[float],
    *,
    z: float | None = None,
    inflate: Sequence[float] | None = None,
) -> Interval:
    """Interval for a weighted mean of groups, such as the mean over tasks; variances are carried.

    This answers "these tasks"; for "tasks like these" use `between_interval`.

    Args:
        parts: sums of each group.
        weights: of the groups; they sum to 1.
        z: quantile; 1.96 by default.
        inflate: design effect of each group, 1 for independent items.
    """
    z2 = (normal_quantile() if z is None else z) ** 2
    theta = a1 = a2 = spread = floor = q0 = np.asarray(0.0)
    for part, weight, effect in zip(parts, weights, inflate or [1.0] * len(parts), strict=True):
        cbar = part.c / part.n
        carried = weight**2 * effect
        theta = theta + weight * part.mean
        a1 = a1 + carried * cbar / part.n
        a2 = a2 + carried / part.n
        floor = floor + carried * part.a / part.n**2
        spread = spread + carried * part.s2 / part.n**2
        q0 = np.maximum(q0, carried * (part.b / part.n + cbar**2 / 4) / part.n**2)
    q = np.maximum(floor, spread - a1 * theta)
    return _solve(theta, a1, a2, q + q0, np.asarray(z2))


def between_interval(values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Interval for the mean over groups like these: SD / sqrt(T) with t on T - 1."""
    from scipy.special import stdtrit

    values = np.asarray(values, float)
    count = values.shape[-1]
    mean = values.mean(-1)
    if count < 2:  # one group says nothing about others
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    half = stdtrit(count - 1, 0.5 + level / 2) * values.std(-1, ddof=1) / np.sqrt(count)
    return Interval(mean, mean - half, mean + half)


def combined_interval(
    parts: Sequence[Interval], items: Sequence[int], *, level: float = LEVEL
) -> Interval:
    """Interval for the plain mean of independent Student intervals, such as excess over tasks.

    Variances add; the degrees of freedom are Satterthwaite's.

    Args:
        parts: from `mean_interval`.
        items: behind each of them.
        level: of the intervals.
    """
    from scipy.special import stdtrit

    freedom = np.asarray(items, float) - 1
    half = np.array([(part.high - part.low) / 2 for part in parts], float)
    variance = (half / stdtrit(freedom, 0.5 + level / 2)) ** 2 / len(parts) ** 2
    mean = np.mean([part.value for part in parts])
    total = variance.sum()
    combined = total**2 / (variance**2 / freedom).sum()
    width = stdtrit(combined, 0.5 + level / 2) * np.sqrt(total)
    return Interval(np.asarray(mean), np.asarray(mean - width), np.asarray(mean + width))


def mean_interval(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    *,
    pseudo: ArrayLike = 1.0,
    level: float = LEVEL,
) -> Interval:
    """Student interval for a mean of item scores with one pseudo observation (excess, net).

    SE^2 = (sum (e - mean)^2 + pseudo^2) / (n (n - 1)). Without the pseudo observation coverage
    falls to .89 at 50 items.
    """
    from scipy.special import stdtrit

    n, total, squares = (np.asarray(x, float) for x in (n, total, squares))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
        spread = np.maximum(squares - n * mean**2, 0.0) + np.asarray(pseudo, float) ** 2
        half = stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(spread / (n * (n - 1)))
    return Interval(np.asarray(mean), np.asarray(mean - half), np.asarray(mean + half))


def agree_with_test(interval: Interval, mid_p: ArrayLike) -> Interval:
    """Where the one-sided test does not reject at 2.5 %, the lower limit is not above 0."""
    low = np.where(np.asarray(mid_p) > (1 - LEVEL) / 2, np.minimum(interval.low, 0.0), interval.low)
    return Interval(interval.value, np.asarray(low), interval.high)


def _solve(theta: Reals, a1: Reals, a2: Reals, q: Reals, z2: Reals) -> Interval:
    alpha = 1 + z2 * a2
    beta = 2 * theta + z2 * a1
    gamma = theta**2 - z2 * q
    root = np.sqrt(np.maximum(beta**2 - 4 * alpha * gamma, 0.0))
    return Interval(
        np.asarray(theta),
        np.asarray((beta - root) / (2 * alpha)),
        np.asarray((beta + root) / (2 * alpha)),
    )
