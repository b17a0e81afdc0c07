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

    Student: SE^2 = max(sum (x - mean)^2 + 1/4, 1) / (n (n - 1)). With clusters: CR2 variance V on
    the degrees of freedom df of Bell and McCaffrey, max(V + d/4, d) with d = 1 / (df (df + 1)).
    The 1 and d stand for one item (one cluster) that changes by the whole range: where next to
    nothing changed, the spread seen says nothing of what was not drawn. Covers .93 or more; above
    .98 up to about 15 items or clusters, and where fewer than about 5 of them change.

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
        variance = _at_least(squares - n * float(mean) ** 2, 1.0) / (n * (n - 1))
    else:
        variance = _at_least(clusters.variance, 1 / (freedom * (freedom + 1)))
    half = stdtrit(freedom, 0.5 + level / 2) * np.sqrt(variance)
    return Interval(mean, np.asarray(mean - half), np.asarray(mean + half))


def _at_least(spread: float, unit: float) -> float:
    """The spread with a quarter of a pseudo observation, or one where there is less."""
    return max(spread + unit / 4, unit)
