"""Coverage of clustered intervals and bias of the published adjustment, over many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from forgetmap.stats.chance_adjustment import published
from forgetmap.stats.clusters import cluster_variance
from simulated_cells import Shares, draw_cells


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
