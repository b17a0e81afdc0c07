"""Studentised cluster bootstrap for means over prompts; divergences are skewed.

Clusters are resampled, and each resample is measured in its own standard errors: bounds follow from
the quantiles of t* = (mean* - mean) / error*. A plain percentile bootstrap misses the upper end of
skewed means (docs/overlap.md compares both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 2000
MIN_CLUSTERS = 2
"""Minimum number of clusters to estimate a spread."""
MIN_DIFFERENT = 3
"""Minimum number of terms that differ from the most frequent one; with fewer, rare values have
hardly been observed."""


@dataclass(frozen=True, slots=True)
class TermGroup:
    """Independent terms (quantity, cluster) whose mean enters with a weight."""

    terms: Floats
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class MeanLimits:
    """Means with two-sided bounds and a one-sided upper bound; NaN if there is none."""

    value: Floats
    low: Floats
    high: Floats
    upper: Floats


def studentised_bootstrap(
    parts: Sequence[TermGroup], *, level: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> MeanLimits:
    """Return bounds of a weighted sum of means of independent parts, one per quantity.

    Args:
        parts: usually one, with one term per prompt; several if terms come from several
            populations, such as the completions of two models.
        level: level of the two-sided bounds and of the upper one.
        seed: seed of the draws.
        resamples: number of draws.
    """
    value, error = _sum(parts, None)
    unclear = _too_alike(parts)
    if unclear.all() or any(part.terms.shape[1] < MIN_CLUSTERS for part in parts):
        unknown = np.full(value.shape[0], np.nan)
        return MeanLimits(value[:, 0], unknown, unknown, unknown)
    counts = [
        _draws(part.terms.shape[1], resamples, (seed, number)) for number, part in enumerate(parts)
    ]
    drawn, errors = _sum(parts, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(errors > 0, (drawn - value) / errors, np.nan)
    tail = (1 - level) / 2
    quantiles = np.full((3, len(value)), np.nan)
    known = ~np.isnan(scores).all(axis=1)
    if known.any():
        quantiles[:, known] = np.nanquantile(scores[known], [tail, 1 - tail, 1 - level], axis=1)
    middle, spread = value[:, 0], error[:, 0]
    quantiles[:, unclear] = np.nan
    low, high, upper = (middle - quantile * spread for quantile in quantiles[[1, 0, 2]])
    return MeanLimits(middle, low, high, upper)


def _too_alike(parts: Sequence[TermGroup]) -> NDArray[np.bool_]:
    """Return for each quantity whether nearly all terms are equal, which makes spread unusable."""
    different = np.zeros(parts[0].terms.shape[0], int)
    for part in parts:
        for row, terms in enumerate(np.round(part.terms, 9)):
            different[row] += terms.size - np.unique(terms, return_counts=True)[1].max()
    return different < MIN_DIFFERENT


def cluster_terms(terms: Floats, cluster: NDArray[Any]) -> Floats:
    """Return the contribution of each cluster to the means over items (quantity, cluster)."""
    _, index = np.unique(cluster, return_inverse=True)
    sizes = np.bincount(index)
    totals = np.array([np.bincount(index, row) for row in terms])
    means = totals.sum(axis=1, keepdims=True) / sizes.sum()
    shares: Floats = means + (totals - means * sizes) / sizes.mean()
    return shares


@lru_cache(maxsize=4)
def _draws(size: int, resamples: int, seed: tuple[int, int]) -> Floats:
    """Return how often each cluster is drawn (cluster, resample)."""
    random = np.random.default_rng(seed)
    return random.multinomial(size, np.full(size, 1 / size), resamples).T.astype(float)


def _sum(parts: Sequence[TermGroup], counts: Sequence[Floats] | None) -> tuple[Floats, Floats]:
    """Return the weighted sum and its standard error (quantity, resample)."""
    total, variance = 0.0, 0.0
    for number, part in enumerate(parts):
        size = part.terms.shape[1]
        drawn = np.ones((size, 1)) if counts is None else counts[number]
        # Otherwise rounding would destroy the variance of terms far from 0 with little spread.
        centre = part.terms.mean(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # an infinite term has no finite mean
            gaps = part.terms - centre
            mean = gaps @ drawn / size
            squares = gaps**2 @ drawn / size - mean**2
        total = total + part.weight * (centre + mean)
        variance = variance + part.weight**2 * squares.clip(min=0) / max(size - 1, 1)
    return np.asarray(total), np.sqrt(variance)
