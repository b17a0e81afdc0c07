"""Effects are bounded and symmetric, and the draws of the bootstrap are correct."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drifting_models import SHIFTS, answers
from forgetmap.capabilities.bootstrap import compact, distance, resampled_sums
from forgetmap.capabilities.effects import (
    MAX_EFFECT,
    Series,
    cohens_h,
    effect,
    log_ratio,
    metric_effect,
    relative_change,
    task_means,
)
from forgetmap.capabilities.taxonomy import Metric, load_taxonomy

share = st.floats(0, 1)
count = st.floats(0, 1e6)


@given(share, share)
def test_shares(before: float, after: float) -> None:
    found = float(cohens_h(before, after))
    assert abs(found) <= MAX_EFFECT
    assert found == pytest.approx(-float(cohens_h(after, before)))
    assert found == pytest.approx(-float(cohens_h(1 - before, 1 - after)), abs=1e-6)
    assert found == pytest.approx(2 * (math.asin(math.sqrt(after)) - math.asin(math.sqrt(before))))


@given(count, count)
def test_counts(before: float, after: float) -> None:
    found = float(log_ratio(before, after))
    assert abs(found) <= MAX_EFFECT
    assert found == pytest.approx(-float(log_ratio(after, before)))
    if before > 1 and 1 / 20 < after / before < 20:
        assert found == pytest.approx(math.log(after / before))


def test_ratings_and_polarity() -> None:
    rating = next(m for m in load_taxonomy("captrack").metrics if m.scale == "rating")
    assert float(effect(rating, 4.0, 8.5)) == pytest.approx(0.5)
    wrong = Metric("m", "c", "t", polarity="down")
    assert float(effect(wrong, 0.2, 0.4)) == pytest.approx(-float(cohens_h(0.2, 0.4)))


def test_bug_07_the_complement_tells_the_same() -> None:
    """Accuracy falls by 0.2 %, or errors double: as an effect both are the same drift."""
    right = float(cohens_h(0.998, 0.996))
    wrong = float(cohens_h(0.002, 0.004))
    assert right == pytest.approx(-wrong)


def test_bug_05_relative_change_is_left_out_near_nothing() -> None:
    assert relative_change(0.5, 0.4, error=0.01, chance=0.0) == pytest.approx(-20.0)
    assert relative_change(0.02, 0.04, error=0.011, chance=0.0) is None
    assert relative_change(0.52, 0.40, error=0.02, chance=0.5) is None
    assert relative_change(0.0, 0.4, error=0.0, chance=0.0) is None


def test_draws_match_plain_resampling() -> None:
    """Against the plain bootstrap: items drawn with replacement, one loop, nothing clever."""
    shift = SHIFTS[0]
    before, after = answers(shift, np.random.default_rng(1))
    series = [Series(shift.metric, before, after)]
    (means,) = task_means("t", series, None, seed=3, draws=4000)
    ours = metric_effect(shift.metric, means)
    rng = np.random.default_rng(2)
    plain = []
    for _ in range(4000):
        chosen = rng.integers(0, len(before), len(before))
        plain.append(float(cohens_h(before[chosen].mean(), after[chosen].mean())))
    assert ours.value == pytest.approx(float(cohens_h(before.mean(), after.mean())))
    assert ours.std == pytest.approx(np.std(plain), rel=0.06)
    assert ours.limits == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=0.012)


def test_draws_are_seeded_and_do_not_depend_on_other_metrics_order() -> None:
    shift = SHIFTS[0]
    before, after = answers(shift, np.random.default_rng(1))
    series = [Series(shift.metric, before, after), Series(shift.metric, after, before)]
    first = task_means("t", series, None, seed=3, draws=100)
    again = task_means("t", series[::-1], None, seed=3, draws=100)
    assert np.array_equal(first[0].before_draws, again[1].before_draws)
    other = task_means("t", series, None, seed=4, draws=100)
    assert not np.array_equal(first[0].before_draws, other[0].before_draws)


def test_metrics_of_a_task_share_their_draws() -> None:
    """A metric and its complement have the same interval, mirrored."""
    shift = SHIFTS[0]
    before, after = answers(shift, np.random.default_rng(1))
    series = [Series(shift.metric, before, after), Series(shift.metric, 1 - before, 1 - after)]
    one, other = task_means("t", series, None, seed=3, draws=500)
    assert np.corrcoef(one.point_draws, other.point_draws)[0, 1] < -0.97


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    passage = np.repeat(rng.random(50) < 0.5, 8).astype(float)
    series = [Series(SHIFTS[0].metric, np.ones(400), passage)]
    (alone,) = task_means("t", series, None, seed=1, draws=1000)
    (together,) = task_means("t", series, np.arange(400) // 8, seed=1, draws=1000)
    assert together.after_draws.std() == pytest.approx(8**0.5 * alone.after_draws.std(), rel=0.15)


@pytest.mark.parametrize("values", ["few", "many"])
def test_many_items_are_put_together(values: str) -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    x = rng.integers(0, 2, n).astype(float) if values == "few" else rng.random(n)
    rows = np.column_stack([np.ones(n), x])
    small, counts = compact(rows, rng)
    assert len(small) <= 20_000
    assert counts @ small == pytest.approx(rows.sum(axis=0))
    drawn = resampled_sums(small, counts, np.random.default_rng(2), 1000)
    means = drawn[:, 1] / drawn[:, 0]
    assert means.std() == pytest.approx(x.std() / n**0.5, rel=0.08)


def test_a_task_without_flips_has_no_interval_of_width_zero() -> None:
    same = np.ones(100)
    (means,) = task_means("t", [Series(SHIFTS[0].metric, same, same)], None, seed=1, draws=2000)
    found = metric_effect(SHIFTS[0].metric, means)
    assert found.value == 0.0
    assert found.limits is not None
    low, high = found.limits
    # The rule of three: up to 3 % of such items may change unseen.
    assert low < float(cohens_h(1.0, 0.985))
    assert high > 0.1


def test_clusters_without_flips_leave_whole_clusters_open() -> None:
    """Of 15 passages of which none was lost, one in ten may be, however many items they have."""
    same = np.ones(300)
    passage = np.arange(300) // 20
    (alone,) = task_means("t", [Series(SHIFTS[0].metric, same, same)], None, seed=1, draws=2000)
    (few,) = task_means("t", [Series(SHIFTS[0].metric, same, same)], passage, seed=1, draws=2000)
    lows = [np.quantile(means.point_draws, 0.025) for means in (alone, few)]
    assert lows[0] > -0.02
    assert lows[1] < -0.1


def test_a_loss_in_many_clusters_needs_no_pseudo_cluster() -> None:
    rng = np.random.default_rng(6)
    after = (rng.random(600) < 0.8).astype(float)
    series = [Series(SHIFTS[0].metric, np.ones(600), after)]
    (alone,) = task_means("t", series, None, seed=1, draws=2000)
    (together,) = task_means("t", series, np.arange(600) // 10, seed=1, draws=2000)
    low, apart = (np.quantile(means.point_draws, 0.025) for means in (together, alone))
    assert low == pytest.approx(apart, abs=0.012)


def test_distance_of_distributions() -> None:
    rng = np.random.default_rng(1)
    before = rng.normal(5, 1, 300)
    wider = before.mean() + 2 * (before - before.mean())
    apart = distance(before, wider, seed=1, name="m", draws=500)
    plain = np.abs(np.sort(before) - np.sort(wider)).mean()
    assert apart.value == pytest.approx(plain, rel=0.03)
    assert before.mean() == pytest.approx(wider.mean())
    assert apart.p < 0.01
    assert apart.low < apart.value < apart.high
    again = distance(before, rng.permutation(before), seed=1, name="m", draws=500)
    assert again.value == pytest.approx(0.0, abs=1e-9)
    assert distance(np.ones(5), np.ones(5), seed=1, name="m", draws=10).p == 1.0
