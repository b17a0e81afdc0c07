"""Intervals of shares and of means over groups."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Interval

LEVEL = 0.95
"""Confidence level of every interval."""


@lru_cache(maxsize=64)
def normal_quantile(level: float = LEVEL) -> float:
    """Return the two-sided standard normal quantile."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def share_interval(hits: float, n: float, *, z: float, effect: float = 1.0) -> Interval:
    """Return the interval of a share: Wilson's, with a quarter of a hit more in its variance.

    Args:
        hits: items with a hit.
        n: all items, at least one.
        z: quantile of the normal distribution, or of t for clustered items.
        effect: design effect of clusters.
    """
    share, slope = hits / n, z * z * effect / n
    centre = 2 * share + slope
    root = np.sqrt(centre**2 - 4 * (1 + slope) * (share**2 - slope / (4 * n)))
    low, high = ((centre + sign * root) / (2 * (1 + slope)) for sign in (-1, 1))
    return Interval(*(np.asarray(end) for end in (share, low, high)))


def between_interval(values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the interval of the mean over groups like these: SD / sqrt(T) with t on T - 1."""
    from scipy.special import stdtrit

    values = np.asarray(values, float)
    count = values.shape[-1]
    mean = values.mean(-1)
    if count < 2:  # one group shows nothing about others
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    half = stdtrit(count - 1, 0.5 + level / 2) * values.std(-1, ddof=1) / np.sqrt(count)
    return Interval(mean, mean - half, mean + half)
