"""Numbers of a study formatted for sentences; a point is one percent of all items."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forgetmap.comparison import verdict_words
from forgetmap.results import Estimate
from forgetmap.stats import LOSSES, Contrast
from forgetmap.study.result import PairResults
from forgetmap.text import share, signed


def points(value: float) -> str:
    """Format a share of all items in points."""
    return f"{100 * value:.1f} points".replace("-", "\N{MINUS SIGN}")


def signed_points(value: float) -> str:
    """Format a change in points, with its sign."""
    return f"{signed(100 * value, 1)} points"


def effect_size(value: float) -> str:
    """Format a change of the size of drift, with its sign."""
    return signed(value, 2)


def interval(contrast: Contrast | None, write: Callable[[float], str] = points) -> str:
    """Format a contrast with its interval."""
    if contrast is None:
        return "unknown"
    if np.isnan(contrast.error):
        return f"{write(contrast.value)} (no interval: one lineage shows no spread)"
    low, high = contrast.low, contrast.high
    if write is points:
        # Correction for chance may exceed the value: a mean below 0 keeps its interval.
        low, high = low if contrast.value < 0 else max(low, 0.0), min(high, 1.0)
    return f"{write(contrast.value)} ({_number(low, write)} to {_number(high, write)})"


def estimate_cell(estimate: Estimate) -> str:
    """Format an estimate for a table, in points."""
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:.1f}"
    return f"{100 * estimate.value:.1f} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def verdict_cell(pair: PairResults) -> str:
    """Format the verdict on a pair, with what is proven."""
    words, low = verdict_words(pair), pair.loss.low
    return f"{words}, at least {share(low)}" if pair.verdict in LOSSES else words


def _number(value: float, write: Callable[[float], str]) -> str:
    return write(value).removesuffix(" points")
