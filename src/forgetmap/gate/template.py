"""A commented policy to start from, derived from a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator

from forgetmap.comparison import Comparison, GroupResult
from forgetmap.gate.policy import GatePolicy
from forgetmap.gate.result import Accept
from forgetmap.text import percent, printable

ABOUT_ACCEPT = (
    "What passes. items: fewer items than the margin may be lost, whatever was gained.",
    "net: it also passes if accuracy fell by less than the margin. It does not see an exchange:",
    "with as much gained as lost, it passes a loss of 4 % in 96 of 100 releases.",
)
"""What `accept` lets pass, and what it does not see."""
HEAD = """\
# What a release must hold; `forgetmap gate BEFORE AFTER --policy THIS-FILE` applies it.
# Every rule is FAIL if more than its margin is lost for certain, PASS if less is for certain, and
# INCONCLUSIVE otherwise. docs/gate.md lists all fields.

{about}
accept = "{accept}"

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

[[rule]]
# All items together{total}.
scope = "total"
quantity = "loss"  # or net_change, the accuracy drop
tier = "blocking"  # or warning, info
margin = {margin}
"""


def write_template(comparison: Comparison, accept: Accept = "items") -> str:
    """Return a commented policy in TOML for runs like these.

    Args:
        comparison: comparison of a model before and a model after; its margin is used.
        accept: what passes.
    """
    result = comparison.result
    policy = GatePolicy.model_fields
    text = HEAD.format(
        about="\n".join(f"# {line}" for line in ABOUT_ACCEPT),
        accept=accept,
        coverage=policy["coverage"].default,
        unchanged=json.dumps(policy["unchanged"].default),
        tasks=_list([task.name for task in result.tasks if task.n]),
        correct_at=result.rule.correct_at,
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
    return f"; a drop of {percent(group.detectable)} is detected with 80 % probability"
