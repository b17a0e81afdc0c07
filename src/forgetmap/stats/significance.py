"""Exact tests: of a change in accuracy, of the difference of two shares, of balanced answers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals

TIES = 1 + 1e-7
"""Tolerance for equally likely tables, against rounding."""


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


def fisher_p(a: int, b: int, c: int, d: int) -> float:
    """Return the two-sided p-value of Fisher's exact test of the table (a, b), (c, d).

    The sum of the hypergeometric probabilities of all tables with these margins that are no more
    likely than the observed one (Fisher 1935; the two-sided form of R and scipy). Only the part of
    the distribution with any weight is summed, so millions of items cost little.
    """
    n, row, column = a + b + c + d, a + b, a + c
    least, most = max(0, row + column - n), min(row, column)
    if least == most:
        return 1.0
    centre = row * column / n
    reach = 40 * math.sqrt(centre * (n - row) / n * (n - column) / n) + 40
    first = max(least, min(a, int(centre - reach)))
    last = min(most, max(a, int(centre + reach)))
    weights = _table_weights(np.arange(first, last + 1.0), n, row, column)
    return float(min(weights[weights <= weights[a - first] * TIES].sum() / weights.sum(), 1.0))


def _table_weights(x: Reals, n: int, row: int, column: int) -> Reals:
    """Return unnormalised hypergeometric weights of x, because large logarithms lose digits."""
    from scipy.special import gammaln

    cells = (x, row - x, column - x, n - row - column + x)
    logs = -sum(gammaln(cell + 1.0) for cell in cells)
    return np.asarray(np.exp(logs - logs.max()))


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
