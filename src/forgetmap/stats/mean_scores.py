"""Estimators that are means of per-item scores s = c[10] - h[E], and the six sums they need.

| estimator | c | h | E |
|---|---|---|---|
| raw | 1 | 0 | - |
| upper | k/(k-1) | 0 | - |
| latent | k/(k-1) | c^2/k | wrong before and after |
| matched | k/(k-1) | c/(k-2) | wrong both times with different wrong options |
| losses minus gains | 1 | 1 | wrong before, right after |

Items of different k can be added. Backward transfer is the same with the two sides exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class ScoreSums:
    """Sums over items of a score s = c[10] - h[E]. Groups can be added.

    Attributes:
        n: number of items.
        s: sum of s.
        s2: sum of s^2.
        c: sum of c over all items.
        a: sum of h(c+h) over the items in E.
        b: sum of h(c+h) over all items.
    """

    n: Reals
    s: Reals
    s2: Reals
    c: Reals
    a: Reals
    b: Reals

    @property
    def mean(self) -> Reals:
        """The estimate; nan without items."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.s / self.n)

    def __add__(self, other: Self) -> ScoreSums:
        return ScoreSums(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )


def score_sums(
    n: ArrayLike, lost: ArrayLike, e: ArrayLike, *, c: ArrayLike, h: ArrayLike
) -> ScoreSums:
    """Return the sums of n items that share c and h, `lost` of them in 10 and `e` in E."""
    n, lost, e, c, h = (np.asarray(x, float) for x in (n, lost, e, c, h))
    return ScoreSums(
        n=n,
        s=c * lost - h * e,
        s2=c**2 * lost + h**2 * e,
        c=c * n,
        a=h * (c + h) * e,
        b=h * (c + h) * n,
    )


def raw_sums(n: ArrayLike, n10: ArrayLike) -> ScoreSums:
    """Return the sums of raw forgetting, n10 / n, with lucky guesses and noise included."""
    return score_sums(n, n10, 0.0, c=1.0, h=0.0)


def upper_sums(n: ArrayLike, n10: ArrayLike, k: ArrayLike) -> ScoreSums:
    """Return the sums of the upper end of the range, c n10 / n: lost if every guess is repeated.

    It is biased upwards whenever guesses are redrawn, and is no bound if a lost item is still right
    more often than by chance.
    """
    return score_sums(n, n10, 0.0, c=knowledge_scale(k), h=0.0)


def latent_sums(n: ArrayLike, n10: ArrayLike, n00: ArrayLike, k: ArrayLike) -> ScoreSums:
    """Return the sums of the lower end, c n10/n - (c^2/k) n00/n: lost if guesses are redrawn.

    Exactly unbiased under uniform, independent guesses; far too low for repeated guesses (greedy
    decoding), too high if letter habits differ between the models. Never a headline on its own.
    """
    c = knowledge_scale(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(np.isinf(np.asarray(k, float)), 0.0, c**2 / np.asarray(k, float))
    return score_sums(n, n10, n00, c=c, h=h)


def matched_sums(
    n: ArrayLike,
    n10: ArrayLike,
    different: ArrayLike,
    k: ArrayLike,
    *,
    to_none: ArrayLike = 0.0,
    wrong_to_none: ArrayLike = 0.0,
) -> ScoreSums:
    """Return the sums of the lost share, with luck estimated from pairs of different wrong answers.

    If gold is exchangeable with the other options of an unknown item, a lucky guess that becomes
    wrong is as likely as one wrong option that becomes another given one:
    KN = c (P10 - P00different / (k - 2)), for k >= 3, whatever the persistence or the habit of
    guesses. For answers that disappear, add [right -> none] - [valid wrong -> none] / (k - 1).
    It is too low if a wrong option is especially attractive, too high if options can be eliminated,
    and wrong if gold letters are unbalanced.

    Args:
        n: number of items.
        n10: right before, a valid wrong option after.
        different: wrong both times with different options.
        k: number of options, at least 3; `inf` gives the raw rate.
        to_none: right before, no answer after.
        wrong_to_none: a valid wrong option before, no answer after.
    """
    k = np.asarray(k, float)
    c = knowledge_scale(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(np.isinf(k), 0.0, c / (k - 2))
        h_none = np.where(np.isinf(k), 0.0, 1 / (k - 1))
    chosen = score_sums(n, n10, different, c=c, h=h)
    vanished = score_sums(0.0, to_none, wrong_to_none, c=1.0, h=h_none)
    return chosen + vanished


def knowledge_scale(k: ArrayLike) -> Reals:
    """Return the factor k / (k - 1) from visible to knowledge changes; 1 if open-ended."""
    k = np.asarray(k, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(np.isinf(k), 1.0, k / (k - 1)))


def repeated_guesses(same: ArrayLike, both_wrong: ArrayLike, k: ArrayLike) -> Reals:
    """Return the share of repeated guesses, from items wrong both times with the same option.

    rho = ((k-1) S - 1) / ((k-1) - S) with S the share of them; 0 if guesses are redrawn, 1 if all
    are repeated, negative if habits change.
    """
    k = np.asarray(k, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.asarray(same, float) / np.asarray(both_wrong, float)
        return np.asarray(((k - 1) * share - 1) / ((k - 1) - share))
