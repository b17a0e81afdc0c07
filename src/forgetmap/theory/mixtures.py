"""Two-mode mixtures: an old and a new behaviour, each a Gaussian of the same covariance.

The target is `old_share` p_o + (1 - old_share) p_n, the model beta q_o + (1 - beta) q_n with beta =
sigmoid(b). In whitened coordinates only the axis through both modes matters, so everything that
moves is computed on that axis: a state is an array (b, m_o, m_n), the old mode is at 0 and the new
one at the separation. A state may hold many cells of a parameter grid at once: its first axis is
always the parameter, points of a quadrature are always the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from forgetmap.errors import FieldError
from forgetmap.theory.estimators import Floats, sigmoid

HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
MOST_SEPARATION = 30.0
"""Maximum separation; beyond it there is no overlap in double precision, and quadrature would need
finer steps."""


def logit(share: ArrayLike) -> Floats:
    """Return the log-odds of a share."""
    value = np.asarray(share, dtype=np.float64)
    return np.log(value) - np.log1p(-value)


def state(old_weight: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike) -> Floats:
    """Build a model as the array (b, m_o, m_n), cells broadcast."""
    parts = (logit(old_weight), np.asarray(old_mean, float), np.asarray(new_mean, float))
    return np.stack(np.broadcast_arrays(*parts))


@dataclass(frozen=True)
class Mixture:
    """A mixture of unit Gaussians on the axis.

    Attributes:
        weights: one row per component, then cells; they add up to 1.
        means: the same shape.
    """

    weights: Floats
    means: Floats

    @classmethod
    def of(cls, weights: list[ArrayLike], means: list[ArrayLike]) -> Self:
        """Build a mixture from components, cells broadcast."""
        together = np.broadcast_arrays(*(np.asarray(part, float) for part in (*weights, *means)))
        return cls(np.stack(together[: len(weights)]), np.stack(together[len(weights) :]))

    @classmethod
    def of_state(cls, model: Floats) -> Self:
        """Build the mixture of a state."""
        old = sigmoid(model[0])
        return cls(np.stack([old, 1 - old]), model[1:3])

    def log_density(self, x: Floats) -> Floats:
        """Return the log-density at points, whose last axis is that of the quadrature."""
        return np.asarray(reduce(np.logaddexp, self._parts(x)) - HALF_LOG_TWO_PI)

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log-density and its derivative."""
        if len(self.weights) == 2:  # one exponential and one logarithm
            old, new = self.means[..., None]
            log, share = _split(x, self.log_odds[..., None], old, new)
            return log, new - x + (1 - share) * (old - new)
        pulls = [mean[..., None] - x for mean in self.means]
        score = sum(s * pull for s, pull in zip(self.shares(x), pulls, strict=True))
        return self.log_density(x), np.asarray(score)

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of the first component against the second."""
        return np.asarray(np.log(self.weights[0]) - np.log(self.weights[1]))

    def shares(self, x: Floats) -> Floats:
        """Return the responsibility of every component."""
        parts = self._parts(x)
        if len(parts) == 2:
            return np.stack([sigmoid(parts[0] - parts[1]), sigmoid(parts[1] - parts[0])])
        return np.exp(parts - reduce(np.logaddexp, parts))

    def _parts(self, x: Floats) -> list[Floats]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)[..., None]
        means = self.means[..., None]
        return [log - 0.5 * (x - mean) ** 2 for log, mean in zip(logs, means, strict=True)]

    def sample(self, count: int, random: np.random.Generator) -> Floats:
        """Sample points from a mixture without cells."""
        which = random.choice(self.weights.size, count, p=self.weights)
        return np.asarray(self.means[which] + random.standard_normal(count))


def log_density_and_new(x: Floats, model: Floats) -> tuple[Floats, Floats]:
    """Return the log-density of a model and its responsibility r_n(x), together."""
    b, old, new = (part[..., None] for part in model)
    return _split(x, b, old, new)


def _split(x: Floats, log_odds: Floats, old: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Return the log-density of two unit Gaussians and the share of the second.

    Log-odds of old against new are linear in x; everything else follows from a single exp(-|line|).
    """
    line = log_odds + (old - new) * (x - (old + new) / 2)
    small = np.exp(-np.abs(line))
    log_new = -np.logaddexp(0.0, log_odds) - HALF_LOG_TWO_PI
    log = log_new - 0.5 * (x - new) ** 2 + np.maximum(line, 0.0) + np.log1p(small)
    return log, np.where(line > 0, small, 1.0) / (1 + small)


def old_responsibility(x: Floats, model: Floats) -> Floats:
    """Return r_o(x), the share of the old component in the density at x."""
    b, old, new = (part[..., None] for part in model)
    return sigmoid(b + (old - new) * (x - (old + new) / 2))


def new_responsibility(x: Floats, model: Floats) -> Floats:
    """Return r_n(x) = 1 - r_o(x), precise for small values."""
    b, old, new = (part[..., None] for part in model)
    return sigmoid(-b - (old - new) * (x - (old + new) / 2))


def region_mass(model: Floats, separation: ArrayLike) -> Floats:
    """Return the mass nearer to the old mode than to the new one, by distribution functions."""
    border = np.asarray(separation, float) / 2
    old = sigmoid(model[0])
    return np.asarray(old * ndtr(border - model[1]) + (1 - old) * ndtr(border - model[2]))


def match_components(model: Floats, separation: ArrayLike) -> Floats:
    """Return the state with each component assigned to the nearest mode.

    Labels can be exchanged during training; without matching this would count as a huge drift.
    """
    distance = np.asarray(separation, float)
    kept = np.abs(model[1]) + np.abs(model[2] - distance)
    exchanged = np.abs(model[2]) + np.abs(model[1] - distance)
    swap = exchanged < kept
    return np.stack(
        [
            np.where(swap, -model[0], model[0]),
            np.where(swap, model[2], model[1]),
            np.where(swap, model[1], model[2]),
        ]
    )


# ------------------------------------------------------------------------------- any dimension


def target_mixture(old_share: ArrayLike, separation: ArrayLike) -> Mixture:
    """Return the true target on the axis: old mode at 0, new one at the separation."""
    share = np.asarray(old_share, float)
    return Mixture.of([share, 1 - share], [0.0, separation])


def log_gaussian(x: Floats, mean: Floats, covariance: Floats) -> Floats:
    """Return the log-density at points (n, d)."""
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, (x - mean).T)
    constant = np.log(np.diag(factor)).sum() + len(mean) * HALF_LOG_TWO_PI
    return np.asarray(-0.5 * (white**2).sum(axis=0) - constant)


def overlap(mean: Floats, covariance: Floats, other_mean: Floats, other: Floats) -> float:
    """Return the Bhattacharyya coefficient of two Gaussians, of equal covariance or not."""
    middle = (covariance + other) / 2
    apart = mean - other_mean
    determinants = np.linalg.slogdet(np.stack([covariance, other, middle]))[1]
    scale = np.exp((determinants[0] + determinants[1]) / 4 - determinants[2] / 2)
    return float(scale * np.exp(-apart @ np.linalg.solve(middle, apart) / 8))


# ----------------------------------------------------------------------------------------- checks


def check_share(value: ArrayLike, name: str) -> None:
    """Raise an error if a share is not strictly between 0 and 1."""
    hint = "use a number such as 0.5; 0 or 1 would leave nothing to learn."
    _check(value, name, (0.0, 1.0), "strictly between 0 and 1", hint)


def check_part(value: ArrayLike, name: str) -> None:
    """Raise an error if a part is not at least 0 and below 1."""
    none, hint = np.nextafter(0.0, -1.0), "use 0 for none."
    _check(value, name, (none, 1.0), "at least 0 and below 1", hint)


def check_separation(value: ArrayLike, name: str = "separation") -> None:
    """Raise an error if a separation is not between 0 and the limit of double precision."""
    hint = "use a number such as 5, in standard deviations of one mode."
    limits = f"above 0 and below {MOST_SEPARATION:g}"
    _check(value, name, (0.0, MOST_SEPARATION), limits, hint)


def check_positive(value: ArrayLike, name: str) -> None:
    """Raise an error if a temperature, rate or time is not positive and finite."""
    _check(value, name, (0.0, np.inf), "above 0 and finite", "use a positive number such as 1.")


def _check(
    value: ArrayLike, name: str, between: tuple[float, float], limits: str, hint: str
) -> None:
    values = np.asarray(value, dtype=np.float64)
    wrong = values[~((values > between[0]) & (values < between[1]))]
    if wrong.size:
        raise FieldError(
            f"{name} is {wrong.ravel()[0]:g}, but must be {limits}", field=name, hint=hint
        )
