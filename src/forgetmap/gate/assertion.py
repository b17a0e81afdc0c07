"""A gate as an assertion for tests."""

from __future__ import annotations

import unittest
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.gate.policy import GatePolicy
    from forgetmap.gate.result import Accept, GateResult

MOST_CHECKS = 20
"""Maximum number of checks in the message of a failed assertion."""
MOST_ITEMS = 5
"""Maximum number of items in the message."""
_results: deque[GateResult] = deque(maxlen=1_000)


def assert_no_forgetting(
    before: Any,
    after: Any,
    *,
    margin: float | None = None,
    accept: Accept | None = None,
    policy: GatePolicy | str | Path | None = None,
    inconclusive: Literal["fail", "skip"] = "fail",
    **options: Any,
) -> GateResult:
    """Fail a test if the model after lost more than the policy allows.

    Works in pytest and unittest, and without a test framework.

    Args:
        before: path, dataframe or run of the model before.
        after: path, dataframe or run of the model after.
        margin: the largest acceptable loss, as a share of all items, if no policy is given; 0.02 by
            default.
        accept: what passes if no policy is given, "items" or "net", as for `run_gate`.
        policy: a `GatePolicy`, or the path of its TOML file.
        inconclusive: what to do if the data do not decide: fail the test, or skip it.
        options: as for `run_gate`: waivers, look, today, confirm, and how runs are read.

    Returns:
        The result of the gate, which is PASS.

    Raises:
        AssertionError: the gate is FAIL, or INCONCLUSIVE and `inconclusive` is "fail".
        SkipTest: the gate is INCONCLUSIVE, and `inconclusive` is "skip".
        UsageError: both margin and policy are given, or `inconclusive` has another value.
        InputError: a run, the policy or the waivers cannot be read.

    Example:
        >>> from forgetmap.gate import assert_no_forgetting
        >>> assert_no_forgetting("runs/main", "runs/candidate", margin=0.02)
        ... # doctest: +SKIP
    """
    __tracebackhide__ = True
    from forgetmap.gate.decision import run_gate

    if inconclusive not in ("fail", "skip"):
        raise UsageError(f"inconclusive={inconclusive!r}", hint='use "fail" or "skip".')
    result = run_gate(before, after, margin=margin, accept=accept, policy=policy, **options)
    _results.append(result)
    if result.status == "INCONCLUSIVE" and inconclusive == "skip":
        raise unittest.SkipTest(result.headline)
    if result.status != "PASS":
        raise AssertionError(explain(result))
    return result


def explain(result: GateResult) -> str:
    """Return the decision and every blocking check that did not pass, as lines."""
    from forgetmap.gate.check_text import check_lines, next_steps, sort_checks

    lines = [result.headline, *([f"  {result.counts}"] if result.counts else [])]
    lines += [f"  required task is missing: {task}" for task in result.missing_tasks]
    open_checks = [c for c in sort_checks(result.of_tier("blocking")) if c.status != "PASS"]
    for check in open_checks[:MOST_CHECKS]:
        first, *more = check_lines(check)
        lines += [f"  {check.name}: {first}", *(f"    {line}" for line in more)]
    if len(open_checks) > MOST_CHECKS:
        lines.append(f"  and {len(open_checks) - MOST_CHECKS} more")
    if result.forgotten_items:
        names = [f"{one.task}/{one.item}" for one in result.forgotten_items]
        lines.append(f"  forgotten, for example: {', '.join(names[:MOST_ITEMS])}")
    if result.status == "INCONCLUSIVE":
        lines += [f"  to decide: {step.text()}" for step in next_steps(result)]
    return "\n".join(lines)


def take_results() -> list[GateResult]:
    """Return and clear the results of assertions since the last call; at most the last 1,000."""
    taken = list(_results)
    _results.clear()
    return taken
