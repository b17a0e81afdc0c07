"""How large a change is, on scales that can be averaged.

Relative change depends on which complement was stored and explodes near zero; these do not: every
effect is bounded, turns its sign when before and after change places, and for shares also when
right and wrong do.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.capabilities.taxonomy import Metric
from forgetmap.stats import Reals

MOST = math.pi
"""The largest effect: from none to all. Ratios beyond e^pi, about 23, count as this."""


def effect(metric: Metric, before: ArrayLike, after: ArrayLike) -> Reals:
    """The effect of a change of the mean; positive is better, or more where any change is drift."""
    sign = -1.0 if metric.polarity == "down" else 1.0
    scale = metric.range
    if scale.high is None:
        return sign * log_ratio(before, after)
    if (scale.low, scale.high) == (0.0, 1.0):
        return sign * cohens_h(before, after)
    change = np.asarray(after, float) - np.asarray(before, float)
    return np.asarray(sign * change / (scale.high - scale.low))


def cohens_h(before: ArrayLike, after: ArrayLike) -> Reals:
    """Difference of two shares in angles: 2 asin sqrt(after) - 2 asin sqrt(before).

    References:
        Cohen, Statistical power analysis for the behavioral sciences, 1988, chapter 6.
    """
    ours, theirs = (np.clip(np.asarray(share, float), 0.0, 1.0) for share in (before, after))
    return np.asarray(2 * np.arcsin(np.sqrt(theirs)) - 2 * np.arcsin(np.sqrt(ours)))


def log_ratio(before: ArrayLike, after: ArrayLike) -> Reals:
    """Logarithm of the ratio of two means that are not negative, cut off at `MOST`."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(after) - np.log(before)
    neither = (before == 0) & (after == 0)
    return np.asarray(np.clip(np.where(neither, 0.0, ratio), -MOST, MOST))


def relative(
    before: float, after: float, *, error: float, chance: float, low: float = 0.0
) -> float | None:
    """Change in percent of the value before; None where that is no more than noise around nothing.

    Args:
        before: mean before.
        after: mean after.
        error: standard error of the mean before.
        chance: what guessing gives.
        low: the least value the metric can have.
    """
    nothing = max(chance, low)
    if before == 0 or before - nothing <= 2 * error:
        return None
    return 100 * (after - before) / before
