"""Group-sequential tests: looks at repeats with early stopping.

`excess` after r repeats is the mean of its values over all subsets of fewer repeats (a U-statistic,
Hoeffding 1948), so that Cov(e_r, e_s) = Var(e_s) for r < s. Looks at it are correlated like sums of
independent increments, and the theory of group-sequential tests applies: the share of the error
rate of each look is fixed in advance (Lan and DeMets 1983), and over several groups the rate is
divided as by Holm (Maurer and Bretz 2013).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.repeats import excess_scores, permutation_moments
from forgetmap.stats.results import Reals
from forgetmap.stats.tests import change_p

Verdict = Literal["no_material_loss", "small_loss", "lost", "cannot_tell"]
LOSSES = ("lost", "small_loss")
"""Verdicts that claim a loss."""
Group = TypeVar("Group", bound=Hashable)
Why = Literal["tested", "hopeless", "used_up"]
"""A test decided, more repeats would hardly decide, or the repeats are used up."""

FIRST_LOOK, GROWTH = 2, 1.5
"""Repeats of the first look, and the growth factor from look to look."""
NODES, REACH = 96, 8.0
MIN_INFORMATION = 0.005
"""A look that adds a smaller share of information than this does not count."""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at a group of items.

    Attributes:
        repeats: answers per item of each model.
        items: number of items with two or more answers of each model.
        value: `excess`, the share lost beyond the noise floor.
        p: one-sided p-value of no loss, as if this were the only look.
        variance: variance of `value` if nothing changed.
        error: standard error of `value` for items like these.
        churn: mean p (1 - p) of the answers to an item if nothing changed.
        right: share of right answers before.
    """

    repeats: int
    items: int
    value: float
    p: float
    variance: float
    error: float
    churn: float
    right: float


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Rules for stopping.

    Attributes:
        most: maximum number of repeats.
        level: error rate of the bounds at all looks together. Half of it is the probability that
            any group is called lost although nothing was lost in it; the other half, that a group
            is called free of material loss although it lost the margin or more. Both rest on normal
            approximations.
        margin: largest acceptable loss, as a share of all items.
        hopeless: a group is given up if the remaining repeats would decide it with a probability
            below this.
        exponent: how late the error rate is spent: after a share t of the repeats, t ** exponent of
            it may be (Kim and DeMets 1987).
    """

    most: int = 8
    level: float = 0.05
    margin: float = 0.02
    hopeless: float = 0.2
    exponent: float = 2.0

    @property
    def schedule(self) -> tuple[int, ...]:
        """Number of repeats at each look."""
        looks = [min(FIRST_LOOK, self.most)]
        while looks[-1] < self.most:
            looks.append(min(max(looks[-1] + 1, int(looks[-1] * GROWTH)), self.most))
        return tuple(looks)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a group, and its look.

    Attributes:
        verdict: the verdict that the bounds allow: lost if and only if the lower one is above 0.
        why: the reason for stopping.
        look: the last look.
        needed: p-value threshold of this look, corrected for all looks and groups.
        low: lower bound of the loss, valid at all looks together.
        high: upper bound, likewise.
    """

    verdict: Verdict
    why: Why
    look: Look
    needed: float
    low: float
    high: float


def look_at(
    right_before: ArrayLike,
    answers_before: ArrayLike,
    right_after: ArrayLike,
    answers_after: ArrayLike,
    weight: ArrayLike | None = None,
) -> Look | None:
    """Summarize the answers so far; None if fewer than two items have two answers of each model.

    Args:
        right_before: right answers to each kind of item.
        answers_before: all answers to each kind of item.
        right_after: the same for the model after.
        answers_after: the same for the model after.
        weight: number of items of each kind; 1 by default.
    """
    counts = [np.asarray(x, float) for x in (right_before, answers_before)]
    counts += [np.asarray(x, float) for x in (right_after, answers_after)]
    number = np.ones_like(counts[0]) if weight is None else np.asarray(weight, float)
    enough = (counts[1] > 1) & (counts[3] > 1) & (number > 0)
    m_b, r_b, m_a, r_a = (x[enough] for x in counts)
    number = number[enough]
    n = float(number.sum())
    if n < 2:  # one item has no spread
        return None
    score = excess_scores(m_b, r_b, m_a, r_a).lost
    variance, third = number @ _null_moments(m_b + m_a, r_b, r_a)
    total = float(number @ score)
    spread = max(float(number @ score**2) - total**2 / n, 0.0) + 1.0
    both, right = r_b + r_a, m_b + m_a
    return Look(
        repeats=int(min(r_b.max(), r_a.max())),
        items=int(n),
        value=total / n,
        p=float(change_p(total, variance, third)),
        variance=float(variance) / n**2,
        error=float(np.sqrt(spread / (n * (n - 1)))),
        churn=float(number @ (right * (both - right) / (both * (both - 1)))) / n,
        right=float(number @ (m_b / r_b)) / n,
    )


def _null_moments(right: Reals, before: Reals, after: Reals) -> Reals:
    """Return variance and third moment of the score of each item, if nothing changed."""
    moments = np.empty((right.size, 2))
    for b, a in {*zip(before.tolist(), after.tolist(), strict=True)}:
        here = (before == b) & (after == a)
        moments[here] = _moments(int(b), int(a))[:, right[here].astype(int)].T
    return moments


@lru_cache(maxsize=256)
def _moments(before: int, after: int) -> Reals:
    return np.array(permutation_moments(np.arange(before + after + 1), before, after))


def decide(
    histories: Mapping[Group, Sequence[Look]],
    decided: Mapping[Group, Decision],
    rule: StoppingRule,
) -> dict[Group, Decision]:
    """Return all decisions after the latest looks: earlier ones, and new ones.

    A group that is called lost passes its share of the error rate to the others, as in Holm's
    procedure; one that is given up does not. No material loss is claimed for each group by itself,
    so that error rate is not divided.

    Args:
        histories: all looks at each group, one or more.
        decided: decisions of earlier looks, which stay.
        rule: rules for stopping.
    """
    decisions = dict(decided)
    while True:
        level = _level_of_loss(histories, decisions, rule)
        limits = {
            name: _decision("tested", looks, level, rule)
            for name, looks in histories.items()
            if name not in decisions
        }
        new = {name: decision for name, decision in limits.items() if decision.verdict in LOSSES}
        decisions |= new
        if not new:
            break
    for name, decision in limits.items():
        if decision.verdict == "no_material_loss":
            decisions[name] = decision
        elif decision.look.repeats >= rule.most:
            decisions[name] = replace(decision, why="used_up")
        elif _hope(histories[name], level, rule) < rule.hopeless:
            decisions[name] = replace(decision, why="hopeless")
    return {name: decisions[name] for name in histories if name in decisions}


def give_up(
    histories: Mapping[Group, Sequence[Look]], decided: Mapping[Group, Decision], rule: StoppingRule
) -> dict[Group, Decision]:
    """Return the decisions so far, and close all other groups with their current bounds."""
    level = _level_of_loss(histories, decided, rule)
    return {
        name: decided.get(name) or _decision("used_up", looks, level, rule)
        for name, looks in histories.items()
    }


def _level_of_loss(
    histories: Mapping[Group, Sequence[Look]], decided: Mapping[Group, Decision], rule: StoppingRule
) -> float:
    """Return the one-sided error rate of each group that is not called lost, by Holm."""
    lost = sum(decision.verdict in LOSSES for decision in decided.values())
    return rule.level / 2 / max(len(histories) - lost, 1)


def decision_probability(
    histories: Mapping[Group, Sequence[Look]], open_: Iterable[Group], rule: StoppingRule
) -> Reals:
    """Return the probability that each open group is decided by the last repeat."""
    level = _level_of_loss(histories, {}, rule)
    return np.array([_hope(histories[name], level, rule) for name in open_])


def _decision(why: Why, looks: Sequence[Look], level: float, rule: StoppingRule) -> Decision:
    """Return the decision of the latest look, with bounds that hold at all looks together.

    Repeated confidence bounds; the lower one is at most 0 if the test does not reject.
    """
    last = looks[-1]
    needed, needed_none = (_needed(looks, size, rule) for size in (level, rule.level / 2))
    low = last.value - _quantile(needed) * last.error
    if last.p > needed:
        low = min(low, 0.0)
    high = last.value + _quantile(needed_none) * _upper_error(last, last.error, last.variance, rule)
    low, high = max(low, -1.0), min(high, 1.0)
    return Decision(verdict_of_limits(low, high, rule.margin), why, last, needed, low, high)


def verdict_of_limits(low: float, high: float, margin: float) -> Verdict:
    """Return the verdict that the bounds of a loss allow."""
    if high < margin:
        return "small_loss" if low > 0 else "no_material_loss"
    return "lost" if low > 0 else "cannot_tell"


def _quantile(size: float) -> float:
    """Return the standard errors of a bound; a look without any error rate decides nothing."""
    from scipy.special import ndtri  # heavy, only here

    return -float(ndtri(size)) if size > 0 else float("inf")


def _needed(looks: Sequence[Look], level: float, rule: StoppingRule) -> float:
    """Return the p-value threshold of the latest look."""
    variances = [look.variance for look in looks]
    fractions = [look.repeats / rule.most for look in looks]
    return float(crossing_levels(variances, fractions, level, rule.exponent)[-1])


def _hope(looks: Sequence[Look], level: float, rule: StoppingRule) -> float:
    """Return the probability that the last repeat shows a loss, or none, given the looks so far.

    By the covariance of looks the last value scatters around this one with the difference of their
    variances, without prior information about it.
    """
    from scipy.special import ndtr

    last = looks[-1]
    end = projected(last, rule.most)
    scatter = np.sqrt(max(last.variance - end, 0.0))
    if not scatter:
        return 0.0
    fractions = [*(look.repeats / rule.most for look in looks), 1.0]
    variances = [*(look.variance for look in looks), end]
    lost, none = (
        _quantile(crossing_levels(variances, fractions, size, rule.exponent)[-1])
        for size in (level, rule.level / 2)
    )
    error = np.sqrt(max(last.error**2 - scatter**2, 1.0 / last.items**2))
    lost_bar = lost * max(error, np.sqrt(end))
    none_bar = rule.margin - none * _upper_error(last, error, end, rule)
    chance_of_loss = ndtr((last.value - lost_bar) / scatter)
    return float(chance_of_loss + ndtr((none_bar - last.value) / scatter))


def _upper_error(look: Look, error: float, variance: float, rule: StoppingRule) -> float:
    """Return the standard error of the upper bound.

    With a loss as large as the margin, the few lost items would add more scatter than a sample
    without any of them shows.
    """
    return max(error, float(np.sqrt(variance + rule.margin / look.items)))


def projected(look: Look, repeats: int) -> float:
    """Return the variance of `value` with this many repeats, if nothing changed: A / r + B / r^2.

    The first part is that of the accuracy change, a quarter of 2 p (1 - p) / r; the second that of
    the squared change.
    """
    first = look.churn / 2 / look.items
    second = max(look.variance - first / look.repeats, 0.0) * look.repeats**2
    return min(first / repeats + second / repeats**2, look.variance)


def crossing_levels(
    variances: Sequence[float], fractions: Sequence[float], level: float, exponent: float = 2.0
) -> Reals:
    """Return p-value thresholds of looks, any of which is crossed with probability `level` at most.

    Args:
        variances: variance of the estimate at each look, decreasing.
        fractions: share of the repeats at each look.
        level: probability that any look errs.
        exponent: how late it is spent.

    Returns:
        One-sided p-values, as of a single look; 0 for a look that adds almost no information, which
        does not count.
    """
    known = np.asarray(variances, float)
    # Rounded, so that looks at similar groups share one calculation.
    news = tuple(round(float(known[0] / v), 2) if v > 0 else 1.0 for v in known)
    return np.array(_crossing(news, tuple(map(float, fractions)), level, exponent))


@lru_cache(maxsize=4096)
def _crossing(
    information: tuple[float, ...], fractions: tuple[float, ...], level: float, exponent: float
) -> tuple[float, ...]:
    from scipy.special import ndtr, ndtri

    allowed = level * fractions[0] ** exponent
    levels = [allowed]
    state = _State.first(-float(ndtri(allowed)))
    before = information[0]
    for now, fraction in zip(information[1:], fractions[1:], strict=True):
        due = level * fraction**exponent - allowed
        if now - before < MIN_INFORMATION * before or due <= 0:
            levels.append(0.0)
            continue
        bound = state.bound(now - before, due)
        levels.append(float(ndtr(-bound / np.sqrt(now))))
        state = state.onward(now - before, bound)
        allowed, before = allowed + due, now
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class _State:
    """Distribution of information times estimate, over the paths that have not crossed yet."""

    position: Reals
    weight: Reals
    """Probability at each position."""
    spread: float

    @classmethod
    def first(cls, bound: float) -> _State:
        position, step = _nodes(-REACH, bound)
        return cls(position, step * _density(position), 1.0)

    def bound(self, news: float, due: float) -> float:
        """Return the position that is crossed next with probability `due`."""
        from scipy.special import ndtr

        reach = REACH * np.sqrt(self.spread + news)
        low, high = -reach, reach
        for _ in range(60):
            middle = (low + high) / 2
            crossing = self.weight @ ndtr((self.position - middle) / np.sqrt(news))
            low, high = (middle, high) if crossing > due else (low, middle)
        return float(high)

    def onward(self, news: float, bound: float) -> _State:
        position, step = _nodes(-REACH * float(np.sqrt(self.spread + news)), bound)
        width = np.sqrt(news)
        kernel = _density((position[:, None] - self.position[None, :]) / width) / width
        return replace(
            self, position=position, weight=step * (kernel @ self.weight), spread=self.spread + news
        )


def _nodes(low: float, high: float) -> tuple[Reals, Reals]:
    """Return Gauss-Legendre positions and weights between two bounds."""
    position, weight = _legendre()
    half = (high - low) / 2
    return low + half * (position + 1), half * weight


@lru_cache(maxsize=1)
def _legendre() -> tuple[Reals, Reals]:
    position, weight = np.polynomial.legendre.leggauss(NODES)
    return np.asarray(position), np.asarray(weight)


def _density(x: Reals) -> Reals:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
