"""Simultaneous bounds and rank correlation, checked against known values."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy import stats

from forgetmap.stats.simultaneous import (
    ClusterDesign,
    joint_quantile,
    mean_limits,
    rank_correlation,
    upper_limits,
)


def test_independent_rows_need_the_quantile_of_their_maximum() -> None:
    scores = np.random.default_rng(0).standard_normal((10, 4000))
    truth = stats.norm.ppf((1 + 0.95 ** (1 / 10)) / 2)
    assert joint_quantile(scores) == pytest.approx(truth, abs=0.04)


def test_equal_rows_need_no_more_than_one() -> None:
    row = np.random.default_rng(0).standard_normal(500)
    assert joint_quantile(np.stack([row] * 10)) == pytest.approx(1.96, abs=0.03)


def test_constant_rows_count_as_independent() -> None:
    truth = stats.norm.ppf((1 + 0.95 ** (1 / 5)) / 2)
    assert joint_quantile(np.zeros((5, 100))) == pytest.approx(truth, abs=0.04)


def test_no_rows_is_one_interval() -> None:
    assert joint_quantile(np.zeros((0, 10))) == pytest.approx(stats.norm.ppf(0.975))


def test_few_clusters_widen_it() -> None:
    scores = np.random.default_rng(0).standard_normal((4, 60))
    alone = joint_quantile(scores)
    together = joint_quantile(scores, ClusterDesign(np.repeat(np.arange(6), 10)))
    assert together > alone + 0.3


def test_clustered_means_have_the_variance_of_cluster_totals() -> None:
    source = np.random.default_rng(1)
    cluster = np.repeat(np.arange(30), 5)
    scores = (source.standard_normal(30)[cluster])[None]
    plain = mean_limits(scores, 1.96)
    wide = mean_limits(scores, 1.96, ClusterDesign(cluster))
    ratio = (wide.high - wide.low) / (plain.high - plain.low)
    assert ratio[0] == pytest.approx(np.sqrt(5), rel=0.1)


def test_rank_correlation_is_spearmans_with_ties() -> None:
    x, y = [1.0, 2, 2, 4, 5, 9], [3.0, 1, 4, 4, 8, 9]
    found = rank_correlation(x, y)
    assert found is not None
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.low < found.value < found.high


def test_its_p_value_counts_all_orders() -> None:
    x, y = [1.0, 2, 3, 4, 5], [2.0, 1, 3, 5, 4]
    found = rank_correlation(x, y)
    assert found is not None
    far = sum(
        abs(stats.spearmanr(x, order).statistic) >= abs(found.value) - 1e-9
        for order in permutations(y)
    )
    assert found.p == pytest.approx(far / factorial(5))


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_few_pairs_have_none(pairs: int) -> None:
    assert rank_correlation(range(pairs), range(pairs)) is None


def test_nor_has_what_never_changes() -> None:
    assert rank_correlation([1, 2, 3, 4], [5, 5, 5, 5]) is None


def test_more_than_eight_pairs_have_no_exact_p() -> None:
    found = rank_correlation(range(9), [0, 2, 1, 3, 5, 4, 6, 8, 7])
    assert found is not None
    assert found.p is None


def test_upper_limits_count_three_quarters_of_an_item_more() -> None:
    rows = np.array([[1.0, 0.0, 0.0, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0]])
    mean = (0.0 + 0.75) / 10
    spread = (1 + 0.25 + 0.25 + 0.75) / 10 - mean**2
    expected = mean + stats.norm.ppf(0.975) * np.sqrt(spread / 10)
    assert upper_limits(rows)[0] == pytest.approx(expected)
    assert upper_limits(rows, alpha=0.01)[0] > expected


def test_upper_limits_of_clusters_are_higher() -> None:
    row = np.repeat([[1.0, 0.0, -0.5, 0.0, 0.0, -0.5, 0.0, 0.0]], 5, axis=1)
    clusters = ClusterDesign(np.repeat(np.arange(8), 5))
    assert upper_limits(row, clusters)[0] > upper_limits(row)[0]
