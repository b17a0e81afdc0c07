"""With repeats on both sides: what changed beyond a model's disagreement with itself.

m of r answers to an item are right. Arrays run over items; sums over items come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class Excess:
    """Item scores; their means are F_excess, BT_excess and the mean squared change."""

    lost: Reals
    gained: Reals


def excess_scores(
    right_before: ArrayLike,
    repeats_before: ArrayLike,
    right_after: ArrayLike,
    repeats_after: ArrayLike,
) -> Excess:
    """Per item: squared change of p, freed of sampling noise, plus or minus the change, halved.

    M2 = (p_b - p_a)^2 - p_b(1-p_b)/(r_b-1) - p_a(1-p_a)/(r_a-1) is unbiased for the squared
    change; F = (M2 + p_b - p_a)/2, BT = (M2 - p_b + p_a)/2. Zero in expectation when nothing
    changed, x when a share x goes from always right to never; a lower bound of the lost probability
    otherwise. It removes sampling noise, not lucky guesses that are frozen. nan where a side has
    one answer only.
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


def self_churn(right: ArrayLike, repeats: ArrayLike) -> Reals:
    """The noise floor of an item: m (r - m) / (r (r - 1)), how often two runs flip one way."""
    m, r = np.asarray(right, float), np.asarray(repeats, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(r > 1, m * (r - m) / (r * (r - 1)), np.nan))


def lost_bounds(change: float, squared: float) -> tuple[float, float]:
    """Bounds of the lost probability L = E[(p_b - p_a)+] from mean change and mean squared change.

    max(0, change, (squared + change)/2) <= L <= (change + sqrt(squared))/2.
    """
    low = max(0.0, change, (squared + change) / 2)
    return low, max(low, (change + max(squared, 0.0) ** 0.5) / 2)


def permutation_variance(total: ArrayLike, repeats_before: int, repeats_after: int) -> Reals:
    """Variance of the item score of `excess` given how many of all its answers are right.

    If nothing changed, every way of dealing `total` right answers to the two sides is equally
    likely: hypergeometric. The score then has mean 0 and this variance.
    """
    from scipy.stats import hypergeom  # noqa: PLC0415  # heavy, only here

    total = np.asarray(total)
    table = np.zeros(repeats_before + repeats_after + 1)
    for right in range(table.size):
        before = np.arange(max(0, right - repeats_after), min(right, repeats_before) + 1)
        weight = hypergeom.pmf(before, table.size - 1, right, repeats_before)
        score = excess_scores(before, repeats_before, right - before, repeats_after).lost
        table[right] = (weight * score**2).sum() - (weight * score).sum() ** 2
    return np.asarray(table[total])


def consensus(transitions: ArrayLike, size: int) -> tuple[dict[str, float], float]:
    """Mean counts of the transitions of items on which `size` seeds agree, over all subsets.

    As in the published code, for comparison: it keeps what is stable, so it says nothing about how
    much was lost of what is not.

    Args:
        transitions: items x seeds, as the strings 00, 01, 10 and 11.
        size: seeds per subset.

    Returns:
        Mean count of each transition, and the mean share of items on which the seeds disagree.
    """
    from itertools import combinations  # noqa: PLC0415

    table = np.asarray(transitions)
    counts = dict.fromkeys(("00", "01", "10", "11"), 0.0)
    dropped = 0.0
    subsets = list(combinations(range(table.shape[1]), size))
    for subset in subsets:
        chosen = table[:, list(subset)]
        agreed = (chosen == chosen[:, :1]).all(axis=1)
        dropped += float(1 - agreed.mean())
        for name in counts:
            counts[name] += int((chosen[agreed, 0] == name).sum())
    return {name: count / len(subsets) for name, count in counts.items()}, dropped / len(subsets)
