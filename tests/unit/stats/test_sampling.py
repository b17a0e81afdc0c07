"""Samples of items: bounds and sample sizes, checked against exact distributions of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from forgetmap.stats.limits import plain_drop_p
from forgetmap.stats.sampling import (
    allocate,
    detectable_loss,
    drop_power,
    fair_cap,
    items_to_detect,
    sampled_share,
)


@pytest.mark.parametrize(("of", "asked"), [(40, 32), (200, 30), (60, 60), (25, 1)])
def test_limits_contain_the_share_of_all_items(of: int, asked: int) -> None:
    """Over every number of wrong items that there may be, by the exact law of drawing."""
    found = [sampled_share([seen], [asked], [of]) for seen in range(asked + 1)]
    for wrong in range(of + 1):
        chance = hypergeom(of, wrong, asked).pmf(np.arange(asked + 1))
        held = [each.low - 1e-9 <= wrong / of <= each.high + 1e-9 for each in found]
        assert chance @ np.array(held, float) >= 0.95 - 1e-9


def test_all_items_asked_leave_nothing_uncertain() -> None:
    found = sampled_share([3, 1], [20, 10], [20, 10])
    assert (found.value, found.low, found.high) == (4 / 30, 4 / 30, 4 / 30)


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


@pytest.mark.parametrize(("loss", "noise"), [(0.05, 0.0), (0.05, 0.02), (0.2, 0.1), (0.01, 0.001)])
def test_as_many_items_as_the_loss_takes(loss: float, noise: float) -> None:
    def power(n: int) -> float:
        """Over all numbers of items lost and gained, by the p-value of the drop."""
        gained = np.arange(60)
        lost = np.arange(n + 1)
        shows = plain_drop_p(lost[:, None], gained[None, :]) <= 0.0125
        return float(binom.pmf(lost, n, loss + noise) @ shows @ binom.pmf(gained, n, noise))

    n = items_to_detect(loss, noise)
    assert power(n) == pytest.approx(0.8, abs=0.02)
    assert drop_power(n, loss, noise) == pytest.approx(power(n), abs=1e-6)
    found = detectable_loss(n, noise)
    assert found is not None
    assert found <= loss + 1e-9


def test_seven_items_lost_and_none_gained_show_a_loss() -> None:
    """2^-7 is below .0125, 2^-6 is not."""
    n = items_to_detect(0.05)
    assert binom.sf(6, n, 0.05) >= 0.8 > binom.sf(6, n - 1, 0.05)
    assert items_to_detect(0.05, 0.02) > 1.4 * n
    assert detectable_loss(6) is None
    assert detectable_loss(0) is None


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


@given(st.lists(st.integers(0, 50)), st.integers(0, 200))
def test_a_fair_cap_is_the_largest_that_fits(amounts: list[int], most: int) -> None:
    cap = fair_cap(amounts, most)
    assert sum(min(amount, cap) for amount in amounts) <= most
    if sum(amounts) > most:
        assert sum(min(amount, cap + 1) for amount in amounts) > most
    else:
        assert all(amount <= cap for amount in amounts)
