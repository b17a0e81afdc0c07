"""Group-sequential tests: looks at repeats with early stopping.

`excess` after r repeats is the mean of what it is over all choices of fewer of them (a U-statistic,
Hoeffding 1948), so that Cov(e_r, e_s) = Var(e_s) for r < s. Looks at it are correlated as if
independent pieces of information were added up, and the theory of group-sequential tests applies:
how much of the error rate may be used up by which look is said in advance (Lan and DeMets 1983),
and over several groups the rate is shared out in the manner of Holm (Maurer and Bretz 2013).
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
"""A test decided, more repeats would hardly decide, or no more may be spent."""

FIRST_LOOK, GROWTH = 2, 1.5
"""Repeats of the first look, and by how much the number grows from look to look."""
NODES, REACH = 96, 8.0
MIN_INFORMATION = 0.005
"""A look that adds less to the information than this share of it is not counted as one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a group of items shows.

    Attributes:
        repeats: answers per item of each model.
        items: with two or more answers of each model.
        value: `excess`, the share lost beyond the noise floor.
        p: one-sided, that nothing was lost, as if this were the only look.
        variance: of `value` if nothing changed.
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
    """When to stop.

    Attributes:
        most: repeats at most.
        level: error of the limits at all looks together. With half of it, any group at all is
            called lost though nothing was lost in it; with the other half, a group is called free
            of material loss though it lost the margin or more. Both rest on normal approximations.
        margin: loss, as a share of all items, that is acceptable.
        hopeless: a group is given up if the rest of the repeats would decide it with a probability
            below this.
        exponent: how late the error rate is used up: by a share t of the repeats, t ** exponent of
            it may be (Kim and DeMets 1987).
    """

    most: int = 8
    level: float = 0.05
    margin: float = 0.02
    hopeless: float = 0.2
    exponent: float = 2.0

    @property
    def schedule(self) -> tuple[int, ...]:
        """Repeats at each look."""
        looks = [min(FIRST_LOOK, self.most)]
        while looks[-1] < self.most:
            looks.append(min(max(looks[-1] + 1, int(looks[-1] * GROWTH)), self.most))
        return tuple(looks)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found about a group, and when.

    Attributes:
        verdict: what the limits allow: lost if and only if the lower one is above 0.
        why: what ended it.
        look: the last one.
        needed: the p-value that this look had to reach, all looks and groups considered.
        low: limit of the loss that holds at all looks together.
        high: likewise.
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
    """Sum up the answers so far; None if fewer than two items have two answers of each model.

    Args:
        right_before: right answers to each kind of item.
        answers_before: all answers to it.
        right_after: likewise.
        answers_after: likewise.
        weight: items of each kind; one without it.
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
    """Variance and third moment of each item's score, if nothing changed."""
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
    """All decisions after the latest looks: those made before, and new ones.

    A group that is called lost leaves its share of the error rate to the others, as in Holm's
    procedure; one that is given up does not. That a group is free of material loss is claimed of
    each by itself, so nothing is shared out there.

    Args:
        histories: all looks at each group, one or more.
        decided: what was decided at earlier looks; it stays.
        rule: when to stop.
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
    """The same decisions, and no verdict on the rest: nothing more may be spent on it."""
    level = _level_of_loss(histories, decided, rule)
    return {
        name: decided.get(name) or _decision("used_up", looks, level, rule)
        for name, looks in histories.items()
    }


def _level_of_loss(
    histories: Mapping[Group, Sequence[Look]], decided: Mapping[Group, Decision], rule: StoppingRule
) -> float:
    """One-sided error that is left to each group that is not called lost, by Holm."""
    lost = sum(decision.verdict in LOSSES for decision in decided.values())
    return rule.level / 2 / max(len(histories) - lost, 1)


def decision_probability(
    histories: Mapping[Group, Sequence[Look]], open_: Iterable[Group], rule: StoppingRule
) -> Reals:
    """How likely each open group is decided by the last repeat."""
    level = _level_of_loss(histories, {}, rule)
    return np.array([_hope(histories[name], level, rule) for name in open_])


def _decision(why: Why, looks: Sequence[Look], level: float, rule: StoppingRule) -> Decision:
    """What the latest look says, with limits that hold at all looks together.

    Repeated confidence limits; the lower one is not above 0 where the test does not reject.
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
    """What limits of a loss allow to conclude against a margin."""
    if high < margin:
        return "small_loss" if low > 0 else "no_material_loss"
    return "lost" if low > 0 else "cannot_tell"


def _quantile(size: float) -> float:
    """Standard errors of a limit; a look that may not use up anything decides nothing."""
    from scipy.special import ndtri  # heavy, only here

    return -float(ndtri(size)) if size > 0 else float("inf")


def _needed(looks: Sequence[Look], level: float, rule: StoppingRule) -> float:
    """The p-value that the latest look must reach."""
    variances = [look.variance for look in looks]
    fractions = [look.repeats / rule.most for look in looks]
    return float(crossing_levels(variances, fractions, level, rule.exponent)[-1])


def _hope(looks: Sequence[Look], level: float, rule: StoppingRule) -> float:
    """Chance that the last repeat shows a loss, or that there is none, from what is seen so far.

    By the covariance of looks the last value scatters around this one with the difference of
    their variances, if nothing else is known about it beforehand.
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
    """Standard error of the upper limit.

    Were as much lost as the margin, the few lost items would make the value scatter by more than a
    sample that happens to hold none of them shows.
    """
    return max(error, float(np.sqrt(variance + rule.margin / look.items)))


def projected(look: Look, repeats: int) -> float:
    """Variance of `value` with so many repeats, if nothing changed: A / r + B / r^2.

    The first part is that of the change of accuracy, a quarter of 2 p (1 - p) / r; the second that
    of the squared change.
    """
    first = look.churn / 2 / look.items
    second = max(look.variance - first / look.repeats, 0.0) * look.repeats**2
    return min(first / repeats + second / repeats**2, look.variance)


def crossing_levels(
    variances: Sequence[float], fractions: Sequence[float], level: float, exponent: float = 2.0
) -> Reals:
    """P-values that looks must reach so that any look does so with probability `level` at most.

    Args:
        variances: of the estimate at each look, falling.
        fractions: share of the repeats that each look has seen.
        level: chance that any of them errs.
        exponent: how late it is used up.

    Returns:
        One-sided p-values, as of a single look; 0 for a look that adds next to nothing, which is
        not counted.
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
    """Where the sum of information times estimate is, of those that have not crossed yet."""

    position: Reals
    weight: Reals
    """Probability at each position."""
    spread: float

    @classmethod
    def first(cls, bound: float) -> _State:
        position, step = _nodes(-REACH, bound)
        return cls(position, step * _density(position), 1.0)

    def bound(self, news: float, due: float) -> float:
        """The position that is crossed next with probability `due`."""
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
    """Gauss-Legendre positions and weights between two limits."""
    position, weight = _legendre()
    half = (high - low) / 2
    return low + half * (position + 1), half * weight


@lru_cache(maxsize=1)
def _legendre() -> tuple[Reals, Reals]:
    position, weight = np.polynomial.legendre.leggauss(NODES)
    return np.asarray(position), np.asarray(weight)


def _density(x: Reals) -> Reals:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
