"""Simulated models with known probabilities of right answers, and their repeated answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forgetmap.comparison import Evidence, GroupResult, VerdictSettings, judge_family
from forgetmap.comparison.cells import Cells
from forgetmap.comparison.kinds import TALLIES, Kinds
from forgetmap.comparison.labels import Label
from forgetmap.map.adaptive import Auto, hopeful
from forgetmap.stats import OPEN

Chances = NDArray[np.float64]
Answers = NDArray[np.bool_]
CHANCE, SURE = 0.25, 0.98


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

    @property
    def loss(self) -> float:
        """The true loss: mean of max(p - q, 0), without frozen guesses."""
        from_wavering = (1 - CHANCE) ** 2 / 2
        return self.lost * ((1 - self.wavering) * (SURE - CHANCE) + self.wavering * from_wavering)


def chances(truth: Truth, source: np.random.Generator) -> tuple[Chances, Chances]:
    """Draw the probability of a right answer to each item, before and after."""
    n, spots = truth.items, -(-truth.items // truth.cluster)
    place = np.repeat(source.random(spots), truth.cluster)[:n]
    knows = place < truth.known
    forgets = knows & (place < truth.lost)
    learns = ~knows & (place > 1 - truth.gained)
    sure = np.where(source.random(n) < truth.wavering, source.beta(1, 1, n), SURE)
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

    def evidence(self, name: str, repeats: int) -> Evidence:
        """Return what is known after so many repeats."""
        sides = []
        for right, had in ((self.before, self.had_before), (self.after, self.had_after)):
            counted = had[:, :repeats]
            sides += [(right[:, :repeats] & counted).sum(1), counted.sum(1)]
        table = np.stack(sides, 1)
        kinds, count = np.unique(table[(table[:, [1, 3]] > 0).all(1)], axis=0, return_counts=True)
        tallies = np.zeros((len(kinds), len(TALLIES)))
        for column, side in ((0, "before"), (2, "after")):
            tallies[:, TALLIES.index(f"right_{side}")] = kinds[:, column]
            wrong = kinds[:, column + 1] - kinds[:, column]
            tallies[:, TALLIES.index(f"unknown_{side}")] = wrong
        size, whole = len(kinds), np.zeros(len(kinds), np.int64)
        table_of_kinds = Kinds(
            labels=(Label(name, None, None),), label=whole, count=count.astype(float),
            k=np.full(size, np.inf), gold=np.full(size, np.nan), half=whole, cluster=None,
            tallies=tallies,
        )  # fmt: skip
        return Evidence(Cells(paired=int(count.sum())), table_of_kinds)


def ask(truth: Truth, most: int, source: np.random.Generator) -> Asked:
    before, after = chances(truth, source)
    given = [answers(chance, most, source, mood=truth.mood) for chance in (before, after)]
    had = [source.random(each.shape) >= truth.failed for each in given]
    return Asked(given[0], given[1], had[0], had[1])


@dataclass(frozen=True)
class Outcome:
    """Verdicts after looks at more and more repeats."""

    groups: dict[str, GroupResult]
    spent: int
    full: int


def spend(asked: dict[str, Asked], auto: Auto, margin: float = 0.02) -> Outcome:
    """Add repeats only for groups with an open verdict, as `--repeats auto` does."""
    settings = VerdictSettings(margin=margin, looks=len(auto.schedule))
    parts: dict[str, Evidence] = {}
    groups: dict[str, GroupResult] = {}
    used, open_ = dict.fromkeys(asked, 0), set(asked)
    for repeats in auto.schedule:
        for name in open_:
            parts[name], used[name] = asked[name].evidence(name, repeats), repeats
        if open_:
            family = judge_family({name: parts[name] for name in asked}, settings, "categories")
            groups = {group.name: group for group in family}
            open_ = {name for name in open_ if groups[name].verdict in OPEN}
            open_ &= hopeful(parts, settings, auto.most / repeats)
    spent = sum(2 * used[name] * len(each.before) for name, each in asked.items())
    full = sum(2 * auto.most * len(each.before) for each in asked.values())
    return Outcome(groups, spent, full)


def full_budget(
    asked: dict[str, Asked], auto: Auto, margin: float = 0.02
) -> dict[str, GroupResult]:
    """Return the verdicts of one look at all answers."""
    parts = {name: each.evidence(name, auto.most) for name, each in asked.items()}
    settings = VerdictSettings(margin=margin)
    return {group.name: group for group in judge_family(parts, settings, "categories")}
