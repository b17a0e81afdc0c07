"""Shrinkage estimates of many tasks, to rank them by their loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.intervals import LEVEL, normal_quantile
from forgetmap.stats.mean_scores import ScoreSums
from forgetmap.stats.results import Interval, Reals

MIN_TASKS = 4
"""Minimum number of tasks; with fewer, their spread cannot be distinguished from noise."""
BISECTIONS = 100


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Estimates of tasks after shrinkage; arrays over the tasks, nan for tasks without an estimate.

    Attributes:
        centre: mean of all tasks.
        spread: tau^2, variance of the true losses between tasks.
        interval: shrunken loss of each task, with its interval.
        exceeds: probability that the loss of each task exceeds the margin.
    """

    centre: float
    spread: float
    interval: Interval
    exceeds: Reals


def score_variance(
    sums: ScoreSums, *, inflate: ArrayLike = 1.0, at: ArrayLike | None = None
) -> Reals:
    """Return V of `score_interval`, Q and q0 included, so that it is never 0.

    Args:
        sums: sums of the scores.
        inflate: design effect of clusters.
        at: the loss at which it is evaluated; the estimate itself by default.
    """
    cbar = sums.c / sums.n
    loss = sums.mean if at is None else np.clip(np.asarray(at, float), 0.0, cbar)
    q = np.maximum(sums.a, sums.s2 - cbar * sums.s) / sums.n**2
    q0 = (sums.b / sums.n + cbar**2 / 4) / sums.n**2
    visible = (cbar * loss - loss**2) / sums.n
    return np.asarray((visible + q + q0) * np.asarray(inflate, float))


def shrink(
    values: ArrayLike, variances: ArrayLike, *, margin: float, level: float = LEVEL
) -> Shrinkage | None:
    """Return empirical Bayes estimates of the losses of tasks, and P(loss > margin) of each.

    B_t = (T-3)/(T-1) V_t/(V_t + tau^2), mean m_t = theta_t - B_t (theta_t - mu), variance
    V_t (1 - B_t (T-1)/T) + 2/(T-3) B_t^2 (theta_t - mu)^2 (mean V + tau^2)/(V_t + tau^2);
    P(loss > margin) = Phi((m_t - margin)/sd_t). Assumes that true losses of tasks are normally
    distributed around one mean. For ranking tasks; never the headline of one.

    Args:
        values: estimate of each task, not clipped.
        variances: variances of the estimates, such as `score_variance` at the mean of all tasks: at
            each estimate, they are smallest if an estimate is too small by chance, and the
            intervals miss too often.
        margin: largest acceptable loss.
        level: confidence level of the intervals.

    Returns:
        None with fewer than four tasks.

    References:
        Morris, Parametric empirical Bayes inference: theory and applications, 1983.
    """
    from scipy.special import ndtr  # heavy, only here

    theta, v = np.asarray(values, float), np.asarray(variances, float)
    known = np.isfinite(theta) & np.isfinite(v)
    tasks = int(known.sum())
    if tasks < MIN_TASKS:
        return None
    tau2 = between_variance(theta[known], v[known])
    centre = float(np.average(theta[known], weights=1 / (v[known] + tau2)))
    theta, v = np.where(known, theta, np.nan), np.where(known, v, np.nan)
    factor = (tasks - 3) / (tasks - 1) * v / (v + tau2)
    mean = theta - factor * (theta - centre)
    scale = (np.nanmean(v) + tau2) / (v + tau2)
    doubt = 2 / (tasks - 3) * factor**2 * (theta - centre) ** 2 * scale
    deviation = np.sqrt(v * (1 - factor * (tasks - 1) / tasks) + doubt)
    half = normal_quantile(level) * deviation
    limits = Interval(mean, mean - half, mean + half)
    return Shrinkage(centre, tau2, limits, np.asarray(ndtr((mean - margin) / deviation)))


def between_variance(values: Reals, variances: Reals) -> float:
    """Return tau^2 with sum (theta - mu)^2 / (V + tau^2) = T - 1; 0 if the sum is smaller at 0.

    References:
        Paule and Mandel, Consensus values and weighting factors, 1982.
    """

    def is_too_wide(tau2: float) -> bool:
        weights = 1 / (variances + tau2)
        centre = np.average(values, weights=weights)
        return bool((weights * (values - centre) ** 2).sum() > values.size - 1)

    if not is_too_wide(0.0):
        return 0.0
    low, high = 0.0, float(values.var(ddof=1))  # the root if all variances were 0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_too_wide(middle) else (low, middle)
    return high
