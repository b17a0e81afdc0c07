"""Estimators that are means of per-item scores s = c[10] - h[E], and the six sums they need.

| estimator | c | h | E |
|---|---|---|---|
| raw | 1 | 0 | - |
| upper | k/(k-1) | 0 | - |
| latent | k/(k-1) | c^2/k | wrong before and after |
| matched | k/(k-1) | c/(k-2) | wrong both times with different wrong options |
| losses minus gains | 1 | 1 | wrong before, right after |

Items of different k add up. Backward transfer is the same with the two sides exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class ScoreSums:
    """Sums over items of a score s = c[10] - h[E]; groups add up.

    Attributes:
        n: items.
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
        """The estimate; nan where there are no items."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.s / self.n)

    def __add__(self, other: Self) -> ScoreSums:
        return ScoreSums(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )


def score_sums(
    n: ArrayLike, lost: ArrayLike, e: ArrayLike, *, c: ArrayLike, h: ArrayLike
) -> ScoreSums:
    """Sums for items that share c and h: n items, of which `lost` are 10 and `e` are in E."""
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
    """Raw forgetting, n10 / n: what is seen, lucky guesses and churn included."""
    return score_sums(n, n10, 0.0, c=1.0, h=0.0)


def upper_sums(n: ArrayLike, n10: ArrayLike, k: ArrayLike) -> ScoreSums:
    """Upper end of the bracket, c n10 / n: the share lost if every guess were repeated.

    It misleads upwards whenever guesses are redrawn, and is no bound if a lost item is still right
    more often than by chance.
    """
    return score_sums(n, n10, 0.0, c=knowledge_scale(k), h=0.0)


def latent_sums(n: ArrayLike, n10: ArrayLike, n00: ArrayLike, k: ArrayLike) -> ScoreSums:
    """Lower end of the bracket, c n10/n - (c^2/k) n00/n: the share lost if guesses were redrawn.

    Exactly unbiased under uniform, independent guesses; far too low for repeated guesses (greedy
    decoding), too high where letter habits move between the models. Never a headline on its own.
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
    """The share lost, with luck read off the items answered wrongly twice in different ways.

    Where gold is exchangeable with the other options of an unknown item, a lucky guess that turns
    into a wrong one is as likely as one wrong option turning into a given other one:
    KN = c (P10 - P00different / (k - 2)), for k >= 3, whatever the persistence or the habit of
    guesses. An answer that vanishes: add [right -> none] - [valid wrong -> none] / (k - 1).

    It reads low when a wrong option is specially attractive, high when options can be eliminated,
    wrong when gold letters are unbalanced.

    Args:
        n: items.
        n10: right before, a valid wrong option after.
        different: wrong both times with different options.
        k: options, at least 3; `inf` gives the raw rate.
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
    """The factor k / (k - 1) from visible changes to changes of knowledge; 1 if open-ended."""
    k = np.asarray(k, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(np.isinf(k), 1.0, k / (k - 1)))


def repeated_guesses(same: ArrayLike, both_wrong: ArrayLike, k: ArrayLike) -> Reals:
    """The share of guesses that are repeated, from items wrong both times with the same option.

    rho = ((k-1) S - 1) / ((k-1) - S) with S the share of them; 0 when redrawn, 1 when all repeated,
    negative when habits move.
    """
    k = np.asarray(k, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.asarray(same, float) / np.asarray(both_wrong, float)
        return np.asarray(((k - 1) * share - 1) / ((k - 1) - share))
