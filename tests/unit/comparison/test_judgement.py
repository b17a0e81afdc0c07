"""Judgements of any quantity of any group against any margin match the comparison."""

from __future__ import annotations

import pytest

import forgetmap as fm
from forgetmap.comparison import (
    GroupKind,
    group_evidence,
    judge_family,
    judge_group,
    make_group_policy,
)


@pytest.fixture(scope="module")
def comparison() -> fm.Comparison:
    tasks = [
        fm.SimulatedTask("choice", items=800, k=4, lost=0.15, category="one"),
        fm.SimulatedTask("open", items=700, lost=0.02, category="two"),
    ]
    truth = fm.simulate(tasks, seed=5)
    return fm.compare(truth.before, truth.after)


def test_the_total_is_that_of_the_comparison(comparison: fm.Comparison) -> None:
    policy = make_group_policy(comparison, margin=0.02, estimator="auto", level=0.95)
    judgement = judge_group(
        "total", group_evidence(comparison, "total")["total"], policy, "forgetting"
    )
    assert judgement.group == comparison.result.total


@pytest.mark.parametrize("kind", ["task", "category"])
def test_groups_are_those_of_the_comparison(comparison: fm.Comparison, kind: GroupKind) -> None:
    policy = make_group_policy(comparison, margin=0.02, estimator="auto", level=0.95)
    groups = judge_family(group_evidence(comparison, kind), policy, kind, "forgetting")
    result = comparison.result.tasks if kind == "task" else comparison.result.categories
    expected = [(group.name, group.verdict, group.headline.forgetting) for group in result]
    assert [(j.group.name, j.verdict, j.loss) for j in groups] == expected


def test_another_margin_and_level_give_another_verdict(comparison: fm.Comparison) -> None:
    total = group_evidence(comparison, "total")["total"]
    again = fm.compare(comparison.before, comparison.after, margin=0.2, level=0.99).result.total
    policy = make_group_policy(comparison, margin=0.2, estimator="auto", level=0.99)
    judgement = judge_group("total", total, policy, "forgetting")
    assert (judgement.verdict, judgement.loss) == (again.verdict, again.headline.forgetting)


def test_the_net_change_is_that_of_accuracy(comparison: fm.Comparison) -> None:
    total = comparison.result.total
    policy = make_group_policy(comparison, margin=0.02, estimator="auto", level=0.95)
    judgement = judge_group(
        "total", group_evidence(comparison, "total")["total"], policy, "net_change"
    )
    assert total.acc_before is not None
    assert total.acc_after is not None
    assert judgement.loss.value == pytest.approx(total.acc_before - total.acc_after)
    assert judgement.loss.low == total.symmetric_noise.low
