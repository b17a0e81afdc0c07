"""The paired bootstrap as products of matrices.

A draw gives every unit (an item with all its repeats and all metrics of its task, or a cluster of
items) a weight; the weights are Poisson distributed, which is resampling with replacement of a
random total (Hanley and MacGibbon 2006) and turns all draws of all metrics into one product. The
same weights serve all metrics of a task, and metric, capability and group are computed anew on each
draw, so that the intervals of all levels fit together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats import Reals

LEVEL = 0.95
MOST_UNITS = 20_000
"""More are put into so many bins at random, which are then resampled as if they were units."""
BLOCK = 1_024
LEVELS = 1 << 16


def generator(seed: int, name: str) -> np.random.Generator:
    """Random numbers of a task: the same whatever other tasks and models there are."""
    return np.random.default_rng([seed, crc32(name.encode())])


def resampled_sums(rows: Reals, counts: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """Sums of the columns of `rows` in each draw.

    Args:
        rows: units x columns.
        counts: how often each row counts; halves are allowed.
        rng: where the weights come from.
        draws: how many.

    Returns:
        Draws x columns.
    """
    total = np.zeros((draws, rows.shape[1]))
    for block in _blocks(len(rows)):
        total += _weights(counts[block], rng, draws) @ rows[block]
    return total


def _weights(counts: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """Poisson weights; those of mean 1, nearly all, are looked up, which is ten times as fast."""
    shape = (draws, len(counts))
    if (counts == 1).all():
        return np.asarray(_one_by_level()[rng.integers(0, LEVELS, shape, np.uint16)])
    return rng.poisson(counts, shape).astype(np.float64)


@cache
def _one_by_level() -> Reals:
    """Poisson numbers of mean 1, each as often as it is likely: in 65,536 equally likely levels."""
    chances = np.array([math.exp(-1) / math.factorial(k) for k in range(12)])
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    return np.searchsorted(np.cumsum(chances), levels).astype(np.float64)


def exchanged_sums(rows: Reals, rng: np.random.Generator, draws: int) -> Reals:
    """The same for signs instead of weights: before and after change places unit by unit."""
    total = np.zeros((draws, rows.shape[1]))
    for block in _blocks(len(rows)):
        signs = 2.0 * rng.integers(0, 2, (draws, len(rows[block]))) - 1
        total += signs @ rows[block]
    return total


def compact(rows: Reals, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Few rows that stand for many: equal ones counted, or sums over random bins.

    Returns:
        Rows, and how often each counts.
    """
    if len(rows) <= MOST_UNITS:
        return rows, np.ones(len(rows))
    different, counts = np.unique(rows, axis=0, return_counts=True)
    if len(different) <= MOST_UNITS:
        return different, counts.astype(float)
    bins = rng.permutation(len(rows)) % MOST_UNITS
    return summed(rows, bins), np.ones(MOST_UNITS)


def summed(rows: Reals, groups: NDArray[np.intp]) -> Reals:
    """Sums of rows of the same group, numbered from 0."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.add.reduceat(rows[order], starts, axis=0)


def limits(draws: Reals) -> tuple[float, float] | None:
    """The middle part of the draws; None where there are none."""
    known = draws[~np.isnan(draws)]
    if not known.size:
        return None
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _blocks(size: int) -> Iterator[slice]:
    for start in range(0, size, BLOCK):
        yield slice(start, start + BLOCK)
