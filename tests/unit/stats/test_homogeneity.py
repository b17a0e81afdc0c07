"""Tests of changed letters and differing shares, checked against libraries and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import SquareTable

from forgetmap.stats import fisher_p, stuart_maxwell_p


@pytest.mark.parametrize("k", [2, 3, 4, 5, 10])
def test_moved_letters_agree_with_statsmodels(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(20):
        table = rng.integers(1, 30, size=(k, k))
        theirs = SquareTable(table, shift_zeros=False).homogeneity().pvalue
        assert stuart_maxwell_p(table) == pytest.approx(theirs, rel=1e-8)


def test_two_letters_are_mcnemars_chi_square() -> None:
    assert stuart_maxwell_p([[50, 20], [8, 60]]) == pytest.approx(
        scipy_stats.chi2.sf((20 - 8) ** 2 / 28, 1)
    )


def test_letters_that_nobody_chose_or_that_never_change_do_not_count() -> None:
    table = np.array([[30, 9, 4], [2, 40, 7], [6, 1, 20]])
    padded = np.zeros((5, 5))
    padded[np.ix_([0, 2, 4], [0, 2, 4])] = table
    padded[3, 3] = 12
    assert stuart_maxwell_p(padded) == pytest.approx(stuart_maxwell_p(table))


def test_letters_that_change_only_among_themselves() -> None:
    """Two pairs of letters: the sum of two McNemar statistics, with two degrees of freedom."""
    table = np.array([[10, 7, 0, 0], [1, 10, 0, 0], [0, 0, 10, 2], [0, 0, 9, 10]])
    statistic = 36 / 8 + 49 / 11
    assert stuart_maxwell_p(table) == pytest.approx(scipy_stats.chi2.sf(statistic, 2))


def test_nothing_moved() -> None:
    assert stuart_maxwell_p(np.diag([3, 4, 5])) == 1
    assert stuart_maxwell_p(np.zeros((4, 4))) == 1
    assert stuart_maxwell_p([[5, 3], [3, 5]]) == 1


def test_moved_letters_hold_their_level() -> None:
    rng = np.random.default_rng(0)
    law = np.full((4, 4), 0.03) + np.diag([0.13] * 4)
    tables = rng.multinomial(300, law.ravel(), size=2000).reshape(-1, 4, 4)
    rejected = np.mean([stuart_maxwell_p(table) < 0.05 for table in tables])
    assert 0.035 < rejected < 0.065


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
