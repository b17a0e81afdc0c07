"""Intervals of shares and of means over groups, checked with other libraries and a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

from forgetmap.stats import between_interval, normal_quantile, share_interval
from forgetmap.stats.results import Interval


def as_tuple(interval: Interval) -> tuple[float, ...]:
    return tuple(float(end) for end in (interval.value, interval.low, interval.high))


def test_a_share_of_few_hits_by_hand() -> None:
    found = as_tuple(share_interval(2, 50, z=normal_quantile()))
    assert found == pytest.approx((0.04, 0.008216, 0.137424), abs=1e-6)


def test_a_share_of_many_hits_is_close_to_wilson() -> None:
    found = as_tuple(share_interval(200, 1000, z=normal_quantile()))
    assert found[1:] == pytest.approx(proportion_confint(200, 1000, method="wilson"), abs=5e-4)


def test_clusters_widen_a_share_as_fewer_items_do() -> None:
    """A design effect of 4 leaves a quarter of the items."""
    wide = as_tuple(share_interval(200, 1000, z=normal_quantile(), effect=4.0))
    fewer = as_tuple(share_interval(50, 250, z=normal_quantile()))
    assert wide == pytest.approx(fewer, abs=1e-3)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1, 0.5])
def test_shares_are_covered(rate: float) -> None:
    hits = np.random.default_rng(11).binomial(100, rate, size=4000)
    covered = [
        bool(share_interval(float(hit), 100, z=normal_quantile()).contains(rate)) for hit in hits
    ]
    assert np.mean(covered) >= 0.925


def test_the_interval_between_groups_is_the_t_interval() -> None:
    values = np.array([0.1, 0.2, 0.05, 0.3])
    expected = scipy_stats.t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2)
    assert as_tuple(between_interval(values))[1:] == pytest.approx(expected)
    assert np.isnan(between_interval(np.array([0.1])).low)
