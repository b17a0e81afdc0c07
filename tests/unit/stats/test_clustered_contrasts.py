"""Contrasts of pairs, checked against known formulas; what must cancel or be refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from forgetmap.stats import cluster_variance, clustered_contrast, fixed_contrast, item_covariance

Reals = NDArray[np.float64]
ONES = np.ones((8, 1))


def test_the_mean_of_independent_pairs_has_the_interval_of_student() -> None:
    y = np.random.default_rng(0).normal(size=8)
    found = clustered_contrast(y, ONES, [1.0], range(8))
    low, high = stats.t.interval(0.95, 7, y.mean(), stats.sem(y))
    assert (found.value, found.low, found.high) == pytest.approx((y.mean(), low, high))
    assert found.freedom == pytest.approx(7)


def test_a_difference_of_two_groups_of_pairs_is_that_of_welch() -> None:
    y = np.random.default_rng(1).normal(size=9)
    group = np.arange(9) < 4
    design = np.stack([group, ~group], axis=1).astype(float)
    found = clustered_contrast(y, design, [1.0, -1.0], range(9))
    error = np.sqrt(y[group].var(ddof=1) / 4 + y[~group].var(ddof=1) / 5)
    assert found.error == pytest.approx(error)


def test_the_mean_of_clusters_is_that_of_cluster_variance() -> None:
    y = np.random.default_rng(2).normal(size=8)
    clusters = [0, 0, 0, 1, 1, 2, 3, 3]
    found = clustered_contrast(y, ONES, [1.0], clusters)
    totals = np.bincount(clusters, y)
    known = cluster_variance(np.bincount(clusters), totals, squares=float((y**2).sum()))
    assert found.error == pytest.approx(np.sqrt(known.variance), rel=0.05)
    assert found.clusters == 4


def test_the_slope_of_independent_pairs_is_that_of_least_squares() -> None:
    random = np.random.default_rng(3)
    x, y = np.arange(8.0), random.normal(size=8)
    found = clustered_contrast(y, np.stack([x, np.ones(8)], axis=1), [1.0, 0.0], range(8))
    assert found.value == pytest.approx(stats.linregress(x, y).slope)
    assert 0 < found.freedom < 6


def test_one_cluster_in_a_group_has_no_interval() -> None:
    y = np.arange(6.0)
    design = np.stack([np.arange(6) < 3, np.arange(6) >= 3], axis=1).astype(float)
    found = clustered_contrast(y, design, [1.0, -1.0], [0, 0, 0, 1, 2, 3])
    assert found.value == pytest.approx(-3)
    assert np.isnan([found.error, found.low, found.high]).all()
    assert np.isnan(clustered_contrast(y, np.ones((6, 1)), [1.0], [0] * 6).error)


def test_what_all_pairs_share_through_items_widens_means_and_no_trend() -> None:
    y = np.random.default_rng(4).normal(size=8)
    covariance = np.full((8, 8), 0.5) + np.eye(8)
    mean = clustered_contrast(y, ONES, [1.0], range(8))
    wide = clustered_contrast(y, ONES, [1.0], range(8), item_covariance=covariance)
    assert wide.error**2 == pytest.approx(mean.error**2 + 0.5)
    reach = [(one.high - one.low) / 2 for one in (mean, wide)]
    assert reach[1] == pytest.approx(np.hypot(reach[0], 1.959964 * np.sqrt(0.5)))
    design = np.stack([np.arange(8.0), np.ones(8)], axis=1)
    trend = clustered_contrast(y, design, [1.0, 0.0], range(8))
    same = clustered_contrast(y, design, [1.0, 0.0], range(8), item_covariance=covariance)
    assert same.error == pytest.approx(trend.error)


def test_groups_share_less_with_each_other_than_within() -> None:
    y = np.random.default_rng(5).normal(size=8)
    first = np.arange(8) < 4
    design = np.stack([first, ~first], axis=1).astype(float)
    covariance = np.where(first[:, None] == first[None, :], 0.5, 0.2)
    plain = clustered_contrast(y, design, [1.0, -1.0], range(8))
    wide = clustered_contrast(
        y, design, [1.0, -1.0], range(8), item_covariance=covariance, groups=list(first)
    )
    assert wide.error**2 == pytest.approx(plain.error**2 + 0.5 + 0.5 - 2 * 0.2)


def test_the_covariance_over_items_is_that_of_means_within_strata() -> None:
    random = np.random.default_rng(6)
    scores = random.normal(size=(3, 50))
    strata = np.arange(50) % 2
    sizes = np.bincount(strata)
    terms = scores * 0.5 / sizes[strata]
    found = item_covariance(terms, strata)
    known: Reals = sum(
        (0.25 * np.cov(scores[:, strata == one]) / sizes[one] for one in (0, 1)), np.zeros((3, 3))
    )
    assert found == pytest.approx(known)
    values = terms.sum(axis=1)
    mean = fixed_contrast(values, np.full(3, 1 / 3), found)
    assert mean.value == pytest.approx(values.mean())
    assert mean.error**2 == pytest.approx(known.mean())


def test_a_stratum_of_one_item_counts_as_it_is() -> None:
    assert item_covariance([[0.5], [0.5]], [0]) == pytest.approx(np.full((2, 2), 0.25))
