"""Limits of a loss: equal to the oracle on random data, and right by enumeration."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

import decide_oracle as oracle
from decide_cases import DESIGNS, random_items, take
from forgetmap.stats.limits import (
    ItemSample,
    PairedAnswers,
    drop_upper,
    flips_lower,
    flips_upper,
    plain_drop_lower,
    plain_drop_p,
    plain_drop_upper,
    plain_flips_lower,
    plain_flips_upper,
    repeat_scores,
    squared_change,
)
from forgetmap.stats.results import Reals
from forgetmap.stats.verdicts import BoundName

SEEDS = 16
NAMES: dict[str, BoundName] = {
    "L1": "drop", "L2": "tasks", "L3": "repeats", "L4": "confirmed", "L5": "earlier_stage",
}  # fmt: skip
LEVELS = (0.025, 0.00625, 0.3)


def same(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kinds", [False, True], ids=["items", "kinds"])
@pytest.mark.parametrize("name", DESIGNS)
def test_every_limit_equals_the_oracle(name: str, kinds: bool) -> None:
    for seed in range(SEEDS):
        items = random_items(name, seed)
        taken = take(items, kinds=kinds)
        expected = oracle.offered(items)
        assert set(taken.bounds) == {NAMES[each] for each in expected}
        for a in LEVELS:
            for each, bound in expected.items():
                same(taken.bounds[NAMES[each]].lower(a), bound(a))
            same(flips_upper(taken.answers, a), oracle.upper(items, a))
            same(drop_upper(taken.answers, a), oracle.upper_drop(items, a))
            gain = take(oracle.mirrored(items)).bounds["drop"].lower(a)
            same(gain, oracle.drop(oracle.mirrored(items), a))
        if not items.plain:
            seen = drop_upper(taken.answers, 0.025, unseen=False)
            same(seen, oracle.upper_v(items, items.d, 0.025, seen=True))
            flips = [x * (1 - y) for x, y in zip(items.x, items.y, strict=True)]
            same(flips_lower(taken.answers, 0.025), oracle.lower_t(items, flips, 0.025))
        same(taken.answers.sample.design_effect(taken.answers.change), design_effect(items))


def design_effect(items: oracle.Items) -> float:
    if items.clusters is None:
        return 1.0
    return oracle.clustered(oracle.weighted(items, items.d)[0], oracle.named_clusters(items))[0]


@pytest.mark.parametrize("name", DESIGNS)
def test_p_is_the_smallest_level_at_which_a_limit_is_above_zero(name: str) -> None:
    for seed in range(2):
        for bound in take(random_items(name, seed)).bounds.values():
            same(min(bound.p_value, 0.5), oracle.smallest_level(bound.lower))


def test_p_of_single_answers_is_where_the_limit_becomes_positive() -> None:
    for n10, n01 in product(range(12), range(8)):
        found = oracle.smallest_level(partial(_drop_of_60, n10, n01))
        same(min(float(plain_drop_p(n10, n01)), 0.5), found)


def _drop_of_60(n10: int, n01: int, a: float) -> float:
    return float(plain_drop_lower(n10, n01, 60, a))


def test_limits_of_counts_take_arrays() -> None:
    n10, n01, n = np.array([0, 3, 40]), np.array([5, 3, 2]), np.array([5, 60, 1000])
    for place in range(3):
        items = counted(int(n10[place]), int(n01[place]), int(n[place]))
        same(plain_drop_lower(n10, n01, n, 0.025)[place], oracle.drop(items, 0.025))
        same(plain_drop_upper(n10, n01, n, 0.025)[place], oracle.upper_drop(items))
        same(plain_flips_upper(n10, n, 0.025)[place], oracle.upper(items))
        low = oracle.lower_flips(int(n10[place]), int(n[place]))
        same(plain_flips_lower(n10, n, 0.025)[place], low)


def counted(n10: int, n01: int, size: int) -> oracle.Items:
    rest = size - n10 - n01
    ones = [1] * size
    return oracle.Items(
        [1] * n10 + [0] * n01 + [1] * rest, ones, [0] * n10 + [1] * (n01 + rest), ones
    )


@pytest.mark.parametrize("seed", range(6))
def test_rare_losses_in_large_tasks_choose_the_same_tasks(seed: int) -> None:
    lost = np.random.default_rng(seed).integers(0, 5, (8, 2))
    places = list(product(range(8), range(2), range(150)))
    n = [int(number >= lost[task, half]) for task, half, number in places]
    ones = [1] * len(places)
    tasks, halves = [task for task, _, _ in places], [half for _, half, _ in places]
    items = oracle.Items(ones, ones, n, ones, tasks=tasks, halves=halves)
    for a in LEVELS:
        same(take(items, kinds=True).bounds["tasks"].lower(a), oracle.tasks_drop(items, a))


# ---------------------------------------------------------------------------- enumerations


def cells(size: int) -> tuple[Reals, Reals]:
    """All n10, n01 with n10 + n01 <= size."""
    n10, n01 = np.divmod(np.arange((size + 1) ** 2), size + 1)
    return n10[n10 + n01 <= size], n01[n10 + n01 <= size]


def probabilities(size: int, p10: Reals, p01: Reals) -> Reals:
    """Probability of every cell, one row per pair of rates."""
    from scipy.special import gammaln, xlogy

    n10, n01 = cells(size)
    rest = size - n10 - n01
    ways = gammaln(size + 1) - gammaln(n10 + 1) - gammaln(n01 + 1) - gammaln(rest + 1)
    stay = np.maximum(1 - p10 - p01, 0.0)
    terms = [xlogy(n, p[:, None]) for n, p in ((n10, p10), (n01, p01), (rest, stay))]
    return np.asarray(np.exp(ways + sum(terms)))


@pytest.mark.parametrize("size", [10, 30, 100])
def test_the_drop_of_single_answers_errs_as_rarely_as_enumerated(size: int) -> None:
    low = plain_drop_lower(*cells(size), size, 0.025)
    rates = np.linspace(0.0, 0.5, 101)
    false_loss = probabilities(size, rates, rates) @ (low > 0)
    assert 0.01 < false_loss.max() <= 0.0234
    grid = np.linspace(0.0, 1.0, 61)
    p10, p01 = (each.ravel() for each in np.meshgrid(grid, grid))
    # Independent answers to items of which none was gained: means of (p(1 - q), q(1 - p)), p >= q.
    real = (p01 <= p10) & (p01 <= (1 - p10) / 3 + 1e-12)
    p10, p01 = p10[real], p01[real]
    above = low[None, :] > (p10 - p01)[:, None] + 1e-12
    share = (probabilities(size, p10, p01) * above).sum(axis=1)
    assert 0.02 < share.max() <= 0.0346


@pytest.mark.parametrize(("r_b", "r_a"), [(2, 2), (3, 3), (2, 4), (5, 2), (4, 1), (1, 3)])
def test_scores_of_repeats_never_expect_more_than_the_loss(r_b: int, r_a: int) -> None:
    m, n = (each.ravel() for each in np.meshgrid(np.arange(r_b + 1.0), np.arange(r_a + 1.0)))
    full: Reals = np.ones(m.size)
    answers = PairedAnswers(m, r_b * full, n, r_a * full, ItemSample(full))
    scores = repeat_scores(answers)
    assert scores is not None
    grid = np.linspace(0.0, 1.0, 21)
    for p in grid:
        for q in grid:
            chance = stats.binom.pmf(m, r_b, p) * stats.binom.pmf(n, r_a, q)
            expected = chance @ scores
            assert expected <= max(p - q, 0.0) + 1e-12
            if min(r_b, r_a) > 1:
                same(chance @ squared_change(answers), (p - q) ** 2)
            elif r_a == 1:
                same(expected, p * (p - q))  # what it finds, not only what it must not exceed
            else:
                same(expected, (1 - q) * (p - q))


def test_scores_of_repeats_find_a_certain_loss() -> None:
    one: Reals = np.ones(1)
    answers = PairedAnswers(3 * one, 3 * one, 0 * one, 3 * one, ItemSample(one))
    assert repeat_scores(answers) == pytest.approx([1.0])


# ---------------------------------------------------------------------------- edges


def test_items_alone_in_their_clusters_are_independent_items() -> None:
    scores = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], 25)
    alone, own = ItemSample(np.ones(25)), ItemSample(np.ones(25), np.arange(25))
    same(own.lower(scores, 0.025), alone.lower(scores, 0.025))
    same(own.design_effect(scores), 1.0)


def test_weights_alone_set_the_step_of_the_upper_limit() -> None:
    factor = np.array([4.0, *[0.75] * 12])
    own, said = ItemSample(np.ones(13), None, factor), ItemSample(np.ones(13), None, factor, 4 / 13)
    same(own.upper(np.zeros(13), 0.025), said.upper(np.zeros(13), 0.025))


@pytest.mark.parametrize(
    "sample",
    [ItemSample(np.ones(1), np.array([-1])), ItemSample(np.ones(6), np.zeros(6, np.int64))],
)
def test_one_item_or_one_cluster_has_no_spread(sample: ItemSample) -> None:
    scores = np.ones(sample.count.size)
    assert sample.lower(scores, 0.025) == -math.inf
    assert sample.p_value(scores) == 1.0
    assert sample.upper(scores, 0.025) == 1.0
    assert sample.upper_t(scores, 0.025) == math.inf


def test_unseen_passages_leave_room_that_seen_ones_do_not() -> None:
    """120 passages of 12 items, nothing changed: 3.7 / G is left open."""
    sample = ItemSample(np.full(120, 12.0), np.arange(120))
    nothing = np.zeros(120)
    assert sample.upper(nothing, 0.025) == pytest.approx(3.7 / 120, rel=0.15)
    assert sample.upper(nothing, 0.025, unseen=False) < 0.005
    assert sample.largest_share == pytest.approx(1 / 120)
