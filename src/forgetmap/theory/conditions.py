"""Conditions under which a method keeps old mass and bounds drift.

Every condition is an inequality with its two sides. An exact one is decisive: beyond its boundary
old behaviour is lost or moved. A sufficient one only protects: if it fails, nothing follows. Drift
is in standard deviations of one mode, weights and means in the logit flow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Literal

import numpy as np
from scipy.optimize import minimize_scalar

from forgetmap.errors import FieldError, UsageError
from forgetmap.theory import formulas, mixtures
from forgetmap.theory.condition_numbers import (
    METHODS_WITH_CONDITIONS,
    NUMBERS_OF_ALL,
    NUMBERS_OF_METHOD,
    ROUNDING,
    ConditionMethod,
    ConditionNumbers,
)
from forgetmap.theory.estimators import Floats, effective_separation, sigmoid
from forgetmap.theory.mixtures import logit
from forgetmap.theory.quadrature import nodes

Secured = Literal["mass", "drift", "learning"]
FAR: Final = 1e-6
"""Distance below the largest separation that stands for almost no overlap."""
MOST_EXPONENT: Final = 600.0
"""Largest exponent of a reward; beyond it the exponential overflows."""
MOST_ROUNDS: Final = 400
PLACES: Final = 9
"""Number of positions of the new component at which a pull is evaluated."""


@dataclass(frozen=True)
class MethodCondition:
    """One inequality.

    Attributes:
        name: name of the left side.
        secures: `mass`, `drift`, or `learning` of the new.
        left: left side; None if there is no bound.
        sign: relation between the sides.
        right: right side.
        holds: whether the inequality holds.
        exact: whether old behaviour is lost or moved if it fails; otherwise it is only sufficient.
        claims: ids of the verified claims behind it.
    """

    name: str
    secures: Secured
    left: float | None
    sign: Literal[">=", "<=", ">"]
    right: float
    holds: bool
    exact: bool
    claims: tuple[str, ...]


@dataclass(frozen=True)
class ConditionReport:
    """All conditions of a method for some numbers.

    Attributes:
        method: name of the method.
        numbers: numbers used by the conditions.
        mass: old mass in the long run; None if nothing is guaranteed.
        drift: upper bound of the drift during and after training; None if there is none.
        conditions: the inequalities.
        assumes: further assumptions.
    """

    method: ConditionMethod
    numbers: dict[str, float | int | None]
    mass: float | None
    drift: float | None
    conditions: tuple[MethodCondition, ...]
    assumes: tuple[str, ...]

    @property
    def keeps_mass(self) -> bool:
        """Whether all exact conditions of the mass hold."""
        return all(each.holds for each in self.conditions if each.secures == "mass" and each.exact)

    @property
    def bounds_drift(self) -> bool:
        """Whether all conditions of the drift hold."""
        return all(each.holds for each in self.conditions if each.secures == "drift")


ASSUMES: Final = (
    "two Gaussian behaviours with the same covariance, and training until convergence",
    "the old component is correct before; weights stay between their first and last values",
)
FLAT: Final = (
    "rewards jump where old and new are equally likely, and have the given slope elsewhere"
)
ASSUMES_OF: Final[dict[ConditionMethod, tuple[str, ...]]] = {
    "sft": ("replayed data are old behaviour alone",),
    "rl": (FLAT,),
    "sdft": ("the teacher mixes parameters, not densities (SD4), by a moving average",),
    "ttt-discover": (FLAT, "eta is fixed"),
    "oapl": (FLAT, "every round is solved to its optimum"),
}


def check_conditions(
    method: ConditionMethod, numbers: ConditionNumbers | None = None
) -> ConditionReport:
    """Check every condition of a method, with both sides.

    Args:
        method: `sdft`, `ttt-discover`, `oapl`, `rl` or `sft`.
        numbers: parameters of the conditions.

    Raises:
        FieldError: a number is out of range, or the floor is not below the start for a method that
            can only lose mass.
    """
    if method not in CHECKS:
        raise UsageError(
            f"there are no conditions for {method!r}",
            hint=f"choose one of {', '.join(METHODS_WITH_CONDITIONS)}.",
        )
    values = numbers or ConditionNumbers()
    mass, drift, conditions = CHECKS[method](values)
    if values.measured is not None:
        conditions.insert(0, _measured_mass(values))
    used = {*NUMBERS_OF_ALL, *NUMBERS_OF_METHOD[method]}
    if method == "rl":
        used -= {"gap", "slope"} if values.temperature is None else {"old_share"}
    return ConditionReport(
        method=method,
        numbers={field.name: getattr(values, field.name) for field in fields(values)
                 if field.name in used},
        mass=mass,
        drift=drift,
        conditions=tuple(conditions),
        assumes=(*ASSUMES, *ASSUMES_OF[method]),
    )  # fmt: skip


def separation_of_overlap(overlap: float) -> float:
    """Return the separation for a Bhattacharyya coefficient, within the computable range."""
    if not 0 <= overlap < 1:
        raise FieldError(
            f"overlap is {overlap:g}, but must be at least 0 and below 1",
            field="overlap",
            hint="use an overlap below 1; 1 means that old and new are the same.",
        )
    return min(effective_separation(overlap), mixtures.MOST_SEPARATION - FAR)


Checked = tuple[float | None, float | None, list[MethodCondition]]


# --------------------------------------------------------------------------------------------- SFT


def _check_sft(numbers: ConditionNumbers) -> Checked:
    replays = numbers.fraction > 0
    bound = _replay_drift(numbers) if replays else None
    return numbers.fraction, bound, [
        _at_least("replayed fraction", "mass", numbers.fraction, numbers.floor, "F1", "P1"),
        _at_most("bias of replayed data", "drift", abs(numbers.bias) if replays else None,
                 numbers.tolerance, "F6", "P1"),
        _at_most("drift on the way", "drift", bound, numbers.tolerance, "F6", "P1", exact=False),
    ]  # fmt: skip


def _replay_drift(numbers: ConditionNumbers) -> float | None:
    """Return how far misassigned data can pull the old component.

    New data pull it towards the new mode, old data away from it; old data also pull the new
    component nearer, which increases both: the three are solved together.
    """
    many, few = (float(logit(choose(numbers.start, numbers.fraction))) for choose in (max, min))
    weight, bias = (1 - numbers.fraction) / numbers.fraction, abs(numbers.bias)
    ahead = back = near = 0.0
    for _ in range(MOST_ROUNDS):
        ways = np.linspace(numbers.nearest - near, numbers.farthest, PLACES).tolist()
        pulled = (
            bias + weight * max(_pull(numbers.separation, many, (ahead, n), ahead) for n in ways),
            bias + max(_pull(0.0, -few, (n, -back), -back) for n in ways),
            max(-_pull(0.0, -few, (n, ahead), n) for n in ways) / weight,
        )
        if max(pulled) > numbers.nearest / 2:
            return None
        grown = max(new - known for new, known in zip(pulled, (ahead, back, near), strict=True))
        ahead, back, near = pulled
        if grown <= ROUNDING * (1 + ahead):
            return max(ahead, back)
    return None


def _pull(data: float, log_odds: float, means: tuple[float, float], origin: float) -> float:
    """Return E[r (x - origin)] of data around a point, r the share of the first component."""
    at = nodes()
    x, (mean, other) = data + at.z, means
    share = sigmoid(log_odds + (mean - other) * (x - (mean + other) / 2))
    return float(at.mean(share * (x - origin)))


# ---------------------------------------------------------------------------------------------- RL


def _check_rl(numbers: ConditionNumbers) -> Checked:
    if numbers.temperature is not None:
        return _check_penalty(numbers, numbers.temperature)
    share = numbers.old_share
    bound = _mixture_drift(numbers) if share else None
    return share, bound, [
        _at_least("old share of target", "mass", share, numbers.floor, "R4", "L2"),
        _good_start(numbers),
        _at_most("drift on the way", "drift", bound, numbers.tolerance, "R3", exact=False),
    ]  # fmt: skip


def _check_penalty(numbers: ConditionNumbers, warmth: float) -> Checked:
    """Check expected reward with a KL penalty: the target is the model before, tilted."""
    _check_below_start(numbers)
    mass = float(formulas.anchored_weight(numbers.start, numbers.gap, warmth))
    needed = formulas.temperature_for(numbers.start, numbers.gap, numbers.floor)

    def force(moved: float) -> float:
        gate = _gate(numbers.separation, moved)
        return (numbers.gap * numbers.separation * gate + abs(numbers.slope)) / warmth

    bound = _tilted_drift(numbers, mass, force)
    return mass, bound, [
        _at_least("KL temperature", "mass", warmth, needed, "L3"),
        _at_most("drift by reward slope", "drift", abs(numbers.slope) / warmth,
                 numbers.tolerance, "TT3"),
        _at_most("drift on the way", "drift", bound, numbers.tolerance, "L3", "R1", exact=False),
    ]  # fmt: skip


def _good_start(numbers: ConditionNumbers) -> MethodCondition:
    return _at_least(
        "start of the new mode", "learning", numbers.separation - numbers.offset,
        numbers.separation / 2, "L1", exact=False,
    )  # fmt: skip


def _mixture_drift(numbers: ConditionNumbers) -> float | None:
    """Return the larger misassignment that pulls the old mean, towards the new mode or away."""
    lowest = min(numbers.start, numbers.old_share)
    ahead = _fixed_point(
        lambda moved: _misassigned_pull(numbers.separation, numbers.old_share, moved),
        numbers.nearest,
    )
    return None if ahead is None else max(ahead, _largest_pull(numbers, lowest))


def _tilted_drift(
    numbers: ConditionNumbers, lowest: float, force: Callable[[float], float]
) -> float | None:
    """Return the same towards the tilted model before; the reward adds a force."""
    ahead = _fixed_point(
        lambda moved: _misassigned_pull(numbers.nearest, numbers.start, moved) + force(moved),
        numbers.nearest,
    )
    away = _largest_pull(numbers, min(numbers.start, lowest))
    return None if ahead is None else max(ahead, away + force(0.0))


def _misassigned_pull(apart: float, old_weight: float, moved: float) -> float:
    """Return distance times the probability of assigning samples around `moved` to the new mode."""
    odds = -float(logit(old_weight)) + moved * apart
    return apart * float(formulas.misassignment(apart, odds))


def _largest_pull(numbers: ConditionNumbers, old_weight: float) -> float:
    """Return the largest such pull on the path of the new component."""
    ways = np.linspace(numbers.nearest, numbers.farthest + 1, 5 * PLACES).tolist()
    return max(_misassigned_pull(apart, old_weight, 0.0) for apart in ways)


def _gate(separation: float, moved: float) -> float:
    """Return E[s_o s_n] around the old component, where a reward for the new mode has a slope."""
    at = nodes()
    line = separation * (moved + at.z - separation / 2)
    return float(at.mean(sigmoid(line) * sigmoid(-line)))


# -------------------------------------------------------------------------------------------- SDFT


def _check_sdft(numbers: ConditionNumbers) -> Checked:
    anchored, shift = numbers.anchor > 0, abs(numbers.demo_shift)
    bound = _teacher_drift(numbers) if anchored and numbers.demo_weight else None
    return numbers.demo_weight if anchored else None, bound, [
        _above("anchor", "mass", numbers.anchor, 0.0, "SD1", "SD3"),
        _at_least("mass of the demonstrator", "mass", numbers.demo_weight, numbers.floor, "SD1",
                  "SD4"),
        _at_most("shift of the demonstrator", "drift", shift if anchored else None,
                 numbers.tolerance, "SD1", exact=anchored),
        _at_most("drift on the way", "drift", bound, numbers.tolerance, "SD6", exact=False),
    ]  # fmt: skip


def _teacher_drift(numbers: ConditionNumbers) -> float | None:
    """Return the shift of the demonstrator, plus misassignment that only the anchor counteracts."""
    lowest = min(numbers.start, numbers.demo_weight)
    lag = _fixed_point(
        lambda moved: max(
            _misassigned_pull(apart, lowest, moved)
            for apart in (numbers.nearest, numbers.separation)
        ),
        numbers.nearest,
    )
    if lag is None:
        return None
    return abs(numbers.demo_shift) + max(lag, _largest_pull(numbers, lowest)) / numbers.anchor


# ------------------------------------------------------------------------------------ TTT-Discover


def _check_discover(numbers: ConditionNumbers) -> Checked:
    _check_below_start(numbers)
    ratio = math.exp(-numbers.eta * numbers.gap)
    needed = formulas.strength_for(numbers.start, ratio, numbers.floor)
    anyway = formulas.strength_for(numbers.start, 0.0, numbers.floor)
    mass = _entropic_mass(numbers, ratio)
    bound = _entropic_drift(numbers, mass) if numbers.strength else None
    sloped = _sloped_drift(numbers, ratio, mass) if numbers.strength else None
    if not numbers.slope:
        sloped = 0.0
    return mass, bound, [
        _at_least("KL strength", "mass", numbers.strength, needed, "TT1", "TT2"),
        _at_least("KL strength, any rewards", "mass", numbers.strength, anyway, "TT2",
                  exact=False),
        _at_most("drift by reward slope", "drift", sloped, numbers.tolerance, "TT3"),
        _at_most("drift on the way", "drift", bound, numbers.tolerance, "TT3", exact=False),
    ]  # fmt: skip


def _entropic_mass(numbers: ConditionNumbers, ratio: float) -> float:
    if numbers.strength:
        return formulas.entropic_weight(numbers.start, ratio, numbers.strength)
    return numbers.start if ratio == 1 else 0.0


def _sloped_drift(numbers: ConditionNumbers, ratio: float, mass: float) -> float | None:
    """Return the fixed point of the old mean on a slope: moving up raises its own rewards."""
    steep = numbers.eta * abs(numbers.slope)

    def rest(moved: float) -> float:
        tilt = math.exp(min(steep * moved + steep**2 / 2, MOST_EXPONENT)) * ratio
        both = mass * tilt + 1 - mass
        return formulas.sloped_drift(numbers.eta, abs(numbers.slope), numbers.strength, tilt, both)

    return _fixed_point(rest, numbers.separation)


def _entropic_drift(numbers: ConditionNumbers, mass: float) -> float | None:
    at = nodes()
    apart, eta, gap = numbers.separation, numbers.eta, numbers.gap

    def tilt(x: Floats) -> tuple[Floats, Floats]:
        """Return the utility of a point and its slope."""
        new = sigmoid(apart * (x - apart / 2))
        reward = gap * new + (1 - new) * abs(numbers.slope) * x
        rise = apart * new * (1 - new) * (gap + abs(numbers.slope * x)) + (1 - new) * abs(
            numbers.slope
        )
        # Relative to the reward of the new mode, because only a ratio counts.
        utility = np.exp(np.minimum(eta * (reward - gap), MOST_EXPONENT))
        return utility, eta * rise * utility

    start = float(at.mean(tilt(apart - numbers.offset + at.z)[0]))

    def force(moved: float) -> float:
        utility, rise = (float(at.mean(part)) for part in tilt(moved + at.z))
        both = (numbers.start * utility + (1 - numbers.start) * start) * numbers.strength
        return rise / both if both else math.inf

    return _tilted_drift(numbers, mass, force)


# -------------------------------------------------------------------------------------------- OAPL


def _check_oapl(numbers: ConditionNumbers) -> Checked:
    _check_below_start(numbers)
    odds = _oapl_log_odds(numbers)
    spent = odds[0] - odds[-1]
    budget = float(logit(numbers.start) - logit(numbers.floor))
    bound = _refresh_drift(numbers, odds)
    sloped = numbers.refreshes * abs(numbers.slope) / numbers.t2
    return float(sigmoid(odds[-1])), bound, [
        _at_most("log-odds spent", "mass", spent, budget, "OA1", "OA2"),
        _at_most("drift by reward slope", "drift", sloped, numbers.tolerance, "OA3"),
        _at_most("drift of all refreshes", "drift", bound, numbers.tolerance, "OA3", exact=False),
    ]  # fmt: skip


def _oapl_log_odds(numbers: ConditionNumbers) -> list[float]:
    """Return the log-odds of the old mode before the first refresh and after each."""
    odds = [float(logit(numbers.start))]
    for _ in range(numbers.refreshes):
        if numbers.t1 == numbers.t2:
            odds.append(odds[-1] - numbers.gap / numbers.t2)
        else:
            odds.append(mode_regression(odds[-1], numbers.gap, numbers.t1, numbers.t2))
    return odds


def mode_regression(log_odds: float, gap: float, t1: float, t2: float) -> float:
    """Return the log-odds of the old mode that solve OAPL's regression on two flat modes."""
    old, new = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    value = t1 * float(np.logaddexp(old, new + gap / t1))

    def loss(drop: float) -> float:
        b = log_odds - drop
        miss_old = t2 * (-np.logaddexp(0, -b) - old) + value
        miss_new = t2 * (-np.logaddexp(0, b) - new) - (gap - value)
        return float(np.exp(old) * miss_old**2 + np.exp(new) * miss_new**2)

    most = 2 * gap / min(t1, t2) + 1
    minimum = minimize_scalar(loss, bounds=(0.0, most), method="bounded", options={"xatol": 1e-10})
    return log_odds - float(minimum.x)


def _refresh_drift(numbers: ConditionNumbers, odds: list[float]) -> float | None:
    """Return the drift by refreshes; rewards and model step at different borders of the modes."""
    moved, apart = 0.0, numbers.nearest
    for after in odds[1:]:
        taken = float(formulas.misassignment(apart, -after + moved * apart))
        seen = float(formulas.misassignment(numbers.separation, moved * numbers.separation))
        moved += (numbers.gap * apart * (taken + seen) + abs(numbers.slope)) / numbers.t2
        if moved > apart / 2:
            return None
    return moved


# ------------------------------------------------------------------------------------------- parts

CHECKS: Final[dict[ConditionMethod, Callable[[ConditionNumbers], Checked]]] = {
    "sdft": _check_sdft,
    "ttt-discover": _check_discover,
    "oapl": _check_oapl,
    "rl": _check_rl,
    "sft": _check_sft,
}


def _measured_mass(numbers: ConditionNumbers) -> MethodCondition:
    measured = numbers.measured or 0.0
    return _at_least("old mass measured", "mass", measured, numbers.floor, "E9")


def _fixed_point(force: Callable[[float], float], most: float) -> float | None:
    """Return the smallest drift that its own force does not exceed; None if there is none."""
    moved = 0.0
    for _ in range(MOST_ROUNDS):
        pulled = force(moved)
        if not math.isfinite(pulled) or pulled > most / 2:
            return None
        if pulled - moved <= ROUNDING * (1 + moved):
            return pulled
        moved = pulled
    return None


def _at_least(
    name: str, secures: Secured, left: float, right: float, *claims: str, exact: bool = True
) -> MethodCondition:
    holds = left >= right - ROUNDING * abs(right)
    return MethodCondition(name, secures, left, ">=", right, holds, exact, claims)


def _at_most(
    name: str,
    secures: Secured,
    left: float | None,
    right: float,
    *claims: str,
    exact: bool = True,
) -> MethodCondition:
    holds = left is not None and left <= right + ROUNDING * abs(right)
    return MethodCondition(name, secures, left, "<=", right, holds, exact, claims)


def _above(name: str, secures: Secured, left: float, right: float, *claims: str) -> MethodCondition:
    return MethodCondition(name, secures, left, ">", right, left > right, exact=True, claims=claims)


def _check_below_start(numbers: ConditionNumbers) -> None:
    if numbers.floor >= numbers.start:
        raise FieldError(
            f"a floor of {numbers.floor:g} is not below the start of {numbers.start:g}",
            field="floor",
            hint="use a floor below the start; this method can only lose old mass.",
        )
