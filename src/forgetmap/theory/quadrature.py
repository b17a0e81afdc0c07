"""Expectations under Gaussians, computed in three ways that must agree.

`Grid` is the trapezoid rule in one dimension, exact to rounding for smooth functions;
`GaussHermite` a tensor rule for one or two dimensions with any covariance; `MonteCarlo` works in
any dimension and returns its standard error. `Nodes` is the grid for the flows: points in standard
deviations around the current mean of a component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from forgetmap.errors import UsageError
from forgetmap.theory.estimators import Floats

Function = Callable[[Floats], Floats]
"""Maps points (n, d) to values (n, ...)."""


class Quadrature(Protocol):
    """A method to average a function over a Gaussian."""

    def expect(self, function: Function, mean: Floats, covariance: Floats) -> Floats:
        """Return the mean of function(x) for Gaussian x."""
        ...


@dataclass(frozen=True)
class Grid:
    """Trapezoid rule on an even grid; one dimension."""

    reach: float = 14.0
    points: int = 6001

    def expect(self, function: Function, mean: Floats, covariance: Floats) -> Floats:
        """Return the mean of function(x) for Gaussian x."""
        if len(mean) != 1:
            raise UsageError(
                f"a grid supports one dimension, not {len(mean)}",
                hint="use GaussHermite or MonteCarlo.",
            )
        z = np.linspace(-self.reach, self.reach, self.points)
        values = function(mean + np.sqrt(covariance[0, 0]) * z[:, None])
        return np.asarray(_bell(z) @ values)


@dataclass(frozen=True)
class GaussHermite:
    """Tensor Gauss-Hermite rule with a full covariance; one or two dimensions."""

    nodes: int = 120

    def expect(self, function: Function, mean: Floats, covariance: Floats) -> Floats:
        """Return the mean of function(x) for Gaussian x."""
        if len(mean) > 2:
            raise UsageError(
                f"{self.nodes} nodes to the power of {len(mean)} are too many points",
                hint="use MonteCarlo in more than two dimensions.",
            )
        z, weights = _hermite(self.nodes)
        corners = np.stack(np.meshgrid(*[z] * len(mean), indexing="ij"), axis=-1)
        products = np.prod(np.meshgrid(*[weights] * len(mean), indexing="ij"), axis=0)
        white = corners.reshape(-1, len(mean))
        values = function(mean + white @ np.linalg.cholesky(covariance).T)
        return np.asarray(products.ravel() @ values)


@dataclass(frozen=True)
class MonteCarlo:
    """Averages over samples; any dimension. The same seed gives the same samples."""

    samples: int = 100_000
    seed: int = 0

    def expect(self, function: Function, mean: Floats, covariance: Floats) -> Floats:
        """Return the mean of function(x) for Gaussian x."""
        return self.expect_with_error(function, mean, covariance)[0]

    def expect_with_error(
        self, function: Function, mean: Floats, covariance: Floats
    ) -> tuple[Floats, Floats]:
        """Return the same with its standard error."""
        white = np.random.default_rng(self.seed).standard_normal((self.samples, len(mean)))
        values = function(mean + white @ np.linalg.cholesky(covariance).T)
        error = values.std(axis=0, ddof=1) / np.sqrt(self.samples)
        return np.asarray(values.mean(axis=0)), np.asarray(error)


@dataclass(frozen=True)
class Nodes:
    """Points and weights of the trapezoid rule around a mean, in standard deviations.

    Attributes:
        z: the points.
        weights: their weights under the standard Gaussian; they add up to 1.
    """

    z: Floats
    weights: Floats

    def around(self, mean: Floats) -> Floats:
        """Return points for every cell, as a new last axis."""
        return np.asarray(mean)[..., None] + self.z

    def mean(self, values: Floats) -> Floats:
        """Average over the last axis."""
        return np.asarray(values @ self.weights)


@lru_cache(maxsize=16)
def nodes(step: float = 0.05, reach: float = 14.0) -> Nodes:
    """Return an even grid; steps of 0.05 are exact to rounding up to a separation of about 12."""
    count = round(2 * reach / step) + 1
    z = np.linspace(-reach, reach, count)
    return Nodes(z, _bell(z))


COARSE = (0.35, 5.6)
"""Step and reach with a precision of masses of about 1e-5, for grids of many cells."""


def _bell(z: Floats) -> Floats:
    weights = np.exp(-0.5 * z**2)
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=4)
def _hermite(count: int) -> tuple[Floats, Floats]:
    z, weights = np.polynomial.hermite_e.hermegauss(count)
    return z, weights / weights.sum()
