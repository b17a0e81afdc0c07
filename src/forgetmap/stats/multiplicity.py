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
