"""Post-training methods in the two-mode model, for one setting or a grid of settings.

A `Setting` defines the start of training and the trained parameters; a method adds its own
parameters and returns the path of the model. Numbers of a setting and of a method may be arrays:
all cells of their broadcast shape are followed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize

from forgetmap.errors import ConvergenceError, UsageError
from forgetmap.theory import flows, formulas, mixtures
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.flows import Geometry, Mask, Trajectory
from forgetmap.theory.mixtures import Mixture, logit
from forgetmap.theory.objectives import (
    Entropic,
    ForwardKL,
    MinusReward,
    NewMembership,
    Objective,
    OffPolicyRegression,
    ReverseKL,
    kl_regularised,
)
from forgetmap.theory.quadrature import Nodes, nodes

FLAT = 1e-5
"""Part of the first gradient that may remain at a minimum."""
ETA_CAP = 1e6
"""Maximum of the adaptive temperature of TTT-Discover, if its budget cannot be spent."""


@dataclass(frozen=True)
class Setting:
    """Start of training and trained parameters.

    Attributes:
        separation: distance of the two modes in standard deviations.
        old_share: weight of the old mode in the true target.
        start_weight: weight of the model on the old mode before training.
        start_offset: distance of the new component from the new mode at the start, towards the old
            one.
        trained: `weight`, `weight+new` or `joint`.
        geometry: `logit`, `euclid` or `natural`.
        precision: relative tolerance of the solver.
        nodes: nodes of the quadrature.
    """

    separation: ArrayLike = 5.0
    old_share: ArrayLike = 0.5
    start_weight: ArrayLike = 0.5
    start_offset: ArrayLike = 1.0
    trained: Mask = "joint"
    geometry: Geometry = "logit"
    precision: float = 1e-9
    nodes: Nodes = field(default_factory=nodes)

    def __post_init__(self) -> None:
        mixtures.check_separation(self.separation)
        mixtures.check_share(self.old_share, "old_share")
        mixtures.check_share(self.start_weight, "start_weight")
        if not np.isfinite(np.asarray(self.start_offset, float)).all():
            raise UsageError("start_offset must be finite", hint="use 1, for example.")

    @property
    def start(self) -> Floats:
        """The model before, whose old component is right."""
        new = np.asarray(self.separation, float) - np.asarray(self.start_offset, float)
        return mixtures.state(self.start_weight, 0.0, new)

    @property
    def target(self) -> Mixture:
        """The true mixture of both behaviours."""
        return mixtures.target_mixture(self.old_share, self.separation)

    @property
    def new_only(self) -> Mixture:
        """The new behaviour alone."""
        return Mixture.of([1.0], [self.separation])

    @property
    def base(self) -> Mixture:
        """The model before, as a density."""
        return Mixture.of_state(self.start)

    def reward(self, gap: ArrayLike) -> NewMembership:
        """Return a reward for new behaviour that is flat on both modes."""
        shape = np.broadcast_shapes(np.shape(gap), self.start.shape[1:])
        return NewMembership(self.target, np.broadcast_to(np.asarray(gap, float), shape))

    def follow(self, objective: Objective, times: ArrayLike, *cells: ArrayLike) -> Trajectory:
        """Minimise an objective from the start; `cells` are further parameters of the grid."""
        start = np.stack([np.broadcast_arrays(value, *cells)[0] for value in self.start])
        return flows.follow(
            objective,
            start,
            times,
            trained=self.trained,
            geometry=self.geometry,
            precision=self.precision,
        )


def sft(setting: Setting, times: ArrayLike) -> Trajectory:
    """Run supervised fine-tuning on new data only: forward KL."""
    return setting.follow(ForwardKL(setting.new_only, setting.nodes), times)


def replay(
    setting: Setting, times: ArrayLike, fraction: ArrayLike, old_mean: ArrayLike = 0.0
) -> Trajectory:
    """Run supervised fine-tuning with a fraction of old data mixed in.

    Args:
        setting: the start.
        times: times of the states.
        fraction: fraction of old data, below 1; 0 is fine-tuning on new data only.
        old_mean: position of the replayed data; 0 is an unbiased buffer.
    """
    mixtures.check_part(fraction, "fraction")
    mix = np.asarray(fraction, float)
    data = Mixture.of([mix, 1 - mix], [old_mean, setting.separation])
    return setting.follow(ForwardKL(data, setting.nodes), times, fraction)


def rl(setting: Setting, times: ArrayLike, *, sees_old: bool = True) -> Trajectory:
    """Run reinforcement learning towards the true mixture, or the new mode alone: reverse KL."""
    target = setting.target if sees_old else setting.new_only
    return setting.follow(ReverseKL(target, setting.nodes), times)


def kl_rl(setting: Setting, times: ArrayLike, gap: ArrayLike, temperature: ArrayLike) -> Trajectory:
    """Maximise expected reward minus temperature times KL to the model before.

    Time is in units of 1/temperature: the flow is that of the equivalent reverse KL.

    Args:
        setting: the start.
        times: times of the states.
        gap: reward of new minus reward of old behaviour.
        temperature: strength of the KL penalty, positive.
    """
    _, warm, apart = np.broadcast_arrays(setting.start[0], temperature, gap)
    target = kl_regularised(setting.base, setting.reward(apart), warm)
    return setting.follow(ReverseKL(target, setting.nodes), times, warm, apart)


def policy_gradient(setting: Setting, times: ArrayLike, gap: ArrayLike) -> Trajectory:
    """Maximise expected reward without any anchor."""
    return setting.follow(MinusReward(setting.reward(gap), setting.nodes), times, gap)


# -------------------------------------------------------------------------------------------- SDFT


@dataclass(frozen=True)
class Demonstrator:
    """The demonstration-conditioned teacher.

    Attributes:
        old_weight: its weight on the old mode.
        old_mean: position of its old component.
    """

    old_weight: float = 0.5
    old_mean: float = 0.0


@dataclass(frozen=True)
class Distillation:
    """Self-distillation with a moving-average teacher that is pulled towards demonstrations.

    Attributes:
        anchor: strength of the pull, 0 (none) to 1 (the demonstrator is the teacher); may be a
            grid.
        refresh: rate at which the moving average follows the student.
        demonstrator: the demonstration-conditioned teacher.
        anchor_kind: `parameters` mixes log-odds and means, `mixture` mixes densities.
        direction: `reverse` or `forward` KL from student to teacher.
    """

    anchor: ArrayLike = 0.2
    refresh: float = 0.2
    demonstrator: Demonstrator = field(default_factory=Demonstrator)
    anchor_kind: Literal["parameters", "mixture"] = "parameters"
    direction: Literal["reverse", "forward"] = "reverse"

    def __post_init__(self) -> None:
        anchor = np.asarray(self.anchor, float)
        if not ((anchor >= 0) & (anchor <= 1)).all():
            raise UsageError("an anchor lies outside 0 to 1", hint="use 0.2, for example.")
        mixtures.check_positive(self.refresh, "refresh")


def sdft(
    setting: Setting, times: ArrayLike, how: Distillation, student: Floats | None = None
) -> tuple[Trajectory, Trajectory]:
    """Return the paths of student and moving average.

    Args:
        setting: the start of both.
        times: times of the states.
        how: settings of the distillation.
        student: start of the student, if it differs.
    """
    first = setting.start if student is None else student
    cells = np.broadcast_shapes(first.shape[1:], np.shape(how.anchor))
    both = np.concatenate([first, setting.start])
    start = np.stack([np.broadcast_to(value, cells) for value in both])
    mask = flows.mask_of(setting.trained, start.ndim)
    kind = ReverseKL if how.direction == "reverse" else ForwardKL
    teacher = _teacher(setting, how)

    def move(pair: Floats) -> Floats:
        theta, phi = pair[:3], pair[3:]
        down = kind(teacher(phi), setting.nodes).gradient(theta)
        return np.concatenate([-mask * down, how.refresh * (theta - phi) * mask])

    path = flows.solve(move, start, times, None, setting.precision)
    return Trajectory(path.times, path.states[:3]), Trajectory(path.times, path.states[3:])


def _teacher(setting: Setting, how: Distillation) -> Callable[[Floats], Mixture]:
    demo, pull = how.demonstrator, np.asarray(how.anchor, float)
    if how.anchor_kind == "mixture":
        demo_weights: list[ArrayLike] = [demo.old_weight * pull, (1 - demo.old_weight) * pull]

        def mixed(phi: Floats) -> Mixture:
            kept = kept_weight(sigmoid(phi[0]), pull)
            weights = [kept, 1 - pull - kept, *demo_weights]
            return Mixture.of(weights, [phi[1], phi[2], demo.old_mean, setting.separation])

        return mixed
    mixtures.check_share(demo.old_weight, "old_weight of the demonstrator")
    goal = mixtures.state(demo.old_weight, demo.old_mean, setting.separation)
    return lambda phi: Mixture.of_state(anchored_parameters(phi, goal, pull))


def anchored_parameters(average: Floats, demonstrated: Floats, anchor: Floats) -> Floats:
    """Interpolate the parameters of the moving average and the demonstrator."""
    return (1 - anchor) * average + anchor * demonstrated


def kept_weight(average: Floats, anchor: Floats) -> Floats:
    """Return the part of the old mass of the moving average in a teacher with demonstrations."""
    return (1 - anchor) * average


# ------------------------------------------------------------------------------------ TTT-Discover


def ttt_discover(
    setting: Setting,
    times: ArrayLike,
    eta: ArrayLike | Literal["adaptive"],
    strength: ArrayLike,
    gap: ArrayLike = 1.0,
) -> Trajectory:
    """Minimise the entropic objective with a KL penalty to the model before.

    Args:
        setting: the start.
        times: times of the states.
        eta: inverse temperature of the utility; `adaptive` spends log 2 nats at every moment.
        strength: strength of the KL penalty; 0 is the default of the published code.
        gap: reward of new minus reward of old behaviour.
    """
    reward = setting.reward(gap)
    tie = np.asarray(strength, float)
    if isinstance(eta, str):
        return _adaptive(setting, times, reward, float(tie))
    tilt = np.asarray(eta, float)
    return setting.follow(
        Entropic(reward, tilt, setting.base, tie, setting.nodes), times, tilt, tie
    )


def _adaptive(setting: Setting, times: ArrayLike, reward: NewMembership, tie: float) -> Trajectory:
    mask = flows.mask_of(setting.trained, setting.start.ndim)
    gap = float(reward.gap)

    def move(model: Floats) -> Floats:
        eta = np.asarray(adaptive_eta_of_share(1 - float(sigmoid(model[0])), gap))
        goal = Entropic(reward, eta, setting.base, np.asarray(tie), setting.nodes)
        return -mask * goal.gradient(model)

    return flows.solve(move, setting.start, times, None, max(setting.precision, 1e-7))


def adaptive_eta_of_share(new_share: float, gap: float, most: float = 50.0) -> float:
    """Return `adaptive_eta` for two flat modes; capped before exp overflows."""
    share = formulas.tilted_share(new_share)
    if share >= 1:
        return most / gap
    return min(float(logit(share) - logit(new_share)), most) / gap


def adaptive_eta(rewards: ArrayLike, budget: float = np.log(2)) -> float:
    """Return the eta that tilts the group `budget` nats from uniform; the cap if none does."""
    values = np.asarray(rewards, dtype=np.float64)

    def spent(eta: float) -> float:
        logs = eta * (values - values.max())
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        kept = shares[shares > 0]
        return float((kept * np.log(kept)).sum() + np.log(values.size)) - budget

    if spent(ETA_CAP) < 0:
        return ETA_CAP
    return float(brentq(spent, 0.0, ETA_CAP, xtol=1e-12))


def leave_one_out_advantages(rewards: ArrayLike, eta: float) -> Floats:
    """Return exp(eta r_i) over the mean of the others, minus 1."""
    values = np.asarray(rewards, dtype=np.float64)
    tilts = np.exp(eta * (values - values.max(axis=-1, keepdims=True)))
    others = (tilts.sum(axis=-1, keepdims=True) - tilts) / (values.shape[-1] - 1)
    with np.errstate(divide="ignore"):
        return np.asarray(tilts / others - 1)


# -------------------------------------------------------------------------------------------- OAPL


def oapl(
    setting: Setting, refreshes: int, gap: float, t1: float = 1.0, t2: float = 1.0
) -> Trajectory:
    """Run off-policy regression on a lagged policy, each round solved to its optimum.

    Args:
        setting: the start.
        refreshes: number of times the lagged policy is replaced by the trained one.
        gap: reward of new minus reward of old behaviour.
        t1: temperature of the soft maximum.
        t2: temperature of the regression.
    """
    mixtures.check_positive([t1, t2], "temperature")
    reward, states = setting.reward(gap), [setting.start]
    for _ in range(refreshes):
        loss = OffPolicyRegression(reward, states[-1], t1, t2, setting.nodes)
        states.append(minimiser(loss, states[-1], setting.trained))
    return Trajectory(np.arange(refreshes + 1.0), np.stack(states, axis=-1))


def minimiser(objective: Objective, start: Floats, trained: Mask = "joint") -> Floats:
    """Return the minimiser of an objective near a start."""
    free = np.flatnonzero(flows.MASKS[trained])

    def full_model(part: Floats) -> Floats:
        model = start.copy()
        model[free] = part
        return model

    with np.errstate(over="ignore", invalid="ignore"):
        minimum = minimize(
            lambda part: float(objective.value(full_model(part))),
            start[free],
            jac=lambda part: objective.gradient(full_model(part))[free],
            method="BFGS",
            options={"gtol": 1e-11, "maxiter": 2000},
        )
        size = np.abs(objective.gradient(full_model(minimum.x))[free]).max()
    steepest = float(np.abs(objective.gradient(start)[free]).max())
    if not np.isfinite(minimum.fun) or size > FLAT * max(steepest, FLAT):
        raise ConvergenceError(
            f"no minimum found: the gradient is still {size:.1e}",
            hint="raise the temperatures; very small ones make the loss too steep.",
        )
    return full_model(minimum.x)


# ----------------------------------------------------------------------------- from finite samples


@dataclass(frozen=True)
class Sampled:
    """Gradients from batches, as in training; identity covariance in any dimension.

    States are (b, m_o ..., m_n ...), followed by the runs that differ in their samples.

    Attributes:
        separation: distance of the modes, along the first axis.
        dimension: dimension of the space.
        old_share: weight of the old mode in the true target.
        batch: number of samples per gradient.
        replay: fraction of the batch drawn from the old mode instead of the model.
        weighted: multiply by model over sampler density, which keeps the objective unchanged.
    """

    separation: float
    dimension: int = 1
    old_share: float = 0.5
    batch: int = 256
    replay: float = 0.0
    weighted: bool = True

    def __post_init__(self) -> None:
        mixtures.check_separation(self.separation)
        mixtures.check_share(self.old_share, "old_share")
        if not 0 <= self.replay < 1:
            raise UsageError(
                f"a replay fraction of {self.replay:g} lies outside 0 to 1",
                hint="use 0 for none, or a value below 1.",
            )

    def reverse(self, model: Floats, random: np.random.Generator) -> Floats:
        """Return the gradient of KL(model||target), from samples of the model and replayed ones."""
        return np.asarray(self.reverse_terms(model, random).mean(axis=-1))

    def reverse_terms(self, model: Floats, random: np.random.Generator) -> Floats:
        """Return the same for each sample."""
        b, old, new = self._parts(model)
        x = self.samples(model, random)
        log_q = self._log(x, sigmoid(b), old, new)
        home, away = np.zeros_like(old), self._far(new)
        excess = log_q - self._log(x, np.asarray(self.old_share), home, away)
        if self.weighted and self.replay:
            excess = excess * self._weights(x, log_q)
        return excess * self._score(x, b, old, new)

    def weights(self, x: Floats, model: Floats) -> Floats:
        """Return the importance weights of samples; at most 1 / (1 - replay)."""
        b, old, new = self._parts(model)
        return self._weights(x, self._log(x, sigmoid(b), old, new))

    def _weights(self, x: Floats, log_q: Floats) -> Floats:
        from_old = _log_unit(x, np.zeros(()))
        both = np.logaddexp(np.log1p(-self.replay) + log_q, np.log(self.replay) + from_old)
        return formulas.importance_weight(log_q, both)

    def forward(self, model: Floats, random: np.random.Generator) -> Floats:
        """Return the gradient of KL(new||model), from new data."""
        b, old, new = self._parts(model)
        shape = (self.dimension, *model.shape[1:], self.batch)
        x = random.standard_normal(shape) + self._far(new)
        return np.asarray(-self._score(x, b, old, new).mean(axis=-1))

    def samples(self, model: Floats, random: np.random.Generator) -> Floats:
        """Draw samples from the sampler."""
        b, old, new = self._parts(model)
        shape = (*model.shape[1:], self.batch)
        is_old = random.random(shape) < sigmoid(b)
        replayed = random.random(shape) < self.replay
        centre = np.where(replayed, 0.0, np.where(is_old, old, new))
        return np.asarray(centre + random.standard_normal((self.dimension, *shape)))

    def _parts(self, model: Floats) -> tuple[Floats, Floats, Floats]:
        size = self.dimension
        return model[0][..., None], model[1 : 1 + size, ..., None], model[1 + size :, ..., None]

    def _far(self, like: Floats) -> Floats:
        away = np.zeros_like(like)
        away[0] = self.separation
        return away

    def _log(self, x: Floats, weight: Floats, old: Floats, new: Floats) -> Floats:
        parts = np.log(weight) + _log_unit(x, old), np.log1p(-weight) + _log_unit(x, new)
        return np.asarray(np.logaddexp(*parts))

    def _score(self, x: Floats, b: Floats, old: Floats, new: Floats) -> Floats:
        r_old = sigmoid(b + _log_unit(x, old) - _log_unit(x, new))
        return np.concatenate(
            [(r_old - sigmoid(b))[None], r_old * (x - old), (1 - r_old) * (x - new)]
        )


def _log_unit(x: Floats, mean: Floats) -> Floats:
    return np.asarray(-0.5 * ((x - mean) ** 2).sum(axis=0))
