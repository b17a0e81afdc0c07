"""A check of a gate as text, for files and messages of other programs."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.gate.result import CheckResult, GateResult, Status, effect
from forgetmap.text import counted, percent

ORDER: dict[Status, int] = {"FAIL": 0, "INCONCLUSIVE": 1, "PASS": 2}
"""Sort order of a list of checks."""


def sort_checks(checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Sort failures first, then inconclusive checks; otherwise keep the order of the policy."""
    return sorted(checks, key=lambda check: ORDER[check.status])


def loss_range(check: CheckResult) -> str:
    """Format the interval of a loss, such as `1.2% to 3.4%`; a dash if there is none."""
    if check.loss.low is None or check.loss.high is None:
        return "-"
    return f"{amount(check, check.loss.low)} to {amount(check, check.loss.high)}"


def amount(check: CheckResult, value: float | None) -> str:
    """Format a loss or a margin of a check: a share of items, or an effect for drift."""
    return effect(value) if check.quantity == "drift" else percent(value)


def figures(check: CheckResult) -> str:
    """Format the numbers behind a check in one line."""
    parts = [
        f"loss {amount(check, check.loss.value)} ({loss_range(check)})",
        f"margin {amount(check, check.margin)}",
        counted(check.items, "item"),
        f"coverage {percent(check.coverage)}",
        f"verdict {check.verdict}",
    ]
    return ", ".join(parts)


def waiver_line(check: CheckResult) -> str | None:
    """Return owner, reason and expiry of a waiver; None without one."""
    waiver = check.waiver
    if waiver is None:
        return None
    return (
        f"waiver {waiver.state}: {waiver.owner}, up to {amount(check, waiver.ceiling)} until "
        f"{waiver.expires}: {waiver.reason}"
    )


def is_waived(check: CheckResult) -> bool:
    """Return whether a check passes only because of a waiver."""
    return check.waiver is not None and check.waiver.state == "applied"


def check_lines(check: CheckResult) -> list[str]:
    """Return the sentence of a check, its numbers, what would decide it, and its waiver."""
    lines = [f"{check.status}: {check.sentence}", figures(check)]
    if check.decides is not None and check.decides.items is not None:
        lines.append(f"about {counted(check.decides.items, 'item')} would decide")
    waived = waiver_line(check)
    return lines if waived is None else [*lines, waived]


def unexplained(result: GateResult) -> bool:
    """Return whether the gate did not pass although all tasks and blocking checks did.

    This happens after more looks than the policy plans.
    """
    is_open = any(check.status != "PASS" for check in result.of_tier("blocking"))
    return result.status != "PASS" and not result.missing_tasks and not is_open
