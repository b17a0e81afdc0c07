"""The schedule of looks: as many as the cost allows, denser early, with one at the end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from forgetmap.errors import UsageError
from forgetmap.train.schedule import MOST_LOOKS, LookSchedule


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def train(
    schedule: LookSchedule, clock: Clock, steps: int, step_seconds: float, look_seconds: float
) -> list[int]:
    """Steps that are looked at, as the callback asks for them."""

    def look() -> None:
        clock.now += look_seconds
        schedule.count_look(look_seconds)

    schedule.begin(steps)
    look()
    looks, due = [0], schedule.first_check(0)
    for step in range(1, steps + 1):
        clock.now += step_seconds
        if step < min(due, steps):
            continue
        if schedule.allows(step):
            look()
            looks.append(step)
        due = schedule.plan(step)
    return looks


@pytest.mark.parametrize("cost", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("look_seconds", [0.1, 1.0, 3.0])
def test_the_probe_takes_at_most_its_share_and_most_of_it(cost: float, look_seconds: float) -> None:
    clock = Clock()
    schedule = LookSchedule(cost=cost, clock=clock)
    looks = train(schedule, clock, 1000, 1.0, look_seconds)
    assert schedule.trained == pytest.approx(1000)
    assert schedule.probed <= cost * 1000
    assert schedule.probed > min(cost * 1000 * 0.7, MOST_LOOKS * look_seconds) - 2 * look_seconds
    assert len(looks) <= 1.1 * MOST_LOOKS + 2
    assert looks[-1] == 1000


def test_looks_are_denser_early() -> None:
    clock = Clock()
    looks = train(LookSchedule(cost=0.05, clock=clock), clock, 1000, 1.0, 1.0)
    gaps = [after - before for before, after in pairwise(looks[1:])]
    assert len(looks) > 30
    assert sum(step <= 250 for step in looks) >= 0.4 * len(looks)
    assert gaps[0] < gaps[len(gaps) // 2] < max(gaps)


def test_an_expensive_first_look_does_not_push_the_others_to_the_end() -> None:
    clock = Clock()
    schedule = LookSchedule(cost=0.05, clock=clock)
    schedule.begin(300)
    schedule.count_look(11.0)
    schedule.shrink(0.05)  # items are left out from now on
    clock.now += 11.0
    looks, due = [0], schedule.first_check(0)
    for step in range(1, 301):
        clock.now += 1.0
        if step >= min(due, 300):
            if schedule.allows(step):
                clock.now += 0.55
                schedule.count_look(0.55)
                looks.append(step)
            due = schedule.plan(step)
    assert schedule.probed <= 0.05 * 300
    assert looks[-1] == 300
    assert sum(0 < step <= 150 for step in looks) >= 3
    assert min(after - before for before, after in pairwise(looks)) > 1


def test_steps_that_get_quicker_do_not_raise_the_cost() -> None:
    clock = Clock()
    schedule = LookSchedule(cost=0.1, clock=clock)
    schedule.begin(200)
    schedule.count_look(1.0)
    clock.now += 1.0
    due = schedule.first_check(0)
    for step in range(1, 201):
        clock.now += 5.0 if step < 20 else 0.5
        if step >= min(due, 200):
            if schedule.allows(step):
                clock.now += 1.0
                schedule.count_look(1.0)
            due = schedule.plan(step)
    # What was planned from slow steps may have been spent before they got quick, and no more.
    spent_early = 0.1 * 5.0 * 200 * (20 / 200) ** 0.5
    assert schedule.probed <= max(0.1 * schedule.trained, spent_early) + 1e-6


def test_a_probe_that_costs_more_than_the_budget_is_asked_at_the_start_only() -> None:
    clock = Clock()
    assert train(LookSchedule(cost=0.01, clock=clock), clock, 100, 1.0, 5.0) == [0]


def test_a_fixed_interval_ends_with_the_last_step() -> None:
    clock = Clock()
    schedule = LookSchedule(cost=None, every=30, clock=clock)
    assert train(schedule, clock, 100, 1.0, 50.0) == [0, 30, 60, 90, 100]


def test_items_are_left_out_where_too_few_looks_fit() -> None:
    clock = Clock()
    schedule = LookSchedule(cost=0.05, clock=clock)
    schedule.begin(1000)
    schedule.count_look(10.0)
    clock.now += 10.0 + 3.0
    assert schedule.affordable_share(3) == pytest.approx((50 - 10) / (10 * 11))
    schedule.shrink(0.25)
    assert schedule.next_cost == pytest.approx(2.75)


def test_what_was_trained_before_a_resumption_counts() -> None:
    clock = Clock()
    schedule = LookSchedule(cost=0.05, clock=clock)
    schedule.costs = [1.0]
    schedule.begin(1000, trained=500.0, probed=30.0)
    clock.now += 10.0
    assert schedule.trained == pytest.approx(510)
    assert schedule.probed == 30.0


@pytest.mark.parametrize("options", [{"cost": 0}, {"cost": 1.5}, {"every": 0}, {"cost": None}])
def test_a_schedule_that_makes_no_sense_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"every is|not a share"):
        LookSchedule(**options)  # type: ignore[arg-type]
