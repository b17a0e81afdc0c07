"""Changes beyond the noise floor, from repeats on both sides.

m of r answers to an item are right. Arrays have one entry per item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class Excess:
    """Item scores; their means are F_excess, BT_excess and the mean squared change."""

    lost: Reals
    gained: Reals


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Answers of one model to items, by kind.

    Attributes:
        right: right answers.
        option: wrong options.
        none: no answer.
        unknown: wrong answers with an unrecorded choice.
        same: ordered pairs of the same wrong option, including each answer with itself.
    """

    right: Reals
    option: Reals
    none: Reals
    unknown: Reals
    same: Reals

    @property
    def answers(self) -> Reals:
        """All answers."""
        return np.asarray(self.right + self.option + self.none + self.unknown)


def excess_scores(
    right_before: ArrayLike,
    repeats_before: ArrayLike,
    right_after: ArrayLike,
    repeats_after: ArrayLike,
) -> Excess:
    """Return per item (M2 +- change) / 2, M2 the squared change of p without sampling noise.

    M2 = (p_b - p_a)^2 - p_b(1-p_b)/(r_b-1) - p_a(1-p_a)/(r_a-1) is unbiased for the squared change;
    F = (M2 + p_b - p_a)/2, BT = (M2 - p_b + p_a)/2. Zero in expectation if nothing changed, x if a
    share x goes from always right to never; a lower bound of the lost probability otherwise. It
    removes sampling noise, but not lucky guesses that are always the same. nan if a side has only
    one answer.
    """
    m_b, r_b, m_a, r_a = (
        np.asarray(x, float) for x in (right_before, repeats_before, right_after, repeats_after)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        p_b, p_a = m_b / r_b, m_a / r_a
        noise = np.where(r_b > 1, p_b * (1 - p_b) / (r_b - 1), np.nan)
        noise = noise + np.where(r_a > 1, p_a * (1 - p_a) / (r_a - 1), np.nan)
        squared = (p_b - p_a) ** 2 - noise
    return Excess(lost=(squared + p_b - p_a) / 2, gained=(squared - p_b + p_a) / 2)


def excess_before_scores(
    right_before: ArrayLike,
    repeats_before: ArrayLike,
    right_after: ArrayLike,
    repeats_after: ArrayLike,
) -> Reals:
    """Return per item the forgetting between the models minus the noise of the model before.

    p_b (1 - p_a) - m_b (r_b - m_b) / (r_b (r_b - 1)), unbiased for p_b (p_b - p_a). For runs in
    which only the model before was repeated: x if a share x goes from always right to never, 0 if
    nothing changed, but below 0 if a model only becomes more certain of items it half knew. nan if
    the model before has only one answer.
    """
    m_b, r_b, m_a, r_a = (
        np.asarray(x, float) for x in (right_before, repeats_before, right_after, repeats_after)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        between = m_b / r_b * (1 - m_a / r_a)
        return np.asarray(between - self_churn(m_b, r_b))


NetPart = Literal["loss", "knowledge", "answering"]
"""The whole loss, what is no longer known, or what is no longer answered."""


def net_scores(
    k: ArrayLike,
    before: AnswerCounts,
    after: AnswerCounts,
    *,
    same: Reals,
    part: NetPart = "loss",
) -> Reals:
    """Return per item the matched score between the models minus half of that within each.

    mean[s(b, a)] - mean[s(b, b')]/2 - mean[s(a, a')]/2 over all pairs of answers, s the score of
    `matched` (of `latent` for two options, of the raw rate if open-ended). On the scale of
    knowledge; unbiased for redrawn and for repeated guesses and for partial mastery.

    Args:
        k: number of options of each item; `inf` if open-ended.
        before: answers before, at least two per item.
        after: answers after.
        same: pairs of the same wrong option, one before and one after.
        part: the whole loss, what is no longer known, or what is no longer answered.
    """
    k = np.asarray(k, float)
    within = [
        _mean_matched(k, side, side, side.same, within=True, part=part) for side in (before, after)
    ]
    between = _mean_matched(k, before, after, same, within=False, part=part)
    return np.asarray(between - sum(within) / 2)


def _mean_matched(
    k: Reals,
    first: AnswerCounts,
    second: AnswerCounts,
    same: Reals,
    *,
    within: bool,
    part: NetPart,
) -> Reals:
    """Return the mean matched score over pairs of answers of two models, or within one model."""
    given_first, given_second = (side.option + side.unknown for side in (first, second))
    with np.errstate(invalid="ignore", divide="ignore"):
        c = np.where(np.isinf(k), 1.0, k / (k - 1))
        wrong_twice = given_first * (given_second - within)
        lost = c * first.right * given_second
        matched = lost - c / (k - 2) * (first.option * second.option - same)
        redrawn = np.where(np.isinf(k), lost, lost - c**2 / k * wrong_twice)
        knowledge = np.where(np.isinf(k) | (k == 2), redrawn, matched)
        luck = np.where(np.isinf(k), 0.0, given_first * second.none / (k - 1))
        answering = first.right * second.none - luck
        total = {
            "loss": knowledge + answering, "knowledge": knowledge, "answering": answering
        }[part]  # fmt: skip
        return np.asarray(total / (first.answers * (second.answers - within)))


def self_churn(right: ArrayLike, repeats: ArrayLike) -> Reals:
    """Return how often two runs flip one way on an item: m (r - m) / (r (r - 1))."""
    m, r = np.asarray(right, float), np.asarray(repeats, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(r > 1, m * (r - m) / (r * (r - 1)), np.nan))


def lost_bounds(change: float, squared: float) -> tuple[float, float]:
    """Return bounds of the lost probability L = E[(p_b - p_a)+] from mean and mean squared change.

    max(0, change, (squared + change)/2) <= L <= (change + sqrt(squared))/2.
    """
    low = max(0.0, change, (squared + change) / 2)
    return low, max(low, (change + max(squared, 0.0) ** 0.5) / 2)


def permutation_moments(
    total: ArrayLike, repeats_before: int, repeats_after: int
) -> tuple[Reals, Reals]:
    """Return variance and third moment of the item score of `excess`, given the right answers.

    If nothing changed, all divisions of `total` right answers between the two sides are equally
    likely (hypergeometric). The score then has mean 0 and these moments.
    """
    answers = repeats_before + repeats_after
    moments = np.zeros((2, answers + 1))
    for right in range(answers + 1):
        before = np.arange(max(0, right - repeats_after), min(right, repeats_before) + 1)
        weight = _dealt(before, answers, right, repeats_before)
        score = excess_scores(before, repeats_before, right - before, repeats_after).lost
        deviation = score - (weight * score).sum()
        moments[:, right] = (weight * deviation**2).sum(), (weight * deviation**3).sum()
    variance, third = moments[:, np.asarray(total)]
    return np.asarray(variance), np.asarray(third)


def _dealt(before: ArrayLike, answers: int, right: int, repeats_before: int) -> Reals:
    """Return the hypergeometric weight of this many right answers on the side before."""
    from scipy.special import gammaln  # heavy, only here

    def ways(n: ArrayLike, k: ArrayLike) -> Reals:
        n, k = np.asarray(n, float), np.asarray(k, float)
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    before = np.asarray(before, float)
    chosen = ways(right, before) + ways(answers - right, repeats_before - before)
    return np.asarray(np.exp(chosen - ways(answers, repeats_before)))


def consensus(
    transitions: ArrayLike, size: int, weight: ArrayLike | None = None
) -> tuple[dict[str, float], float]:
    """Return mean counts of the transitions on which `size` seeds agree, over all subsets.

    As in the published code, for comparison: it keeps stable items, so it does not show how much
    was lost of the others.

    Args:
        transitions: items x seeds, as the strings 00, 01, 10 and 11; empty if a seed has no answer,
            which excludes the item from subsets with that seed.
        size: number of seeds per subset.
        weight: number of items of each kind; 1 by default.

    Returns:
        Mean count of each transition, and the mean share of items on which the seeds disagree.
    """
    from itertools import combinations

    table = np.asarray(transitions)
    items = np.ones(len(table)) if weight is None else np.asarray(weight, float)
    counts = dict.fromkeys(("00", "01", "10", "11"), 0.0)
    dropped = 0.0
    subsets = list(combinations(range(table.shape[1]), size))
    for subset in subsets:
        chosen = table[:, list(subset)]
        complete = (chosen != "").all(axis=1)
        agreed = complete & (chosen == chosen[:, :1]).all(axis=1)
        dropped += 1 - float(items[agreed].sum()) / max(float(items[complete].sum()), 1.0)
        for name in counts:
            counts[name] += float(items[agreed & (chosen[:, 0] == name)].sum())
    return {name: count / len(subsets) for name, count in counts.items()}, dropped / len(subsets)
