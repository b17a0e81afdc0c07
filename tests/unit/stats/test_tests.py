"""Tests, multiplicity and clusters, checked against other libraries and worked examples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from forgetmap.stats.chance_adjustment import published
from forgetmap.stats.clusters import cluster_variance
from forgetmap.stats.multiplicity import false_discovery, family_wise
from forgetmap.stats.repeats import (
    consensus,
    excess_scores,
    lost_bounds,
    permutation_moments,
    self_churn,
)
from forgetmap.stats.tests import balance_p, luck_p, mcnemar_p, mixed_luck_p


def test_worked_examples_of_the_luck_test() -> None:
    assert float(luck_p(15, 48, 1 / 4)) == pytest.approx(0.161532, abs=1e-6)
    assert float(luck_p(15, 35, 1 / 3)) == pytest.approx(0.120779, abs=1e-6)


def test_luck_test_is_scipys_binomial_test_less_half_the_point() -> None:
    for x, m, p in ((0, 10, 0.25), (7, 20, 0.5), (30, 60, 0.1)):
        exact = scipy_stats.binomtest(x, m, p, alternative="greater").pvalue
        assert float(luck_p(x, m, p)) == pytest.approx(exact - scipy_stats.binom.pmf(x, m, p) / 2)


def test_mixed_luck_test_equals_the_single_one_and_a_simulation() -> None:
    assert mixed_luck_p([15], [48], [0.25]) == pytest.approx(float(luck_p(15, 48, 0.25)))
    rng = np.random.default_rng(0)
    sums = rng.binomial(25, 0.5, 400_000) + rng.binomial(31, 0.25, 400_000)
    seen = (sums > 22).mean() + (sums == 22).mean() / 2
    assert mixed_luck_p([10, 12], [25, 31], [0.5, 0.25]) == pytest.approx(seen, abs=0.003)


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


def churning(rng: np.random.Generator, items: int, repeats: int, p: float) -> np.ndarray:
    return rng.binomial(repeats, p, size=items)


def test_excess_is_zero_when_nothing_changed_and_the_share_that_switched() -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(0.4, 0.2, size=200_000)
    same = excess_scores(rng.binomial(3, p), 3, rng.binomial(4, p), 4)
    assert same.lost.mean() == pytest.approx(0.0, abs=0.003)
    switched = np.where(rng.random(p.size) < 0.05, 0.0, 1.0)
    found = excess_scores(np.full(p.size, 2), 2, rng.binomial(2, switched), 2)
    assert found.lost.mean() == pytest.approx(1 - switched.mean())
    assert found.gained.mean() == pytest.approx(0.0)


def test_excess_equals_flips_between_less_flips_within() -> None:
    """Against the definition: all pairs of runs, between the models and within each."""
    rng = np.random.default_rng(6)
    before, after = rng.integers(2, size=(40, 3)), rng.integers(2, size=(40, 4))

    def flips(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean(x & ~y & 1))

    between = np.mean([flips(before[:, i], after[:, j]) for i in range(3) for j in range(4)])
    within = [
        np.mean(
            [
                (side[:, i] != side[:, j]).mean() / 2
                for i, j in combinations(range(side.shape[1]), 2)
            ]
        )
        for side in (before, after)
    ]
    found = excess_scores(before.sum(1), 3, after.sum(1), 4).lost.mean()
    assert found == pytest.approx(between - np.mean(within))
    assert self_churn(before.sum(1), 3).mean() == pytest.approx(within[0])


def test_one_answer_has_no_excess() -> None:
    assert np.isnan(excess_scores(1, 1, 0, 2).lost)
    assert np.isnan(self_churn(1, 1))


def test_bounds_contain_the_lost_probability() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        before, after = rng.random(500), rng.random(500)
        d = before - after
        low, high = lost_bounds(float(d.mean()), float((d**2).mean()))
        assert low <= np.maximum(d, 0).mean() <= high + 1e-12


def test_the_permutation_variance_is_the_tabulated_one() -> None:
    expected = [0, 1 / 16, 5 / 24, 1 / 16, 0]
    assert permutation_moments(np.arange(5), 2, 2)[0] == pytest.approx(expected)


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


def test_consensus_counts_by_hand() -> None:
    table = np.array([["11", "11", "10"], ["10", "10", "10"], ["01", "00", "01"]])
    counts, dropped = consensus(table, 2)
    assert counts == {"00": 0.0, "01": 1 / 3, "10": 1.0, "11": 1 / 3}
    assert dropped == pytest.approx(4 / 9)


def test_consensus_of_kinds_of_items_and_of_missing_answers() -> None:
    table = np.array([["11", "11"], ["10", "10"], ["01", ""]])
    counts, dropped = consensus(table, 2, [2, 1, 5])
    spelled = consensus(np.array([["11", "11"]] * 2 + [["10", "10"]]), 2)
    assert (counts, dropped) == spelled
