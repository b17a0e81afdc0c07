"""Tests of a change in letter preferences, and of a difference between two shares."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals

MIN_EIGENVALUE = 1e-9
"""Minimum eigenvalue relative to the largest; a direction below it carries no information."""
TIES = 1 + 1e-7
"""Tolerance for equally likely tables, against rounding."""


def stuart_maxwell_p(table: ArrayLike) -> float:
    """Return the p-value of equal distributions of letters before and after.

    d = row sums - column sums, V its covariance (V_ii = r_i + c_i - 2 n_ii, V_ij = -n_ij - n_ji):
    d' V^- d is chi-square on the rank of V. The generalised inverse takes care of letters that
    never change and of letters that change only among themselves. With two letters this is
    McNemar's chi-square, (n12 - n21)^2 / (n12 + n21). Assumes independent pairs.

    Args:
        table: counts, letter before x letter after; readable pairs only.

    References:
        Stuart, A test for homogeneity of the marginal distributions in a two-way classification,
        1955; Maxwell, Comparing the classification of subjects by two independent judges, 1970.
    """
    from scipy.special import chdtrc  # heavy, only here

    counts = np.asarray(table, float)
    moved = counts + counts.T
    covariance = np.diag(moved.sum(1)) - moved
    values, vectors = np.linalg.eigh(covariance)
    informative = values > MIN_EIGENVALUE * max(values.max(initial=0.0), 1.0)
    if not informative.any():
        return 1.0
    difference = vectors[:, informative].T @ (counts.sum(1) - counts.sum(0))
    statistic = (difference**2 / values[informative]).sum()
    return float(chdtrc(int(informative.sum()), statistic))


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
