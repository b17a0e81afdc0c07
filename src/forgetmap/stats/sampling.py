"""Samples of items: the number needed, and the loss of precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.intervals import LEVEL
from forgetmap.stats.limits import plain_drop_p

POWER = 0.8
"""Probability with which a probe of the planned size shows a loss."""
ERROR = 0.0125
"""One-sided error of the limit of the loss at the first check."""
MAX_ITEMS = 1_000_000
REACH = 6.0
"""Standard deviations beyond which a number of gained items is left out."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SampledShare:
    """A share among many items, estimated from a sample of them.

    Attributes:
        value: the estimate.
        low: bound of the share among all of these items; the only uncertainty is the sampling.
        high: upper bound, likewise.
        asked: number of sampled items.
        of: number of items that they represent.
    """

    value: float
    low: float
    high: float
    asked: int
    of: int


def sampled_share(
    wrong: ArrayLike, answers: ArrayLike, known: ArrayLike, *, level: float = LEVEL
) -> SampledShare:
    """Estimate the share of wrong answers among all items of several strata, from a sample of each.

    The bounds are those of a simple sample of n / deff items, with deff = n sum W^2 / n_h: exact,
    from the hypergeometric distribution. For strata sampled in proportion to their size they are
    slightly too wide.

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
        return SampledShare(*(float("nan"),) * 3, asked=0, of=of)
    weight = known / of
    value = float(weight @ (wrong / answers))
    worth = of if n == of else max(int(1 / (weight**2 / answers).sum() + _ROUNDING), 1)
    fewest = int(np.floor(value * worth + _ROUNDING))
    most = int(np.ceil(value * worth - _ROUNDING))
    low, high = _finite_limits(fewest, most, worth, of, (1 - level) / 2)
    return SampledShare(value, low, high, asked=n, of=of)


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


def items_to_detect(loss: float, noise: float = 0.0, *, error: float = ERROR) -> int:
    """Return the fewest items with which a drop shows a loss, if both models answer once.

    Args:
        loss: lost share of the items.
        noise: share of the answers that flip one way between two runs of the same model.
        error: one-sided error of the limit of the loss.

    Returns:
        The number that shows the loss with 80 % probability; `MAX_ITEMS` if none does.
    """
    high = 1
    while drop_power(high, loss, noise, error=error) < POWER and high < MAX_ITEMS:
        high *= 2
    return _first(high // 2, high, lambda n: drop_power(n, loss, noise, error=error) >= POWER)


def detectable_loss(n: int, noise: float = 0.0, *, error: float = ERROR) -> float | None:
    """Return the smallest loss that n items show; None if they would not even show a total loss."""
    if drop_power(n, 1.0 - noise, noise, error=error) < POWER:
        return None
    low, high = 0.0, 1.0 - noise
    for _ in range(40):
        middle = (low + high) / 2
        is_enough = drop_power(n, middle, noise, error=error) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def drop_power(n: int, loss: float, noise: float, *, error: float = ERROR) -> float:
    """Return the probability that the drop among n items shows the loss."""
    from scipy.special import bdtr, bdtrc

    if not n:
        return 0.0
    spread = math.sqrt(n * noise * (1 - noise))
    gained = np.arange(min(math.ceil(n * noise + REACH * spread), n) + 1)
    chance = np.diff(bdtr(gained, n, noise), prepend=0.0) if noise else np.ones(1)
    needed = np.array([_flips_needed(int(count), error) for count in gained])
    # bdtrc(k, n, p) is P(X > k).
    return float(chance @ np.where(needed <= n, bdtrc(needed - 1, n, min(loss + noise, 1.0)), 0.0))


@lru_cache(maxsize=4096)
def _flips_needed(gained: int, error: float) -> int:
    """Return the fewest items lost that prove a loss beside so many gained."""
    return _first(
        gained + 1, 2 * gained + 1000, lambda lost: float(plain_drop_p(lost, gained)) <= error
    )


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
