"""The toy model of Chen et al. (arXiv 2510.18874), rebuilt from its description.

Two Gaussian modes of different width, an old one that the model nearly has and a new one to be
reached. "RL" samples only the new component and is rewarded for the new mode alone; everything of
the old mode learns `slow` times as fast as the new. How much is forgotten when 0.9 of the new mode
is gained depends more on that factor and on finite samples than on the direction of KL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from forgetmap.errors import ConvergenceError, UsageError
from forgetmap.theory.estimators import Floats

TARGET = ((0.75, -3.0, 1.0), (0.25, 3.5, 0.7))
START = (0.75, -3.5, 1.0, 0.5, 0.7)
"""Old weight, old mean and width, new mean and width."""
FIELD = np.linspace(-8.0, 8.0, 500)
REWARD_SCALE = 0.1
LEAST = 1e-3
TINY = 1e-12


@dataclass(frozen=True)
class ChenToy:
    """Settings for training the toy model.

    Attributes:
        method: `sft` on samples of the new mode, or `rl` on samples of the new component.
        rate: learning rate of the new component.
        slow: factor of the rate for the old component and the weight.
        samples: number of samples per step; None integrates exactly instead.
        normalised: whiten rewards within the batch, as GRPO does.
        gain: stop once the new mode is gained by this much.
    """

    method: Literal["sft", "rl"]
    rate: float
    slow: float = 0.005
    samples: int | None = 1000
    normalised: bool = False
    gain: float = 0.9

    def __post_init__(self) -> None:
        if self.method not in {"sft", "rl"} or self.rate <= 0 or not 0 < self.slow <= 1:
            raise UsageError(
                "the toy model needs sft or rl, a positive rate and a slow factor of at most 1",
                hint="use for example method='sft', rate=0.15.",
            )

    def drops(self, seeds: int = 5, seed: int = 0, most: int = 20_000) -> Floats:
        """Return the loss of the old mode of each run, when it had gained the new one.

        Raises:
            ConvergenceError: a run did not gain enough within `most` steps.
        """
        random = np.random.default_rng(seed)
        model = np.repeat(np.asarray(START)[:, None], seeds, axis=1)
        first_old, first_new = accuracies(model)
        drops = np.full(seeds, np.nan)
        for _ in range(most):
            model = self._step(model, random)
            old, new = accuracies(model)
            reached = np.isnan(drops) & (new - first_new >= self.gain)
            drops[reached] = (first_old - old)[reached]
            if not np.isnan(drops).any():
                return drops
        raise ConvergenceError(
            f"the new mode was not learned within {most} steps", hint="raise the learning rate."
        )

    def _step(self, model: Floats, random: np.random.Generator) -> Floats:
        centre, width = (TARGET[1][1:]) if self.method == "sft" else (model[3], model[4])
        x, weights = self._points(centre, width, model.shape[1], random)
        slope = scores(x, model)
        worth = np.ones_like(x) if self.method == "sft" else self._worth(x, model, weights)
        up = (weights * worth * slope).sum(axis=-1)
        moved = model + self.rate * up * np.array([self.slow, self.slow, self.slow, 1, 1])[:, None]
        moved[0] = np.clip(moved[0], LEAST, 1 - LEAST)
        moved[[2, 4]] = np.maximum(moved[[2, 4]], LEAST)
        return np.asarray(moved)

    def _points(
        self, centre: Floats | float, width: Floats | float, runs: int, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        middle, spread = (np.broadcast_to(part, runs)[:, None] for part in (centre, width))
        if self.samples is None:
            x = np.broadcast_to(np.linspace(-14, 14, 2801), (runs, 2801))
            return x, _bell(x, middle, spread) * 0.01
        x = middle + spread * random.standard_normal((runs, self.samples))
        return x, np.full((runs, self.samples), 1 / self.samples)

    def _worth(self, x: Floats, model: Floats, weights: Floats) -> Floats:
        weight, old_mean, old_width, new_mean, new_width = (part[:, None] for part in model)
        from_old = weight * _bell(x, old_mean, old_width)
        from_new = (1 - weight) * _bell(x, new_mean, new_width)
        # Guards of the published code; in exact integrals they would hide the old region.
        guard = 0.0 if self.samples is None else TINY
        reward = np.log(_bell(x, *TARGET[1][1:]) / from_new / REWARD_SCALE + guard)
        if self.normalised:
            middle = (weights * reward).sum(axis=-1, keepdims=True)
            spread = np.sqrt((weights * (reward - middle) ** 2).sum(axis=-1, keepdims=True))
            reward = (reward - middle) / spread
        return np.asarray(reward * (from_old + from_new) / (from_new + guard))


def scores(x: Floats, model: Floats) -> Floats:
    """Return the derivatives of the log-density of the model in its five parameters."""
    weight, old_mean, old_width, new_mean, new_width = (part[:, None] for part in model)
    old, new = _bell(x, old_mean, old_width), _bell(x, new_mean, new_width)
    density = weight * old + (1 - weight) * new + TINY
    r_old, r_new = weight * old / density, (1 - weight) * new / density
    return np.stack(
        [
            (old - new) / density,
            r_old * (x - old_mean) / old_width**2,
            r_old * ((x - old_mean) ** 2 / old_width**3 - 1 / old_width),
            r_new * (x - new_mean) / new_width**2,
            r_new * ((x - new_mean) ** 2 / new_width**3 - 1 / new_width),
        ]
    )


def accuracies(model: Floats) -> tuple[Floats, Floats]:
    """Return the share of each target mode that the component of the model covers."""
    weight, old_mean, old_width, new_mean, new_width = (part[:, None] for part in model)
    parts = (
        weight * _bell(FIELD, old_mean, old_width),
        (1 - weight) * _bell(FIELD, new_mean, new_width),
    )
    covered = []
    for (share, mean, width), part in zip(TARGET, parts, strict=True):
        mode = share * _bell(FIELD, mean, width)
        covered.append(np.minimum(mode, part).sum(axis=-1) / mode.sum())
    return covered[0], covered[1]


def _bell(x: Floats, mean: Floats | float, width: Floats | float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((x - mean) / width) ** 2) / (width * np.sqrt(2 * np.pi)))
