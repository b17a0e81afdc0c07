"""A check of a gate as text, for files and messages of other programs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from forgetmap._plugins import did_you_mean
from forgetmap.comparison import NextStep, confirm_step
from forgetmap.gate.result import CheckResult, GateResult, Status
from forgetmap.text import counted, limit, listed, percent

ORDER: dict[Status, int] = {"FAIL": 0, "INCONCLUSIVE": 1, "PASS": 2}
"""Sort order of a list of checks."""
UNKNOWN_GROUP = "unknown_group"
"""Reason of a check: its group is in no result, so its name may be misspelt."""


def with_suggestion(name: str, known: Collection[str]) -> str:
    """Return an unknown name with the most similar known one, or else with the known ones."""
    near = did_you_mean(name, known).rstrip()
    if not near and known:
        near = f"there are {listed(sorted(known))}"
    return f"{name} ({near})" if near else name


def unknown_groups(checks: Sequence[CheckResult]) -> list[str]:
    """Return what there is to say about groups that are in no result."""
    reasons = [reason for check in checks for reason in check.reasons]
    return [reason.message for reason in reasons if reason.code == UNKNOWN_GROUP]


def sort_checks(checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Sort failures first, then inconclusive checks; otherwise keep the order of the policy."""
    return sorted(checks, key=lambda check: ORDER[check.status])


def effect(value: float | None) -> str:
    """Format drift, which is an effect and has no percent."""
    return "-" if value is None else f"{max(value, 0.0):.3f}"


def amount(check: CheckResult, value: float | None) -> str:
    """Format a loss of a check: a share of items, or an effect for drift."""
    return effect(value) if check.quantity == "drift" else limit(value, check.margin)


def margin_text(check: CheckResult, margin: float | None = None) -> str:
    """Format the margin of a check, or another one."""
    margin = check.margin if margin is None else margin
    return f"{margin:g}" if check.quantity == "drift" else f"{100 * margin:g}%"


def loss_range(check: CheckResult) -> str:
    """Format the limits of a loss, such as `1.2% to 3.4%`; a dash if there are none."""
    if check.loss.low is None or check.loss.high is None:
        return "-"
    return f"{amount(check, check.loss.low)} to {amount(check, check.loss.high)}"


def figures(check: CheckResult) -> str:
    """Format the numbers behind a check in one line."""
    counts = []
    if check.forgotten is not None and check.gained is not None:
        counts = [f"{check.forgotten:,} forgotten", f"{check.gained:,} gained"]
    parts = [
        f"lost {loss_range(check)}",
        f"margin {margin_text(check)}",
        *counts,
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
        f"waiver {waiver.state}: {waiver.owner}, up to {margin_text(check, waiver.ceiling)} until "
        f"{waiver.expires}: {waiver.reason}"
    )


def is_waived(check: CheckResult) -> bool:
    """Return whether a check passes only because of a waiver."""
    return check.waiver is not None and check.waiver.state == "applied"


def check_lines(check: CheckResult) -> list[str]:
    """Return the sentence of a check, its numbers, and its waiver."""
    waived = waiver_line(check)
    lines = [f"{check.status}: {check.sentence}", figures(check)]
    return lines if waived is None else [*lines, waived]


def unexplained(result: GateResult) -> bool:
    """Return whether the gate did not pass although all tasks and blocking checks did.

    This happens after more looks than the policy plans.
    """
    is_open = any(check.status != "PASS" for check in result.of_tier("blocking"))
    return result.status != "PASS" and not result.missing_tasks and not is_open


def next_steps(result: GateResult) -> list[NextStep]:
    """Return what to do next: one step, or several of which one is enough."""
    if result.status == "PASS":
        return [NextStep("store it as the next baseline", "gate accept")]
    failed = any(check.status == "FAIL" for check in result.of_tier("blocking"))
    if result.missing_tasks and not failed:
        return [
            NextStep("evaluate AFTER on what is missing", "run"),
            NextStep("correct required_tasks in the policy"),
        ]
    if result.status == "FAIL":
        return [
            NextStep("read what was forgotten", "report"),
            NextStep("train on similar examples", "export replay"),
            NextStep("find a merge that keeps it", "merge sweep"),
        ]
    return _to_decide(result)


def _to_decide(result: GateResult) -> list[NextStep]:
    """Return steps that would decide: fresh answers that can prove a loss beyond a margin; more."""
    decides = [(one.decides, one.margin) for one in result.of_tier("blocking") if one.decides]
    if unknown_groups(result.of_tier("blocking")):
        return [NextStep("correct groups in the policy")]
    if not decides:
        return [NextStep("remove what prevents a decision, and compare again", "compare")]
    steps = []
    provable = [one for one, margin in decides if (one.provable or 0.0) > margin]
    if provable and result.confirmed is None:
        step = confirm_step(max(provable, key=lambda one: one.flips))
        steps.append(replace(step, words=f"{step.words}; then decide with --confirm"))
    codes = {reason.code for one in result.checks for reason in one.reasons}
    if codes & {"selected", "all_right"}:
        # Answers that chose the items are lucky; if none did, the items are merely easy.
        return [
            *steps,
            NextStep("compare another run of the model before on these items"),
            NextStep("if the items are merely easy, say so", "gate --not-selected"),
        ]
    numbers = [one.items for one, _ in decides if one.items is not None]
    if len(numbers) < len(decides):
        return [
            *steps,
            NextStep("answer each item more than once with each model", "run --repeats 3"),
        ]
    about = counted(max(numbers), "item")
    return [*steps, NextStep(f"evaluate about {about}, to see on which side of the margin it is")]
