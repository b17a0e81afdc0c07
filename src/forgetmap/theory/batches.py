"""Every method from finite batches, in any dimension and with any number of old modes.

The modes are on the first axis of the space: the new one at the separation, the old ones at 0,
minus the separation, minus twice the separation, and so on, so that neighbours are always equally
far apart. A state is one array: log-odds of each old component against the new one, then the means
of all components. With two modes on a line it is the state (b, m_o, m_n) of the flows, and large
batches follow their paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr

from forgetmap.errors import ConvergenceError, FieldError, UsageError
from forgetmap.theory import methods, mixtures
from forgetmap.theory.estimators import Floats
from forgetmap.theory.flows import Mask, Trajectory
from forgetmap.theory.methods import Setting
from forgetmap.theory.mixtures import Mixture, logit
from forgetmap.theory.simulation import RATE, Hyperparameters, Method, TrainingRun

MOST_STATES = 400
MOST_MODES, MOST_DIMENSIONS = 50, 1000


@dataclass(frozen=True)
class ModeSpace:
    """Positions of the modes.

    Attributes:
        dimension: dimension of the space.
        modes: number of modes; the last is the new one, all others are old.
    """

    dimension: int = 1
    modes: int = 2

    def __post_init__(self) -> None:
        limits = {"dimension": (1, MOST_DIMENSIONS), "modes": (2, MOST_MODES)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise FieldError(
                    f"{name} is {value}, but must be {least} to {most}",
                    field=name,
                    hint=f"use {least + 1}, for example.",
                )

    @property
    def old(self) -> int:
        """Number of old modes."""
        return self.modes - 1

    def centres(self, separation: float) -> Floats:
        """Return the positions of the modes, one row each."""
        places = np.zeros((self.modes, self.dimension))
        places[:, 0] = [-separation * k for k in range(self.old)] + [separation]
        return places

    def state(self, old_weight: float, means: Floats) -> Floats:
        """Build a state with the old weight divided evenly among the old components."""
        odds = np.full(self.old, logit(old_weight) - np.log(self.old))
        return np.concatenate([odds, means.ravel()])

    def log_weights(self, state: Floats) -> Floats:
        """Return the log-weights of all components, the new one last."""
        odds = np.append(state[: self.old], 0.0)
        return np.asarray(odds - np.logaddexp.reduce(odds))

    def means(self, state: Floats) -> Floats:
        """Return the means of all components, one row each."""
        return state[self.old :].reshape(self.modes, self.dimension)

    def mask(self, trained: Mask) -> Floats:
        """Return 1 for parameters that are trained, else 0."""
        moves = np.zeros((self.modes, self.dimension))
        if trained == "joint":
            moves[:] = 1.0
        elif trained == "weight+new":
            moves[-1] = 1.0
        return np.concatenate([np.ones(self.old), moves.ravel()])

    # ------------------------------------------------------------------------------- densities

    def log_parts(self, x: Floats, state: Floats) -> Floats:
        """Return weighted log-densities of the components at points (n, d), up to a constant."""
        away = x[:, None, :] - self.means(state)
        return np.asarray(self.log_weights(state) - 0.5 * (away**2).sum(axis=-1))

    def log_density(self, x: Floats, state: Floats) -> Floats:
        """Return the log-density of the model at points (n, d), up to a constant."""
        return np.asarray(np.logaddexp.reduce(self.log_parts(x, state), axis=1))

    def score(self, x: Floats, state: Floats) -> Floats:
        """Return the gradient of the log-density in the parameters, one row for each point."""
        parts = self.log_parts(x, state)
        shares = np.exp(parts - np.logaddexp.reduce(parts, axis=1, keepdims=True))
        moved = shares[:, :, None] * (x[:, None, :] - self.means(state))
        on_weights = shares[:, : self.old] - np.exp(self.log_weights(state))[: self.old]
        return np.concatenate([on_weights, moved.reshape(len(x), -1)], axis=1)

    def sample(self, state: Floats, count: int, random: np.random.Generator) -> Floats:
        """Sample points from the model."""
        which = random.choice(self.modes, count, p=np.exp(self.log_weights(state)))
        noise = random.standard_normal((count, self.dimension))
        return np.asarray(self.means(state)[which] + noise)


@dataclass(frozen=True)
class BatchRun(TrainingRun):
    """A run from finite batches; the states of its path belong to a `ModeSpace`."""

    space: ModeSpace

    @property
    def weight(self) -> Floats:
        """Total weight of all old components, over time."""
        return np.array([1 - np.exp(self.space.log_weights(each)[-1]) for each in self._states])

    @property
    def mass(self) -> Floats:
        """Mass nearer to an old mode than to the new one, over time."""
        border = self.separation / 2
        return np.array(
            [
                np.exp(self.space.log_weights(each)) @ ndtr(border - self.space.means(each)[:, 0])
                for each in self._states
            ]
        )

    @property
    def drift(self) -> Floats:
        """Largest distance of an old mode from its matched component, over time."""
        places = self.space.centres(self.separation)
        return np.array([_old_drift(self.space.means(each), places) for each in self._states])

    @property
    def target(self) -> Mixture:
        """The true mixture along the axis of the modes."""
        share = float(np.asarray(self.setting.old_share))
        places = self.space.centres(self.separation)[:, 0]
        weights = [share / self.space.old] * self.space.old + [1 - share]
        return Mixture.of(list(weights), list(places))

    @property
    def ends(self) -> tuple[float, float]:
        """Positions of the outermost modes."""
        return -self.separation * (self.space.old - 1), self.separation

    def density(self, x: Floats, step: int) -> Floats:
        """Return the density of the model along the axis of the modes, at one of the times."""
        state = self._states[step]
        weights = np.exp(self.space.log_weights(state))
        model = Mixture(weights, self.space.means(state)[:, 0])
        return np.exp(model.log_density(x))

    @property
    def _states(self) -> Floats:
        return self.path.states.T


def _old_drift(means: Floats, places: Floats) -> float:
    away = np.linalg.norm(places[:, None] - means, axis=-1)
    return float(away[linear_sum_assignment(away)][:-1].max())


def simulate_batches(
    method: Method,
    setting: Setting,
    parameters: Hyperparameters,
    until: float,
    space: ModeSpace | None = None,
) -> BatchRun:
    """Run a method from batches of `parameters.batch` samples.

    Args:
        method: name of a method, as for `simulate`.
        setting: the start; the old weight is divided evenly among the old modes.
        parameters: parameters of the method, batch size and seed.
        until: the last time; a step takes a tenth of a unit. The refreshes of OAPL are spread over
            it.
        space: dimension and number of modes.
    """
    if method not in TRAININGS:
        raise UsageError(
            f"there is no method {method!r}", hint=f"choose one of {', '.join(TRAININGS)}."
        )
    if setting.geometry != "logit":
        raise UsageError(
            f"batches support the logit geometry, not {setting.geometry}",
            hint="remove the geometry, or the batches.",
        )
    mixtures.check_positive(until, "until")
    where = space or ModeSpace()
    problem = _Problem(setting, parameters, where)
    steps = max(1, round(until / RATE))
    every, kept = max(1, steps // MOST_STATES), []
    for step, state in enumerate(TRAININGS[method](problem, steps)):
        if step % every == 0 or step == steps:
            kept.append((float(step), state))
        if not np.isfinite(state).all():
            raise ConvergenceError(
                f"training diverged within {step} steps",
                hint="use larger batches, or an earlier end.",
            )
    times, states = zip(*kept, strict=True)
    path = Trajectory(np.array(times), np.stack(states, axis=-1))
    return BatchRun(method, setting, path, "steps", where)


# ---------------------------------------------------------------------------------------- training


@dataclass(frozen=True)
class _Problem:
    """The problem of a method: samples, targets and rewards."""

    setting: Setting
    parameters: Hyperparameters
    space: ModeSpace

    @cached_property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.parameters.seed)

    @cached_property
    def separation(self) -> float:
        return float(np.asarray(self.setting.separation))

    @cached_property
    def centres(self) -> Floats:
        return self.space.centres(self.separation)

    @cached_property
    def start(self) -> Floats:
        means = self.centres.copy()
        means[-1, 0] -= float(np.asarray(self.setting.start_offset))
        return self.space.state(float(np.asarray(self.setting.start_weight)), means)

    @cached_property
    def target(self) -> Floats:
        """The true mixture, as a state."""
        return self.space.state(float(np.asarray(self.setting.old_share)), self.centres)

    @cached_property
    def mask(self) -> Floats:
        return self.space.mask(self.setting.trained)

    def reward(self, x: Floats) -> Floats:
        """Return the reward for new behaviour: gap times the target's share of the new mode."""
        parts = self.space.log_parts(x, self.target)
        share = np.exp(parts[:, -1] - np.logaddexp.reduce(parts, axis=1))
        return np.asarray(self.parameters.gap * share)

    def new_data(self, count: int) -> Floats:
        noise = self.random.standard_normal((count, self.space.dimension))
        return np.asarray(self.centres[-1] + noise)

    def old_data(self, count: int) -> Floats:
        which = self.random.integers(self.space.old, size=count)
        noise = self.random.standard_normal((count, self.space.dimension))
        return np.asarray(self.centres[which] + noise)

    def log_old(self, x: Floats) -> Floats:
        """Return the log-density of replayed data, up to the constant of all densities here."""
        away = x[:, None, :] - self.centres[:-1]
        parts = -0.5 * (away**2).sum(axis=-1) - np.log(self.space.old)
        return np.asarray(np.logaddexp.reduce(parts, axis=1))

    def log_new(self, x: Floats) -> Floats:
        return np.asarray(-0.5 * ((x - self.centres[-1]) ** 2).sum(axis=-1))

    def own(self, state: Floats) -> Floats:
        """Sample a batch from the model."""
        return self.space.sample(state, self.parameters.batch, self.random)

    def reverse(self, state: Floats, log_target: Callable[[Floats], Floats]) -> Floats:
        """Return the gradient of KL(model||target) from samples of the model, with a baseline."""
        x = self.own(state)
        excess = self.space.log_density(x, state) - log_target(x)
        return _mean_pull(_beside_others(excess), self.space.score(x, state))

    def log_start(self, x: Floats) -> Floats:
        return self.space.log_density(x, self.start)

    def descend(self, steps: int, gradient: Callable[[Floats], Floats]) -> Iterator[Floats]:
        state = self.start
        yield state
        for _ in range(steps):
            state = state - RATE * self.mask * gradient(state)
            yield state


def _beside_others(values: Floats) -> Floats:
    """Subtract the mean of the others from each value: same mean gradient, less noise."""
    count = len(values)
    if count == 1:
        return values
    return np.asarray((values - values.mean()) * count / (count - 1))


def _mean_pull(values: Floats, score: Floats) -> Floats:
    return np.asarray(values @ score / len(values))


def _fit_new(problem: _Problem, steps: int) -> Iterator[Floats]:
    return _fit(problem, steps, 0.0)


def _fit_replay(problem: _Problem, steps: int) -> Iterator[Floats]:
    mixtures.check_part(problem.parameters.fraction, "fraction")
    return _fit(problem, steps, problem.parameters.fraction)


def _fit(problem: _Problem, steps: int, fraction: float) -> Iterator[Floats]:
    def gradient(state: Floats) -> Floats:
        size = problem.parameters.batch
        replayed = int(problem.random.binomial(size, fraction))
        x = np.concatenate([problem.new_data(size - replayed), problem.old_data(replayed)])
        return np.asarray(-problem.space.score(x, state).mean(axis=0))

    return problem.descend(steps, gradient)


def _reinforce(problem: _Problem, steps: int) -> Iterator[Floats]:
    def to_target(x: Floats) -> Floats:
        return problem.space.log_density(x, problem.target)

    return problem.descend(steps, lambda state: problem.reverse(state, to_target))


def _reinforce_new(problem: _Problem, steps: int) -> Iterator[Floats]:
    return problem.descend(steps, lambda state: problem.reverse(state, problem.log_new))


def _penalise(problem: _Problem, steps: int) -> Iterator[Floats]:
    mixtures.check_positive(problem.parameters.temperature, "temperature")

    def tilted(x: Floats) -> Floats:
        return problem.log_start(x) + problem.reward(x) / problem.parameters.temperature

    return problem.descend(steps, lambda state: problem.reverse(state, tilted))


def _weigh(problem: _Problem, steps: int) -> Iterator[Floats]:
    """Minimise reverse KL with replayed samples under importance weights."""
    part, space = problem.parameters.fraction, problem.space
    mixtures.check_part(part, "fraction")

    def gradient(state: Floats) -> Floats:
        size = problem.parameters.batch
        replayed = int(problem.random.binomial(size, part))
        own = space.sample(state, size - replayed, problem.random)
        x = np.concatenate([own, problem.old_data(replayed)])
        log_q = space.log_density(x, state)
        with np.errstate(divide="ignore"):
            both = np.logaddexp(np.log1p(-part) + log_q, np.log(part) + problem.log_old(x))
        excess = np.exp(log_q - both) * (log_q - space.log_density(x, problem.target))
        return _mean_pull(excess, space.score(x, state))

    return problem.descend(steps, gradient)


def _distil(problem: _Problem, steps: int) -> Iterator[Floats]:
    """Train a student on its own moving average, which is pulled towards demonstrations."""
    parameters = problem.parameters
    how = methods.Distillation(parameters.anchor, parameters.refresh)
    goal = problem.space.state(parameters.demo_weight, problem.centres)
    student = average = problem.start
    yield student
    for _ in range(steps):
        teacher = methods.anchored_parameters(average, goal, np.asarray(how.anchor))
        down = problem.reverse(student, partial(problem.space.log_density, state=teacher))
        average = average + RATE * how.refresh * problem.mask * (student - average)
        student = student - RATE * problem.mask * down
        yield student


def _discover(problem: _Problem, steps: int) -> Iterator[Floats]:
    """Use entropic advantages within each batch, and a KL penalty to the model before."""
    parameters = problem.parameters
    if parameters.batch < 2:
        raise UsageError("advantages need at least 2 samples", hint="use --batch 16, for example.")

    def gradient(state: Floats) -> Floats:
        x = problem.own(state)
        rewards = problem.reward(x)
        eta = methods.adaptive_eta(rewards) if parameters.eta is None else parameters.eta
        gain = methods.leave_one_out_advantages(rewards, eta)
        excess = problem.space.log_density(x, state) - problem.log_start(x)
        values = parameters.strength * _beside_others(excess) - np.nan_to_num(
            gain, posinf=parameters.batch
        )
        return _mean_pull(values, problem.space.score(x, state))

    return problem.descend(steps, gradient)


def _regress(problem: _Problem, steps: int) -> Iterator[Floats]:
    """Run rounds of regression on samples of a lagged policy, refreshed after each.

    Steps are scaled by the curvature of the loss in log-densities, so that they do not depend on
    t2.
    """
    parameters, space = problem.parameters, problem.space
    mixtures.check_positive([parameters.t1, parameters.t2], "temperature")
    state = lagged = problem.start
    length = max(1, steps // parameters.refreshes)
    yield state
    for step in range(steps):
        if step and step % length == 0 and step // length < parameters.refreshes:
            lagged = state
        x = space.sample(lagged, parameters.batch, problem.random)
        rewards = problem.reward(x)
        value = parameters.t1 * (
            np.logaddexp.reduce(rewards / parameters.t1) - np.log(parameters.batch)
        )
        moved = space.log_density(x, state) - space.log_density(x, lagged)
        miss = moved - (rewards - value) / parameters.t2
        state = state - RATE * problem.mask * _mean_pull(miss, space.score(x, state))
        yield state


TRAININGS: dict[Method, Callable[[_Problem, int], Iterator[Floats]]] = {
    "sft": _fit_new,
    "replay": _fit_replay,
    "rl": _reinforce,
    "rl-new": _reinforce_new,
    "kl-rl": _penalise,
    "iw-replay": _weigh,
    "sdft": _distil,
    "ttt-discover": _discover,
    "oapl": _regress,
}
