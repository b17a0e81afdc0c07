"""Composition of limits to verdicts: the table of the rule, families, chains and looks."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, product
from typing import get_args

import numpy as np
import pytest

import decide_oracle as oracle
from decide_cases import DESIGNS, random_items, take
from forgetmap.stats.limits import ItemSample, ScoreBound, flips_upper
from forgetmap.stats.verdicts import (
    LossLimits,
    Verdict,
    confirmed_bound,
    decide,
    divide_error,
    items_to_decide,
    look_share,
    loss_p,
    measure_exchange,
    measure_limits,
    reject_in_order,
    select_in_family,
    without_claim,
)

SEEDS = 10


def limits(low: float, high: float, drop_high: float = 0.5) -> LossLimits:
    return LossLimits(low=low, high=high, drop_high=drop_high, carried_by="drop", p=1.0)


@pytest.mark.parametrize("name", DESIGNS)
def test_limits_and_verdict_of_a_data_set_equal_the_oracle(name: str) -> None:
    for seed in range(SEEDS):
        items = random_items(name, seed)
        taken = take(items, kinds=seed % 2 == 0)
        found = measure_limits(taken.answers, taken.bounds, 0.025)
        low, high, drop = oracle.lower(items), oracle.upper(items), oracle.upper_drop(items)
        assert found.low == pytest.approx(low, abs=1e-9)
        assert found.high == pytest.approx(max(high, low), abs=1e-9)
        assert found.drop_high == pytest.approx(drop, abs=1e-9)
        assert found.low == taken.bounds[found.carried_by].lower(0.025 / len(taken.bounds))
        for margin in (0.02, 0.1, 0.4):
            assert decide(found, margin) == oracle.verdict(low, high, drop, margin)
        part = measure_limits(taken.answers, taken.bounds, 0.025, part=0.2)
        assert part.low == pytest.approx(oracle.lower(items, 0.005), abs=1e-9)
        assert part.drop_high == found.drop_high  # upper limits keep their level in a family
        m, p = len(taken.bounds), [bound.p_value for bound in taken.bounds.values()]
        assert found.p == loss_p(taken.bounds) == pytest.approx(min(1.0, 2 * m * min(p)))


def test_the_upper_limit_is_never_below_the_lower_one() -> None:
    taken = take(random_items("single", 0))
    stated = ScoreBound(taken.answers.sample, np.ones(40))
    found = measure_limits(taken.answers, {"drop": taken.bounds["drop"], "stated": stated}, 0.025)
    assert found.carried_by == "stated"
    assert found.high == found.low > flips_upper(taken.answers, 0.025)


def test_every_verdict_occurs_in_the_data_sets() -> None:
    seen = set()
    for name, seed in product(DESIGNS, range(SEEDS)):
        taken = take(random_items(name, seed))
        found = measure_limits(taken.answers, taken.bounds, 0.025)
        seen |= {decide(found, margin) for margin in (0.02, 0.1, 0.4)}
    assert seen == set(get_args(Verdict))


@pytest.mark.parametrize(
    ("low", "high", "drop_high", "verdict"),
    [
        (0.001, 0.019, 0.019, "small_loss"),
        (0.0, 0.019, 0.3, "no_material_loss"),
        (-0.1, 0.019, 0.3, "no_material_loss"),
        (-math.inf, 0.019, 0.019, "no_material_loss"),
        (0.001, 0.02, 0.001, "lost"),
        (0.3, 0.5, 0.5, "lost"),
        (0.0, 0.02, 0.019, "no_net_loss"),
        (-0.2, 0.3, -0.1, "no_net_loss"),
        (-0.2, 0.3, 0.02, "cannot_tell"),
        (0.0, 1.0, 1.0, "cannot_tell"),
        (math.nan, 0.3, 0.01, "cannot_tell"),
        (0.0, math.nan, 0.01, "cannot_tell"),
    ],
)
def test_the_first_line_that_applies_is_the_verdict(
    low: float, high: float, drop_high: float, verdict: str
) -> None:
    assert decide(limits(low, high, drop_high), 0.02) == verdict


@pytest.mark.parametrize(("low", "kept"), [(0.2, 0.0), (-0.2, -0.2)])
def test_a_group_that_was_not_selected_claims_nothing(low: float, kept: float) -> None:
    assert without_claim(limits(low, 0.5)).low == kept


# ---------------------------------------------------------------------------- several decisions


def family(seed: int) -> list[oracle.Items]:
    names = ("single, large", "clusters", "tasks", "repeats", "confirmed", "single", "macro")
    return [random_items(name, seed * 10 + n) for n, name in enumerate(names)]


@pytest.mark.parametrize("seed", range(8))
def test_selected_groups_are_those_whose_limit_at_the_shared_level_is_above_zero(seed: int) -> None:
    taken = [take(items) for items in family(seed)]
    p = [loss_p(each.bounds) for each in taken]
    q, selected = select_in_family(p)
    expected = oracle.benjamini_hochberg(p)
    assert (q <= 0.05).tolist() == expected
    assert selected == sum(expected)
    for each, chosen in zip(taken, expected, strict=True):
        part = selected / len(p)
        if chosen:
            assert measure_limits(each.answers, each.bounds, 0.025, part=part).low > 0
    if selected < len(p):  # one more would not have been selected
        part = (selected + 1) / len(p)
        proven = [measure_limits(e.answers, e.bounds, 0.025, part=part).low > 0 for e in taken]
        assert sum(proven) < selected + 1


def test_families_of_random_p_values() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        p = random.beta(0.3, 1.0, int(random.integers(1, 12))).round(3)
        q, selected = select_in_family(p)
        assert (q <= 0.05).tolist() == oracle.benjamini_hochberg(p.tolist())
        assert selected == int((q <= 0.05).sum())
        assert reject_in_order(p, 0.05) == oracle.holm(p.tolist())


def test_holm_stops_at_the_first_that_fails() -> None:
    assert reject_in_order([0.02, 0.9, 0.001, 0.03], 0.05) == [False, False, True, False]
    assert reject_in_order([0.01, 0.04, math.nan], 0.05) == [True, False, False]
    assert reject_in_order([], 0.05) == []


def test_the_levels_of_all_looks_add_up_to_one() -> None:
    shares = [look_share(look) for look, _ in zip(count(1), range(2000), strict=False)]
    assert shares[:3] == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    assert 0.999 < sum(shares) < 1
    assert sum(look_share(look, 12) for look in range(1, 13)) == pytest.approx(1)


# ---------------------------------------------------------------------------- confirmation, plans


@pytest.mark.parametrize(("flipped", "asked"), [(0, 0), (1, 1), (9, 1)])
def test_a_single_fresh_flip_proves_nothing_and_still_counts_as_a_bound(
    flipped: int, asked: int
) -> None:
    fresh = np.zeros(50)
    fresh[:asked] = 1.0
    bound = confirmed_bound(ItemSample(np.ones(50)), fresh, flipped, asked)
    assert bound.lower(0.025) == -math.inf
    assert min(1.0, 2 * bound.p_value) == 1.0


@pytest.mark.parametrize("name", [name for name in DESIGNS if DESIGNS[name].confirm])
def test_flips_asked_again_later_are_tested_at_a_quarter_beside_the_others(name: str) -> None:
    for seed in range(SEEDS):
        items = random_items(name, seed)
        taken = take(items)
        planned = oracle.offered(replace(items, confirmed=None))
        before = max(bound(0.025 / len(planned)) for bound in planned.values())
        later = oracle.confirmed_flips(items, 0.00625)
        found = measure_limits(taken.answers, taken.bounds, 0.025, asked_later=True)
        assert found.low == pytest.approx(max(before, later), abs=1e-9)
        assert (found.p < 0.05) == (found.low > 0)
    parts = divide_error(taken.bounds, 0.025, asked_later=True)
    assert sum(parts.values()) == pytest.approx(0.03125)
    assert sum(divide_error(taken.bounds, 0.025).values()) == pytest.approx(0.025)


def test_upper_limits_may_have_a_level_of_their_own() -> None:
    taken = take(items := random_items("repeats", 1))
    found = measure_limits(taken.answers, taken.bounds, 0.025, high_alpha=0.001)
    assert found.low == pytest.approx(oracle.lower(items), abs=1e-9)
    assert found.high == pytest.approx(oracle.upper(items, 0.001), abs=1e-9)
    assert found.drop_high == pytest.approx(oracle.upper_drop(items, 0.001), abs=1e-9)


def test_a_random_part_of_the_flips_stands_for_all_of_them() -> None:
    sample, fresh = ItemSample(np.ones(400)), np.zeros(400)
    fresh[:30] = 1.0
    bound = confirmed_bound(sample, fresh, 90, 30)
    assert sample.mean(bound.scores) == pytest.approx(90 / 400)
    assert bound.largest == 3
    all_asked = confirmed_bound(sample, fresh, 30, 30)
    assert all_asked.lower(0.025) > bound.lower(0.025) / 3  # a part knows less


@pytest.mark.parametrize("name", ["single", "single, large", "repeats", "clusters", "all right"])
def test_items_to_decide_equal_the_formula(name: str) -> None:
    for seed in range(SEEDS):
        items = random_items(name, seed)
        net, squares = np.mean(items.d), np.mean(np.square(items.d))
        design = oracle.clustered(items.d, oracle.named_clusters(items))[0]
        for margin in (0.02, 0.3):
            found = items_to_decide(take(items).answers, margin, 0.0125)
            expected = oracle.items_needed(
                float(net), float(squares - net**2), 0.0125, margin, design
            )
            assert found == math.ceil(expected - 1e-9)


def test_exchange_is_the_mirrored_drop_and_the_lower_limit_of_flips() -> None:
    items = random_items("single, large", 3)
    found = measure_exchange(take(items).answers, 0.025, 2)
    n10, _ = oracle.cells(items)
    assert found.rose_by == pytest.approx(oracle.drop(oracle.mirrored(items), 0.0125), abs=1e-9)
    assert found.flips_low == pytest.approx(oracle.lower_flips(n10, items.size), abs=1e-9)
