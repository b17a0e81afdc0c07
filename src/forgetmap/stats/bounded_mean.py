"""Upper confidence bounds for the mean of values in [0, 1] with any distribution.

A gambler who believes the mean to be below m bets against it. Whoever bets a share f of his fortune
on each value multiplies it by 1 + f (m - X) / (1 - m), which is 1 or less on average if the mean
really is m or more. So a fortune of 1 / alpha is reached in at most alpha of all cases, and every m
at which it is reached is ruled out. No variance is estimated: what is rare and was not drawn is
allowed for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.errors import UsageError

SHARES = np.array(
    [.01, .02, .04, .07, .1, .15, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99, 1.0]
)  # fmt: skip
"""Bets that are made side by side, as the best one is not known beforehand."""
WEIGHTS = np.array([1 / 30] * 15 + [1 / 4] * 2)
"""What is put on each: half of it on bold bets, which are best where nearly all values are 0."""
BISECTIONS = 50
LARGEST = 1 - 1e-12
"""Largest mean to bet against: there is nothing to win against 1."""


def betting_upper_limit(values: ArrayLike, alpha: float = 0.05) -> NDArray[np.float64]:
    """Upper limit of a mean: the smallest m that the values rule out, as all above it.

    Args:
        values: independent, in [0, 1], one per draw on the last axis; in any order.
        alpha: how often the limit may be below the mean (one-sided).

    Returns:
        One limit per data set; 1 where there are no values.

    Raises:
        UsageError: a value lies outside [0, 1], or alpha outside (0, 1).
    """
    draws = np.asarray(values, float)
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha:g}", hint="give a number between 0 and 1.")
    if not ((draws >= 0) & (draws <= 1)).all():
        raise UsageError("a value lies outside [0, 1]", hint="scale the values to that range.")
    if not draws.shape[-1]:
        return np.ones(draws.shape[:-1])
    low = draws.mean(axis=-1)  # no bet wins against the mean of the values themselves
    high: NDArray[np.float64] = np.ones_like(low)
    for _ in range(BISECTIONS):
        middle = np.minimum((low + high) / 2, LARGEST)
        ruled_out = log_fortune(draws, middle) >= -np.log(alpha)
        low, high = np.where(ruled_out, low, middle), np.where(ruled_out, middle, high)
    return high


def log_fortune(draws: NDArray[np.float64], mean: Any) -> NDArray[np.float64]:
    """Logarithm of what the bets against this mean have grown to."""
    gains = (mean[..., None] - draws) / (1 - mean[..., None])
    with np.errstate(divide="ignore"):  # a bet of everything can lose everything
        logs = np.log1p(SHARES[:, None] * gains[..., None, :]).sum(axis=-1)
    fortune: NDArray[np.float64] = np.logaddexp.reduce(logs + np.log(WEIGHTS), axis=-1)
    return fortune
