"""Simulated models with known probabilities of right answers, and their repeated answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats.sequential import Decision, Look, StoppingRule, decide, give_up, look_at

Chances = NDArray[np.float64]
Answers = NDArray[np.bool_]
CHANCE = 0.25


@dataclass(frozen=True)
class Truth:
    """Parameters of the answers to a group of items.

    Attributes:
        items: number of items.
        lost: share of all items that only the model before knows.
        gained: share that only the model after knows.
        known: share that the model before knows.
        wavering: share of all items that are right about half of the time, known or not.
        mood: standard deviation of the effect shared by a whole repeat (log odds).
        cluster: items per cluster, such as questions on one passage.
        habit: share of items whose guess is always the same.
        failed: share of missing answers.
    """

    items: int = 200
    lost: float = 0.0
    gained: float = 0.0
    known: float = 0.6
    wavering: float = 0.2
    mood: float = 0.0
    cluster: int = 1
    habit: float = 0.0
    failed: float = 0.0


def chances(truth: Truth, source: np.random.Generator) -> tuple[Chances, Chances]:
    """Draw the probability of a right answer to each item, before and after."""
    n, spots = truth.items, -(-truth.items // truth.cluster)
    place = np.repeat(source.random(spots), truth.cluster)[:n]
    knows = place < truth.known
    forgets = knows & (place < truth.lost)
    learns = ~knows & (place > 1 - truth.gained)
    sure = np.where(source.random(n) < truth.wavering, source.beta(1, 1, n), 0.98)
    guess = np.full((2, n), CHANCE)
    frozen = source.random(n) < truth.habit
    guess[:, frozen] = source.random((2, int(frozen.sum()))) < CHANCE
    before = np.where(knows, sure, guess[0])
    after = np.where((knows & ~forgets) | learns, sure, guess[1])
    return before, after


def answers(
    chance: Chances, repeats: int, source: np.random.Generator, *, mood: float = 0.0
) -> Answers:
    """Draw answers (items x repeats); `mood` is the spread of an effect shared by a repeat."""
    odds = np.log(np.clip(chance, 1e-9, 1 - 1e-9) / (1 - np.clip(chance, 1e-9, 1 - 1e-9)))
    shifted = odds[:, None] + mood * source.standard_normal(repeats)
    return np.asarray(source.random((chance.size, repeats)) < 1 / (1 + np.exp(-shifted)))


@dataclass(frozen=True)
class Asked:
    """All answers that the budget allows, of which a look uses some."""

    before: Answers
    after: Answers
    had_before: Answers
    had_after: Answers

    def look(self, repeats: int) -> Look:
        sides = []
        for right, had in ((self.before, self.had_before), (self.after, self.had_after)):
            counted = had[:, :repeats]
            sides += [(right[:, :repeats] & counted).sum(1), counted.sum(1)]
        found = look_at(*sides)
        assert found is not None
        return found


def ask(truth: Truth, most: int, source: np.random.Generator) -> Asked:
    before, after = chances(truth, source)
    given = [answers(chance, most, source, mood=truth.mood) for chance in (before, after)]
    had = [source.random(each.shape) >= truth.failed for each in given]
    return Asked(given[0], given[1], had[0], had[1])


@dataclass(frozen=True)
class Outcome:
    """Result of group-sequential looks."""

    decisions: dict[str, Decision]
    spent: int
    full: int


def spend(asked: dict[str, Asked], rule: StoppingRule) -> Outcome:
    """Add repeats only for groups without a decision."""
    histories: dict[str, list[Look]] = {name: [] for name in asked}
    decided: dict[str, Decision] = {}
    used = dict.fromkeys(asked, 0)
    for repeats in rule.schedule:
        for name, each in asked.items():
            if name not in decided:
                histories[name].append(each.look(repeats))
                used[name] = repeats
        decided = decide(histories, decided, rule)
    spent = sum(2 * used[name] * len(each.before) for name, each in asked.items())
    full = sum(2 * rule.most * len(each.before) for each in asked.values())
    return Outcome(give_up(histories, decided, rule), spent, full)


def full_budget(asked: dict[str, Asked], rule: StoppingRule) -> dict[str, Decision]:
    """Return the verdicts of one look at all answers."""
    histories = {name: [each.look(rule.most)] for name, each in asked.items()}
    return decide(histories, {}, rule)
