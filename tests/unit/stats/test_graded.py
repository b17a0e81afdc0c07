"""Mean change of graded scores, checked against other libraries and a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from forgetmap.stats import graded_interval
from forgetmap.stats.results import Interval


def interval_of(changes: np.ndarray) -> Interval:
    return graded_interval(changes.size, *(float((changes**power).sum()) for power in (1, 2, 3)))


def test_many_items_have_students_interval() -> None:
    changes = np.random.default_rng(0).beta(2, 3, 5000) - 0.3
    theirs = scipy_stats.ttest_1samp(changes, 0).confidence_interval(0.95)
    found = interval_of(changes)
    assert float(found.low) == pytest.approx(theirs.low, abs=1e-4)
    assert float(found.high) == pytest.approx(theirs.high, abs=1e-4)


def test_equal_changes_leave_doubt_and_one_item_all_of_it() -> None:
    found = interval_of(np.zeros(100))
    assert float(found.low) < 0 < float(found.high) < 0.03
    assert np.isnan(float(graded_interval(1, 0.5, 0.25, 0.125).high))
    assert np.isnan(float(graded_interval(0, 0, 0, 0).value))


@pytest.mark.parametrize("sign", [1, -1])
def test_limits_of_changes_that_go_one_way_hold(sign: int) -> None:
    """Of 1,000 items 30 lose all: without the skewness .07 of the outer limits are too low."""
    rng = np.random.default_rng(9)
    drawn = [interval_of(sign * (rng.random(1_000) < 0.03).astype(float)) for _ in range(2_000)]
    covered = np.mean([bool(interval.contains(sign * 0.03)) for interval in drawn])
    assert 0.95 <= covered <= 0.985


@pytest.mark.parametrize("n", [20, 200])
def test_intervals_of_items_cover(n: int) -> None:
    rng = np.random.default_rng(n)
    hits = []
    for _ in range(1000):
        before, after = rng.beta(4, 2, n), rng.beta(3, 2, n)
        hits.append(bool(interval_of(before - after).contains(4 / 6 - 3 / 5)))
    assert np.mean(hits) >= 0.93
