"""Size of the tests, and coverage of clustered intervals, over many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from forgetmap.stats.chance_adjustment import published
from forgetmap.stats.clusters import cluster_variance
from forgetmap.stats.multiplicity import false_discovery
from forgetmap.stats.repeats import (
    excess_scores,
    permutation_moments,
)
from forgetmap.stats.tests import change_p, luck_p
from simulated_cells import Shares, draw_cells


@pytest.mark.parametrize("k", [2, 3, 4, 10])
@pytest.mark.parametrize("items", [50, 300])
def test_size_of_the_luck_test(k: int, items: int) -> None:
    cells = draw_cells(np.random.default_rng(1), 20_000, items, k, Shares(0.5, 0.0, 0.02))
    rejected = (luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 1 / k) <= 0.05).mean()
    assert rejected <= 0.052 + 3 * np.sqrt(0.05 * 0.95 / 20_000)


def test_false_discovery_rate_over_a_hundred_tasks() -> None:
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(300):
        p = np.empty(100)
        for task in range(100):
            lost = 0.1 if task < 20 else 0.0
            k = (2, 4, 4, 5, 10)[task % 5]
            cells = draw_cells(rng, 1, 150, k, Shares(0.6, lost))
            p[task] = luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 1 / k)[0]
        found = false_discovery(p) <= 0.05
        rates.append(found[20:].sum() / max(found.sum(), 1))
    assert np.mean(rates) <= 0.05


def test_change_test_holds_its_size_and_has_power() -> None:
    rng = np.random.default_rng(8)
    p = np.where(rng.random(100) < 0.6, 1.0, 0.25)
    rejected = {0.0: 0, 0.1: 0}
    for lost in rejected:
        for _ in range(1500):
            after = np.where(rng.random(100) < lost, 0.0, p)
            m_b, m_a = rng.binomial(2, p), rng.binomial(2, after)
            score = excess_scores(m_b, 2, m_a, 2).lost.sum()
            rejected[lost] += (
                float(change_p(score, *(x.sum() for x in permutation_moments(m_b + m_a, 2, 2))))
                <= 0.05
            )
    assert rejected[0.0] / 1500 <= 0.07
    assert rejected[0.1] / 1500 >= 0.5
    assert float(change_p(0.0, 0.0)) == 1.0


def test_clustered_interval_covers() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(2000):
        sizes = np.maximum(1, rng.lognormal(2.5, 0.6, size=20).astype(int))
        rates = rng.beta(2, 8, size=20)
        lost = rng.binomial(sizes, rates)
        found = cluster_variance(sizes, lost, squares=float(lost.sum()))
        half = scipy_stats.t.ppf(0.975, found.freedom) * np.sqrt(found.variance)
        covered += abs(lost.sum() / sizes.sum() - 0.2) <= half
    assert covered / 2000 >= 0.92


def test_published_reports_a_loss_where_there_is_none() -> None:
    cells = draw_cells(np.random.default_rng(12), 4000, 2000, 4, Shares(0.5, 0.0))
    n = 2000
    found = published(
        (cells.n11_D + cells.n10_D) / n,
        (cells.n11_D + cells.n01_D) / n,
        cells.n10_D / n,
        cells.n01_D / n,
        4,
    )
    assert found.forgetting.mean() == pytest.approx(0.047, abs=0.002)
