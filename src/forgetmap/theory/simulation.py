"""Simulation of one method, with all values that a plot needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forgetmap.errors import UsageError
from forgetmap.theory import flows, methods, mixtures
from forgetmap.theory.estimators import Floats
from forgetmap.theory.flows import Trajectory
from forgetmap.theory.methods import Demonstrator, Distillation, Sampled, Setting
from forgetmap.theory.mixtures import Mixture
from forgetmap.theory.objectives import ForwardKL, ReverseKL

Method = Literal[
    "sft", "replay", "rl", "rl-new", "kl-rl", "iw-replay", "sdft", "ttt-discover", "oapl"
]


@dataclass(frozen=True)
class Hyperparameters:
    """Parameters of the methods, besides the start of training.

    Attributes:
        fraction: fraction of replayed old data (replay, iw-replay).
        gap: reward of new minus reward of old behaviour (kl-rl, ttt-discover, oapl).
        temperature: temperature of the KL penalty (kl-rl).
        eta: inverse temperature of the utility; None adapts it (ttt-discover).
        strength: strength of the KL penalty (ttt-discover).
        anchor: strength of the anchor of the teacher to the demonstrations (sdft).
        refresh: rate of the moving average of the teacher (sdft).
        demo_weight: old weight of the demonstrator (sdft).
        t1: temperature of the soft maximum (oapl).
        t2: temperature of the regression (oapl).
        refreshes: number of refreshes of the lagged policy (oapl).
        batch: number of samples per step (iw-replay, and every method in `simulate_batches`).
        seed: seed of the samples.
    """

    fraction: float = 0.1
    gap: float = 1.0
    temperature: float = 1.0
    eta: float | None = 2.0
    strength: float = 0.5
    anchor: float = 0.2
    refresh: float = 0.2
    demo_weight: float = 0.5
    t1: float = 1.0
    t2: float = 1.0
    refreshes: int = 6
    batch: int = 64
    seed: int = 0


@dataclass(frozen=True)
class TrainingRun:
    """The path of a method, with the quantities of a plot.

    Attributes:
        method: name of the method.
        setting: the start of training.
        path: the path, including the start.
        unit: unit of time.
    """

    method: Method
    setting: Setting
    path: Trajectory
    unit: str

    @property
    def separation(self) -> float:
        """Separation of the modes."""
        return float(np.asarray(self.setting.separation))

    @property
    def weight(self) -> Floats:
        """Old weight over time."""
        return self.path.old_weight

    @property
    def mass(self) -> Floats:
        """Mass nearer to the old mode over time."""
        return self.path.old_mass(self.separation)

    @property
    def drift(self) -> Floats:
        """Distance of the old component from the old mode over time."""
        return self.path.drift(self.separation)

    @property
    def target(self) -> Mixture:
        """The true mixture along the axis of the modes."""
        return self.setting.target

    @property
    def ends(self) -> tuple[float, float]:
        """Positions of the outermost modes."""
        return 0.0, self.separation

    def density(self, x: Floats, step: int) -> Floats:
        """Return the density of the model at one of the times."""
        return np.exp(Mixture.of_state(self.path.states[:, step]).log_density(x))


def simulate(
    method: Method, setting: Setting, parameters: Hyperparameters, until: float, count: int = 121
) -> TrainingRun:
    """Run a method.

    Args:
        method: name of the method.
        setting: the start of training.
        parameters: parameters of the method.
        until: the last time; OAPL counts refreshes instead, `iw-replay` steps.
        count: number of times.
    """
    if method not in RUNS:
        raise UsageError(f"there is no method {method!r}", hint=f"choose one of {', '.join(RUNS)}.")
    mixtures.check_positive(until, "until")
    times = np.geomspace(until * 1e-4, until, count - 1)
    path = RUNS[method](setting, parameters, times)
    unit = {"oapl": "refreshes", "iw-replay": "steps"}.get(method, "time")
    return TrainingRun(method, setting, _from_start(path, setting), unit)


def _from_start(path: Trajectory, setting: Setting) -> Trajectory:
    if path.times[0] == 0:
        return path
    states = np.concatenate([setting.start[:, None], path.states], axis=1)
    return Trajectory(np.r_[0.0, path.times], states)


def _discover(setting: Setting, parameters: Hyperparameters, times: Floats) -> Trajectory:
    eta = "adaptive" if parameters.eta is None else parameters.eta
    return methods.ttt_discover(setting, times, eta, parameters.strength, parameters.gap)


def _distil(setting: Setting, parameters: Hyperparameters, times: Floats) -> Trajectory:
    how = Distillation(parameters.anchor, parameters.refresh, Demonstrator(parameters.demo_weight))
    return methods.sdft(setting, times, how)[0]


def _weighted(setting: Setting, parameters: Hyperparameters, times: Floats) -> Trajectory:
    """Run reverse KL from batches with replayed old data under importance weights."""
    apart, share = (float(np.asarray(value)) for value in (setting.separation, setting.old_share))
    sampled = Sampled(apart, 1, share, parameters.batch, parameters.fraction)
    mask = flows.mask_of(setting.trained, 2)
    steps = max(1, round(times[-1] / RATE))
    path = flows.descend(
        lambda model, random: mask * sampled.reverse(model, random),
        setting.start[:, None],
        steps,
        RATE,
        parameters.seed,
        every=max(1, steps // 400),
    )
    return Trajectory(path.times, path.states[:, 0])


RATE = 0.1
"""Step size of stochastic descent."""

RUNS: dict[Method, Callable[[Setting, Hyperparameters, Floats], Trajectory]] = {
    "sft": lambda setting, _, times: methods.sft(setting, times),
    "replay": lambda setting, parameters, times: methods.replay(
        setting, times, parameters.fraction
    ),
    "rl": lambda setting, _, times: methods.rl(setting, times),
    "rl-new": lambda setting, _, times: methods.rl(setting, times, sees_old=False),
    "kl-rl": lambda setting, parameters, times: methods.kl_rl(
        setting, times, parameters.gap, parameters.temperature
    ),
    "iw-replay": _weighted,
    "sdft": _distil,
    "ttt-discover": _discover,
    "oapl": lambda setting, parameters, _: methods.oapl(
        setting, parameters.refreshes, parameters.gap, parameters.t1, parameters.t2
    ),
}


def two_by_two(setting: Setting, until: float) -> dict[tuple[str, str], TrainingRun]:
    """Return both directions of KL to both targets: new behaviour alone, or old and new."""
    runs: dict[tuple[str, str], TrainingRun] = {}
    targets = {"new only": setting.new_only, "old and new": setting.target}
    for name, target in targets.items():
        forward = setting.follow(ForwardKL(target, setting.nodes), [until])
        reverse = setting.follow(ReverseKL(target, setting.nodes), [until])
        runs["forward KL", name] = TrainingRun(
            "sft", setting, _from_start(forward, setting), "time"
        )
        runs["reverse KL", name] = TrainingRun("rl", setting, _from_start(reverse, setting), "time")
    return runs
