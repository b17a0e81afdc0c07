"""The trainings of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetmap.errors import UsageError
from forgetmap.evaluation import Suite
from forgetmap.lab.compare import plan_comparison
from forgetmap.lab.recipe import LabRecipe
from lab_runs import make_run

pytestmark = pytest.mark.needs_torch
EMPTY = Suite("empty", ())
RECIPE = replace(
    LabRecipe("hand-made", "start", lambda _: [], [], EMPTY, EMPTY, []),
    rates=(0.2, 0.4),
    low_rates=(0.1,),
)


def test_all_that_is_tried_is_planned() -> None:
    plan = plan_comparison(["lora"], seeds=2, strengths={"lora": [1, 2]})
    arms = [(arm.method, arm.strength, arm.rate) for arm in plan.sweep_arms(RECIPE)]
    assert arms == [
        ("sft", 0, 0.1), ("sft", 0, 0.2), ("sft", 0, 0.4),
        ("lora", 1, 0.5), ("lora", 1, 1.0), ("lora", 2, 0.5), ("lora", 2, 1.0),
    ]  # fmt: skip
    assert {arm.seed for arm in plan.sweep_arms(RECIPE)} == {0}


def test_the_best_setting_is_repeated_and_plain_fine_tuning_everywhere() -> None:
    plan = plan_comparison(["replay"], seeds=2)
    development = [
        *(make_run(rate=rate) for rate in (0.1, 0.2, 0.4)),
        make_run("replay", strength=0.25, rate=0.2, lost=(9, 9)),
        make_run("replay", strength=0.5, rate=0.4, lost=(3, 3)),
    ]
    arms = plan.repeat_arms(development)
    assert [(arm.method, arm.strength, arm.rate, arm.seed) for arm in arms] == [
        *(("sft", 0, rate, seed) for rate in (0.1, 0.2, 0.4) for seed in (1, 2)),
        ("replay", 0.5, 0.4, 1), ("replay", 0.5, 0.4, 2),
    ]  # fmt: skip
    assert plan.count_arms(RECIPE) == len(plan.sweep_arms(RECIPE)) + len(arms)


def test_slow_methods_are_left_out_unless_named() -> None:
    assert "grpo" not in plan_comparison().methods
    assert plan_comparison(["grpo"]).methods == ("sft", "grpo")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["nothing"]}, "there is no method 'nothing'"),
        ({"seeds": 1}, "needs at least 2 seeds, not 1"),
        ({"methods": ["lora"], "strengths": {"sft": [1]}}, "'sft' has no strengths"),
        ({"methods": ["lora"], "strengths": {"ema": [1]}}, "'ema' has no strengths"),
        ({"methods": ["lora"], "strengths": {"lora": []}}, "'lora' has no strengths"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_comparison(**given)  # type: ignore[arg-type]
