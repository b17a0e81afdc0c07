"""Claims about the convergence rate near the true target."""

from __future__ import annotations

import numpy as np

from forgetmap.theory import flows, formulas
from forgetmap.theory.claims.registry import (
    FITS,
    Check,
    Perturbation,
    at_least,
    at_most,
    claim,
    close,
)
from forgetmap.theory.estimators import Floats
from forgetmap.theory.mixtures import state, target_mixture
from forgetmap.theory.objectives import ReverseKL

FISHER = Perturbation("formulas.fisher")
PLACES = ((0.5, 3.0), (0.3, 4.0), (0.3, 6.0), (0.1, 6.0))
"""Old shares and separations."""
FAR = 0.5


@claim(
    "H1",
    "Near the target the curvature of reverse KL is the Fisher information of the mixture.",
    "Hessian of KL(q||p*) at p* = E[s s^T]",
    control=FISHER,
)
def _curvature_is_fisher_information() -> list[Check]:
    return [
        at_most(f"share {share:g}, d={apart:g}", _hessian_gap(share, apart), 1e-6)
        for share, apart in PLACES
    ]


def _hessian_gap(share: float, apart: float) -> float:
    loss, best, step = ReverseKL(target_mixture(share, apart)), state(share, 0.0, apart), 1e-4
    columns = [
        (loss.gradient(best + step * axis) - loss.gradient(best - step * axis)) / (2 * step)
        for axis in np.eye(3)
    ]
    return float(np.abs(np.array(columns) - formulas.fisher(share, apart)).max())


@claim(
    "H2",
    "Only overlap harms the conditioning: the information tends to a diagonal matrix "
    "exponentially fast in the squared separation, and is singular if the modes coincide.",
    "|F - diag(a(1-a), a, 1-a)| <= C (1 + d^2/4) exp(-d^2/8), C = 0.45 from d = 0.5 on, 1/2 always "
    "(2 a(1-a) at d = 0);  W <= 1/2 sqrt(a(1-a)) BC",
    control=FISHER,
    provenance=FITS,
)
def _conditioning_is_overlap() -> list[Check]:
    worst, near_zero, shared = 0.0, 0.0, 0.0
    for share in (0.05, 0.1, 0.3, 0.5, 0.7, 0.95):
        for apart in np.linspace(0.05, 10, 200):
            gap = formulas.fisher(share, apart) - formulas.fisher_limit(share)
            bound = (1 + apart**2 / 4) * np.exp(-(apart**2) / 8)
            ratio = float(np.linalg.norm(gap, 2) / bound)
            worst, near_zero = max(worst, ratio * (apart >= FAR)), max(near_zero, ratio)
            limit = 0.5 * np.sqrt(share * (1 - share)) * np.exp(-(apart**2) / 8)
            shared = max(shared, formulas.shared_mass(share, apart) / limit)
    table = {0.5: 3.35e-5, 1.0: 1.41e-3, 2.0: 0.0332, 3.0: 0.1279, 4.0: 0.2167, 6.0: 0.2489}
    return [
        at_most("distance from the limit over its bound, d >= 0.5", worst, 0.45),
        at_most("the same at any d", near_zero, 0.5),
        at_most("W over its bound", shared, 1.0),
        *(
            close(f"slowest rate, d={apart:g}", formulas.slowest_rate(0.5, apart), rate, 5e-3)
            for apart, rate in table.items()
        ),
    ]


@claim(
    "H3",
    "Convergence to the target is exponential at the rate given by the Fisher information.",
    "error ~ exp(-lambda_min t),  KL ~ exp(-2 lambda_min t)",
    control=FISHER,
    provenance=FITS,
)
def _convergence_is_exponential() -> list[Check]:
    checks = []
    for share, apart in PLACES:
        rate = formulas.slowest_rate(share, apart)
        error, divergence = _measured_rates(share, apart, rate)
        checks.append(close(f"parameters, share {share:g}, d={apart:g}", error, rate, 0.01))
        checks.append(close(f"KL, share {share:g}, d={apart:g}", divergence, 2 * rate, 0.01))
    return checks


def _measured_rates(share: float, apart: float, rate: float) -> tuple[float, float]:
    loss, best = ReverseKL(target_mixture(share, apart)), state(share, 0.0, apart)
    start = best + np.array([0.2, 0.1, -0.1])
    times = np.array([0.0, 5.0, 7.0]) / rate + 1e-9
    path = flows.follow(loss, start, times, precision=1e-10)
    sizes = np.linalg.norm(path.states - best[:, None], axis=0)
    losses = loss.value(path.states)
    window = times[2] - times[1]
    rates = (float(np.log(values[1] / values[2]) / window) for values in (sizes, losses))
    return tuple(rates)  # type: ignore[return-value]


@claim(
    "H4",
    "Near the target the gradient dominates the loss, but by less than the slowest rate: that "
    "rate does not hold beyond the neighbourhood.",
    "|grad|^2 / (2 L) over b +- 0.5, m +- 0.3 is a part of lambda_min",
    control=Perturbation("objectives.ReverseKL.gradient"),
)
def _rate_is_local() -> list[Check]:
    checks = []
    for (share, apart), expected in zip(PLACES, DOMINATION, strict=True):
        least = _least_ratio(share, apart)
        part = least / formulas.slowest_rate(share, apart)
        checks.append(close(f"smallest ratio, share {share:g}, d={apart:g}", least, expected, 0.02))
        checks.append(at_least(f"fraction of the rate, share {share:g}, d={apart:g}", part, 0.2))
        checks.append(at_most(f"fraction of the rate, share {share:g}, d={apart:g}", part, 0.95))
    return checks


DOMINATION = (0.1175, 0.1229, 0.1459, 0.0467)
"""Values measured on a lattice of 9 points per axis."""


def _least_ratio(share: float, apart: float) -> float:
    axis = np.linspace(-1, 1, 9)
    steps = np.stack(np.meshgrid(0.5 * axis, 0.3 * axis, 0.3 * axis)).reshape(3, -1)
    steps = steps[:, np.abs(steps).sum(axis=0) > 0]
    loss = ReverseKL(target_mixture(share, apart))
    models: Floats = state(share, 0.0, apart)[:, None] + steps
    squares = (loss.gradient(models) ** 2).sum(axis=0)
    return float((squares / (2 * loss.value(models))).min())


@claim(
    "H5",
    "In whitened coordinates no curvature exceeds the larger share, so explicit steps below 2 are "
    "locally stable.",
    "lambda_max <= max(a, 1-a) <= 1",
    control=Perturbation("objectives.ReverseKL.gradient"),
)
def _steps_below_two_are_stable() -> list[Check]:
    worst, checks = 0.0, []
    for share in (0.1, 0.3, 0.5, 0.8):
        for apart in np.linspace(0.5, 8, 16):
            most = np.linalg.eigvalsh(formulas.fisher(share, apart))[-1]
            worst = max(worst, float(most / max(share, 1 - share)))
    checks.append(at_most("largest curvature over larger share", worst, 1.0, 1e-12))
    for share, apart in PLACES[:2]:
        most = float(np.linalg.eigvalsh(formulas.fisher(share, apart))[-1])
        inside, outside = (_size_after(share, apart, part * 2 / most) for part in (0.98, 1.02))
        checks.append(at_most(f"0.98 of the limit shrinks, d={apart:g}", inside, 0.5))
        checks.append(at_least(f"1.02 of the limit grows, d={apart:g}", outside, 2.0))
    return checks


def _size_after(share: float, apart: float, rate: float) -> float:
    """Return the growth of a small error along the steepest direction in 60 steps."""
    loss, best = ReverseKL(target_mixture(share, apart)), state(share, 0.0, apart)
    steepest = np.linalg.eigh(formulas.fisher(share, apart))[1][:, -1]
    model = best + 1e-6 * steepest
    for _ in range(60):
        model = model - rate * loss.gradient(model)
    return float(np.linalg.norm(model - best) / 1e-6)
