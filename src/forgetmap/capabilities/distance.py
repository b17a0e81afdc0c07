"""How far the whole distribution of a value moved, not just its mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetmap.capabilities.resampling import (
    MOST_UNITS,
    exchanged_sums,
    generator,
    limits,
    resampled_sums,
)
from forgetmap.stats import Reals

MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class Distance:
    """Wasserstein distance between the values before and after.

    Attributes:
        value: how far a value moved on average, in the best matching; of counts in log(1 + count),
            of values with a range in shares of it.
        low: lower 95 % limit.
        high: upper 95 % limit.
        noise: what it is on average if before and after are exchangeable.
        p: how often exchanging them gives as much.
    """

    value: float
    low: float
    high: float
    noise: float
    p: float


def distance(before: Reals, after: Reals, *, seed: int, name: str, draws: int) -> Distance:
    """The distance of paired values, with its limits and what it is by chance.

    Of very many values a part is taken at random.
    """
    rng = generator(seed, f"{name} distance")
    if len(before) > MOST_UNITS:
        some = rng.choice(len(before), MOST_UNITS, replace=False)
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
    # A resampled distance is too long by as much as the distance itself is.
    found = limits(lengths - (np.nanmean(lengths) - value)) or (value, value)
    null = length(exchanged_sums(rows[:, 1:], rng, draws), n)
    p = float((1 + (null >= value).sum()) / (1 + draws))
    return Distance(value, max(found[0], 0.0), found[1], float(null.mean()), p)


def _grid(values: Reals) -> tuple[Reals, Reals]:
    """Places at which the distributions are compared, and how far each is from the next."""
    places = np.unique(values)
    if places.size > MOST_STEPS:
        places = np.unique(np.quantile(places, np.linspace(0, 1, MOST_STEPS)))
    return places[:-1], np.diff(places)
