"""Old mass over separations and one parameter of a method, all cells at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from forgetmap.errors import UsageError
from forgetmap.theory import methods, mixtures
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.flows import Trajectory
from forgetmap.theory.methods import Demonstrator, Distillation, Setting
from forgetmap.theory.objectives import Target, kl_regularised
from forgetmap.theory.quadrature import COARSE, nodes

PhaseParameter = Literal["replay", "temperature", "anchor"]
PHASE_PARAMETERS: dict[PhaseParameter, str] = {
    "replay": "replayed fraction",
    "temperature": "temperature of the KL penalty",
    "anchor": "anchor of the teacher",
}
"""Parameters of a phase diagram beside the separation, with their titles."""
PHASE_VALUES: dict[PhaseParameter, Floats] = {
    "replay": np.linspace(0.01, 0.5, 60),
    "temperature": np.geomspace(0.2, 5.0, 60),
    "anchor": np.linspace(0.01, 1.0, 60),
}
"""Default values of a diagram."""
PRECISION: dict[PhaseParameter, float] = {"replay": 3e-5, "temperature": 3e-6, "anchor": 1e-5}
"""Mean tolerance of the solver over cells; masses are right to 1e-4 in each."""
CELLS = 500
"""Number of cells followed together; more would not fit the cache of a processor."""
GAP, OLD_SHARE = 1.0, 0.2
STEP, REACH = COARSE


@dataclass(frozen=True)
class Phase:
    """Remaining old behaviour in every cell.

    Attributes:
        parameter: parameter along the second axis.
        separations: separations along the first axis.
        values: values of the parameter.
        weight: old weight of the model at the end.
        mass: mass nearer to the old mode at the end.
        drift: distance of the old component from the old mode.
    """

    parameter: PhaseParameter
    separations: Floats
    values: Floats
    weight: Floats
    mass: Floats
    drift: Floats


def phase_diagram(
    parameter: PhaseParameter,
    separations: Floats,
    values: Floats,
    until: float,
    setting: Setting | None = None,
) -> Phase:
    """Follow every combination of separation and parameter until the same time.

    Args:
        parameter: `replay` (SFT with a replayed fraction), `temperature` (reward with a KL penalty;
            reward gap 1) or `anchor` (self-distillation toward a demonstrator of old weight 0.2).
        separations: separations along the first axis.
        values: values of the parameter, along the second axis.
        until: the end time.
        setting: the start of training; its separation is replaced.
    """
    if parameter not in PHASE_PARAMETERS:
        raise UsageError(
            f"there is no parameter {parameter!r}",
            hint=f"choose one of {', '.join(PHASE_PARAMETERS)}.",
        )
    apart, along = np.broadcast_arrays(separations[:, None], values[None, :])
    base = setting or Setting()
    rows = max(1, CELLS // values.size)
    ends = []
    for first in range(0, separations.size, rows):
        part = slice(first, first + rows)
        cells = replace(
            base, separation=apart[part], nodes=nodes(*COARSE), precision=PRECISION[parameter]
        )
        ends.append(_RUNS[parameter](cells, along[part], until).end)
    end = np.concatenate(ends, axis=1)
    return Phase(
        parameter,
        separations,
        values,
        sigmoid(end[0]),
        mixtures.region_mass(end, apart),
        np.abs(mixtures.match_components(end, apart)[1]),
    )


def _follow_distillation(cells: Setting, along: Floats, until: float) -> Trajectory:
    return methods.sdft(cells, [until], Distillation(along, 0.2, Demonstrator(OLD_SHARE)))[0]


@dataclass(frozen=True)
class ReverseKLOnField:
    """KL(model||target) on fixed points, so that the target is computed once.

    Precise to about 1e-5, which is enough for a figure, and several times as fast as nodes that
    move with the components.

    Attributes:
        x: points of every cell, last axis.
        log_target: log-density of the target there, up to a constant.
    """

    x: Floats
    log_target: Floats

    @classmethod
    def of(cls, target: Target, separation: Floats) -> Self:
        """Use evenly spaced points that reach beyond both modes of the widest cell."""
        points = np.arange(-REACH, float(np.max(separation)) + REACH + STEP, STEP)
        x = np.broadcast_to(points, (*np.shape(separation), points.size))
        return cls(x, target.log_and_score(x)[0])

    def value(self, model: Floats) -> Floats:
        """Return the value, up to the constant of the target."""
        beta = sigmoid(model[0])
        old, new, excess = self._parts(model, beta)
        return np.asarray(beta * _dot(old, excess) + (1 - beta) * _dot(new, excess))

    def gradient(self, model: Floats) -> Floats:
        """Return the gradient by the score function: one excess serves weight and means."""
        beta = sigmoid(model[0])
        old, new, excess = self._parts(model, beta)
        old *= excess
        new *= excess
        of_old, of_new = old.sum(axis=-1), new.sum(axis=-1)
        return np.stack(
            [
                beta * (1 - beta) * (of_old - of_new),
                beta * (_dot(old, self.x) - model[1] * of_old),
                (1 - beta) * (_dot(new, self.x) - model[2] * of_new),
            ]
        )

    def _parts(self, model: Floats, beta: Floats) -> tuple[Floats, Floats, Floats]:
        old, new = (self._bell(mean) for mean in model[1:])
        excess = beta[..., None] * old
        excess += (1 - beta)[..., None] * new
        np.log(excess, out=excess)
        excess -= self.log_target
        return old, new, excess

    def _bell(self, mean: Floats) -> Floats:
        away = self.x - mean[..., None]
        away *= away
        away *= -0.5
        np.exp(away, out=away)
        away *= STEP / np.sqrt(2 * np.pi)
        return away


def _dot(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.einsum("...k,...k->...", first, second))


def _follow_penalty(cells: Setting, along: Floats, until: float) -> Trajectory:
    target = kl_regularised(cells.base, cells.reward(GAP), along)
    field = ReverseKLOnField.of(target, np.asarray(cells.separation))
    return cells.follow(field, [until])


_RUNS: dict[PhaseParameter, Callable[[Setting, Floats, float], Trajectory]] = {
    "replay": lambda cells, along, until: methods.replay(cells, [until], along),
    "temperature": _follow_penalty,
    "anchor": _follow_distillation,
}
