"""Significance tests of a loss, of the accuracy change, and of any change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.mean_scores import ScoreSums
from forgetmap.stats.results import Reals

MIN_SKEWNESS = 1e-4
"""Smallest skewness for the gamma distribution; below it, digits are lost and a normal one is
used."""


def luck_p(successes: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Reals:
    """Return the one-sided mid-p of x successes by luck: P(X > x) + P(X = x) / 2, X binomial.

    "Was anything lost": of the items wrong after, only one in k was right before if nothing was
    lost, so n10 of n10 + n00 is binomial with 1/k. With options logged: n10 of n10 + n00different
    with 1/(k-1). Size at most .052. On sampled single runs the noise of a model alone rejects:
    there the verdict comes from `excess` or `net`.
    """
    from scipy.special import betainc  # heavy, only here

    x, m, p = (np.asarray(v, float) for v in (successes, trials, chance))
    others = m - x
    more = np.where(others > 0, betainc(x + 1, np.maximum(others, 1.0), p), 0.0)
    return np.asarray(more + binomial_weights(x, m, p) / 2)


def mixed_luck_p(
    successes: Sequence[int], trials: Sequence[int], chances: Sequence[float]
) -> float:
    """Return the same over items of different k: the binomials are convolved.

    Only the part of each with any weight is summed, so millions of trials cost little.
    """
    by_chance: dict[float, int] = {}
    for m, p in zip(trials, chances, strict=True):
        if m:  # kinds without trials are common, and convolving them would cost as much as the rest
            by_chance[p] = by_chance.get(p, 0) + m
    x = sum(successes)
    if len(by_chance) <= 1:
        p, m = next(iter(by_chance.items()), (0.0, 0))
        return float(luck_p(x, m, p))
    first, pmf = 0, np.ones(1)
    for p, m in by_chance.items():
        start, weights = _binomial(m, p)
        first, pmf = first + start, _convolved(pmf, weights)
    index = x - first
    if index < 0:
        return 1.0
    return float(min(pmf[index + 1 :].sum() + (pmf[index] / 2 if index < pmf.size else 0.0), 1.0))


def binomial_weights(x: ArrayLike, m: ArrayLike, p: ArrayLike) -> Reals:
    """Return the probability of x successes in m trials; importing scipy.stats takes a second."""
    from scipy.special import gammaln, xlog1py, xlogy

    x, m, p = (np.asarray(v, float) for v in (x, m, p))
    ways = gammaln(m + 1) - gammaln(x + 1) - gammaln(m - x + 1)
    return np.asarray(np.exp(ways + xlogy(x, p) + xlog1py(m - x, -p)))


def _binomial(m: int, p: float) -> tuple[int, Reals]:
    """Return the first value and the weights of a binomial, without negligible tails."""
    reach = 40 * (m * p * (1 - p)) ** 0.5 + 40
    first, last = max(0, int(m * p - reach)), min(m, int(m * p + reach))
    return first, binomial_weights(np.arange(first, last + 1), m, p)


def _convolved(one: Reals, other: Reals) -> Reals:
    """Return the distribution of a sum."""
    size = one.size + other.size - 1
    fast = 1 << (size - 1).bit_length()  # other lengths can take many times as long
    product = np.fft.rfft(one, fast) * np.fft.rfft(other, fast)
    return np.maximum(np.fft.irfft(product, fast)[:size], 0.0)


def at_least_p(successes: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> Reals:
    """Return the one-sided exact p-value P(X >= x), X binomial."""
    from scipy.special import betainc  # heavy, only here

    x, m, p = (np.asarray(v, float) for v in (successes, trials, chance))
    return np.asarray(np.where(x > 0, betainc(np.maximum(x, 1.0), m - x + 1, p), 1.0))


def score_p(
    sums: ScoreSums, *, inflate: ArrayLike, freedom: ArrayLike, value: ArrayLike = 0.0
) -> Reals:
    """Return the one-sided p-value that the mean is at most a value, for clustered items.

    t = (mean - value) / sqrt(V(value)) with V of `score_interval`, times the design effect; t on
    the degrees of freedom of the clusters.
    """
    from scipy.special import stdtr

    cbar = sums.c / sums.n
    q = np.maximum(sums.a, sums.s2 - cbar * sums.s) / sums.n**2
    q0 = (sums.b / sums.n + cbar**2 / 4) / sums.n**2
    value = np.asarray(value, float)
    loss = cbar * value / sums.n - value**2 / sums.n
    error = np.sqrt((q + q0 + loss) * np.asarray(inflate, float))
    return np.asarray(stdtr(np.asarray(freedom, float), (value - sums.mean) / error))


def mcnemar_p(n10: ArrayLike, n01: ArrayLike) -> Reals:
    """Return the p-value of the exact two-sided McNemar test that accuracy did not change.

    Binomial on n10 against n01. It detects only the net change: equal losses and gains cancel
    (McNemar 1947).
    """
    from scipy.special import betainc

    n10, n01 = np.asarray(n10, float), np.asarray(n01, float)
    fewer, more = np.minimum(n10, n01), np.maximum(n10, n01)
    # The probability of at most `fewer` heads; 1 if there is no flip.
    at_most = np.where(more > 0, betainc(np.maximum(more, 1.0), fewer + 1, 0.5), 1.0)
    return np.asarray(np.minimum(1.0, 2 * at_most))


def change_p(total: ArrayLike, variance: ArrayLike, third: ArrayLike = 0.0) -> Reals:
    """Return the one-sided p-value of no loss beyond noise, with repeats on both sides.

    z = sum e / sqrt(sum v), e the item scores of `excess` and v their variance over all divisions
    of the right answers of an item between the two sides, given their number. The scores are
    skewed, so z is compared with a Pearson III distribution of the same skewness (Pearson 1895): if
    few items flip, a normal distribution rejects up to 7.3 % at 5 % and 3.2 % at 1 %; this one up
    to 6.3 % and 1.1 %.
    """
    total, variance, third = (np.asarray(x, float) for x in (total, variance, third))
    some = variance > 0
    scale = np.sqrt(np.where(some, variance, 1.0))
    p = _skewed_tail(total / scale, third / scale**3)
    return np.asarray(np.where(some, p, 1.0))


def _skewed_tail(z: Reals, skew: Reals) -> Reals:
    """Return P(Z > z) of the standardised Pearson III law, a shifted gamma distribution."""
    from scipy.special import gammainc, gammaincc, ndtr

    straight = np.abs(skew) < MIN_SKEWNESS
    bend = np.where(straight, 1.0, np.abs(skew))
    shape = 4 / bend**2
    right = gammaincc(shape, np.maximum(shape + 2 * z / bend, 0.0))
    left = gammainc(shape, np.maximum(shape - 2 * z / bend, 0.0))
    return np.asarray(np.where(straight, ndtr(-z), np.where(skew > 0, right, left)))


def balance_p(counts: ArrayLike) -> float:
    """Return the p-value that right answers are uniform over positions, by a chi-square test.

    `matched` and the plausible range assume that gold is exchangeable with the other options. They
    do not hold if one letter is right too often (in some data sets always the first).
    """
    from scipy.special import chdtrc

    counts = np.asarray(counts, float)
    if counts.size < 2 or not counts.sum():  # a single position is always balanced
        return 1.0
    even = counts.mean()
    return float(chdtrc(counts.size - 1, ((counts - even) ** 2 / even).sum()))
