"""Detectable losses, checked against the rule by which a loss is claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from forgetmap.stats.intervals import score_interval
from forgetmap.stats.mean_scores import raw_sums, score_sums
from forgetmap.stats.power import (
    SIZE,
    detectable,
    items_for_no_loss,
    items_needed,
    items_needed_raw,
    items_to_decide,
    raw_detectable,
    repeated_items_for_no_loss,
    repeated_items_needed,
    repeats_detectable,
)

C = 4 / 3
LATENT = {"c": C, "h": C**2 / 4, "share_e": 0.3 / C**2}


def claims(n: int, flips: int, floor: float) -> bool:
    """Whether open-ended items with so many flips are said to have lost something."""
    return float(score_interval(raw_sums(n, flips), at_least=True).low) > floor


def test_level_of_the_verdict() -> None:
    assert SIZE == 0.025


def test_worked_example_of_detectable_loss() -> None:
    """.0603 without skewness and three quarters of a flip, at the 5 % of version 0.1."""
    found = float(detectable(300, **LATENT, size=0.05))
    assert 0.0603 < found < 0.0603 + 0.75 * C / 300


@pytest.mark.parametrize("floor", [0.0, 0.005, 0.02])
@pytest.mark.parametrize("n", [20, 50, 164, 500, 3000])
def test_raw_power_is_exact(n: int, floor: float) -> None:
    first = next(x for x in range(n + 1) if claims(n, x, floor))
    loss = float(raw_detectable(n, noise_floor=floor))
    assert scipy_stats.binom.sf(first - 1, n, loss) == pytest.approx(0.8)
    assert float(detectable(n, c=1.0, h=0.0, share_e=0.0, noise_floor=floor)) == loss


def test_too_few_items_detect_nothing() -> None:
    assert math.isinf(float(raw_detectable(1)))
    assert not math.isinf(float(raw_detectable(2)))


def test_items_needed_is_the_inverse_of_detectable() -> None:
    needed = items_needed(0.05, **LATENT)
    assert float(detectable(needed, **LATENT)) <= 0.05 < float(detectable(needed - 1, **LATENT))


@pytest.mark.parametrize(("loss", "floor"), [(0.02, 0.005), (0.05, 0.0), (0.3, 0.005)])
def test_items_needed_of_open_ended_items(loss: float, floor: float) -> None:
    needed = items_needed_raw(loss, floor)
    first = next(x for x in range(needed + 1) if claims(needed, x, floor))
    assert 0.8 <= scipy_stats.binom.sf(first - 1, needed, loss) <= 0.83
    assert needed == items_needed(loss, c=1.0, h=0.0, share_e=0.0, noise_floor=floor)


def test_no_number_of_items_shows_a_loss_below_the_noise_floor() -> None:
    assert items_needed_raw(0.004, 0.005) > 10**9


def test_noise_floor_makes_losses_harder_to_see() -> None:
    losses = [float(detectable(500, **LATENT, noise_floor=floor)) for floor in (0.0, 0.01, 0.05)]
    assert losses == sorted(losses)
    assert losses[2] > losses[0] + 0.04


@pytest.mark.parametrize(
    ("loss", "repeats", "churn"), [(0.02, 2, 0.05), (0.1, 5, 0.2), (0.3, 2, 0)]
)
def test_repeated_items_needed_is_the_inverse_too(loss: float, repeats: int, churn: float) -> None:
    needed = repeated_items_needed(loss, repeats, churn=churn)
    enough, less = (repeats_detectable(n, repeats, churn=churn) for n in (needed, needed - 1))
    assert float(enough) <= loss < float(less)


def test_repeats_detectable_falls_with_items_and_repeats() -> None:
    by_items = repeats_detectable(np.array([50, 200, 1000]), 2, churn=0.08)
    assert (np.diff(by_items) < 0).all()
    assert repeats_detectable(200, 5, churn=0.08) < repeats_detectable(200, 2, churn=0.08)


def test_items_to_decide_by_hand() -> None:
    # Four times the items halve the error; the distance is the larger one to 0 and to the margin.
    assert items_to_decide(0.0, 0.01, 500, 0.02) == math.ceil(500 * (2.8016 * 0.01 / 0.02) ** 2)
    assert items_to_decide(0.015, 0.01, 500, 0.02) == math.ceil(500 * (2.8016 * 0.01 / 0.015) ** 2)


def test_items_that_show_no_loss_by_hand() -> None:
    """Open-ended, nothing flips: the upper limit of 0 of n is below 2 % from 201 items on."""
    n = items_for_no_loss(0.02, c=1.0, h=0.0, share_e=0.0)
    high = [float(score_interval(score_sums(m, 0, 0, c=1.0, h=0.0)).high) for m in (n - 1, n)]
    assert high[1] < 0.02 <= high[0]
    assert n == 201


def test_no_loss_takes_more_where_more_is_guessed() -> None:
    few, many = (items_for_no_loss(0.02, c=4 / 3, h=2 / 3, share_e=share) for share in (0.05, 0.15))
    assert few < many
    assert items_for_no_loss(0.02, c=2.0, h=0.0, share_e=0.0, lucky=0.1) > 10**9
    assert repeated_items_for_no_loss(0.02, 5, noise=0.05) < repeated_items_for_no_loss(
        0.02, 2, noise=0.05
    )


def test_more_items_are_needed_than_did_not_decide() -> None:
    found = score_interval(raw_sums(200, 0), at_least=True)
    assert float(found.high) > 0.02
    assert items_to_decide(0.0, float(found.high - found.low) / 3.92, 200, 0.02) == 201
    assert items_to_decide(-0.01, 0.01, 500, 0.02) == 501
