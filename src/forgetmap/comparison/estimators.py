"""Estimators of forgetting: each is the mean of a score of items.

Three decide: flips, the drop in accuracy, and leave-one-out flips. The others are shown beside
them; they hold only if guesses are blind, or on other assumptions that one run cannot check. Adding
an estimator takes one row in `BUILT_IN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from forgetmap._plugins import Registry
from forgetmap.comparison.choices import AUTO, STATED_ESTIMATORS
from forgetmap.comparison.choices_made import TWO_OPTIONS
from forgetmap.comparison.kinds import Kinds
from forgetmap.comparison.result import GroupResult
from forgetmap.errors import UsageError
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import (
    ItemSample,
    PairedAnswers,
    Reals,
    flips_lower,
    published,
    repeat_scores,
    squared_change,
)

Role = Literal["decides", "if guesses are blind", "shown"]


@dataclass(frozen=True, slots=True)
class PairShares:
    """Shares of the pairs of answers to an item, one before and one after, by how they ended.

    Attributes:
        k: number of options; inf if open-ended.
        right_wrong: right, then a wrong answer.
        right_none: right, then no answer.
        wrong_wrong: a wrong answer twice.
        wrong_other: one wrong option, then another one.
        wrong_none: a wrong answer, then none.
    """

    k: Reals
    right_wrong: Reals
    right_none: Reals
    wrong_wrong: Reals
    wrong_other: Reals
    wrong_none: Reals

    @property
    def scale(self) -> Reals:
        """The factor k / (k - 1) by which blind guesses hide what is known."""
        return scale_of(self.k)

    @property
    def unanswered(self) -> Reals:
        """Right answers that are no longer given, less those that were lucky."""
        return self.right_none - self.wrong_none / (self.k - 1)


def scale_of(k: Reals) -> Reals:
    """Return k / (k - 1); 1 for open-ended items."""
    return np.where(np.isinf(k), 1.0, k / np.where(np.isinf(k), 2.0, k - 1))


def pair_shares(kinds: Kinds) -> PairShares:
    """Return the shares of all pairs of answers to each kind of item."""
    pairs = kinds.given("before") * kinds.given("after")
    right, none = kinds.tally("right_before"), kinds.tally("none_after")
    options = kinds.tally("option_before"), kinds.tally("option_after")
    wrong = [own + kinds.tally(f"unknown_{side}") for own, side in
             zip(options, ("before", "after"), strict=True)]  # fmt: skip
    return PairShares(
        kinds.k, right * wrong[1] / pairs, right * none / pairs, wrong[0] * wrong[1] / pairs,
        (options[0] * options[1] - kinds.tally("same")) / pairs, wrong[0] * none / pairs,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """A row of the table; its subclasses compute the scores.

    Attributes:
        name: name in `--estimator`, JSON and frames.
        label: text in menus and tables.
        formula: for the docs.
        meaning: definition in one sentence.
        misleads: when it is misleading.
        role: whether it decides, or on what it rests.
        assumes: assumption, after "If", of an estimator that a user may state.
    """

    name: str
    label: str
    formula: str
    meaning: str
    misleads: str
    role: Role = "if guesses are blind"
    assumes: str | None = None

    def lacks(self, kinds: Kinds) -> str | None:
        """Return why the data do not allow it; None if they do."""
        return None if kinds.items else "no scored pair"

    def scores(self, kinds: Kinds) -> Reals:
        """Return the score of each kind of item; its mean is the estimate."""
        raise NotImplementedError

    def largest(self, kinds: Kinds) -> float:
        """Return the largest possible score."""
        del kinds
        return 1.0

    def estimate(self, kinds: Kinds, alpha: float, *, macro: bool = False) -> Estimates:
        """Return the estimates in both directions, with t intervals.

        Args:
            kinds: the items.
            alpha: one-sided error of each end.
            macro: every task has the same weight.
        """
        lacking = self.lacks(kinds)
        if lacking is not None:
            return Estimates.missing(self.name, lacking)
        return Estimates(
            forgetting=self._one_way(kinds, alpha, macro=macro),
            backward_transfer=self._one_way(kinds.mirrored, alpha, macro=macro),
        )

    def _one_way(self, kinds: Kinds, alpha: float, *, macro: bool) -> Estimate:
        sample = kinds.macro_sample if macro else kinds.sample
        return estimate_mean(sample, self.scores(kinds), alpha, self.name, self.largest(kinds))


def estimate_mean(
    sample: ItemSample, scores: Reals, alpha: float, name: str, largest: float = 1.0
) -> Estimate:
    """Return a mean of scores with its two-sided t interval; none below two items or clusters."""
    low, high = sample.lower(scores, alpha, largest), sample.upper_t(scores, alpha, largest)
    ends = (None, None) if math.isinf(low) else (low, high)
    note = "" if sample.cluster is None else ", clustered"
    return Estimate(
        value=sample.mean(scores), low=ends[0], high=ends[1], method=f"{name}, t interval{note}"
    )


@dataclass(frozen=True, kw_only=True)
class FromCounts(Estimator):
    """An estimator from how pairs of answers ended.

    Attributes:
        score: score of an item from the shares of its pairs.
        needs_options: it needs items with three or more options, and which ones were chosen.
    """

    score: Callable[[PairShares], Reals]
    needs_options: bool = False

    def lacks(self, kinds: Kinds) -> str | None:
        """Return why the data do not allow it; None if they do."""
        if not self.needs_options or not kinds.items:
            return super().lacks(kinds)
        closed = ~np.isinf(kinds.k)
        if not closed.any():
            return "open-ended items have no options to match"
        if (kinds.k == TWO_OPTIONS).any():
            return "with two options, the wrong answer does not show how luck changed"
        unknown = kinds.tally("unknown_before") + kinds.tally("unknown_after")
        if unknown[closed].any():
            return "the chosen options are not recorded on both sides"
        return None

    def scores(self, kinds: Kinds) -> Reals:
        """Return the score of each kind of item."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.score(pair_shares(kinds))

    def largest(self, kinds: Kinds) -> float:
        """Return the largest possible score: a flip with the fewest options."""
        return float(scale_of(kinds.k).max()) if self.role != "decides" else 1.0


@dataclass(frozen=True, kw_only=True)
class FromRepeats(Estimator):
    """An estimator from the numbers of right answers before and after.

    Attributes:
        score: score of an item; None where the repeats it needs are missing.
        repeats: answers of each model that it needs.
    """

    score: Callable[[PairedAnswers], Reals | None]
    repeats: int = 2

    def lacks(self, kinds: Kinds) -> str | None:
        """Return why the data do not allow it; None if they do."""
        enough = (kinds.given("before") >= self.repeats) & (kinds.given("after") >= self.repeats)
        if kinds.items and not enough.any():
            return "needs two or more answers per item from both models"
        return super().lacks(kinds)

    def scores(self, kinds: Kinds) -> Reals:
        """Return the score of each kind of item; 0 without the repeats."""
        scores = self.score(kinds.answers())
        return np.zeros(kinds.count.size) if scores is None else scores


@dataclass(frozen=True, kw_only=True)
class AsPublished(Estimator):
    """The chance adjustment as published in 2026, for comparison only: no interval."""

    def estimate(self, kinds: Kinds, alpha: float, *, macro: bool = False) -> Estimates:
        """Return the published numbers in both directions; they have one form only."""
        del alpha, macro
        lacking = self.lacks(kinds)
        if lacking is not None:
            return Estimates.missing(self.name, lacking)
        answers, mean = kinds.answers(), kinds.sample.mean
        lost, gained = (mean(own.x * (1 - own.y)) for own in (answers, answers.mirrored))
        luck = mean(np.where(np.isinf(kinds.k), 0.0, 1 / (kinds.k - 1)))
        value = published(
            mean(answers.x), mean(answers.y), lost, gained, 1 + 1 / luck if luck else math.inf
        )
        return Estimates(
            forgetting=Estimate(value=float(value.forgetting), method=self.name),
            backward_transfer=Estimate(value=float(value.backward_transfer), method=self.name),
        )


def _excess(answers: PairedAnswers) -> Reals:
    twice = (answers.answers_before > 1) & (answers.answers_after > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(twice, (squared_change(answers) + answers.change) / 2, 0.0))


def _matched(pairs: PairShares) -> Reals:
    guessed = np.where(np.isinf(pairs.k), 0.0, pairs.wrong_other / (pairs.k - 2))
    return np.asarray(pairs.scale * (pairs.right_wrong - guessed) + pairs.unanswered)


BUILT_IN: tuple[Estimator, ...] = (
    FromCounts(
        name="flips",
        label="right before, wrong after",
        formula="F = P(right before, wrong after)",
        meaning="Right before, wrong after: its upper limit is that of the loss.",
        misleads="noise and lucky guesses are in it, so it is no lower limit",
        role="decides",
        score=lambda pairs: pairs.right_wrong + pairs.right_none,
    ),
    FromRepeats(
        name="drop",
        label="drop in accuracy",
        formula="P(right before) - P(right after)",
        meaning="Accuracy before minus after: its lower limit is that of the loss.",
        misleads="gains cancel losses",
        role="decides",
        score=lambda answers: answers.change,
        repeats=1,
    ),
    FromRepeats(
        name="leave_one_out",
        label="flips that the other answers predict",
        formula="mean of (x_j - y_k)[the other answers are more often right before than after]",
        meaning="Leave-one-out flips: its lower limit is that of the loss.",
        misleads="few repeats predict little, so it is low",
        role="decides",
        score=repeat_scores,
    ),
    FromCounts(
        name="latent",
        label="if all guesses were redrawn",
        formula="c P[1→w] - (c²/k) P[w→w] + P[1→0] - P[w→0]/(k-1), c = k/(k-1)",
        meaning="Lost knowledge if guesses are blind and all redrawn.",
        misleads="guesses repeat (greedy): far too low; guessing habits change: too high",
        assumes="guesses are blind and all redrawn",
        score=lambda pairs: (
            pairs.scale * pairs.right_wrong
            - pairs.scale**2 / pairs.k * pairs.wrong_wrong
            + pairs.unanswered
        ),
    ),
    FromCounts(
        name="upper",
        label="if all guesses were repeated",
        formula="c P[1→w] + P[1→0] - P[w→0]/(k-1)",
        meaning="Lost knowledge if guesses are blind and all repeated.",
        misleads="guesses are redrawn: then much too high",
        assumes="guesses are blind and all repeated",
        score=lambda pairs: pairs.scale * pairs.right_wrong + pairs.unanswered,
    ),
    FromCounts(
        name="matched",
        label="luck estimated from the wrong options",
        formula="c (P[1→w] - P[w→other w]/(k-2)) + P[1→0] - P[w→0]/(k-1)",
        meaning="Lost knowledge, with luck estimated from which wrong options were chosen.",
        misleads="a wrong option is especially attractive (low), options can be ruled out (high), "
        "right answers are not spread evenly; not for k = 2",
        assumes="guesses are blind",
        needs_options=True,
        score=_matched,
    ),
    FromRepeats(
        name="excess",
        label="beyond the noise floor",
        formula="mean of ((p_b-p_a)² - noise + p_b - p_a)/2",
        meaning="Change beyond the noise of both models.",
        misleads="changes are partial or something was gained: then it is too low",
        role="shown",
        score=_excess,
    ),
    AsPublished(
        name="published",
        label="chance adjustment as published in 2026",
        formula="max(F - (1-a)(1-b)/(k-1), 0), a and b the accuracies",
        meaning="Chance adjustment of Harmon et al. (2026).",
        misleads="guesses repeat, and known items are not guessed: it is not 0 if nothing is lost",
    ),
)


@dataclass(frozen=True)
class StatedNoise:
    """A lower limit if reruns of either model flip at most a stated share one way."""

    answers: PairedAnswers
    floor: float

    def lower(self, a: float) -> float:
        """Return the lower limit of the loss."""
        return flips_lower(self.answers, a) - self.floor

    @property
    def p_value(self) -> float:
        """Smallest a at which the limit is above 0."""
        low, high = 1e-12, 0.5
        if self.lower(high) <= 0:
            return 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.lower(middle) > 0 else (middle, high)
        return high


def _check(plugin: object) -> Estimator:
    if not isinstance(plugin, Estimator):
        raise TypeError("it is not a forgetmap.comparison.Estimator")
    return plugin


ADDED_ESTIMATORS = Registry(
    group="forgetmap.estimators", kind="estimator", built_in={}, check=_check
)
"""Estimators of installed packages; the built-in ones are in the table."""


def all_estimators() -> tuple[Estimator, ...]:
    """Return every row: the built-in ones, then those of installed packages.

    Raises:
        UsageError: a package uses a name that is taken, or adds one that cannot be loaded.
    """
    # Frames have one column for each field of a group, and for each estimator.
    known = {AUTO, *(row.name for row in BUILT_IN)}
    known |= {field.name for field in fields(GroupResult)}
    for name in ADDED_ESTIMATORS.names():
        if name != ADDED_ESTIMATORS.get(name).name or name in known or not name.isidentifier():
            raise UsageError(
                f"an installed package adds an estimator named {name!r}, which is already taken "
                "or does not match its own name",
                hint="uninstall the package, or rename its estimator.",
            )
    return (*BUILT_IN, *ADDED_ESTIMATORS.all())


def estimator_names() -> list[str]:
    """Return the values of `--estimator`: those whose assumption a user may state."""
    return [*STATED_ESTIMATORS, *(row.name for row in ADDED_ESTIMATORS.all() if row.assumes)]


def find_estimator(name: str) -> Estimator:
    """Return the row of this name.

    Raises:
        UsageError: there is none; a result may come from a machine with other packages.
    """
    # Built-in ones first: a broken package must not break a command that does not use it.
    row = next((row for row in BUILT_IN if row.name == name), None)
    row = row or next((row for row in all_estimators() if row.name == name), None)
    if row is None:
        raise UsageError(
            f"there is no estimator {name!r}", hint=f"choose from {', '.join(estimator_names())}."
        )
    return row


def check_estimator(name: str) -> None:
    """Refuse an estimator that cannot be stated as an assumption.

    Raises:
        UsageError: there is no such estimator, or it assumes nothing.
    """
    if name != AUTO and find_estimator(name).assumes is None:
        raise UsageError(
            f"--estimator {name} assumes nothing that could be stated",
            hint=f"choose from {', '.join(estimator_names())}.",
        )


def estimator_table() -> str:
    """Format all rows as a Markdown table, for the docs."""
    rows = ["| name | formula | role | misleads when |", "|---|---|---|---|"]
    rows += [
        f"| `{row.name}` | {row.formula} | {row.role} | {row.misleads} |"
        for row in all_estimators()
    ]
    return "\n".join(rows)
