"""Confidence intervals that keep their level, also with few flips; no Wald intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.clusters import ClusterVariance
from forgetmap.stats.mean_scores import ScoreSums
from forgetmap.stats.results import Interval, Reals

LEVEL = 0.95
"""Confidence level of every interval."""


@lru_cache(maxsize=64)
def normal_quantile(level: float = LEVEL) -> float:
    """Return the two-sided standard normal quantile."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def score_interval(
    sums: ScoreSums,
    *,
    z: ArrayLike | None = None,
    inflate: ArrayLike = 1.0,
    worst: ArrayLike | None = None,
    at_least: bool = False,
) -> Interval:
    """Return the interval of the mean of scores s = c[10] - h[E].

    Solves (estimate - theta)^2 = z^2 V(theta) with V(theta) = a1 theta - a2 theta^2 + Q + q0, where
    q0 adds one pseudo item in E and a quarter of a pseudo loss. For raw rates this is Wilson's
    interval apart from q0. Covers at least .935 of .95 where Wald falls to .40
    (`docs/statistics.md`).

    Args:
        sums: sums of the scores.
        z: quantile; 1.96 by default, or a t quantile for clustered data.
        inflate: design effect, a factor of V; 1 for independent items.
        worst: design effect of the part of V that comes from loss, for the upper bound; see
            `ClusterVariance.worst_case`.
        at_least: the lower bound is used as an "at least" statement: three quarters of a loss are
            subtracted first, or it exceeds the truth in up to .06 of the cases (with it in up to
            .04).
    """
    z2 = np.asarray(normal_quantile() if z is None else z, float) ** 2
    effect = np.asarray(inflate, float)
    high = _solve_score(sums, z2, effect, effect if worst is None else np.asarray(worst, float))
    if not at_least:
        low = high if worst is None else _solve_score(sums, z2, effect, effect)
        return Interval(high.value, low.low, high.high)
    less = _less_lost(sums, effect)
    return Interval(
        high.value, _not_above(less.mean, _solve_score(less, z2, effect, effect).low), high.high
    )


UNSURE = 0.75
"""Losses that are subtracted before a lower bound is used as "at least"."""


def _not_above(mean: Reals, low: Reals) -> Reals:
    """Return the lower bound, 0 or below if no loss remains: then the equation has no root."""
    return np.asarray(np.where(mean > 0, low, np.minimum(low, 0.0)))


def _less_lost(sums: ScoreSums, effect: Reals) -> ScoreSums:
    """Return the sums with `UNSURE` fewer losses, scaled by the design effect of clusters."""
    with np.errstate(invalid="ignore", divide="ignore"):
        cbar = sums.c / sums.n
    off = UNSURE * effect * cbar
    return replace(sums, s=sums.s - off, s2=sums.s2 - off * cbar)


def _solve_score(sums: ScoreSums, z2: Reals, effect: Reals, worst: Reals) -> Interval:
    """V(theta) = effect (Q + q0) + worst (a1 theta - a2 theta^2)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        cbar = sums.c / sums.n
        q = np.maximum(sums.a, sums.s2 - cbar * sums.s) / sums.n**2
        q0 = (sums.b / sums.n + cbar**2 / 4) / sums.n**2
        loss = z2 * worst
        return _solve(sums.mean, cbar / sums.n, 1 / sums.n, effect * (q + q0), z2, loss)


def weighted_interval(
    parts: Sequence[ScoreSums],
    weights: Sequence[float],
    *,
    z: float | None = None,
    inflate: Sequence[float] | None = None,
    worst: Sequence[float] | None = None,
    at_least: bool = False,
) -> Interval:
    """Return the interval of a weighted mean of groups, such as tasks, from their variances.

    It applies to these tasks; for "tasks like these" use `between_interval`.

    Args:
        parts: sums of each group.
        weights: weights of the groups; they sum to 1.
        z: quantile; 1.96 by default.
        inflate: design effect of each group, 1 for independent items.
        worst: design effect of the loss of each group, for the upper bound.
        at_least: as in `score_interval`; the largest share of a loss is subtracted.
    """
    z2 = np.asarray((normal_quantile() if z is None else z) ** 2)
    effects = list(inflate or [1.0] * len(parts))
    high = _weighted(parts, weights, z2, effects, list(worst or effects))
    low = high if worst is None else _weighted(parts, weights, z2, effects, effects)
    if at_least:
        shares = [
            w * e * float(p.c / p.n / p.n) for p, w, e in zip(parts, weights, effects, strict=True)
        ]
        most = int(np.argmax(shares))
        less = [
            _less_lost(p, np.asarray(e)) if i == most else p
            for i, (p, e) in enumerate(zip(parts, effects, strict=True))
        ]
        low = _weighted(less, weights, z2, effects, effects)
        return Interval(high.value, _not_above(low.value, low.low), high.high)
    return Interval(high.value, low.low, high.high)


def _weighted(
    parts: Sequence[ScoreSums],
    weights: Sequence[float],
    z2: Reals,
    inflate: Sequence[float],
    worst: Sequence[float],
) -> Interval:
    theta = a1 = a2 = plain = spread = floor = q0 = np.asarray(0.0)
    for part, weight, effect, most in zip(parts, weights, inflate, worst, strict=True):
        cbar = part.c / part.n
        carried = weight**2 * effect
        theta = theta + weight * part.mean
        a1 = a1 + weight**2 * most * cbar / part.n
        a2 = a2 + weight**2 * most / part.n
        plain = plain + carried * cbar / part.n
        floor = floor + carried * part.a / part.n**2
        spread = spread + carried * part.s2 / part.n**2
        q0 = np.maximum(q0, carried * (part.b / part.n + cbar**2 / 4) / part.n**2)
    q = np.maximum(floor, spread - plain * theta)
    return _solve(theta, a1, a2, q + q0, z2)


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


def combined_interval(
    parts: Sequence[Interval],
    freedom: Sequence[float],
    *,
    level: float = LEVEL,
    inflate: float = 1.0,
) -> Interval:
    """Return the interval of the plain mean of independent Student intervals, such as over tasks.

    Variances add up, separately for the two bounds; the degrees of freedom are Satterthwaite's.

    Args:
        parts: from `mean_interval`.
        freedom: degrees of freedom of each of them.
        level: confidence level of the intervals.
        inflate: design effect of clusters that parts share.
    """
    from scipy.special import stdtrit

    df = np.asarray(freedom, float)
    value, low, high = (
        np.array([getattr(part, end) for part in parts], float) for end in ("value", "low", "high")
    )

    def width(half: Reals) -> Reals:
        variance = (half / stdtrit(df, 0.5 + level / 2)) ** 2 / len(parts) ** 2
        total = variance.sum()
        combined = total**2 / (variance**2 / df).sum()
        return np.asarray(stdtrit(combined, 0.5 + level / 2) * np.sqrt(total * inflate))

    mean = value.mean()
    return Interval(
        np.asarray(mean),
        np.asarray(mean - width(value - low)),
        np.asarray(mean + width(high - value)),
    )


def mean_interval(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    *,
    pseudo: ArrayLike = 1.0,
    level: float = LEVEL,
    clusters: ClusterVariance | None = None,
    bound: float | None = None,
) -> Interval:
    """Return the Student interval of a mean of item scores with one pseudo observation.

    SE^2 = (sum (e - mean)^2 + pseudo^2) / (n (n - 1)). Without the pseudo observation coverage
    falls to .89 at 50 items. In clusters SE^2 is multiplied by their design effect, and for the
    upper bound the part of it that comes from loss by that of the worst case.

    Args:
        n: number of items.
        total: sum of the scores.
        squares: sum of their squares.
        pseudo: largest absolute score of one item.
        level: confidence level of the interval.
        clusters: how clusters widen it.
        bound: upper end of the possible means, if the score is not a loss; then no worst case is
            assumed.
    """
    from scipy.special import stdtrit

    n, total, squares = (np.asarray(x, float) for x in (n, total, squares))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
        spread = np.maximum(squares - n * mean**2, 0.0) + np.asarray(pseudo, float) ** 2
        variance = spread / (n * (n - 1))
        if clusters is None or np.isnan(clusters.variance):
            half = stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(variance)
            return Interval(np.asarray(mean), np.asarray(mean - half), np.asarray(mean + half))
        t = stdtrit(clusters.freedom, 0.5 + level / 2)
        half = t * np.sqrt(clusters.inflation * variance)
        if bound is not None:
            return _bounded(mean, half, bound)
        low = mean - half
        rest = np.maximum(clusters.inflation * variance - mean / n, 1 / n**2)
        high = _solve(
            mean, 1 / n, 1 / n, rest, np.asarray(t**2), np.asarray(t**2 * clusters.worst_case())
        ).high
    return Interval(np.asarray(mean), np.asarray(low), np.asarray(high))


def _bounded(mean: Reals, half: Reals, bound: float) -> Interval:
    """Return the interval of a mean between 0 and a bound, like Wilson's interval of a share.

    Few of the clusters differ from the others, so their spread depends on the estimated mean: a
    symmetric interval covers only .92 with 25 clusters.
    """
    known = mean * (bound - mean)
    inside = _solve(mean, np.asarray(bound), np.asarray(1.0), np.asarray(0.0), half**2 / known)
    is_inside = known > 0
    return Interval(
        np.asarray(mean),
        np.asarray(np.where(is_inside, inside.low, mean - half)),
        np.asarray(np.where(is_inside, inside.high, mean + half)),
    )


def agree_with_test(interval: Interval, mid_p: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Set the lower bound to at most 0 if the one-sided test does not reject (2.5 % at 95 %)."""
    low = np.where(np.asarray(mid_p) > (1 - level) / 2, np.minimum(interval.low, 0.0), interval.low)
    return Interval(interval.value, np.asarray(low), interval.high)


def _solve(
    theta: Reals, a1: Reals, a2: Reals, q: Reals, z2: Reals, loss: Reals | None = None
) -> Interval:
    """Return the roots of (estimate - theta)^2 = z2 q + loss (a1 theta - a2 theta^2)."""
    loss = z2 if loss is None else loss
    alpha = 1 + loss * a2
    beta = 2 * theta + loss * a1
    gamma = theta**2 - z2 * q
    root = np.sqrt(np.maximum(beta**2 - 4 * alpha * gamma, 0.0))
    return Interval(
        np.asarray(theta),
        np.asarray((beta - root) / (2 * alpha)),
        np.asarray((beta + root) / (2 * alpha)),
    )
