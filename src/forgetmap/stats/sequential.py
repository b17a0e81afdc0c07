"""Looking at repeats as they come in, and stopping as soon as enough is known.

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

Verdict = Literal["lost", "none_lost", "cannot_tell"]
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
        value: `excess`, the share lost beyond self-churn.
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
        level: chance aimed at that any group at all is called lost though nothing was lost in it;
            the same is aimed at for any that is called free of loss though it is not. Both rest on
            normal approximations.
        negligible: loss, as a share of what was right before, that counts as none.
        hopeless: a group is given up if the rest of the repeats would decide it with a probability
            below this.
        exponent: how late the error rate is used up: by a share t of the repeats, t ** exponent of
            it may be (Kim and DeMets 1987).
    """

    most: int = 8
    level: float = 0.05
    negligible: float = 0.01
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
        verdict: what may be concluded.
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
    procedure; one that is given up does not.

    Args:
        histories: all looks at each group, one or more.
        decided: what was decided at earlier looks; it stays.
        rule: when to stop.
    """
    decisions = dict(decided)
    share = rule.level / max(len(histories), 1)
    while True:
        lost = sum(decision.verdict == "lost" for decision in decisions.values())
        level = rule.level / max(len(histories) - lost, 1)
        new = {
            name: _decision("lost", "tested", looks, level, rule)
            for name, looks in histories.items()
            if name not in decisions and looks[-1].p <= _needed(looks, level, rule)
        }
        decisions |= new
        if not new:
            break
    for name, looks in histories.items():
        if name not in decisions:
            decisions |= _without_loss(name, looks, level, share, rule)
    return {name: decisions[name] for name in histories if name in decisions}


def _without_loss(
    name: Group, looks: Sequence[Look], level: float, share: float, rule: StoppingRule
) -> dict[Group, Decision]:
    """A group that is free of loss, or that is given up; nothing if it goes on."""
    last = looks[-1]
    if last.value < _bar_of_none(
        last, last.error, last.variance, _needed(looks, share, rule), rule
    ):
        return {name: _decision("none_lost", "tested", looks, share, rule)}
    if last.repeats >= rule.most:
        return {name: _decision("cannot_tell", "used_up", looks, level, rule)}
    if _hope(looks, level, share, rule) < rule.hopeless:
        return {name: _decision("cannot_tell", "hopeless", looks, level, rule)}
    return {}


def give_up(
    histories: Mapping[Group, Sequence[Look]], decided: Mapping[Group, Decision], rule: StoppingRule
) -> dict[Group, Decision]:
    """The same decisions, and no verdict on the rest: nothing more may be spent on it."""
    lost = sum(decision.verdict == "lost" for decision in decided.values())
    level = rule.level / max(len(histories) - lost, 1)
    return {
        name: decided.get(name) or _decision("cannot_tell", "used_up", looks, level, rule)
        for name, looks in histories.items()
    }


def decision_probability(
    histories: Mapping[Group, Sequence[Look]], open_: Iterable[Group], rule: StoppingRule
) -> Reals:
    """How likely each open group is decided by the last repeat."""
    share = rule.level / max(len(histories), 1)
    return np.array([_hope(histories[name], share, share, rule) for name in open_])


def _decision(
    verdict: Verdict, why: Why, looks: Sequence[Look], level: float, rule: StoppingRule
) -> Decision:
    """With limits that hold at all looks together: repeated confidence intervals."""
    from scipy.special import ndtri  # heavy, only here

    last, needed = looks[-1], _needed(looks, level, rule)
    # A look that may not use up anything decides nothing, whatever it shows.
    half = -float(ndtri(needed)) * last.error if needed > 0 else float("inf")
    low, high = max(last.value - half, -1.0), min(last.value + half, 1.0)
    return Decision(verdict, why, last, needed, low, high)


def _needed(looks: Sequence[Look], level: float, rule: StoppingRule) -> float:
    """The p-value that the latest look must reach."""
    variances = [look.variance for look in looks]
    fractions = [look.repeats / rule.most for look in looks]
    return float(crossing_levels(variances, fractions, level, rule.exponent)[-1])


def _hope(looks: Sequence[Look], level: float, share: float, rule: StoppingRule) -> float:
    """Chance that the last repeat shows a loss, or that there is none, from what is seen so far.

    By the covariance of looks the last value scatters around this one with the difference of
    their variances, if nothing else is known about it beforehand.
    """
    from scipy.special import ndtr, ndtri

    last = looks[-1]
    end = projected(last, rule.most)
    scatter = np.sqrt(max(last.variance - end, 0.0))
    if not scatter:
        return 0.0
    fractions = [look.repeats / rule.most for look in looks]
    variances = [*(look.variance for look in looks), end]
    levels = [
        crossing_levels(variances, [*fractions, 1.0], alpha, rule.exponent)[-1]
        for alpha in (level, share)
    ]
    lost_bar = -ndtri(levels[0]) * np.sqrt(end)
    error = np.sqrt(max(last.error**2 - scatter**2, 1.0 / last.items**2))
    none_bar = _bar_of_none(last, error, end, levels[1], rule)
    lost = ndtr((last.value - lost_bar) / scatter)
    return float(lost + ndtr((none_bar - last.value) / scatter))


def _bar_of_none(
    look: Look, error: float, variance: float, needed: float, rule: StoppingRule
) -> float:
    """The value below which a group is free of loss.

    Were as much lost as still counts as none, the few lost items would make the value scatter by
    more than a sample that happens to hold none of them shows.
    """
    from scipy.special import ndtri

    if needed <= 0:
        return -float("inf")
    margin = rule.negligible * look.right
    return margin + float(ndtri(needed)) * max(
        error, float(np.sqrt(variance + margin / look.items))
    )


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
