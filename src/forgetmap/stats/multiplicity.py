"""Corrections for many tasks: false discovery rate and family-wise error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.results import Reals

FDR = 0.05
"""Accepted share of false alarms among all alarms."""


def false_discovery(p: ArrayLike) -> Reals:
    """Return Benjamini-Hochberg q-values (1995): rejecting q <= .05 keeps the FDR at 5 %.

    nan stays nan and does not count as a test.
    """
    return _adjusted(p, _benjamini_hochberg)


def family_wise(p: ArrayLike) -> Reals:
    """Return Holm's adjusted p-values (1979), which control the probability of any false alarm."""
    return _adjusted(p, _holm)


def selected_level(rejected: int, size: int, level: float = 0.95) -> float:
    """Return the level of the intervals of selected groups: 1 - (1 - level) R/m.

    If R of m groups are called lost, their plain 95 % intervals miss too often, because the largest
    losses were selected. At this level the expected share of selected intervals that miss is at
    most 1 - level, for independent groups; the lower bound is above 0 if Benjamini-Hochberg
    rejects.

    Args:
        rejected: R, number of selected groups.
        size: m, number of groups in the family.
        level: level among the selected groups.

    References:
        Benjamini and Yekutieli, False discovery rate-adjusted multiple confidence intervals for
        selected parameters, 2005.
    """
    return 1 - (1 - level) * rejected / size if 0 < rejected < size else level


def _adjusted(p: ArrayLike, adjust: Callable[[Reals], Reals]) -> Reals:
    p = np.asarray(p, float)
    known = ~np.isnan(p)
    adjusted = np.full_like(p, np.nan)
    if known.any():
        adjusted[known] = adjust(p[known])
    return adjusted


def _benjamini_hochberg(p: Reals) -> Reals:
    order = np.argsort(p)
    ranked = p[order] * p.size / np.arange(1, p.size + 1)
    lowest = np.minimum.accumulate(ranked[::-1])[::-1]
    q = np.empty_like(p)
    q[order] = np.minimum(lowest, 1.0)
    return q


def _holm(p: Reals) -> Reals:
    order = np.argsort(p)
    ranked = p[order] * np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(ranked), 1.0)
    return adjusted
