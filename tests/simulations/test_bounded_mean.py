"""The betting bound is above the mean of any distribution on [0, 1], also of rare events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from forgetmap.stats import betting_upper_limit

Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]


def rare(share: float, usual: float) -> Draw:
    """Nearly always small values, and 1 in a small share."""
    return lambda random, shape: np.where(
        random.random(shape) < share, 1.0, random.uniform(0, 2 * usual, shape)
    )


WORLDS: dict[str, tuple[Draw, float]] = {
    "1 % at 1, else .01": (rare(0.01, 0.01), 0.01 + 0.99 * 0.01),
    "2 % at 1, else .01": (rare(0.02, 0.01), 0.02 + 0.98 * 0.01),
    "5 % at 1, else 0": (rare(0.05, 0.0), 0.05),
    "uniform": (lambda random, shape: random.random(shape), 0.5),
    "beta(.2, 1.8)": (lambda random, shape: random.beta(0.2, 1.8, shape), 0.1),
    "nearly all 1": (lambda random, shape: (random.random(shape) < 0.95).astype(float), 0.95),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [8, 32, 100, 300])
def test_the_limit_is_below_the_mean_in_at_most_one_of_twenty(world: str, size: int) -> None:
    draw, mean = WORLDS[world]
    limits = betting_upper_limit(draw(np.random.default_rng(3), (400, size)))
    assert (limits < mean).mean() <= 0.05


def test_the_limit_approaches_the_mean() -> None:
    random = np.random.default_rng(4)
    widths = [
        float(betting_upper_limit(random.beta(1, 19, (20, size))).mean()) - 0.05
        for size in (32, 300, 3000)
    ]
    assert widths[0] > widths[1] > widths[2] > 0
    assert widths[2] < 0.01
