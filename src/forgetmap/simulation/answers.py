"""Simulated answers as numpy arrays.

Array names carry their axes: S items, R repeats, K options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

KEPT, LOST, GAINED, NEVER = 0, 1, 2, 3
CLASSES = ("kept", "lost", "gained", "never")
OPEN_ANSWERS = 1_000_003
"""Number of possible answers to an open-ended item."""


@dataclass(frozen=True, slots=True)
class Habits:
    """Guessing habits and mastery of both models.

    Attributes:
        persistence: probability that a guess after repeats the guess before.
        letter_bias: weight of each letter in a guess, in order; the last weight applies to all
            further letters, and empty means uniform.
        moved_bias: the same for the model after; None means unchanged.
        mastery: mean probability of a right answer to a known item; 1 is always.
        spread: variation of mastery between items, from 0 (none) to 1 (maximum).
    """

    persistence: float = 0.0
    letter_bias: Sequence[float] = ()
    moved_bias: Sequence[float] | None = None
    mastery: float = 1.0
    spread: float = 0.0


def draw_classes(
    rng: np.random.Generator, items: int, *, known: float, lost: float, gained: float
) -> Ints:
    """Draw the latent class of each item.

    `known` is the share known before, `lost` the share of those lost, `gained` the share of the
    unknown that is gained. Shares are exact up to whole items.
    """
    n_known = round(known * items)
    n_lost = round(lost * n_known)
    n_gained = round(gained * (items - n_known))
    counts = (n_known - n_lost, n_lost, n_gained, items - n_known - n_gained)
    return rng.permutation(np.repeat(np.arange(4), counts))


def draw_mastery(rng: np.random.Generator, items: int, habits: Habits) -> Reals:
    """Draw the probability of a right answer to each item, if known: beta distributed."""
    if habits.spread <= 0 or habits.mastery in (0.0, 1.0):
        return np.full(items, habits.mastery)
    concentration = 1 / min(habits.spread, 0.999) - 1
    a, b = habits.mastery * concentration, (1 - habits.mastery) * concentration
    return rng.beta(a, b, size=items)


def letter_weights(bias: Sequence[float], k: int) -> Reals:
    """Return the probability of each of k letters in a guess."""
    padded = [*bias, *[bias[-1]] * k][:k] if len(bias) else [1.0] * k
    weights: Reals = np.array(padded) / sum(padded)
    return weights


def draw_guesses(
    rng: np.random.Generator, shape: tuple[int, int], k: int, bias: Sequence[float]
) -> Ints:
    """Draw the letter of each guess."""
    return rng.choice(k, size=shape, p=letter_weights(bias, k))


def draw_misses(rng: np.random.Generator, gold_s: Ints, repeats: int) -> Ints:
    """Draw guesses at open-ended items, which are never right: there are too many answers."""
    distance = rng.integers(1, OPEN_ANSWERS, size=(len(gold_s), repeats))
    return (gold_s[:, None] + distance) % OPEN_ANSWERS


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of both models to one task.

    Attributes:
        classes_S: latent class of each item.
        gold_S: letter of the right option.
        before_S_R: letter chosen before.
        after_S_R: letter chosen after.
    """

    classes_S: Ints  # noqa: N815  # axes
    gold_S: Ints  # noqa: N815
    before_S_R: Ints  # noqa: N815
    after_S_R: Ints  # noqa: N815


def answer_items(
    rng: np.random.Generator, classes_s: Ints, *, k: int | None, repeats: int, habits: Habits
) -> Answers:
    """Let both models answer items with k options, or open-ended ones; unknown ones are guessed."""
    shape = (len(classes_s), repeats)
    gold_s = rng.integers(k or OPEN_ANSWERS, size=len(classes_s))
    mastery_s = draw_mastery(rng, len(classes_s), habits)

    def guess(bias: Sequence[float]) -> Ints:
        return draw_guesses(rng, shape, k, bias) if k else draw_misses(rng, gold_s, repeats)

    guess_before = guess(habits.letter_bias)
    redrawn = guess(habits.letter_bias if habits.moved_bias is None else habits.moved_bias)
    repeated = rng.random(shape) < habits.persistence
    guess_after = np.where(repeated, guess_before, redrawn)
    knows_before = _knows(rng, np.isin(classes_s, (KEPT, LOST)), mastery_s, repeats)
    knows_after = _knows(rng, np.isin(classes_s, (KEPT, GAINED)), mastery_s, repeats)
    return Answers(
        classes_s,
        gold_s,
        np.where(knows_before, gold_s[:, None], guess_before),
        np.where(knows_after, gold_s[:, None], guess_after),
    )


def _knows(rng: np.random.Generator, known_s: Flags, mastery_s: Reals, repeats: int) -> Flags:
    return known_s[:, None] & (rng.random((len(known_s), repeats)) < mastery_s[:, None])
