"""Tests, multiplicity and clusters, checked against other libraries and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from forgetmap.stats.chance_adjustment import published
from forgetmap.stats.clusters import cluster_variance
from forgetmap.stats.multiplicity import false_discovery, family_wise
from forgetmap.stats.significance import balance_p, fisher_p, mcnemar_p


@pytest.mark.parametrize(("n10", "n01"), [(5, 1), (12, 12), (0, 7), (0, 0)])
def test_mcnemar_agrees_with_statsmodels(n10: int, n01: int) -> None:
    theirs = mcnemar([[10, n10], [n01, 10]], exact=True).pvalue if n10 + n01 else 1.0
    assert float(mcnemar_p(n10, n01)) == pytest.approx(theirs)


def test_multiplicity_agrees_with_statsmodels() -> None:
    p = np.random.default_rng(2).uniform(size=50) ** 2
    assert false_discovery(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])
    assert family_wise(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_unknown_p_values_do_not_count_as_tests() -> None:
    found = false_discovery([0.01, np.nan, 0.04])
    assert found[[0, 2]] == pytest.approx(multipletests([0.01, 0.04], method="fdr_bh")[1])
    assert np.isnan(found[1])
    assert np.isnan(false_discovery([np.nan])).all()


def test_balance_test_sees_gold_that_is_always_first() -> None:
    assert balance_p([100, 0, 0, 0]) < 1e-10
    assert balance_p([26, 24, 25, 25]) > 0.9
    assert balance_p([10]) == 1.0
    assert balance_p([0, 0]) == 1.0
    counts = [30, 20, 27, 23]
    assert balance_p(counts) == pytest.approx(scipy_stats.chisquare(counts).pvalue)


def test_cluster_variance_against_the_formula_for_equal_sizes() -> None:
    """For equal clusters CR2 is the variance of cluster means over G, with G - 1 freedoms."""
    rng = np.random.default_rng(9)
    scores = rng.normal(size=(12, 20))
    found = cluster_variance(np.full(12, 20), scores.sum(1), squares=float((scores**2).sum()))
    assert found.variance == pytest.approx(scores.mean(1).var(ddof=1) / 12)
    assert found.freedom == pytest.approx(11)


def test_clusters_of_one_item_are_independent_items() -> None:
    scores = np.random.default_rng(10).normal(size=80)
    found = cluster_variance(np.ones(80), scores, squares=float((scores**2).sum()))
    assert found.variance == pytest.approx(scores.var(ddof=1) / 80)
    assert found.inflation == pytest.approx(80 / 79)
    assert np.isnan(cluster_variance([5], [1.0], squares=1.0).variance)


def test_published_worked_example() -> None:
    found = published(0.8, 0.7, 0.10, 0.0, 4)
    assert float(found.forgetting) == pytest.approx(0.08)
    assert float(found.forgetting_max) == pytest.approx((4 * 0.8 - 1) / 3)
    assert float(published(0.4, 0.3, 0.01, 0.0, 4).forgetting) == 0.0


def test_fisher_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        a, b, c, d = (int(x) for x in rng.integers(0, rng.choice([4, 30, 400]), size=4))
        theirs = scipy_stats.fisher_exact([[a, b], [c, d]]).pvalue
        assert fisher_p(a, b, c, d) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "c", "d"), [(5_000, 5_200, 800_000, 820_000), (40, 100_000, 4_000, 9_000_000)]
)
def test_fisher_with_many_items(a: int, b: int, c: int, d: int) -> None:
    law = scipy_stats.hypergeom(a + b + c + d, a + b, a + c)
    support = np.arange(min(a + b, a + c) + 1)
    weights = law.pmf(support)
    expected = weights[weights <= law.pmf(a) * (1 + 1e-6)].sum()
    assert fisher_p(a, b, c, d) == pytest.approx(expected, rel=1e-4)


def test_fisher_far_out_and_without_freedom() -> None:
    assert fisher_p(100_000, 0, 0, 100_000) == pytest.approx(0, abs=1e-300)
    assert fisher_p(0, 0, 3, 4) == 1
    assert fisher_p(0, 0, 0, 0) == 1
    assert fisher_p(7, 0, 9, 0) == 1
