"""Checks of an unchanged model with a probe seldom claim a loss, whatever chose the items."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import look_share, plain_drop_p, select_in_family

LOOKS, ERROR = 8, 0.05


def claims(
    groups: int, items: int, repeats: int, wavering: float, p: float, random: np.random.Generator
) -> tuple[bool, bool, bool]:
    """Whether any check claims a loss: of an unchanged model, after a loss of a tenth, and of an
    unchanged model against the answers that chose the items."""
    chance = np.where(random.random((groups, items)) < wavering, p, 1.0)
    stable = random.binomial(repeats, chance) == repeats
    before = stable & (random.random(chance.shape) < chance)
    lost = random.random(chance.shape) < 0.1
    found = [False, False, False]
    for look in range(1, LOOKS + 1):
        after = stable & (random.random(chance.shape) < chance)
        for place, (first, then) in enumerate(
            ((before, after), (before, after & ~lost), (stable, after))
        ):
            counts = [(a & ~b).sum(1) for a, b in ((first, then), (then, first))]
            p_values = np.minimum(2 * plain_drop_p(*counts), 1.0)
            _, selected = select_in_family(p_values, ERROR * look_share(look))
            found[place] |= selected > 0
    return found[0], found[1], found[2]


def claim_rates(
    groups: int, items: int, repeats: int, wavering: float, p: float, draws: int
) -> tuple[float, float, float]:
    random = np.random.default_rng(7)
    rates = np.mean([claims(groups, items, repeats, wavering, p, random) for _ in range(draws)], 0)
    return tuple(map(float, rates))  # type: ignore[return-value]  # three of them


@pytest.mark.parametrize("items", [15, 60, 150])
@pytest.mark.parametrize("groups", [1, 10])
def test_a_tenth_of_the_items_wavers(items: int, groups: int) -> None:
    false, power, _ = claim_rates(groups, items, 4, 0.1, 0.9, 200)
    assert false <= 0.03
    assert items < 150 or power > 0.9


def test_answers_that_chose_the_items_cannot_be_the_model_before() -> None:
    false, _, selected = claim_rates(1, 600, 2, 0.3, 0.9, 100)
    assert false <= 0.03
    assert selected > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("items", [10, 30, 150, 600])
@pytest.mark.parametrize("repeats", [1, 2, 4])
@pytest.mark.parametrize(("wavering", "p"), [(0.1, 0.9), (0.5, 0.95), (1.0, 0.7)])
@pytest.mark.parametrize("groups", [1, 40])
def test_false_claims_are_rare_in_many_worlds(
    items: int, repeats: int, wavering: float, p: float, groups: int
) -> None:
    false, _, _ = claim_rates(groups, items, repeats, wavering, p, 1000)
    assert false <= 0.03
