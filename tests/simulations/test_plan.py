"""Plans reach their stated power with the verdicts of `compare`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forgetmap.comparison.cells import Cells
from forgetmap.comparison.choice_counts import OptionCounts
from forgetmap.comparison.choices import Wish
from forgetmap.comparison.estimators import find_estimator
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.loss import measure_loss
from forgetmap.comparison.luck import Luck
from forgetmap.comparison.plan import make_plan
from forgetmap.comparison.result import Verdict
from forgetmap.comparison.verdict import decide
from forgetmap.stats.intervals import agree_with_test, mean_interval
from forgetmap.stats.repeats import excess_scores, permutation_moments
from forgetmap.stats.tests import change_p
from simulated_cells import Shares, draw_cells

SETS = 500
WISHES = (
    Wish(loss=0.03, accuracy=0.7),
    Wish(loss=0.02, accuracy=0.8, noise_floor=0.0, margin=0.01, level=0.9),
)
PROMISED = (0.75, 0.87)
"""Four in five, of a normal approximation and of so many data sets."""


def is_promised(share: float) -> bool:
    return PROMISED[0] <= share <= PROMISED[1]


def verdicts(wish: Wish, k: float, items: int, lost: float) -> list[Verdict]:
    """Of data sets in which so much was lost, guesses drawn anew."""
    known = wish.accuracy if math.isinf(k) else (wish.accuracy - 1 / k) * k / (k - 1)
    cells = draw_cells(np.random.default_rng(int(items)), SETS, items, k, Shares(known, lost))
    columns = (cells.n11_D, cells.n10_D, cells.n01_D, cells.n00_D, cells.different_D)
    return [_verdict(wish, k, *map(int, counts)) for counts in zip(*columns, strict=True)]


def _verdict(wish: Wish, k: float, n11: int, n10: int, n01: int, n00: int, other: int) -> Verdict:
    options = {k: OptionCounts(n11, n10, n01, n00, different=0 if math.isinf(k) else other)}
    n = n11 + n10 + n01 + n00
    cells = Cells(paired=n, items=n, n11=n11, n10=n10, n01=n01, n00=n00, options=options)
    luck = {Luck.REDRAWN if k == 2 else Luck.CHOICES: options}
    row = find_estimator("raw" if math.isinf(k) else "bracket" if k == 2 else "matched")
    evidence = Evidence(cells, luck=luck, level=wish.level)
    return decide(measure_loss(row, evidence, wish.noise_floor).total, wish.margin)


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("k", [2.0, 4.0, 10.0, math.inf])
def test_a_greedy_plan_finds_the_loss_four_times_in_five(wish: Wish, k: float) -> None:
    (row,) = make_plan(wish, [k], []).rows
    assert row.items is not None
    found = verdicts(wish, k, row.items, wish.loss)
    assert is_promised(sum(verdict in ("lost", "small_loss") for verdict in found) / SETS)


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("k", [4.0, 10.0])
def test_a_greedy_plan_shows_that_nothing_was_lost(wish: Wish, k: float) -> None:
    (row,) = make_plan(wish, [k], []).rows
    assert row.items_no_loss is not None
    found = verdicts(wish, k, row.items_no_loss, 0.0)
    assert is_promised(found.count("no_material_loss") / SETS)


@pytest.mark.parametrize("wish", WISHES)
def test_open_ended_items_without_noise_show_it_always_and_one_fewer_never(wish: Wish) -> None:
    (row,) = make_plan(wish, [math.inf], []).rows
    assert row.items_no_loss is not None
    assert set(verdicts(wish, math.inf, row.items_no_loss, 0.0)) == {"no_material_loss"}
    assert set(verdicts(wish, math.inf, row.items_no_loss - 1, 0.0)) == {"cannot_tell"}


def repeated_limits(
    rng: np.random.Generator, wish: Wish, items: int, repeats: int, lost: float
) -> tuple[float, float]:
    """Limits of `excess`; all noise on items that are right half of the time."""
    noise = wish.sampled_noise / 0.25
    coin = rng.random(items) < noise
    before = np.where(coin, 0.5, 1.0)
    gone = ~coin & (rng.random(items) < lost / (1 - noise))
    right_before = rng.binomial(repeats, before)
    right_after = rng.binomial(repeats, np.where(gone, 0, before))
    scores = excess_scores(right_before, repeats, right_after, repeats).lost
    moments = permutation_moments(np.arange(2 * repeats + 1), repeats, repeats)
    variance, third = (moment[right_before + right_after].sum() for moment in moments)
    interval = mean_interval(items, scores.sum(), (scores**2).sum(), level=wish.level)
    p = change_p(scores.sum(), variance, third)
    interval = agree_with_test(interval, p, level=wish.level)
    return float(interval.low), float(interval.high)


@pytest.mark.parametrize("repeats", [2, 5])
@pytest.mark.parametrize("wish", [Wish(loss=0.03), Wish(loss=0.05, sampled_noise=0.1)])
def test_a_plan_with_repeats_keeps_both_promises(wish: Wish, repeats: int) -> None:
    (row,) = make_plan(wish, [], [repeats]).rows
    assert row.items is not None
    assert row.items_no_loss is not None
    rng = np.random.default_rng(repeats)
    lost = [repeated_limits(rng, wish, row.items, repeats, wish.loss)[0] > 0 for _ in range(SETS)]
    assert is_promised(sum(lost) / SETS)
    limits = [repeated_limits(rng, wish, row.items_no_loss, repeats, 0.0) for _ in range(SETS)]
    shown = [low <= 0 and high < wish.margin for low, high in limits]
    assert is_promised(sum(shown) / SETS)
