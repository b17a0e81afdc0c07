"""Scores that are fractions: the mean change, which nets losses and gains."""

from __future__ import annotations

import numpy as np

from forgetmap.stats.clusters import ClusterVariance
from forgetmap.stats.intervals import LEVEL
from forgetmap.stats.results import Interval


def graded_interval(
    n: float,
    total: float,
    squares: float,
    *,
    clusters: ClusterVariance | None = None,
    level: float = LEVEL,
) -> Interval:
    """Interval for the mean of changes, score before - score after, each in [-1, 1].

    Student with one pseudo observation that changed by the whole range:
    SE^2 = (sum (x - mean)^2 + 1) / (n (n - 1)). With clusters: CR2 variance + 1 / (df (df + 1)), a
    pseudo cluster, on the degrees of freedom df of Bell and McCaffrey. Without it items that all
    changed alike would leave no doubt.

    Args:
        n: items.
        total: sum of the changes.
        squares: sum of the squared changes.
        clusters: from `cluster_variance`, for items that stand or fall together.
        level: of the interval.
    """
    from scipy.special import stdtrit  # heavy, only here

    mean = np.asarray(total / n if n else np.nan)
    freedom = n - 1 if clusters is None else clusters.freedom
    if n < 2 or freedom <= 0:
        return Interval(mean, np.asarray(np.nan), np.asarray(np.nan))
    if clusters is None:
        variance = (max(squares - n * float(mean) ** 2, 0.0) + 1) / (n * (n - 1))
    else:
        variance = clusters.variance + 1 / (freedom * (freedom + 1))
    half = stdtrit(freedom, 0.5 + level / 2) * np.sqrt(variance)
    return Interval(mean, np.asarray(mean - half), np.asarray(mean + half))
