"""Upper confidence bounds for the mean of values in [0, 1] with any distribution.

A gambler bets that the mean is below m. A bet of a share f of the fortune on each
value multiplies it by 1 + f (m - X) / (1 - m), which is 1 or less on average if the mean is m or
more. So a fortune of 1 / alpha is reached in at most alpha of all cases, and every m at which it is
reached is ruled out. No variance is estimated, so rare values that were not drawn are allowed for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.errors import UsageError

SHARES = np.array(
    [.01, .02, .04, .07, .1, .15, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99, 1.0]
)  # fmt: skip
"""Shares that are bet in parallel, because the best one is not known in advance."""
WEIGHTS = np.array([1 / 30] * 15 + [1 / 4] * 2)
"""Weight of each bet: half of it on bold bets, which are best if nearly all values are 0."""
BISECTIONS = 50
LARGEST = 1 - 1e-12
"""Largest mean to bet against; a bet against 1 cannot win."""


def betting_upper_limit(values: ArrayLike, alpha: float = 0.05) -> NDArray[np.float64]:
    """Return an upper bound of a mean: the smallest m such that it and all above are ruled out.

    Args:
        values: independent values in [0, 1], one per draw on the last axis; in any order.
        alpha: one-sided error rate: how often the bound may be below the mean.

    Returns:
        One bound per data set; 1 without values.

    Raises:
        UsageError: a value is outside [0, 1], or alpha outside (0, 1).
    """
    draws = np.asarray(values, float)
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha:g}", hint="give a number between 0 and 1.")
    if not ((draws >= 0) & (draws <= 1)).all():
        raise UsageError("a value lies outside [0, 1]", hint="scale the values to that range.")
    if not draws.shape[-1]:
        return np.ones(draws.shape[:-1])
    low = draws.mean(axis=-1)  # no bet wins against the mean of the values
    high: NDArray[np.float64] = np.ones_like(low)
    for _ in range(BISECTIONS):
        middle = np.minimum((low + high) / 2, LARGEST)
        ruled_out = log_fortune(draws, middle) >= -np.log(alpha)
        low, high = np.where(ruled_out, low, middle), np.where(ruled_out, middle, high)
    return high


def log_fortune(draws: NDArray[np.float64], mean: Any) -> NDArray[np.float64]:
    """Return the logarithm of the fortune of bets against this mean."""
    gains = (mean[..., None] - draws) / (1 - mean[..., None])
    with np.errstate(divide="ignore"):  # a bet of everything can lose everything
        logs = np.log1p(SHARES[:, None] * gains[..., None, :]).sum(axis=-1)
    fortune: NDArray[np.float64] = np.logaddexp.reduce(logs + np.log(WEIGHTS), axis=-1)
    return fortune
