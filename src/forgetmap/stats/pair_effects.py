"""Forgetting and backward transfer of one pair, and the contribution of each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class PairEffect:
    """Two effects (forgetting, backward transfer) as weighted means over tasks.

    Attributes:
        values: both effects; NaN if no task has an item.
        terms: contribution of each item beyond the mean of its task (effect, item).
    """

    values: Reals
    terms: Reals


def pair_effect(
    before: Reals, after: Reals, luck: Reals, task: NDArray[np.intp], weights: Reals
) -> PairEffect:
    """Compute the published adjustment for chance, without its clipping, by task.

    In a task F - C and T - C, C = m (1 - a)(1 - b): a and b are accuracies, m is the mean of
    1 / (k - 1). Clipping at 0 would push means of small tasks up, so there is none. The terms are
    the first derivatives of both in the items.

    Args:
        before: 1 for right, 0 for wrong, NaN for no answer (repeat, item).
        after: the same for the model after.
        luck: 1 / (k - 1) of each item, 0 for open-ended ones.
        task: task of each item, from 0.
        weights: weights of the tasks; those of tasks without items are distributed over the others.
    """
    paired = ~np.isnan(before) & ~np.isnan(after)
    repeats = paired.sum(axis=0)
    known = repeats > 0
    count = np.bincount(task[known], minlength=len(weights))
    has_items = count > 0
    terms = np.zeros((2, len(luck)))
    if not weights[has_items].sum() > 0:
        return PairEffect(np.full(2, np.nan), terms)
    share = np.where(has_items, weights, 0.0) / weights[has_items].sum()
    right = _means(before, paired, repeats), _means(after, paired, repeats)
    both = _means(before * after, paired, repeats)
    a, b, joint, m = (_by_task(each, task, known, count) for each in (*right, both, luck))
    chance = m * (1 - a) * (1 - b)
    values = np.asarray([share @ (a - joint - chance), share @ (b - joint - chance)])
    scale = np.where(known, (share / np.maximum(count, 1))[task], 0.0)
    moves = m[task] * ((1 - b)[task] * (right[0] - a[task]) + (1 - a)[task] * (right[1] - b[task]))
    moves = moves - ((1 - a) * (1 - b))[task] * (luck - m[task])
    for effect, (side, mean) in enumerate(zip(right, (a, b), strict=True)):
        flips = (side - both) - (mean - joint)[task]
        terms[effect] = np.where(known, scale * (flips + moves), 0.0)
    return PairEffect(values, terms)


def _means(values: Reals, paired: NDArray[np.bool_], repeats: NDArray[np.intp]) -> Reals:
    """Return the mean of each item over its repeats; 0 without any."""
    means: Reals = np.where(paired, values, 0.0).sum(axis=0) / np.maximum(repeats, 1)
    return means


def _by_task(
    values: Reals, task: NDArray[np.intp], known: NDArray[np.bool_], count: NDArray[np.intp]
) -> Reals:
    sums = np.bincount(task[known], values[known], minlength=len(count))
    means: Reals = sums / np.maximum(count, 1)
    return means
