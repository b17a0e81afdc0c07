"""Results of statistics: a number, its interval, and its method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Reals = NDArray[np.float64]
"""An array of numbers."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds of its interval; arrays of the same shape."""

    value: Reals
    low: Reals
    high: Reals

    def contains(self, truth: ArrayLike) -> Flags:
        """Return where the interval contains a value."""
        value = np.asarray(truth, float)
        inside: Flags = (self.low <= value) & (value <= self.high)
        return inside
