"""Sensitivity to the assumption about lucky guesses: the amount of luck that explains a loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from forgetmap.stats.intervals import UNSURE
from forgetmap.stats.tests import mixed_luck_p

MAX_RATIO = 1e6
"""Largest luck ratio in the search."""


@dataclass(frozen=True, slots=True)
class LuckPart:
    """Counts of the items with one k, for a score s = c[10] - c u [E].

    The answering part of a knowledge estimate adds its flips to the same items: pass n = 0 and c =
    1 beside the part that has n. On its own it has n and c = 1.

    Attributes:
        k: number of options; `inf` if open-ended.
        n: number of items.
        n10: right before, wrong after.
        n_e: items in E, from which luck is estimated: wrong both times (latent), with different
            options (matched), or a readable wrong answer that became none (answering).
        u: lucky flips per item in E: 1/(k-1) (latent, answering), 1/(k-2) (matched), 0 (upper).
        c: factor of the score; by default k/(k-1), or 1 if open-ended; 1 for the answering part.
    """

    k: float
    n: float
    n10: float
    n_e: float
    u: float
    c: float | None = None

    @property
    def scale(self) -> float:
        """The factor c of the score."""
        if self.c is not None:
            return self.c
        return 1.0 if math.isinf(self.k) else self.k / (self.k - 1)


def luck_needed(parts: Sequence[LuckPart], *, z: float, inflate: float = 1.0) -> float:
    """Return t*: how many times as often as blindly gold must be hit for a lower bound of 0.

    Let gold be hit t times as often as one other option. Then s(t) = c[10] - t c u [E], and t* is
    the smaller positive root over the two branches of Q in `score_interval` of
    (C1 - t D1)^2 = z^2 (q(t) + b1 t + b2 t^2 + cbar^2/4), q the larger of E1 t + E2 t^2 and
    C2 - cbar C1 + cbar D1 t + E2 t^2, with n10 - 3/4 in place of n10. At t = 1 this is the interval
    shown, so t* > 1 if and only if its lower bound is above 0.

    Args:
        parts: counts for each k.
        z: quantile of the interval.
        inflate: design effect of clusters, 1 for independent items.

    Returns:
        t*; 0 if even without any luck nothing is shown, `inf` if no luck explains it.
    """
    n = sum(part.n for part in parts)
    if not n:
        return 0.0
    cbar = sum(part.scale * part.n for part in parts) / n
    c1, c2 = (
        sum(part.scale**power * part.n10 for part in parts) - UNSURE * inflate * cbar**power
        for power in (1, 2)
    )
    if c1 <= 0:
        return 0.0
    d1 = sum(part.scale * part.u * part.n_e for part in parts)
    e1, e2 = (sum(part.scale**2 * part.u**power * part.n_e for part in parts) for power in (1, 2))
    b1, b2 = (sum(part.scale**2 * part.u**power * part.n for part in parts) / n for power in (1, 2))
    z2 = z**2 * inflate
    a = d1**2 - z2 * (e2 + b2)
    return min(
        _smaller_root(a, 2 * c1 * d1 + z2 * (slope + b1), c1**2 - z2 * (start + cbar**2 / 4))
        for slope, start in ((e1, 0.0), (cbar * d1, c2 - cbar * c1))
    )


def luck_needed_by_test(parts: Sequence[LuckPart], *, size: float, most: float = math.inf) -> float:
    """Return the same for the test of `mixed_luck_p`: the t at which its one-sided mid-p is `size`.

    Of the items in 10 and E a share t u / (1 + t u) is in 10 by luck. If the test decides about the
    lower bound, t* is the smaller of the two.

    Args:
        parts: counts for each k; parts without luck (u = 0) are left out, as in the test.
        size: size of the test.
        most: upper end of the search; usually the result of `luck_needed`.

    Returns:
        t, or `most`; 0 if there is no flip, `inf` if only items that cannot be guessed flipped.
    """
    lucky = [part for part in parts if part.u > 0 and part.n10 + part.n_e > 0]
    if not lucky:
        return most if any(part.n10 for part in parts) else 0.0
    if not any(part.n10 for part in lucky):
        return 0.0
    if math.isfinite(most) and _mid_p(lucky, most) <= size:
        return most
    low, high = -math.log(MAX_RATIO), math.log(MAX_RATIO)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mid_p(lucky, math.exp(middle)) <= size else (low, middle)
    return min(math.exp(low), most)


def guess_rate_latent(t: float, k: float) -> float:
    """Return g* = t / (t + k - 1), a share of the unknown items wrong after that were right before.

    The loss stands unless more than g* of them were right before by luck. Blind guesses that are
    redrawn give 1/k; repeated ones fewer; moved habits up to 1/(k-1). Needs no model of guessing.
    """
    return 1.0 if math.isinf(t) else t / (t + k - 1)


def guess_rate_matched(t: float, k: float) -> float:
    """Return g* = t / (2t + k - 2), the guess rate if options are ruled out on every unknown item.

    Ruling out options removes the different wrong answers from which luck is estimated: (k - 2)(1 -
    1/t) of them make gold t times as likely as the estimated luck. Never above 1/2: `matched`
    cannot detect elimination to two options.
    """
    return 0.5 if math.isinf(t) else t / (2 * t + k - 2)


def _smaller_root(a: float, b: float, g: float) -> float:
    """Return the smaller positive root of a t^2 - b t + g."""
    if g <= 0:
        return 0.0
    inside = b**2 - 4 * a * g
    if inside < 0:
        return math.inf
    denominator = b + math.sqrt(inside)
    return 2 * g / denominator if denominator > 0 else math.inf


def _mid_p(parts: Sequence[LuckPart], t: float) -> float:
    chances = [t * part.u / (1 + t * part.u) for part in parts]
    flips = [int(part.n10) for part in parts]
    return mixed_luck_p(flips, [int(part.n10 + part.n_e) for part in parts], chances)
