"""A decision, a policy and a history as text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from forgetmap.comparison import NO_COMMANDS, Commands
from forgetmap.gate.check_text import (
    ORDER,
    is_waived,
    loss_range,
    margin_text,
    next_steps,
    sort_checks,
)
from forgetmap.gate.history import HistoryResult, ReleaseResult, margin_used
from forgetmap.gate.policy import GatePolicy, GateRule
from forgetmap.gate.result import Accept, CheckResult, GateResult, Status, Tier
from forgetmap.text import (
    Blocks,
    Line,
    Sheet,
    counted,
    listed,
    next_lines,
    percent,
    print_blocks,
)

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.text import Tone

HEADS = ("check", "tier", "status", "items", "lost", "margin")
SPARE = ("tier", "items")
HISTORY_HEADS = ("release", "day", "against", "status", "largest loss", "of margin")
HISTORY_SPARE = ("against", "day")
MAX_CHECKS = 40
TONES: dict[Status, Tone] = {"PASS": "good", "FAIL": "bad", "INCONCLUSIVE": "open"}
_ACCEPTED: dict[Accept, str] = {"items": "", "net": ", or the accuracy drop,"}


def print_gate(
    console: Console, result: GateResult, *, explain: bool = False, commands: Commands = NO_COMMANDS
) -> None:
    """Print a decision, with every check as a sentence if explained."""
    print_blocks(console, tell_gate(result, explain=explain, commands=commands))


def tell_gate(
    result: GateResult, *, explain: bool = False, commands: Commands = NO_COMMANDS
) -> Blocks:
    """Return the lines and sheets of a decision, in order."""
    names = [run.name for run in (result.before, result.after) if run is not None]
    blocks: Blocks = [
        Line(" -> ".join(names), "strong", lead=result.status, tone=TONES[result.status]),
        Line(_upper(result.decision or result.headline)),
        *([Line(result.counts)] if result.counts else []),
        Line(_rests_on(result), "faint"),
    ]
    if result.checks:
        blocks += [Line(), _sheet(result.checks)]
    hidden = len(result.checks) - MAX_CHECKS
    if hidden > 0:
        blocks.append(Line(f"and {hidden:,} more checks; use --json to list all of them.", "faint"))
    if explain:
        blocks += [Line(), *(_explain(check) for check in _sorted(result.checks))]
    steps = [step.text(commands) for step in next_steps(result)]
    blocks += [Line(), *next_lines(steps, as_list=bool(commands))]
    return [*blocks, *(Line(notice.message, "warning", lead="!") for notice in result.warnings)]


def tell_policy(policy: GatePolicy) -> Blocks:
    """Return every rule of a policy as a sentence."""
    lines: Blocks = [Line(f"Policy {policy.origin} ({policy.hash[:12]})", "strong")]
    lines += [Line(rule_sentence(rule, policy.accept_of(rule)), lead="-") for rule in policy.rules]
    lines.append(
        Line(
            f"{percent(policy.coverage)} of the items scored in BEFORE must be paired and "
            f"scored, and {listed(policy.unchanged) or 'nothing'} must be unchanged; otherwise "
            "the result is inconclusive.",
            lead="-",
        )
    )
    if policy.required_tasks:
        tasks = listed(policy.required_tasks)
        lines.append(Line(f"Required: {tasks}; a release without one of them fails.", lead="-"))
    looks = "any number of looks" if policy.looks == "any" else counted(policy.looks, "look")
    lines.append(Line(f"Intervals of {100 * policy.level:g}% over {looks}.", lead="-"))
    return lines


def rule_sentence(rule: GateRule, accept: Accept = "items") -> str:
    """Return the requirement of a rule as a sentence."""
    what = {"loss": "The loss", "net_change": "The accuracy drop", "drift": "Drift"}
    groups = {"total": "of all items"}.get(
        rule.scope,
        f"of the {rule.scope} {listed(rule.groups)}" if rule.groups else f"of every {rule.scope}",
    )
    least = f", with at least {counted(rule.min_items, 'item')}" if rule.min_items else ""
    by = "" if rule.estimator == "auto" else f" (if the estimator {rule.estimator} holds)"
    consequence = {
        "blocking": "otherwise the release is blocked",
        "warning": "otherwise a warning is shown",
        "info": "shown only",
    }[rule.tier]
    most = f"{100 * rule.margin:g}%"
    if rule.quantity == "drift":
        most = f"an effect of {rule.margin:g}"
    subject = f"{what[rule.quantity]} {groups}{by}{_ACCEPTED[accept]}"
    return f"{subject} must be below {most}{least}: {consequence}."


def tell_history(history: HistoryResult) -> Blocks:
    """Return the decisions over releases, and their summary."""
    releases = history.releases
    if not releases:
        return [Line("No decisions recorded yet.")]
    counts = {status: sum(release.status == status for release in releases) for status in ORDER}
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    blocks: Blocks = [Line(f"{counted(len(releases), 'decision')}: {words}", "strong"), Line()]
    blocks.append(Sheet(HISTORY_HEADS, [*map(_history_row, releases)], spare=HISTORY_SPARE))
    blocks += [
        Line(f"{check.check} failed in {listed(check.releases)}", lead="recurring")
        for check in history.recurring
    ]
    blocks += [Line(f"{one.release}: {one.reason}", lead="escaped") for one in history.escaped]
    return blocks


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _rests_on(result: GateResult) -> str:
    look = result.look
    looks = ""
    if look.planned != 1:
        of = "" if look.planned is None else f" of {look.planned}"
        looks = f", look {look.number}{of}"
    blocking = len(result.of_tier("blocking"))
    holm = f", Holm over {counted(blocking, 'blocking check')}" if blocking > 1 else ""
    return (
        f"Policy {result.policy.origin} ({result.policy.hash[:12]}), {100 * look.level:.4g}% "
        f"intervals{looks}{holm}."
    )


def _sorted(checks: Sequence[CheckResult]) -> list[CheckResult]:
    tiers: tuple[Tier, ...] = get_args(Tier)
    return sorted(sort_checks(checks), key=lambda check: tiers.index(check.tier))


def _sheet(checks: Sequence[CheckResult]) -> Sheet:
    rows = [
        (
            check.name,
            check.tier,
            f"{check.status} (waived)" if is_waived(check) else check.status,
            f"{check.items:,}",
            loss_range(check),
            margin_text(check),
        )
        for check in _sorted(checks)[:MAX_CHECKS]
    ]
    return Sheet(HEADS, rows, spare=SPARE)


def _explain(check: CheckResult) -> Line:
    return Line(f"{check.name}: {check.sentence}.", lead=check.status)


def _history_row(release: ReleaseResult) -> tuple[str, ...]:
    worst = release.worst
    used = None if worst is None else margin_used(worst)
    return (
        release.after or "-",
        release.created[:10],
        release.before or "-",
        release.status,
        "-" if worst is None else f"{worst.name} {loss_range(worst)}",
        "-" if used is None else f"{100 * used:.0f}%",
    )
