"""A commented policy to start from, derived from a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator

from forgetmap.comparison import Comparison, GroupResult
from forgetmap.gate.policy import GatePolicy
from forgetmap.text import percent, printable

HEAD = """\
# What a release must hold; `forgetmap gate BEFORE AFTER --policy THIS-FILE` applies it.
# Every rule is PASS if the interval of the loss is below its margin, FAIL if it is above,
# and INCONCLUSIVE otherwise. docs/gate.md lists all fields.

# Share of what BEFORE scored that must be paired and scored after.
coverage = {coverage}
# How often you will look at the same models: a number fixed now, or "any".
looks = 1
# What must not differ between the runs: prompt, scorer, suite, decoding, harness.
unchanged = {unchanged}
# A release without one of these tasks fails.
required_tasks = {tasks}

[compare]
# Score from which on an answer counts as right.
correct_at = {correct_at}
# Share of greedy answers that flip one way by batching and hardware alone.
noise_floor = {noise_floor}

[[rule]]
# All items together{total}.
scope = "total"
quantity = "forgetting"  # or net_change, knowledge_loss, answering_loss
tier = "blocking"        # or warning, info
margin = {margin}
"""


def write_template(comparison: Comparison) -> str:
    """Return a commented policy in TOML for runs like these.

    Args:
        comparison: comparison of a model before and a model after; its margin is used.
    """
    result = comparison.result
    policy = GatePolicy.model_fields
    text = HEAD.format(
        coverage=policy["coverage"].default,
        unchanged=json.dumps(policy["unchanged"].default),
        tasks=_list([task.name for task in result.tasks if task.n]),
        correct_at=result.rule.correct_at,
        noise_floor=result.rule.noise_floor,
        total=_detects(result.total),
        margin=result.rule.margin,
    )
    return text + "".join(_group_rules(result.categories, "category", result.rule.margin))


def _list(names: list[str]) -> str:
    """Format a list in TOML; its strings are JSON strings except for one character."""
    return json.dumps(names, ensure_ascii=False).replace("\x7f", "\\u007f")


def _group_rules(groups: list[GroupResult], scope: str, margin: float) -> Iterator[str]:
    if not groups:
        yield (
            '\n# [[rule]]\n# scope = "task"        # every task; or name some: groups = ["..."]\n'
            '# tier = "warning"\n# margin = 0.05\n'
        )
        return
    yield f"\n[[rule]]\n# Every {scope}, corrected for looking at all of them.\n"
    for group in groups:
        yield f"#   {printable(group.name)}: {group.items:,} items{_detects(group)}\n"
    yield f'scope = "{scope}"\ntier = "warning"\nmargin = {margin}\n'


def _detects(group: GroupResult) -> str:
    if group.detectable is None:
        return ""
    return f"; a loss of {percent(group.detectable)} is detected with 80 % probability"
