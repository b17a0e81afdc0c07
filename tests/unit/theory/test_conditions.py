"""Conditions on both sides of their boundaries, checked against independent simulations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from forgetmap.errors import FieldError, ForgetmapError
from forgetmap.theory import conditions, flows, formulas, methods
from forgetmap.theory.condition_numbers import (
    NUMBERS_OF_ALL,
    NUMBERS_OF_METHOD,
    ConditionMethod,
    ConditionNumbers,
)
from forgetmap.theory.conditions import MethodCondition, check_conditions, separation_of_overlap
from forgetmap.theory.estimators import Floats
from forgetmap.theory.methods import Demonstrator, Distillation, Setting
from forgetmap.theory.mixtures import state
from forgetmap.theory.objectives import (
    Entropic,
    NewMembership,
    OffPolicyRegression,
    ReverseKL,
    Tilted,
)

FAR = Setting(8.0, start_offset=0.0, precision=1e-8)
AT_FAR = ConditionNumbers(separation=8.0, offset=0.0)
EITHER_SIDE = (1.03, 0.97)


def condition(
    method: ConditionMethod, name: str, numbers: ConditionNumbers = AT_FAR
) -> MethodCondition:
    found = [each for each in check_conditions(method, numbers).conditions if each.name == name]
    assert len(found) == 1, name
    return found[0]


# ------------------------------------------------------------------------------------------- mass


@pytest.mark.parametrize("fraction", [0.0, 0.097, 0.103])
def test_replay_keeps_the_floor_exactly_where_its_condition_holds(fraction: float) -> None:
    told = condition("sft", "replayed fraction", replace(AT_FAR, fraction=fraction))
    kept = methods.replay(Setting(6.0), [2000.0], fraction).old_weight[-1] >= 0.1
    assert told.holds == kept


@pytest.mark.parametrize("share", [0.097, 0.103])
def test_rl_keeps_the_floor_exactly_where_the_target_does(share: float) -> None:
    told = condition("rl", "old share of target", replace(AT_FAR, old_share=share))
    setting = replace(FAR, old_share=share)
    assert told.holds == (methods.rl(setting, [400.0]).old_weight[-1] >= 0.1)


def test_rl_toward_the_new_alone_keeps_nothing() -> None:
    report = check_conditions("rl", replace(AT_FAR, old_share=0.0))
    assert (report.mass, report.drift, report.keeps_mass) == (0.0, None, False)
    assert methods.rl(FAR, [400.0], sees_old=False).old_weight[-1] < 0.1


@pytest.mark.parametrize("factor", EITHER_SIDE)
def test_a_kl_penalty_keeps_the_floor_exactly_where_its_condition_holds(factor: float) -> None:
    needed = formulas.temperature_for(0.5, 1.5, 0.1)
    warmth = needed * factor
    numbers = replace(AT_FAR, gap=1.5, temperature=warmth)
    told = condition("rl", "KL temperature", numbers)
    assert told.right == pytest.approx(needed)
    end = methods.kl_rl(FAR, [400.0], 1.5, warmth).old_weight[-1]
    assert told.holds == (end >= 0.1)
    assert check_conditions("rl", numbers).mass == pytest.approx(end, abs=1e-4)


@pytest.mark.parametrize("weight", [0.097, 0.103])
def test_sdft_keeps_the_floor_exactly_where_the_demonstrator_does(weight: float) -> None:
    told = condition("sdft", "mass of the demonstrator", replace(AT_FAR, demo_weight=weight))
    how = Distillation(0.5, 0.5, Demonstrator(weight))
    student, _ = methods.sdft(FAR, [1500.0], how)
    assert told.holds == (student.old_weight[-1] >= 0.1)


@pytest.mark.parametrize("anchor", [0.0, 0.2])
def test_sdft_comes_back_exactly_where_there_is_an_anchor(anchor: float) -> None:
    report = check_conditions("sdft", replace(AT_FAR, anchor=anchor))
    pushed = state(0.3, 0.0, 8.0)
    how = Distillation(anchor, 0.5, Demonstrator(0.5))
    student, _ = methods.sdft(FAR, [800.0], how, pushed)
    comes_back = abs(student.old_weight[-1] - 0.5) < 1e-3
    assert report.conditions[0].holds == comes_back
    assert (report.mass is not None) == comes_back


@pytest.mark.parametrize("factor", EITHER_SIDE)
def test_discovery_keeps_the_floor_exactly_where_its_penalty_is_strong(factor: float) -> None:
    needed = formulas.strength_for(0.5, np.exp(-2.0), 0.1)
    numbers = replace(AT_FAR, strength=needed * factor)
    told = condition("ttt-discover", "KL strength", numbers)
    end = methods.ttt_discover(FAR, [1500.0], 2.0, needed * factor).old_weight[-1]
    assert told.holds == (end >= 0.1)
    assert check_conditions("ttt-discover", numbers).mass == pytest.approx(end, abs=1e-3)


@pytest.mark.parametrize("factor", EITHER_SIDE)
def test_a_strength_for_any_reward_is_enough_for_huge_ones(factor: float) -> None:
    needed = formulas.strength_for(0.5, 0.0, 0.1)
    numbers = replace(AT_FAR, strength=needed * factor, eta=15.0)
    told = condition("ttt-discover", "KL strength, any rewards", numbers)
    end = methods.ttt_discover(FAR, [1500.0], 15.0, needed * factor).old_weight[-1]
    assert told.holds == (end >= 0.1)


def test_discovery_without_a_penalty_forgets_unless_rewards_are_equal() -> None:
    report = check_conditions("ttt-discover", replace(AT_FAR, strength=0.0))
    assert (report.mass, report.drift, report.keeps_mass) == (0.0, None, False)
    assert methods.ttt_discover(FAR, [400.0], 2.0, 0.0).old_weight[-1] < 0.1
    equal = check_conditions("ttt-discover", replace(AT_FAR, strength=0.0, gap=0.0))
    assert equal.mass == 0.5
    assert equal.keeps_mass


@pytest.mark.parametrize("t2", [1.0, 0.7])
def test_oapl_keeps_the_floor_for_as_many_refreshes_as_its_condition_says(t2: float) -> None:
    weights = methods.oapl(FAR, 3, 1.0, t2=t2).old_weight
    for count in range(4):
        numbers = replace(AT_FAR, refreshes=count, t2=t2)
        told = condition("oapl", "log-odds spent", numbers)
        assert told.holds == (weights[count] >= 0.1), count
        assert check_conditions("oapl", numbers).mass == pytest.approx(weights[count], rel=5e-3)


@pytest.mark.parametrize("way", [0.42, 0.58])
def test_the_new_is_learnt_from_its_own_side(way: float) -> None:
    offset = 8 * (1 - way)
    told = condition("rl", "start of the new mode", replace(AT_FAR, offset=offset))
    setting = replace(FAR, start_offset=offset, precision=1e-7)
    end = methods.rl(setting, [600.0]).end
    assert told.holds == (abs(end[2] - 8) < 0.1)


def test_what_was_measured_is_a_condition_too() -> None:
    name = "old mass measured"
    assert condition("rl", name, replace(AT_FAR, measured=0.12)).holds
    low = check_conditions("rl", replace(AT_FAR, measured=0.0))
    assert not low.conditions[0].holds
    assert not low.keeps_mass


# ------------------------------------------------------------------------------------------ drift


@dataclass(frozen=True)
class SlopedReward:
    """A reward of 1 for the new with a slope on the old."""

    slope: float

    @property
    def member(self) -> NewMembership:
        return FAR.reward(1.0)

    def __call__(self, x: Floats) -> Floats:
        return self.with_slope(x)[0]

    def with_slope(self, x: Floats) -> tuple[Floats, Floats]:
        share, rise = self.member.with_slope(x)
        return (
            share + (1 - share) * self.slope * x,
            rise * (1 - self.slope * x) + (1 - share) * self.slope,
        )


@pytest.mark.parametrize("bias", [0.2, 0.3])
def test_a_biased_buffer_moves_the_old_by_its_bias(bias: float) -> None:
    numbers = replace(AT_FAR, fraction=0.3, bias=bias)
    end = methods.replay(FAR, [800.0], 0.3, bias).end
    assert condition("sft", "bias of replayed data", numbers).holds == (abs(end[1]) <= 0.25)
    assert check_conditions("sft", numbers).drift >= abs(end[1]) - 1e-6


@pytest.mark.parametrize("shift", [-0.3, 0.2])
def test_a_shifted_demonstrator_moves_the_old_by_its_shift(shift: float) -> None:
    numbers = replace(AT_FAR, demo_shift=shift)
    how = Distillation(0.5, 0.5, Demonstrator(0.5, shift))
    end = methods.sdft(FAR, [800.0], how)[0].end
    assert condition("sdft", "shift of the demonstrator", numbers).holds == (abs(end[1]) <= 0.25)


@pytest.mark.parametrize("factor", EITHER_SIDE)
def test_a_slope_moves_the_old_under_a_kl_penalty(factor: float) -> None:
    slope = 0.25 * 0.5 * factor
    numbers = replace(AT_FAR, temperature=0.5, slope=slope)
    tilted = Tilted(FAR.base, SlopedReward(slope), np.asarray(2.0))  # type: ignore[arg-type]
    end = flows.follow(ReverseKL(tilted), FAR.start, [400.0]).end
    assert condition("rl", "drift by reward slope", numbers).holds == (end[1] <= 0.25)
    assert check_conditions("rl", numbers).drift == pytest.approx(float(end[1]), rel=0.02)


@pytest.mark.parametrize("slope", [0.15, 0.18])
def test_a_slope_moves_the_old_under_discovery(slope: float) -> None:
    numbers = replace(AT_FAR, slope=slope)
    told = condition("ttt-discover", "drift by reward slope", numbers)
    goal = Entropic(SlopedReward(slope), np.asarray(2.0), FAR.base, np.asarray(0.5))
    moved = float(flows.follow(goal, FAR.start, [1500.0]).end[1])
    assert told.left == pytest.approx(moved, rel=0.05)
    near = replace(numbers, tolerance=moved * (1.06 if slope > 0.16 else 0.94))
    again = condition("ttt-discover", "drift by reward slope", near)
    assert again.holds == (moved <= near.tolerance)


@pytest.mark.parametrize("factor", EITHER_SIDE)
def test_a_slope_moves_the_old_with_every_refresh(factor: float) -> None:
    slope, model = 0.125 * factor, FAR.start
    for _ in range(2):
        loss = OffPolicyRegression(SlopedReward(slope), model, 1.0, 1.0)
        model = methods.minimiser(loss, model)
    told = condition("oapl", "drift by reward slope", replace(AT_FAR, slope=slope, refreshes=2))
    assert told.holds == (abs(model[1]) <= 0.25)


CASES: dict[ConditionMethod, dict[str, float | int]] = {
    "sft": {"fraction": 0.2},
    "rl": {"old_share": 0.3},
    "sdft": {"demo_weight": 0.4, "anchor": 0.5},
    "ttt-discover": {"strength": 0.7},
    "oapl": {"refreshes": 2},
}


def largest_drift(method: ConditionMethod, setting: Setting) -> float:
    times = np.geomspace(0.05, 200, 60)
    path = {
        "sft": lambda: methods.replay(setting, times, 0.2),
        "rl": lambda: methods.rl(setting, times),
        "sdft": lambda: methods.sdft(setting, times, Distillation(0.5, 0.2, Demonstrator(0.4)))[0],
        "ttt-discover": lambda: methods.ttt_discover(setting, times, 2.0, 0.7),
        "oapl": lambda: methods.oapl(setting, 2, 1.0),
    }[method]()
    return float(path.drift(setting.separation).max())


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("start", [0.3, 0.8])
def test_no_tolerance_that_is_exceeded_is_promised(method: ConditionMethod, start: float) -> None:
    share = 0.3 if method == "rl" else 0.5
    for separation, offset in ((5.0, 0.0), (6.0, 1.0), (8.0, 1.0)):
        setting = Setting(separation, share, start, offset, precision=1e-7)
        moved = largest_drift(method, setting)
        numbers = ConditionNumbers(
            start=start, floor=0.01, separation=separation, offset=offset,
            **CASES[method],  # type: ignore[arg-type]
        )  # fmt: skip
        bound = check_conditions(method, numbers).drift
        if bound is None and separation < 8:  # too near for a bound that proves anything
            continue
        assert bound is not None
        assert moved <= bound
        inside = check_conditions(method, replace(numbers, tolerance=bound))
        beyond = check_conditions(method, replace(numbers, tolerance=max(moved, 1e-12) * 0.99))
        assert inside.bounds_drift
        assert not beyond.bounds_drift


def test_bounds_fall_like_the_overlap() -> None:
    for method, own in CASES.items():
        drifts = [
            check_conditions(
                method,
                ConditionNumbers(separation=apart, offset=0.0, **own),  # type: ignore[arg-type]
            ).drift
            for apart in (10.0, 11.0)
        ]
        exponent = np.log(drifts[1] / drifts[0]) / 21  # type: ignore[operator]
        assert exponent == pytest.approx(-0.125, abs=0.01), method


# ------------------------------------------------------------------------------------------ limits


def test_separation_of_an_overlap() -> None:
    assert separation_of_overlap(np.exp(-2.0)) == pytest.approx(4.0)
    assert separation_of_overlap(0.0) < 30
    far = ConditionNumbers(separation=separation_of_overlap(1e-300))
    assert check_conditions("rl", far).drift == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(FieldError, match="overlap is 1"):
        separation_of_overlap(1.0)


def test_mode_regression_is_the_closed_form_for_equal_temperatures() -> None:
    for odds in (-3.0, 0.0, 2.0):
        for warmth in (0.5, 1.0, 2.0):
            found = conditions.mode_regression(odds, 1.0, warmth, warmth)
            assert found == pytest.approx(odds - 1 / warmth, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start", 0.0), ("start", 1.0), ("floor", 0.0), ("floor", 1.0), ("floor", float("nan")),
        ("separation", 0.0), ("separation", 31.0), ("tolerance", 0.0), ("offset", 5.0),
        ("offset", float("-inf")), ("measured", 1.1), ("fraction", 1.0), ("fraction", -0.1),
        ("bias", float("inf")), ("old_share", 1.0), ("temperature", 0.0), ("gap", -1.0),
        ("gap", float("inf")), ("slope", float("nan")), ("anchor", 1.1), ("anchor", -0.1),
        ("demo_weight", 1.0), ("demo_shift", float("inf")), ("eta", 0.0), ("strength", -1.0),
        ("t1", 0.0), ("t2", -1.0), ("refreshes", -1), ("refreshes", 1000), ("refreshes", 1.5),
        ("refreshes", float("nan")), ("eta", 1e300), ("t2", 1e-300), ("temperature", 1e-300),
        ("strength", 1e-300), ("slope", 1e300), ("gap", 1e300), ("offset", -1e300),
    ],
)  # fmt: skip
def test_numbers_outside_their_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(FieldError, match=f"{name} is ") as caught:
        ConditionNumbers(**{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name
    assert caught.value.hint


@pytest.mark.parametrize("method", ["ttt-discover", "oapl"])
def test_a_floor_above_the_start_is_refused_where_mass_only_falls(method: ConditionMethod) -> None:
    with pytest.raises(FieldError, match=r"a floor of 0\.6 is not below"):
        check_conditions(method, ConditionNumbers(floor=0.6))
    assert not check_conditions("rl", ConditionNumbers(floor=0.6)).keeps_mass


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ForgetmapError, match="no conditions for 'dpo'"):
        check_conditions("dpo")  # type: ignore[arg-type]


@pytest.mark.parametrize("eta", [1e-6, 1e4])
@pytest.mark.parametrize("slope", [0.0, 30.0])
def test_extreme_rewards_overflow_nothing(eta: float, slope: float) -> None:
    for gap in (0.0, 1e4):
        numbers = ConditionNumbers(eta=eta, gap=gap, slope=slope, strength=0.01, offset=4.9)
        report = check_conditions("ttt-discover", numbers)
        sides = [side for each in report.conditions for side in (each.left, each.right)]
        assert np.isfinite([side for side in sides if side is not None]).all()


@pytest.mark.parametrize(
    ("method", "numbers"),
    [
        ("ttt-discover", ConditionNumbers(eta=1e8, slope=-1e8, strength=1e-9)),
        ("ttt-discover", ConditionNumbers(start=1 - 1e-12, strength=1e-9, gap=1e8)),
        ("rl", ConditionNumbers(temperature=1e-9, gap=1e8, slope=1e8)),
        ("oapl", ConditionNumbers(t1=1e-9, t2=1e-9, gap=1e8, slope=1e8, refreshes=399)),
        ("oapl", ConditionNumbers(t1=1e8, t2=1e-9, gap=1e8)),
        ("sdft", ConditionNumbers(anchor=1e-300, demo_shift=1e8)),
        ("sft", ConditionNumbers(fraction=1e-300, bias=1e8)),
    ],
)
def test_the_ends_of_ranges_have_finite_sides(
    method: ConditionMethod, numbers: ConditionNumbers
) -> None:
    with np.errstate(all="raise", under="ignore"):
        report = check_conditions(method, numbers)
    sides = [side for each in report.conditions for side in (each.left, each.right)]
    assert np.isfinite([side for side in sides if side is not None]).all()
    assert not report.bounds_drift


def test_modes_nearer_than_the_offset_are_refused_with_a_number_that_helps() -> None:
    with pytest.raises(FieldError, match=r"offset is 1, .* separation of 0\.6") as caught:
        ConditionNumbers(separation=0.6)
    assert "0 starts the new component" in caught.value.hint
    assert check_conditions("rl", ConditionNumbers(separation=0.6, offset=0.0)).mass == 0.5


def test_without_an_anchor_a_shift_decides_nothing() -> None:
    told = condition("sdft", "shift of the demonstrator", replace(AT_FAR, anchor=0.0))
    assert (told.left, told.holds, told.exact) == (None, False, False)


def test_every_number_belongs_to_a_method() -> None:
    used = {*NUMBERS_OF_ALL, *(n for own in NUMBERS_OF_METHOD.values() for n in own)}
    assert used == set(ConditionNumbers.__dataclass_fields__)


NEARLY: dict[str, tuple[ConditionMethod, ConditionNumbers, float]] = {
    "rl": ("rl", ConditionNumbers(0.9995, 0.01, 3.1, offset=1.2, old_share=0.5), 0.9),
    "penalty": ("rl", ConditionNumbers(0.9995, 0.01, 4.0, offset=0.5, temperature=0.9), 0.9),
    "ttt-discover": ("ttt-discover", ConditionNumbers(0.9995, 0.01, 4.0, offset=0.2), 0.9),
    "sft": ("sft", ConditionNumbers(0.996, 0.01, 3.75, offset=-0.2, fraction=0.92), 0.8),
    "sdft": ("sdft", ConditionNumbers(0.996, 0.01, 4.3, offset=-0.4, anchor=0.93), 0.5),
    "oapl": (
        "oapl",
        ConditionNumbers(0.999, 0.01, 2.525, offset=0.383, gap=0.79, t1=2.35, t2=2.35, refreshes=2),
        0.5,
    ),
}
"""Numbers at which each bound is nearly reached, and the part of it that is exceeded."""


@pytest.mark.parametrize("name", NEARLY)
def test_bounds_are_nearly_reached(name: str) -> None:
    method, numbers, part = NEARLY[name]
    setting = Setting(numbers.separation, numbers.old_share, numbers.start, numbers.offset,
                      precision=1e-7)  # fmt: skip
    times = np.geomspace(0.05, 300, 120)
    how = Distillation(numbers.anchor, 0.5, Demonstrator(numbers.demo_weight))
    path = {
        "rl": lambda: methods.rl(setting, times),
        "penalty": lambda: methods.kl_rl(setting, times, 1.0, 0.9),
        "ttt-discover": lambda: methods.ttt_discover(setting, times, 2.0, 0.5),
        "sft": lambda: methods.replay(setting, times, numbers.fraction),
        "sdft": lambda: methods.sdft(setting, times, how)[0],
        "oapl": lambda: methods.oapl(setting, 2, 0.79, 2.35, 2.35),
    }[name]()
    moved = float(path.drift(numbers.separation).max())
    bound = check_conditions(method, numbers).drift
    assert bound is not None
    inside, beyond = (replace(numbers, tolerance=bound * side) for side in (1.0, part))
    assert check_conditions(method, inside).bounds_drift
    assert moved <= inside.tolerance
    assert not check_conditions(method, beyond).bounds_drift
    assert moved > beyond.tolerance


@pytest.mark.parametrize(
    ("start", "separation", "offset", "fraction"),
    [(0.06, 3.71, 0.63, 0.77), (0.937, 4.767, -0.773, 0.922)],
)
def test_replay_that_moves_the_new_component_does_not_escape_its_bound(
    start: float, separation: float, offset: float, fraction: float
) -> None:
    """Old data pull the new component near, or it starts beyond its mode."""
    numbers = ConditionNumbers(start, 0.01, separation, offset=offset, fraction=fraction)
    bound = check_conditions("sft", numbers).drift
    setting = Setting(separation, 0.5, start, offset, precision=1e-7)
    path = methods.replay(setting, np.geomspace(0.05, 300, 80), fraction)
    moved = float(path.drift(separation).max())
    assert bound is None or moved <= bound
