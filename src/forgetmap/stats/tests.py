"""Tests: was anything lost, did accuracy change, did anything change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals


def luck_p(successes: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Reals:
    """One-sided mid-p of so many successes by luck: P(X > x) + P(X = x) / 2, X binomial.

    "Was anything lost": of the items wrong after, only one in k was right before if nothing was
    lost, so n10 of n10 + n00 is binomial with 1/k. With options logged: n10 of n10 + n00different
    with 1/(k-1). Size at most .052. On sampled single runs a model's disagreement with itself alone
    rejects: there the verdict comes from `excess` or `net`.
    """
    from scipy.stats import binom  # noqa: PLC0415  # heavy, only here

    x, m, p = (np.asarray(v, float) for v in (successes, trials, chance))
    return np.asarray(binom.sf(x, m, p) + binom.pmf(x, m, p) / 2)


def mixed_luck_p(
    successes: Sequence[int], trials: Sequence[int], chances: Sequence[float]
) -> float:
    """The same over items of different k: the binomials are convolved."""
    from scipy.signal import fftconvolve  # noqa: PLC0415
    from scipy.stats import binom  # noqa: PLC0415

    pmf = np.ones(1)
    for m, p in zip(trials, chances, strict=True):
        pmf = np.maximum(fftconvolve(pmf, binom.pmf(np.arange(m + 1), m, p)), 0.0)
    x = sum(successes)
    return float(min(pmf[x + 1 :].sum() + pmf[x] / 2, 1.0))


def mcnemar_p(n10: ArrayLike, n01: ArrayLike) -> Reals:
    """Exact two-sided McNemar test that accuracy did not change: binomial on n10 against n01.

    It sees only the net change: equal losses and gains are invisible to it (McNemar 1947).
    """
    from scipy.stats import binom  # noqa: PLC0415

    n10, n01 = np.asarray(n10, float), np.asarray(n01, float)
    m = n10 + n01
    return np.asarray(np.minimum(1.0, 2 * binom.cdf(np.minimum(n10, n01), m, 0.5)))


def change_p(total: ArrayLike, variance: ArrayLike) -> Reals:
    """One-sided p that nothing was lost beyond noise, with repeats on both sides.

    z = sum e / sqrt(sum v), e the item scores of `excess` and v their variance over all ways of
    dealing an item's right answers to the two sides, given their number.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    total, variance = np.asarray(total, float), np.asarray(variance, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(variance > 0, ndtr(-total / np.sqrt(variance)), 1.0))


def balance_p(counts: ArrayLike) -> float:
    """P-value that right answers fall on all positions alike: chi-square against uniform.

    `matched` and the bracket trust that gold is exchangeable with the other options. Where one
    letter holds the answer too often (in some data sets always the first), they do not hold.
    """
    from scipy.stats import chisquare  # noqa: PLC0415

    counts = np.asarray(counts, float)
    if counts.size < 2 or not counts.sum():  # noqa: PLR2004  # one position is always balanced
        return 1.0
    return float(chisquare(counts).pvalue)
