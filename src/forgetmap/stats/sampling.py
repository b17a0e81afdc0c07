"""Samples of items: the number needed, and the loss of precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.intervals import LEVEL
from forgetmap.stats.power import POWER

SIZE = 0.05
"""One-sided size of the alarm of a probe."""
MAX_ITEMS = 1_000_000
LARGE_SAMPLE = 1_000
"""Number of items above which the steps of the power are too small to matter."""
SELF_LOSS_LEVEL = 0.9
"""One-sided level. With it an unchanged model raises a false alarm in at most .02 of all cases,
also in the smallest groups and among 50 of them; with the plain estimate in up to .15."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SampledShare:
    """A share among many items, estimated from a sample of them.

    Attributes:
        value: the estimate.
        low: bound of the share among all of these items; the only uncertainty is the sampling.
        high: upper bound, likewise.
        wide_low: bound for items like these, of which all are only a sample.
        wide_high: upper bound, likewise.
        asked: number of sampled items.
        of: number of items that they represent.
    """

    value: float
    low: float
    high: float
    wide_low: float
    wide_high: float
    asked: int
    of: int


def sampled_share(
    wrong: ArrayLike, answers: ArrayLike, known: ArrayLike, *, level: float = LEVEL
) -> SampledShare:
    """Estimate the share of wrong answers among all items of several strata, from a sample of each.

    The bounds are those of a simple sample of n / deff items, with deff = n sum W^2 / n_h: exact,
    from the hypergeometric distribution for all of these items and from the binomial one for items
    like them. For strata sampled in proportion to their size they are slightly too wide.

    Args:
        wrong: wrong answers in each stratum; fractions if items are repeated.
        answers: items sampled and answered; strata without any are left out.
        known: number of items that the stratum represents.
        level: confidence level of the bounds.
    """
    wrong, answers, known = (np.asarray(x, float) for x in (wrong, answers, known))
    some = answers > 0
    wrong, answers, known = wrong[some], answers[some], known[some]
    of, n = int(known.sum()), int(answers.sum())
    if not n:
        return SampledShare(*(float("nan"),) * 5, asked=0, of=of)
    weight = known / of
    value = float(weight @ (wrong / answers))
    worth = of if n == of else max(int(1 / (weight**2 / answers).sum() + _ROUNDING), 1)
    fewest = int(np.floor(value * worth + _ROUNDING))
    most = int(np.ceil(value * worth - _ROUNDING))
    tail = (1 - level) / 2
    low, high = _finite_limits(fewest, most, worth, of, tail)
    wide_low, wide_high = _binomial_limits(fewest, most, worth, tail)
    return SampledShare(value, low, high, wide_low, wide_high, asked=n, of=of)


def _finite_limits(fewest: int, most: int, n: int, of: int, tail: float) -> tuple[float, float]:
    """Return the range of wrong items under which the observed count is not too rare."""
    low = _first(fewest, of, lambda wrong: _at_least(fewest, n, of, wrong) > tail)
    high = _first(low, of + 1, lambda wrong: _at_most(most, n, of, wrong) <= tail) - 1
    return low / of, min(max(high, low), of) / of


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first number for which the condition holds, by bisection."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _at_most(count: int, n: int, of: int, wrong: int) -> float:
    """Return P(X <= count), X the number of wrong items among n drawn; hypergeometric."""
    from scipy.special import gammaln  # heavy, only here

    x = np.arange(max(0, n - (of - wrong)), min(count, wrong, n) + 1)
    if not x.size:
        return 0.0

    def ways(
        total: ArrayLike, chosen: ArrayLike
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        total, chosen = np.asarray(total, float), np.asarray(chosen, float)
        return np.asarray(gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1))

    logs = ways(wrong, x) + ways(of - wrong, n - x) - ways(of, n)
    return float(min(np.exp(logs).sum(), 1.0))


def _at_least(count: int, n: int, of: int, wrong: int) -> float:
    return 1.0 - _at_most(count - 1, n, of, wrong) if count > 0 else 1.0


def _binomial_limits(fewest: int, most: int, n: int, tail: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson (1934)."""
    from scipy.special import betaincinv

    low = float(betaincinv(fewest, n - fewest + 1, tail)) if fewest else 0.0
    high = float(betaincinv(most + 1, n - most, 1 - tail)) if most < n else 1.0
    return low, high


def alarm_p(wrong: float, n: int, floor: float) -> float:
    """Return the probability of at least this many wrong answers at a wrong share `floor`."""
    from scipy.special import betainc

    least = int(np.ceil(wrong - _ROUNDING))
    if least <= 0:
        return 1.0
    return float(betainc(least, n - least + 1, floor)) if least <= n else 0.0


def items_to_detect(
    loss: float, *, floor: float = 0.0, least: float | None = None, size: float = SIZE
) -> int:
    """Return the fewest items that show a loss: more wrong answers than of an unchanged model.

    Args:
        loss: lost share of the items.
        floor: largest wrong share of an unchanged model.
        least: smallest wrong share of an unchanged model; `floor` by default.
        size: size of the test.

    Returns:
        The number that detects the loss with 80 % power; `MAX_ITEMS` if none does.
    """
    changed = _changed(loss, floor if least is None else least)
    if changed <= floor:
        return MAX_ITEMS
    low, high = 1, 1
    while _power(high, changed, floor, size) < POWER and high < MAX_ITEMS:
        low, high = high, 2 * high
    if high > LARGE_SAMPLE:
        return _first(low, high, lambda n: _power(n, changed, floor, size) >= POWER)
    # The power increases in steps and decreases between them: the first sufficient number counts.
    return next((n for n in range(low, high) if _power(n, changed, floor, size) >= POWER), high)


def detectable_loss(
    n: int, *, floor: float = 0.0, least: float | None = None, size: float = SIZE
) -> float | None:
    """Return the smallest loss that n items show; None if they would not even show a total loss."""
    if not n or _power(n, 1.0, floor, size) < POWER:
        return None
    base = floor if least is None else least
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        is_enough = _power(n, _changed(middle, base), floor, size) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _changed(loss: float, unchanged: float) -> float:
    """Return the share of wrong answers of a model with this loss."""
    return unchanged + loss * (1 - unchanged)


def _power(n: int, changed: float, floor: float, size: float) -> float:
    first = _first(1, n + 1, lambda wrong: alarm_p(wrong, n, floor) <= size)
    return alarm_p(first, n, changed)


def self_loss(
    right: ArrayLike, answers: ArrayLike, *, level: float = SELF_LOSS_LEVEL
) -> tuple[float, float]:
    """Bound the share that an unchanged model gets wrong of items it had right r times of r.

    With m_k = E[p^k] and d_k = E[p^k (1 - p)] it is d_r / m_r. Upper bound: d_{r-1} / m_{r-1}, as
    items right r - 1 times are slightly less certain, by its exact upper bound: of the items with
    at most one wrong answer, those with one are binomial with odds r d_{r-1} / m_r. Lower bound, an
    estimate: d_{r-1}^2 / (d_{r-2} m_r), as moments are log-convex.

    Args:
        right: right answers to each item.
        answers: all answers to each item, two or more; only items with the maximum number count.
        level: one-sided level of the upper bound.
    """
    from scipy.special import betaincinv

    right, answers = np.asarray(right, float), np.asarray(answers, float)
    if not right.size:
        return 0.0, 0.0
    r = float(answers.max())
    failed = r - right[answers == r]
    always, once, twice = (float((failed == count).sum()) for count in (0, 1, 2))
    if not always:
        return 0.0, 1.0
    share = float(betaincinv(once + 1, always, level))
    high = share / (share + r * (1 - share))
    less = (once * (r - 1) + 2 * twice) / (r * (r - 1))
    low = (once / r) ** 2 / (less * always) if once else 0.0
    return min(low, high), high


def allocate(sizes: Sequence[int], n: int) -> list[int]:
    """Distribute n items over strata by their sizes, at least one each if possible."""
    total = sum(sizes)
    if n >= total:
        return list(sizes)
    least = 1 if n >= len(sizes) else 0
    exact = [n * size / total for size in sizes]
    counts = [min(size, max(int(part), least)) for size, part in zip(sizes, exact, strict=True)]
    strata = range(len(sizes))
    while sum(counts) != n:
        step = 1 if sum(counts) < n else -1
        free = [x for x in strata if (counts[x] < sizes[x] if step > 0 else counts[x] > least)]
        best = max(free, key=lambda x: (step * (exact[x] - counts[x]), -x))
        counts[best] += step
    return counts


def fair_cap(amounts: Sequence[int], most: int) -> int:
    """Return the largest cap under which these amounts sum up to at most `most`."""
    remaining, ordered = most, sorted(amounts)
    for index, amount in enumerate(ordered):
        count = len(ordered) - index
        if amount * count > remaining:
            return remaining // count
        remaining -= amount
    return max(ordered, default=most)
