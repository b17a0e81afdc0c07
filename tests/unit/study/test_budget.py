"""Limits of cost: a study stops before a model that would exceed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import UsageError
from forgetmap.study import PlannedRun, RunBill, RunLimits, parse_study, plan_runs
from forgetmap.study.budget import Budget
from forgetmap.study.run_files import RunEffort

STUDY = 'name = "three"\nsuite = "basics"\n' + "".join(
    f'[[model]]\nid = "{name}"\nhub = "o/{name}"\nparent = "{parent}"\n'.replace(
        'parent = ""\n', ""
    )
    for name, parent in (("a", ""), ("b", "a"), ("c", "a"))
)


def plans(folder: Path) -> list[PlannedRun]:
    return plan_runs(parse_study(STUDY, "x"), folder)


def bills(*costs: float) -> dict[str, RunBill]:
    return {
        name: RunBill(10, cost, cost / 10, 0.0) for name, cost in zip("abc", costs, strict=True)
    }


def test_no_model_begins_after_one_that_would_cost_too_much(tmp_path: Path) -> None:
    budget = Budget(RunLimits(tokens=100), bills(60, 50, 10))
    first, second, third = plans(tmp_path)
    assert budget.admit(first)
    assert not budget.admit(second)
    assert budget.refusal == "b would take about 50 tokens, but 40 of 100 are left"
    assert not budget.admit(third)


def test_what_a_model_really_took_counts(tmp_path: Path) -> None:
    budget = Budget(RunLimits(tokens=100, gpu_hours=10), bills(60, 50, 10), gpus=2)
    first, second, _ = plans(tmp_path)
    assert budget.admit(first)
    budget.settle(first, RunEffort(answers=10, tokens=40, written=1, seconds=3600))
    assert budget.admit(second)
    assert not budget.admit(first)


def test_without_limits_everything_begins_and_unknown_costs_are_no_matter(tmp_path: Path) -> None:
    unknown = dict.fromkeys("abc", RunBill(10, None, None, None))
    budget = Budget(RunLimits(), unknown)
    budget.require_known(plans(tmp_path))
    assert all(budget.admit(plan) for plan in plans(tmp_path))
    Budget(RunLimits(items=5), unknown).require_known(plans(tmp_path))
    with pytest.raises(UsageError, match="the number of GPU hours of a is unknown"):
        Budget(RunLimits(gpu_hours=5), unknown).require_known(plans(tmp_path))
