"""Samples of items: bounds and sample sizes, checked against exact distributions of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from forgetmap.stats.sampling import (
    alarm_p,
    allocate,
    detectable_loss,
    fair_cap,
    items_to_detect,
    sampled_share,
    self_loss,
)


@pytest.mark.parametrize(("of", "asked"), [(40, 32), (200, 30), (60, 60), (25, 1)])
def test_limits_contain_the_share_of_all_items(of: int, asked: int) -> None:
    """Over every number of wrong items that there may be, by the exact law of drawing."""
    found = [sampled_share([seen], [asked], [of]) for seen in range(asked + 1)]
    for wrong in range(of + 1):
        chance = hypergeom(of, wrong, asked).pmf(np.arange(asked + 1))
        held = [each.low - 1e-9 <= wrong / of <= each.high + 1e-9 for each in found]
        assert chance @ np.array(held, float) >= 0.95 - 1e-9


def test_all_items_asked_leave_nothing_uncertain_but_items_like_these() -> None:
    found = sampled_share([3, 1], [20, 10], [20, 10])
    assert (found.value, found.low, found.high) == (4 / 30, 4 / 30, 4 / 30)
    assert found.wide_low < 4 / 30 < found.wide_high
    assert found.wide_high == pytest.approx(0.3072, abs=1e-3)  # Clopper-Pearson of 4 in 30


def test_strata_count_by_their_size() -> None:
    found = sampled_share([1, 0, 0], [10, 10, 0], [300, 100, 50])
    assert found.value == pytest.approx(0.1 * 0.75)
    assert (found.asked, found.of) == (20, 400)
    assert np.isnan(sampled_share([0], [0], [5]).value)


@pytest.mark.parametrize("rates", [(0.0, 0.3), (0.05, 0.05), (0.2, 0.0)])
def test_limits_over_strata_hold_their_level(rates: tuple[float, float]) -> None:
    source, sizes = np.random.default_rng(3), [120, 40]
    counts = allocate(sizes, 40)
    wrong = [round(rate * size) for rate, size in zip(rates, sizes, strict=True)]
    truth = sum(wrong) / sum(sizes)
    inside = 0
    for _ in range(400):
        seen = [
            source.hypergeometric(bad, size - bad, n)
            for bad, size, n in zip(wrong, sizes, counts, strict=True)
        ]
        found = sampled_share(seen, counts, sizes)
        inside += found.low - 1e-9 <= truth <= found.high + 1e-9
    assert inside >= 0.93 * 400


@pytest.mark.parametrize(("loss", "floor"), [(0.05, 0.0), (0.05, 0.02), (0.2, 0.1), (0.01, 0.001)])
def test_as_many_items_as_the_loss_takes(loss: float, floor: float) -> None:
    def power(n: int) -> float:
        least = next(x for x in range(1, n + 2) if binom.sf(x - 1, n, floor) <= 0.05)
        return float(binom.sf(least - 1, n, floor + loss * (1 - floor)))

    n = items_to_detect(loss, floor=floor)
    assert power(n) >= 0.8
    assert all(power(fewer) < 0.8 for fewer in range(max(n // 2, 1), n))
    found = detectable_loss(n, floor=floor)
    assert found is not None
    assert found <= loss + 1e-9


def test_one_wrong_answer_is_enough_where_an_unchanged_model_gives_none() -> None:
    assert items_to_detect(0.05) == 32  # 1 - .95^32 is the first above .8
    assert alarm_p(1, 32, 0.0) == 0
    assert alarm_p(0, 32, 0.0) == 1
    assert detectable_loss(0) is None


def test_an_unchanged_model_is_not_as_sure_as_it_looks() -> None:
    """For p spread evenly E[p^k (1 - p)] = 1 / ((k + 1)(k + 2)), and E[p^k] = 1 / (k + 1)."""
    source = np.random.default_rng(8)
    right = source.binomial(4, source.random(400_000))
    low, high = self_loss(right, np.full(right.size, 4))
    assert high == pytest.approx(1 / 5, abs=0.005)
    assert low == pytest.approx((1 / 20) ** 2 / (1 / 12 * 1 / 5), abs=0.005)
    assert low < 1 / 6 < high  # the truth is (1 / 30) / (1 / 5)
    assert self_loss([], []) == (0.0, 0.0)
    assert self_loss([1, 0], [2, 2]) == (0.0, 1.0)


@pytest.mark.parametrize(("always", "once", "repeats"), [(2, 0, 2), (30, 0, 4), (40, 5, 3)])
def test_the_upper_limit_of_self_loss_is_exact(always: int, once: int, repeats: int) -> None:
    """At the limit, so few items with one wrong answer are seen in one of ten cases."""
    right = [repeats] * always + [repeats - 1] * once
    _, high = self_loss(right, [repeats] * len(right))
    odds = repeats * high / (1 - high)
    assert binom.cdf(once, always + once, odds / (1 + odds)) == pytest.approx(0.1)


def test_a_loss_below_what_an_unchanged_model_may_show_takes_all_items() -> None:
    assert items_to_detect(0.02, floor=0.1, least=0.01) >= 100_000
    assert items_to_detect(0.05, floor=0.02, least=0.01) > items_to_detect(0.05, floor=0.02)


@pytest.mark.parametrize("sizes", [[50, 30, 5], [1, 1, 1, 1], [100, 1, 1], [7]])
def test_items_are_shared_out_by_size(sizes: list[int]) -> None:
    for n in range(1, sum(sizes) + 3):
        given = allocate(sizes, n)
        assert sum(given) == min(n, sum(sizes))
        assert all(0 <= count <= size for count, size in zip(given, sizes, strict=True))
        assert n < len(sizes) or min(given) >= 1
        ideal = [n * size / sum(sizes) for size in sizes]
        off = [abs(g - i) for g, i in zip(given, ideal, strict=True)]
        assert n > sum(sizes) or max(off) <= len(sizes)


def test_a_lower_level_narrows_the_limits() -> None:
    usual, narrow = (sampled_share([3], [40], [200], level=level) for level in (0.95, 0.8))
    assert usual.low < narrow.low <= narrow.value <= narrow.high < usual.high
    assert usual.wide_low < narrow.wide_low <= narrow.wide_high < usual.wide_high


@given(st.lists(st.integers(0, 50)), st.integers(0, 200))
def test_a_fair_cap_is_the_largest_that_fits(amounts: list[int], most: int) -> None:
    cap = fair_cap(amounts, most)
    assert sum(min(amount, cap) for amount in amounts) <= most
    if sum(amounts) > most:
        assert sum(min(amount, cap + 1) for amount in amounts) > most
    else:
        assert all(amount <= cap for amount in amounts)
