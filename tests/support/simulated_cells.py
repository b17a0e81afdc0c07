"""Thousands of simulated comparisons at once, as counts, to check estimators.

Array names carry their axes: D data sets, S items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forgetmap.simulation.answers import GAINED, KEPT, LOST, Habits, letter_weights

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of all items by transition.

    Attributes:
        known: known before.
        lost: known before and not after.
        gained: known after and not before.
    """

    known: float
    lost: float
    gained: float = 0.0

    @property
    def classes(self) -> tuple[float, float, float, float]:
        """Shares of items known on both sides, lost, gained and never known."""
        return self.known - self.lost, self.lost, self.gained, 1 - self.known - self.gained


@dataclass(frozen=True, slots=True)
class BatchCells:
    """The counts of each data set; `different` of n00 chose different wrong options."""

    n11_D: Ints  # noqa: N815  # axes
    n10_D: Ints  # noqa: N815
    n01_D: Ints  # noqa: N815
    n00_D: Ints  # noqa: N815
    different_D: Ints  # noqa: N815


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties by which options differ.

    Attributes:
        eliminated: wrong options that both models rule out before guessing.
        attractive: probability that a guess picks a certain wrong option, the same for both models.
        gold_bias: how often each letter is right; equally often if empty.
    """

    eliminated: int = 0
    attractive: float = 0.0
    gold_bias: Sequence[float] = ()


def draw_cells(
    rng: np.random.Generator, data_sets: int, items: int, k: float, shares: Shares
) -> BatchCells:
    """Draw the counts of each data set; guesses are uniform and independent."""
    probabilities = cell_probabilities(k, shares)
    drawn = rng.multinomial(items, probabilities, size=data_sets)
    n11, n10, n01, same, different = drawn.T
    return BatchCells(n11, n10, n01, same + different, different)


def cell_probabilities(k: float, shares: Shares) -> list[float]:
    """Return the probabilities of 11, 10, 01, 00 with the same and 00 with different options."""
    kept, lost, gained, never = shares.classes
    luck = 0.0 if np.isinf(k) else 1 / k
    miss = 1 - luck
    same = 0.0 if np.isinf(k) else never * miss * luck
    return [
        kept + (lost + gained) * luck + never * luck**2,
        lost * miss + never * luck * miss,
        gained * miss + never * luck * miss,
        same,
        max(never * miss**2 - same, 0.0),
    ]


def draw_choices(
    rng: np.random.Generator,
    data_sets: int,
    items: int,
    k: int,
    shares: Shares,
    habits: Habits,
    traits: Traits | None = None,
) -> BatchCells:
    """Draw the counts item by item, for guesses that are not uniform or not independent.

    Args:
        rng: source of randomness.
        data_sets: number of data sets.
        items: number of items in each.
        k: number of options.
        shares: shares of known, lost and gained items.
        habits: persistence and letter bias of guesses; mastery of known items.
        traits: properties of the options.
    """
    traits = traits or Traits()
    shape = (data_sets, items)
    classes = rng.choice(4, size=shape, p=shares.classes)
    gold = rng.choice(k, size=shape, p=letter_weights(traits.gold_bias, k))
    lure = (gold + 1) % k
    first = _guesses(rng, gold, lure, k, habits.letter_bias, traits)
    moved = habits.letter_bias if habits.moved_bias is None else habits.moved_bias
    second = _guesses(rng, gold, lure, k, moved, traits)
    second = np.where(rng.random(shape) < habits.persistence, first, second)
    knows_before = np.isin(classes, (KEPT, LOST)) & (rng.random(shape) < habits.mastery)
    knows_after = np.isin(classes, (KEPT, GAINED)) & (rng.random(shape) < habits.mastery)
    before, after = np.where(knows_before, gold, first), np.where(knows_after, gold, second)
    return count_choices(before, after, gold)


def count_choices(before: Ints, after: Ints, gold: Ints) -> BatchCells:
    """Count the cells of each data set from the chosen options."""
    right_before, right_after = before == gold, after == gold
    both_wrong = ~right_before & ~right_after
    return BatchCells(
        (right_before & right_after).sum(1),
        (right_before & ~right_after).sum(1),
        (~right_before & right_after).sum(1),
        both_wrong.sum(1),
        (both_wrong & (before != after)).sum(1),
    )


def _guesses(
    rng: np.random.Generator,
    gold: Ints,
    lure: Ints,
    k: int,
    bias: Sequence[float],
    traits: Traits,
) -> Ints:
    guess = rng.choice(k, size=gold.shape, p=letter_weights(bias, k))
    if traits.eliminated:
        # The remaining options are the right one and the k - 1 - eliminated after it.
        guess = (gold + rng.integers(k - traits.eliminated, size=gold.shape)) % k
    return np.where(rng.random(gold.shape) < traits.attractive, lure, guess)
