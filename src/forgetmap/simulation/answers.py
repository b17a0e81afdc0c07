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
        persistence: probability that a guess is the same in another run, of either model: the rest
            is noise.
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
        mastery_S: probability of a right answer, if known.
        guesses: letter guessed by each model, if it does not know the answer.
        chosen: letter chosen by each model.
    """

    classes_S: Ints  # noqa: N815  # axes
    gold_S: Ints  # noqa: N815
    mastery_S: Reals  # noqa: N815
    guesses: tuple[Ints, Ints]
    chosen: tuple[Ints, Ints]


KNOWN = ((KEPT, LOST), (KEPT, GAINED))
"""Classes known by each model."""


def answer_items(
    rng: np.random.Generator, classes_s: Ints, *, k: int | None, repeats: int, habits: Habits
) -> Answers:
    """Let both models answer items with k options, or open-ended ones; unknown ones are guessed."""
    gold_s = rng.integers(k or OPEN_ANSWERS, size=len(classes_s))
    mastery_s = draw_mastery(rng, len(classes_s), habits)
    biases = _biases(habits)
    guess_before = _guess(rng, gold_s, k, repeats, biases[0])
    redrawn = _guess(rng, gold_s, k, repeats, biases[1])
    repeated = rng.random(redrawn.shape) < habits.persistence
    guesses = (guess_before, np.where(repeated, guess_before, redrawn))
    chosen = _choose(rng, classes_s, gold_s, mastery_s, guesses)
    return Answers(classes_s, gold_s, mastery_s, guesses, chosen)


def answer_again(
    rng: np.random.Generator, answers: Answers, *, k: int | None, habits: Habits
) -> tuple[tuple[Ints, Ints], tuple[Reals, Reals]]:
    """Let both models answer the same items once more, with fresh noise.

    Both models have the same habit of guessing at an item, and follow it in any run with the
    probability sqrt(persistence). The habit is drawn given the first guesses, so that these and the
    fresh ones are alike: guesses that changed are noise, and only knowledge is lost or gained.

    Returns:
        Letters chosen by each model, and its probability of a right answer to each item.
    """
    follows = float(np.sqrt(habits.persistence))
    habit = _draw_habit(rng, answers, k, habits, follows)
    gold, repeats = answers.gold_S[:, None], habit.shape[1]
    guesses, rates = [], []
    for known, bias in zip(KNOWN, _biases(habits), strict=True):
        redrawn = _guess(rng, answers.gold_S, k, repeats, bias)
        guesses.append(np.where(rng.random(habit.shape) < follows, habit, redrawn))
        luck = letter_weights(bias, k)[gold] if k else np.zeros(gold.shape)
        lucky = (follows * (habit == gold) + (1 - follows) * luck).mean(1)
        knows = np.where(np.isin(answers.classes_S, known), answers.mastery_S, 0.0)
        rates.append(knows + (1 - knows) * lucky)
    chosen = _choose(
        rng, answers.classes_S, answers.gold_S, answers.mastery_S, (guesses[0], guesses[1])
    )
    return chosen, (rates[0], rates[1])


def _draw_habit(
    rng: np.random.Generator, answers: Answers, k: int | None, habits: Habits, follows: float
) -> Ints:
    """Draw the letter that both models tend to guess, given what they guessed."""
    if k is None:  # no guess is right
        return answers.guesses[0]
    weights = letter_weights(habits.letter_bias, k)
    odds = np.broadcast_to(weights, (*answers.guesses[0].shape, k)).copy()
    for guess, bias in zip(answers.guesses, _biases(habits), strict=True):
        redrawn = (1 - follows) * letter_weights(bias, k)[guess]
        odds *= follows * (guess[..., None] == np.arange(k)) + redrawn[..., None]
    below = np.cumsum(odds, axis=-1)
    place = rng.random(below.shape[:-1]) * below[..., -1]
    return np.asarray((place[..., None] >= below).sum(-1))


def _biases(habits: Habits) -> tuple[Sequence[float], Sequence[float]]:
    moved = habits.letter_bias if habits.moved_bias is None else habits.moved_bias
    return habits.letter_bias, moved


def _guess(
    rng: np.random.Generator, gold_s: Ints, k: int | None, repeats: int, bias: Sequence[float]
) -> Ints:
    if k is None:
        return draw_misses(rng, gold_s, repeats)
    return draw_guesses(rng, (len(gold_s), repeats), k, bias)


def _choose(
    rng: np.random.Generator,
    classes_s: Ints,
    gold_s: Ints,
    mastery_s: Reals,
    guesses: tuple[Ints, Ints],
) -> tuple[Ints, Ints]:
    """Return the letters chosen by each model: the right one where it knows the answer."""
    before, after = (
        np.where(
            _knows(rng, np.isin(classes_s, known), mastery_s, guess.shape[1]),
            gold_s[:, None],
            guess,
        )
        for known, guess in zip(KNOWN, guesses, strict=True)
    )
    return before, after


def _knows(rng: np.random.Generator, known_s: Flags, mastery_s: Reals, repeats: int) -> Flags:
    return known_s[:, None] & (rng.random((len(known_s), repeats)) < mastery_s[:, None])
