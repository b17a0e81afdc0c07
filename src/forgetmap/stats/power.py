"""How small a loss can be seen, and what it takes to see one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.intervals import normal_quantile
from forgetmap.stats.repeats import excess_scores
from forgetmap.stats.results import Interval, Reals
from forgetmap.stats.tests import binomial_weights

POWER = 0.8
SIZE = 0.05
MAX_ITERATIONS = 200
MAX_ITEMS = 1 << 40


def detectable(
    n: ArrayLike,
    *,
    c: ArrayLike,
    h: ArrayLike,
    share_e: ArrayLike,
    size: float = SIZE,
    power: float = POWER,
) -> Reals:
    """Smallest loss that the one-sided test finds with this power.

    Solves theta = z_a sqrt((v + h theta)/n) + z_b sqrt((v + c theta - theta^2)/n), v = h(c+h) p_E
    with p_E the share of items in E when nothing is lost, by iteration from (z_a + z_b) sqrt(v/n).
    Achieved power .75 to .83. For open-ended items (h = 0): the loss of which at least one flip is
    seen with this power, 1 - (1 - power)^(1/n).

    Args:
        n: items.
        c: of the score (see `scores`).
        h: of the score.
        share_e: share of items in E when nothing is lost.
        size: of the test.
        power: wanted.
    """
    from scipy.special import ndtri  # heavy, only here

    n, c, h, share_e = (np.asarray(x, float) for x in (n, c, h, share_e))
    z_a, z_b = float(ndtri(1 - size)), float(ndtri(power))
    v = h * (c + h) * share_e
    with np.errstate(invalid="ignore", divide="ignore"):
        theta = (z_a + z_b) * np.sqrt(v / n)
        for _ in range(MAX_ITERATIONS):
            seen = np.maximum(v + c * theta - theta**2, 0.0)
            theta = z_a * np.sqrt((v + h * theta) / n) + z_b * np.sqrt(seen / n)
        one_flip = 1 - (1 - power) ** (1 / n)
    return np.asarray(np.where(h > 0, theta, one_flip))


def items_needed(
    loss: float, *, c: float, h: float, share_e: float, size: float = SIZE, power: float = POWER
) -> int:
    """The smallest number of items that shows a loss of this size; the inverse of `detectable`."""
    return _least_items(
        lambda n: float(detectable(n, c=c, h=h, share_e=share_e, size=size, power=power)), loss
    )


def repeats_detectable(
    n: ArrayLike, repeats: int, *, churn: ArrayLike, size: float = SIZE, power: float = POWER
) -> Reals:
    """Smallest share that goes from right to wrong which `excess` finds, given self-churn.

    (z_a sqrt(v0) + z_b sqrt(v0 + theta)) / sqrt(n) = theta, v0 the variance of an item score when
    nothing changes: churn (2 churn_item) spread over the items that flip at all; here all churn is
    taken to sit on items that are right half of the time, the worst case.
    """
    from scipy.special import ndtri

    n, churn = np.asarray(n, float), np.asarray(churn, float)
    z_a, z_b = float(ndtri(1 - size)), float(ndtri(power))
    item_variance = _coin_variance(repeats)
    v0 = np.minimum(churn / 0.25, 1.0) * item_variance
    theta = (z_a + z_b) * np.sqrt(v0 / n)
    for _ in range(MAX_ITERATIONS):
        theta = (z_a * np.sqrt(v0) + z_b * np.sqrt(v0 + theta)) / np.sqrt(n)
    one_flip = 1 - (1 - power) ** (1 / n)
    return np.asarray(np.maximum(theta, one_flip))


def repeated_items_needed(
    loss: float, repeats: int, *, churn: float, size: float = SIZE, power: float = POWER
) -> int:
    """The smallest number of items that shows a loss; the inverse of `repeats_detectable`."""
    return _least_items(
        lambda n: float(repeats_detectable(n, repeats, churn=churn, size=size, power=power)), loss
    )


def detectable_excess(interval: Interval, *, size: float = SIZE, power: float = POWER) -> Reals:
    """Smallest `excess` that would be found with this power, from the width of its interval."""
    from scipy.special import ndtri

    error = (interval.high - interval.low) / (2 * normal_quantile())
    return np.asarray((ndtri(1 - size) + ndtri(power)) * error)


def _least_items(detectable_with: Callable[[int], float], loss: float) -> int:
    """The smallest number of items with which this loss is found, by bisection."""
    low, high = 1, 2
    while detectable_with(high) > loss and high <= MAX_ITEMS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable_with(middle) <= loss else (middle, high)
    return high


def _coin_variance(repeats: int) -> float:
    """Variance of an item score of `excess` where both models are right half of the time."""
    counts = np.arange(repeats + 1)
    weight = binomial_weights(counts, repeats, 0.5)
    score = excess_scores(counts[:, None], repeats, counts[None, :], repeats).lost
    joint = weight[:, None] * weight[None, :]
    return float((joint * score**2).sum() - (joint * score).sum() ** 2)
