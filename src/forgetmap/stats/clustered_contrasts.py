"""Means, differences and trends over pairs of models that share models and items.

Values of pairs are dependent in two ways. Pairs whose models descend from one model (a cluster)
share its peculiarities, so the variance of a contrast is computed from residuals summed within
clusters: CR2 with Satterthwaite degrees of freedom, which is valid with few clusters, unlike the
usual sandwich estimator. All pairs also share their items. An effect common to all pairs of a group
moves all of them equally, so their spread does not show it; it is added from the covariance of the
pairs over items. In a trend within groups it cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.stats.results import Reals

MAX_CORRELATION = 0.95
"""Maximum correlation of two values of one cluster; beyond it, rounding dominates the freedom."""
_SMALL = 1e-8


@dataclass(frozen=True, slots=True)
class Contrast:
    """A linear contrast of the values of pairs.

    Attributes:
        value: the estimate.
        error: its standard error; NaN if the clusters do not allow one.
        low: lower bound, NaN without an error.
        high: upper bound.
        freedom: degrees of freedom of the error.
        clusters: number of clusters.
    """

    value: float
    error: float
    low: float
    high: float
    freedom: float
    clusters: int


def clustered_contrast(
    values: ArrayLike,
    design: ArrayLike,
    contrast: ArrayLike,
    clusters: Sequence[object],
    *,
    item_covariance: ArrayLike | None = None,
    groups: Sequence[object] | None = None,
    level: float = 0.95,
) -> Contrast:
    """Estimate a contrast of the coefficients of a regression over pairs, with its interval.

    Args:
        values: one per pair.
        design: (pair, coefficient); its columns must contain the indicators of `groups`.
        contrast: weights of the coefficients.
        clusters: cluster of each pair.
        item_covariance: covariance of the values of any two pairs over items (`item_covariance`).
        groups: group of each pair: what is common to the pairs of a group is added from items; one
            group by default.
        level: confidence level of the interval.

    References:
        Bell and McCaffrey, Bias reduction in standard errors for linear regression with multi-stage
        samples, 2002; Pustejovsky and Tipton, Small-sample methods for cluster-robust variance
        estimation, 2018; Imbens and Kolesar, Robust standard errors in small samples, 2016.
    """
    y, x, a = (np.asarray(array, float) for array in (values, design, contrast))
    inverse = np.linalg.pinv(x.T @ x)
    residual_maker = np.eye(len(y)) - x @ inverse @ x.T
    weights = x @ inverse @ a
    members = _members(clusters)
    value = float(weights @ y)
    rows = _variance_rows(residual_maker, weights, members)
    if rows is None:
        return Contrast(value, np.nan, np.nan, np.nan, 0.0, len(members))
    variance = float(((rows @ y) ** 2).sum())
    freedom = _satterthwaite(rows, _working_covariance(residual_maker, y, members))
    shared = 0.0
    if item_covariance is not None:
        shared = _shared_variance(np.asarray(item_covariance, float), weights, members, groups)
    # Each part has its own quantile. One quantile with joint degrees of freedom is too small where
    # two or three clusters happen to agree: such intervals cover .85 to .92.
    reach = float(
        np.hypot(
            _student_quantile(level, freedom) * np.sqrt(variance),
            _student_quantile(level, np.inf) * np.sqrt(shared),
        )
    )
    error = float(np.sqrt(variance + shared))
    return Contrast(value, error, value - reach, value + reach, float(freedom), len(members))


def fixed_contrast(
    values: ArrayLike, weights: ArrayLike, item_covariance: ArrayLike, *, level: float = 0.95
) -> Contrast:
    """Estimate a weighted sum of the values of exactly these pairs: only items vary.

    Args:
        values: one per pair.
        weights: weight of each pair.
        item_covariance: covariance of the values of any two pairs over items.
        level: confidence level of the interval.
    """
    y, w, covariance = (np.asarray(array, float) for array in (values, weights, item_covariance))
    value, error = float(w @ y), float(np.sqrt(max(w @ covariance @ w, 0.0)))
    reach = _student_quantile(level, np.inf) * error
    return Contrast(value, error, value - reach, value + reach, np.inf, len(y))


def item_covariance(terms: ArrayLike, strata: ArrayLike) -> Reals:
    """Return the covariance of the values of pairs over items resampled within strata (pair, pair).

    Args:
        terms: contribution of each item to the value of each pair (pair, item), with the weight of
            its stratum divided by its number of items; 0 if a pair does not have the item.
        strata: stratum of each item, such as its task.
    """
    added = np.asarray(terms, float)
    _, index = np.unique(np.asarray(strata), return_inverse=True)
    sizes = np.bincount(index)
    means = np.stack([np.bincount(index, row) for row in added]) / sizes
    # A stratum of one item has no spread; it counts as it is.
    gaps = np.where((sizes > 1)[index], added - means[:, index], added)
    gaps *= np.sqrt(sizes / np.maximum(sizes - 1, 1))[index]
    covariance: Reals = gaps @ gaps.T
    return covariance


def _members(clusters: Sequence[object]) -> list[NDArray[np.intp]]:
    places: dict[object, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return [np.asarray(rows) for rows in places.values()]


def _variance_rows(
    residual_maker: Reals, weights: Reals, members: list[NDArray[np.intp]]
) -> Reals | None:
    """Return the contribution of the adjusted residuals of each cluster, as weights of the values.

    None if a cluster has residuals that are always 0, although it counts: with one cluster in a
    group, the distance of another is unknown.
    """
    rows = []
    for rows_of in members:
        values, vectors = np.linalg.eigh(residual_maker[np.ix_(rows_of, rows_of)])
        seen = values > _SMALL
        hidden = vectors[:, ~seen].T @ weights[rows_of]
        if np.linalg.norm(hidden) > _SMALL**0.5 * max(np.linalg.norm(weights), _SMALL):
            return None
        root = vectors[:, seen] / np.sqrt(values[seen]) @ vectors[:, seen].T
        rows.append(residual_maker[rows_of].T @ (root @ weights[rows_of]))
    return np.asarray(rows)


def _working_covariance(residual_maker: Reals, y: Reals, members: list[NDArray[np.intp]]) -> Reals:
    """Return equal variances, and one correlation within clusters estimated from residuals."""
    residuals = residual_maker @ y
    spread = float(residuals @ residuals) / max(float(np.trace(residual_maker)), 1.0)
    products = sum(residuals[rows].sum() ** 2 - (residuals[rows] ** 2).sum() for rows in members)
    count = sum(len(rows) * (len(rows) - 1) for rows in members)
    share = float(products) / count / spread if count and spread > 0 else 0.0
    correlation = min(max(share, 0.0), MAX_CORRELATION)
    covariance = (1 - correlation) * np.eye(len(y))
    for rows in members:
        covariance[np.ix_(rows, rows)] += correlation
    return covariance


def _satterthwaite(rows: Reals, covariance: Reals) -> float:
    products = rows @ covariance @ rows.T
    squares = float((products**2).sum())
    return float(np.trace(products)) ** 2 / squares if squares > 0 else np.inf


def _shared_variance(
    covariance: Reals,
    weights: Reals,
    members: list[NDArray[np.intp]],
    groups: Sequence[object] | None,
) -> float:
    """Return the variance that all pairs of a group share through their items."""
    cluster = np.empty(len(weights), int)
    for number, rows in enumerate(members):
        cluster[rows] = number
    names = list(groups) if groups is not None else [0] * len(weights)
    kinds = list(dict.fromkeys(names))
    of_kind = np.asarray([[name == kind for name in names] for kind in kinds])
    apart = cluster[:, None] != cluster[None, :]
    sums = of_kind @ weights
    total = 0.0
    for one, sum_one in zip(of_kind, sums, strict=True):
        for other, sum_other in zip(of_kind, sums, strict=True):
            pairs = apart & one[:, None] & other[None, :]
            if pairs.any():
                total += float(sum_one * sum_other * covariance[pairs].mean())
    return max(total, 0.0)


def _student_quantile(level: float, freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    tail = (1 + level) / 2
    return float(ndtri(tail) if np.isinf(freedom) else stdtrit(freedom, tail))
