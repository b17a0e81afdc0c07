"""Effects of one pair, checked against the published formula and the jackknife."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import item_covariance, pair_effect, published

RANDOM = np.random.default_rng(7)
TASK = np.repeat([0, 1], [60, 40])
LUCK = np.where(TASK == 0, 1 / 3, 0.0)
BEFORE = (RANDOM.random((1, 100)) < 0.8).astype(float)
AFTER = (RANDOM.random((1, 100)) < 0.6).astype(float)
HALF = np.asarray([0.5, 0.5])


def test_values_are_the_published_ones_where_nothing_is_clipped() -> None:
    found = pair_effect(BEFORE, AFTER, LUCK, TASK, HALF).values
    means = []
    for task, k in ((0, 4.0), (1, np.inf)):
        a, b = BEFORE[0, task == TASK], AFTER[0, task == TASK]
        forgotten, gained = (a * (1 - b)).mean(), (b * (1 - a)).mean()
        known = published(a.mean(), b.mean(), forgotten, gained, k)
        means.append([float(known.forgetting), float(known.backward_transfer)])
    assert found == pytest.approx(np.mean(means, axis=0))


def test_terms_sum_to_nothing_and_are_the_jackknife() -> None:
    found = pair_effect(BEFORE, AFTER, LUCK, TASK, HALF)
    assert found.terms.sum(axis=1) == pytest.approx([0, 0], abs=1e-12)
    without = np.ones(100, bool)
    without[3] = False
    less = pair_effect(
        BEFORE[:, without], AFTER[:, without], LUCK[without], TASK[without], HALF
    ).values
    # Leaving out one of n items moves a mean by its term times n / (n - 1).
    assert found.values - less == pytest.approx(found.terms[:, 3] * 60 / 59, abs=5e-4)
    assert (item_covariance(found.terms, TASK).diagonal() > 0).all()


def test_no_answer_is_left_out_and_never_wrong() -> None:
    gaps = AFTER.copy()
    gaps[0, :10] = np.nan
    found = pair_effect(BEFORE, gaps, LUCK, TASK, HALF)
    kept = pair_effect(BEFORE[:, 10:], AFTER[:, 10:], LUCK[10:], TASK[10:], HALF)
    assert found.values == pytest.approx(kept.values)
    assert (found.terms[:, :10] == 0).all()


def test_a_task_without_items_leaves_its_weight_to_the_others() -> None:
    gaps = np.where(TASK == 1, np.nan, AFTER)
    found = pair_effect(BEFORE, gaps, LUCK, TASK, HALF)
    first = TASK == 0
    alone = pair_effect(
        BEFORE[:, first], AFTER[:, first], LUCK[first], TASK[first], np.asarray([1.0])
    )
    assert found.values == pytest.approx(alone.values)
    nothing = pair_effect(BEFORE, np.full((1, 100), np.nan), LUCK, TASK, HALF)
    assert np.isnan(nothing.values).all()


def test_repeats_are_paired_by_number_and_averaged() -> None:
    before, after = np.vstack([BEFORE, AFTER]), np.vstack([AFTER, BEFORE])
    one = pair_effect(BEFORE, AFTER, 0 * LUCK, TASK, HALF).values
    other = pair_effect(AFTER, BEFORE, 0 * LUCK, TASK, HALF).values
    both = pair_effect(before, after, 0 * LUCK, TASK, HALF).values
    assert both == pytest.approx((one + other) / 2)
