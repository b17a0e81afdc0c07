"""The paired bootstrap as matrix products.

A draw gives every unit (an item with all its repeats and all metrics of its task, or a cluster of
items) a weight. The weights are Poisson distributed, which is resampling with replacement of a
random total (Hanley and MacGibbon 2006) and turns all draws of all metrics into one product. All
metrics of a task share the weights, and metric, capability and group are recomputed in each draw,
so that the intervals of all levels are consistent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats import Reals

LEVEL = 0.95
MAX_UNITS = 20_000
"""Maximum number of units; more are put into as many random bins, which are resampled as units."""
ROWS_PER_BLOCK = 1_024
LEVELS = 1 << 16
SMALL_P = 0.02
"""P-value below which too few draws remain to count."""
_ROUNDING = 1e-9


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of a task, independent of other tasks and models."""
    return np.random.default_rng([seed, crc32(name.encode())])


def shared_sums(rows: Reals, keys: NDArray[np.uint64], seed: int, draws: int) -> Reals:
    """Sum rows of units that other tasks share; a unit has the same weights in all of them."""
    total = np.zeros((draws, rows.shape[1]))
    for block in _blocks(len(rows)):
        weights = np.stack([_unit_weights(int(key), seed, draws) for key in keys[block]])
        total += weights.T.astype(float) @ rows[block]
    return total


@lru_cache(maxsize=8_192)
def _unit_weights(key: int, seed: int, draws: int) -> NDArray[np.uint8]:
    """Return the Poisson weights of one unit in all draws."""
    levels = np.random.default_rng([seed, key]).integers(0, LEVELS, draws, np.uint16)
    weights: NDArray[np.uint8] = _one_by_level()[levels].astype(np.uint8)
    return weights


def widening(sizes: Reals) -> float | None:
    """Return the factor by which an interval of a mean of few units must be wider than its draws.

    Resampling G units shows (G - 1) / G of their variance, and its quantiles are those of a normal
    distribution where Student's are needed (the expanded percentile interval; Hesterberg 2015).
    Units of unequal sizes count as fewer.

    Args:
        sizes: number of items of each unit.

    Returns:
        None for a single unit, which has no spread.
    """
    from scipy.special import ndtri, stdtrit  # heavy, only here

    if (sizes > 0).sum() < 2:
        return None
    units = max(float(sizes.sum() ** 2 / (sizes**2).sum()), 2.0)
    tail = (1 + LEVEL) / 2
    return float(stdtrit(units - 1, tail) / ndtri(tail) * np.sqrt(units / (units - 1)))


def resampled_sums(rows: Reals, counts: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """Return the sums of the columns of `rows` in each draw.

    Args:
        rows: units x columns.
        counts: how often each row counts; halves are allowed.
        rng: generator of the weights.
        draws: number of draws.

    Returns:
        Draws x columns.
    """
    total = np.zeros((draws, rows.shape[1]))
    for block in _blocks(len(rows)):
        total += _weights(counts[block], rng, draws) @ rows[block]
    return total


def _weights(counts: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """Return Poisson weights; those of mean 1, nearly all, are looked up, ten times as fast."""
    shape = (draws, len(counts))
    if (counts == 1).all():
        return np.asarray(_one_by_level()[rng.integers(0, LEVELS, shape, np.uint16)])
    return rng.poisson(counts, shape).astype(np.float64)


@cache
def _one_by_level() -> Reals:
    """Return Poisson numbers of mean 1 at 65,536 equally likely levels."""
    chances = np.array([math.exp(-1) / math.factorial(k) for k in range(12)])
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    return np.searchsorted(np.cumsum(chances), levels).astype(np.float64)


def exchanged_sums(rows: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """Return sums with random signs: before and after are exchanged unit by unit."""
    total = np.zeros((draws, rows.shape[1]))
    for block in _blocks(len(rows)):
        signs = 2.0 * rng.integers(0, 2, (draws, len(rows[block]))) - 1
        total += signs @ rows[block]
    return total


def compact(rows: Reals, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Reduce the rows: count equal ones, or sum over random bins.

    Returns:
        Rows, and how often each counts.
    """
    if len(rows) <= MAX_UNITS:
        return rows, np.ones(len(rows))
    different, counts = np.unique(rows, axis=0, return_counts=True)
    if len(different) <= MAX_UNITS:
        return different, counts.astype(float)
    bins = rng.permutation(len(rows)) % MAX_UNITS
    return sum_groups(rows, bins), np.ones(MAX_UNITS)


def sum_groups(rows: Reals, groups: NDArray[np.intp]) -> Reals:
    """Sum the rows of each group, numbered from 0."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.add.reduceat(rows[order], starts, axis=0)


def limits(draws: Reals) -> tuple[float, float] | None:
    """Return the central part of the draws; None without draws."""
    known = np.sort(draws[~np.isnan(draws)])
    if not known.size:
        return None
    outside = int((1 - LEVEL) / 2 * (known.size - 1) + _ROUNDING)
    return float(known[outside]), float(known[-1 - outside])


def two_sided_p(draws: Reals) -> float:
    """Return twice the share of draws beyond 0: at most 1 - LEVEL iff `limits` exclude 0.

    If hardly any draw is beyond 0, a normal distribution gives the p-value.
    """
    from scipy.special import ndtr

    known = draws[~np.isnan(draws)]
    if not known.size:
        return 1.0
    beyond = int(min((known <= 0).sum(), (known >= 0).sum()))
    p = min(max(2 * beyond / max(known.size - 1, 1), 1 / (known.size + 1)), 1.0)
    spread = float(known.std())
    if p > SMALL_P or not spread:
        return p
    return min(p, float(2 * ndtr(-abs(known.mean()) / spread)))


def _blocks(size: int) -> Iterator[slice]:
    for start in range(0, size, ROWS_PER_BLOCK):
        yield slice(start, start + ROWS_PER_BLOCK)


MAX_GRID_POINTS = 200


@dataclass(frozen=True, slots=True)
class Distance:
    """Wasserstein distance between the values before and after.

    Attributes:
        value: mean shift of a value under the best matching; of log(1 + count) for counts, as a
            share of the range for values with one.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
        noise: mean distance if before and after are exchangeable.
        p: p-value by exchanging before and after.
    """

    value: float
    low: float
    high: float
    noise: float
    p: float


def distance(before: Reals, after: Reals, *, seed: int, name: str, draws: int) -> Distance:
    """Return the distance of paired values, with its interval and its value by chance.

    Very many values are sampled at random.
    """
    rng = generator(seed, f"{name} distance")
    if len(before) > MAX_UNITS:
        some = rng.choice(len(before), MAX_UNITS, replace=False)
        before, after = before[some], after[some]
    grid, steps = _grid(np.concatenate([before, after]))
    if not steps.size:
        return Distance(0.0, 0.0, 0.0, 0.0, 1.0)
    below = [(values[:, None] <= grid).astype(float) for values in (before, after)]
    rows = np.column_stack([np.ones(len(before)), below[0] - below[1]])

    def length(sums: Reals, n: Reals | float) -> Reals:
        with np.errstate(invalid="ignore"):
            return np.asarray((np.abs(sums / n) * steps).sum(axis=-1))

    n = float(len(before))
    value = float(length(rows.sum(axis=0)[1:], n))
    drawn = resampled_sums(rows, np.ones(len(rows)), rng, draws)
    lengths = length(drawn[:, 1:], drawn[:, :1])
    # Resampled distances are biased upwards by as much as the distance itself.
    interval = limits(lengths - (np.nanmean(lengths) - value)) or (value, value)
    null = length(exchanged_sums(rows[:, 1:], rng, draws), n)
    p = float((1 + (null >= value).sum()) / (1 + draws))
    return Distance(value, max(interval[0], 0.0), interval[1], float(null.mean()), p)


def _grid(values: Reals) -> tuple[Reals, Reals]:
    """Return the points at which the distributions are compared, and the steps between them."""
    points = np.unique(values)
    if points.size > MAX_GRID_POINTS:
        points = np.unique(np.quantile(points, np.linspace(0, 1, MAX_GRID_POINTS)))
    return points[:-1], np.diff(points)
