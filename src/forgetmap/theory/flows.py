"""Optimisation of an objective: ordinary differential equations, EM, SGD.

The speed of losing mass depends on the geometry in which the weight moves: `logit` is a softmax
head, `euclid` moves beta itself, `natural` follows the Fisher metric, `em` is the map of
expectation maximisation. The mask defines which parameters move; every claim states its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from forgetmap.errors import ConvergenceError, UsageError
from forgetmap.theory import mixtures
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.objectives import Objective

Mask = Literal["weight", "weight+new", "joint"]
Geometry = Literal["logit", "euclid", "natural", "em"]
Velocity = Callable[[Floats], Floats]

MASKS: dict[Mask, tuple[float, float, float]] = {
    "weight": (1.0, 0.0, 0.0),
    "weight+new": (1.0, 0.0, 1.0),
    "joint": (1.0, 1.0, 1.0),
}
GEOMETRIES: tuple[Geometry, ...] = ("logit", "euclid", "natural", "em")
MAX_DENSE_UNKNOWNS = 12
"""Number of unknowns up to which a solver with a dense Jacobian is faster."""


@dataclass(frozen=True)
class Trajectory:
    """The path of a flow.

    Attributes:
        times: times of the states.
        states: (b, m_o, m_n), then cells, then times.
        stopped: time of the event that ended it; None if it did not happen.
    """

    times: Floats
    states: Floats
    stopped: float | None = None

    @property
    def old_weight(self) -> Floats:
        """Beta over time."""
        return sigmoid(self.states[0])

    @property
    def end(self) -> Floats:
        """The last state."""
        return np.asarray(self.states[..., -1])

    def drift(self, separation: ArrayLike) -> Floats:
        """Return the distance of the old mode from its matched component."""
        apart = np.asarray(separation, float)[..., None]
        return np.asarray(np.abs(mixtures.match_components(self.states, apart)[1]))

    def old_mass(self, separation: ArrayLike) -> Floats:
        """Return the mass nearer to the old mode over time, which a user would notice."""
        return mixtures.region_mass(self.states, np.asarray(separation, float)[..., None])


def mask_of(trained: Mask, axes: int) -> Floats:
    """Return 1 for parameters that move, else 0, shaped for states with this many axes."""
    return np.reshape(MASKS[_known(trained, MASKS, "trained")], (3, *[1] * (axes - 1)))


def velocity(
    objective: Objective, trained: Mask = "joint", geometry: Geometry = "logit"
) -> Velocity:
    """Return minus the gradient, under a mask and a geometry."""
    _known(trained, MASKS, "trained")
    _known(geometry, GEOMETRIES, "geometry")
    if geometry == "em":
        raise UsageError("em is a map, not a flow", hint="use em_steps, or geometry='natural'.")

    def move(model: Floats) -> Floats:
        down = -objective.gradient(model)
        if geometry != "logit":
            down = down * _metric(model, geometry)
        return np.asarray(down * mask_of(trained, model.ndim))

    return move


def _metric(model: Floats, geometry: Geometry) -> Floats:
    beta = sigmoid(model[0])
    spread = beta * (1 - beta)
    if geometry == "euclid":
        return np.stack([spread**-2, np.ones_like(beta), np.ones_like(beta)])
    return np.stack([1 / spread, 1 / beta, 1 / (1 - beta)])


def follow(
    objective: Objective,
    start: Floats,
    times: ArrayLike,
    *,
    trained: Mask = "joint",
    geometry: Geometry = "logit",
    stop: Callable[[Floats], float] | None = None,
    precision: float = 1e-9,
) -> Trajectory:
    """Follow the gradient flow of an objective.

    Args:
        objective: objective to minimise.
        start: (b, m_o, m_n), with or without cells.
        times: times of the states; the last one is the end.
        trained: parameters that move.
        geometry: metric of the flow.
        stop: ends the flow when this falls below 0; only without cells.
        precision: relative tolerance of the solver.

    Raises:
        ConvergenceError: the flow diverged or the solver failed.
    """
    return solve(velocity(objective, trained, geometry), start, times, stop, precision)


def solve(
    move: Velocity,
    start: Floats,
    times: ArrayLike,
    stop: Callable[[Floats], float] | None = None,
    precision: float = 1e-9,
) -> Trajectory:
    """Follow any velocity; all cells together, with the steps of the fastest one."""
    moments = np.atleast_1d(np.asarray(times, dtype=np.float64))
    _check_times(moments)
    shape = start.shape
    events: dict[str, Any] = {}
    if stop is not None:
        ends: Any = lambda _t, flat: stop(flat.reshape(shape))  # noqa: E731
        ends.terminal, ends.direction = True, -1.0
        events = {"events": ends}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        solution = solve_ivp(
            lambda _t, flat: move(flat.reshape(shape)).ravel(),
            (0.0, float(moments[-1])),
            start.ravel(),
            method="LSODA" if start.size <= MAX_DENSE_UNKNOWNS else "RK23",
            t_eval=moments,
            rtol=precision,
            atol=precision * 1e-3,
            **events,
        )
    _check_solved(solution, moments)
    stopped = None
    states, seen = np.reshape(solution.y, (start.size, -1)), np.asarray(solution.t)
    if solution.status == 1:
        stopped = float(solution.t_events[0][0])
        states = np.concatenate([states, solution.y_events[0].T], axis=1)
        seen = np.append(seen, stopped)
    return Trajectory(seen, states.reshape(*shape, -1), stopped)


def em_steps(
    objective: Objective, start: Floats, steps: int, trained: Mask = "weight"
) -> Trajectory:
    """Iterate expectation maximisation, from the gradient of a forward KL."""
    moves = mask_of(trained, start.ndim) > 0
    states = [start]
    for _ in range(steps):
        model = states[-1]
        down = objective.gradient(model)
        old = sigmoid(model[0]) - down[0]
        moved = np.stack(
            [mixtures.logit(old), model[1] - down[1] / old, model[2] - down[2] / (1 - old)]
        )
        states.append(np.where(moves, moved, model))
    return Trajectory(np.arange(steps + 1.0), np.stack(states, axis=-1))


def descend(
    gradient: Callable[[Floats, np.random.Generator], Floats],
    start: Floats,
    steps: int,
    rate: float,
    seed: int,
    every: int = 1,
) -> Trajectory:
    """Run stochastic gradient descent; runs that differ only in their samples are cells.

    Args:
        gradient: estimate at a state, from samples that it draws.
        start: the state of every run.
        steps: number of steps.
        rate: step size; below 2 it is locally stable in whitened coordinates.
        seed: seed of the samples.
        every: keep every n-th state.
    """
    mixtures.check_positive(rate, "rate")
    random = np.random.default_rng(seed)
    model, kept, times = start.copy(), [start], [0.0]
    for step in range(1, steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            model = model - rate * gradient(model, random)
        if step % every == 0:
            kept.append(model)
            times.append(float(step))
    if not np.isfinite(model).all():
        raise ConvergenceError(
            f"stochastic descent diverged within {steps} steps of {rate:g}",
            hint="use smaller steps or larger batches.",
        )
    return Trajectory(np.asarray(times), np.stack(kept, axis=-1))


def _check_times(times: Floats) -> None:
    if (
        times.size == 0
        or not np.isfinite(times).all()
        or times[-1] <= 0
        or (np.diff(times) < 0).any()
    ):
        raise UsageError(
            "times must be finite, grow, and end after 0", hint="use for example [1, 10, 100]."
        )


def _check_solved(solution: Any, times: Floats) -> None:
    if solution.status >= 0 and np.isfinite(solution.y).all():
        return
    sound = np.isfinite(np.reshape(solution.y, (-1, len(solution.t)))).all(axis=0)
    reached = float(np.asarray(solution.t)[sound][-1]) if sound.any() else 0.0
    why = solution.message if solution.status < 0 else "a parameter became infinite"
    raise ConvergenceError(
        f"the integration stopped at t = {reached:g} of {times[-1]:g}: {why}",
        hint="use an earlier end, less precision, or the logit geometry; with `euclid`, mass "
        "vanishes in finite time.",
    )


def _known(name: Any, known: Any, what: str) -> Any:
    if name not in known:
        raise UsageError(f"{what} cannot be {name!r}", hint=f"choose one of {', '.join(known)}.")
    return name
