"""Evaluation of rules on a comparison: one check per group of a rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from forgetmap.capabilities import Cell, DriftResult, drift
from forgetmap.comparison import (
    Comparison,
    DecidesResult,
    Evidence,
    GroupResult,
    LimitsResult,
    VerdictSettings,
    asking_again,
    drop_sentence,
    judge_family,
    judge_group,
    measure_group_coverage,
    sentence,
)
from forgetmap.gate.check_text import UNKNOWN_GROUP, effect, with_suggestion
from forgetmap.gate.policy import Condition, GatePolicy, GateRule
from forgetmap.gate.result import NO_LIMITS, Accept, CheckResult
from forgetmap.results import Estimate, Notice
from forgetmap.stats import LEVEL, LossLimits, Verdict, decide, items_to_decide, normal_quantile
from forgetmap.text import counted, limit, percent

CONDITION_CODES: dict[Condition, tuple[str, ...]] = {
    "prompt": ("template", "system_prompt", "protocol", "n_shot", "prompts"),
    "scorer": ("metric",),
    "suite": ("conflict",),
    "decoding": ("decoding",),
    "harness": ("harness",),
}
"""Notices of a comparison that show a change of each condition."""
FAMILIES = {"total": "totals", "task": "tasks", "category": "categories", "tag": "tags"}


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A check before the correction for all blocking checks.

    Attributes:
        check: the check, still inconclusive; its sentence is that of the verdict.
        low_at: computes its lower limit with one of so many parts of the error rate.
    """

    check: CheckResult
    low_at: Callable[[int], float | None]

    def is_beyond(self, parts: int = 1) -> bool:
        """Return whether the lower limit is above the margin, with a part of the error rate."""
        low, margin = self.check.loss.low, self.check.margin
        if parts > 1 and low is not None and low > margin:
            low = self.low_at(parts)
        return low is not None and low > margin


def decide_checks(comparison: Comparison, policy: GatePolicy, level: float) -> list[CheckResult]:
    """Evaluate every rule of a policy on each of its groups, at the level of this look."""
    opened = list(_open_checks(comparison, policy, level))
    rejected = iter(reject([one for one in opened if one.check.tier == "blocking"]))
    return [
        _close(one, next(rejected) if one.check.tier == "blocking" else one.is_beyond())
        for one in opened
    ]


def refused_checks(policy: GatePolicy, reason: Notice) -> list[CheckResult]:
    """Return the checks of runs that cannot be compared at all."""
    return [
        _close(_unmeasured(rule, group, reason.message, reason.code), is_rejected=False)
        for rule in policy.rules
        for group in (
            ("total",) if rule.scope == "total" else rule.groups or (f"every {rule.scope}",)
        )
    ]


def find_changes(notices: Sequence[Notice], policy: GatePolicy) -> list[Notice]:
    """Return changed conditions that the policy forbids; an unknown condition is not changed."""
    codes = {code: name for name in policy.unchanged for code in CONDITION_CODES[name]}
    return [
        Notice(f"{codes[notice.code]}_changed", notice.message)
        for notice in notices
        if notice.code in codes
    ]


def reject(checks: Sequence[OpenCheck]) -> list[bool]:
    """Return which losses exceed their margins, by Holm (1979) over all checks.

    A check is rejected if its lower limit with its part of the error rate is above the margin, so
    limit and test are one procedure.
    """
    rejected = [False] * len(checks)
    while True:
        parts = len(checks) - sum(rejected)
        now = [done or check.is_beyond(parts) for done, check in zip(rejected, checks, strict=True)]
        if now == rejected:
            return rejected
        rejected = now


def _open_checks(comparison: Comparison, policy: GatePolicy, level: float) -> Iterator[OpenCheck]:
    changes = find_changes(comparison.result.pairing.warnings, policy)
    drifted: DriftResult | None = None
    for rule in policy.rules:
        checks: Iterable[OpenCheck]
        if rule.quantity == "drift":
            options: dict[str, Any] = {"taxonomy": policy.drift.taxonomy}
            drifted = drifted or drift(comparison.before, comparison.after, **options)
            checks = _drift_checks(rule, drifted, level, _drift_coverage(comparison, drifted))
        else:
            settings = replace(
                comparison.grounds.settings,
                margin=rule.margin, estimator=rule.estimator, level=level,
            )  # fmt: skip
            checks = _group_checks(rule, policy.accept_of(rule), comparison, settings)
        for one in checks:
            yield replace(one, check=_with_reasons(one.check, changes, rule, policy.coverage))


def _with_reasons(
    check: CheckResult, changes: Sequence[Notice], rule: GateRule, floor: float
) -> CheckResult:
    """Add the reasons that prevent a decision."""
    if check.reasons and not check.items:
        return check
    reasons = [*changes, *check.reasons]
    if check.coverage is None or check.coverage < floor:
        covered = "nothing" if check.coverage is None else percent(check.coverage)
        message = (
            f"only {covered} of the items scored in BEFORE are paired and scored after; "
            f"{percent(floor)} is required"
        )
        reasons.append(Notice("coverage", message))
    if check.items < rule.min_items:
        message = f"{counted(check.items, 'item')}; at least {rule.min_items:,} are required"
        reasons.append(Notice("too_few_items", message))
    return check.model_copy(update={"reasons": reasons})


def _close(opened: OpenCheck, is_rejected: bool) -> CheckResult:  # noqa: FBT001  # a column
    """Return a check with its status; FAIL is asked first."""
    check, beyond = opened.check, opened.is_beyond()
    if check.reasons:
        words = "; ".join(reason.message.rstrip(".") for reason in check.reasons)
        only = {reason.code for reason in check.reasons} in ({"selected"}, {"all_right"})
        decides = check.decides if only else None
        return check.model_copy(update={"sentence": words, "decides": decides})
    if is_rejected:
        return check.model_copy(update={"status": "FAIL", "decides": None})
    words = check.sentence
    if not beyond and check.most is not None and check.most < check.margin:
        if check.verdict == "lost":
            fell = limit(check.drop_high, check.margin)
            words += f"; accepted, because accuracy fell by at most {fell} of all items"
        return check.model_copy(update={"status": "PASS", "sentence": words, "decides": None})
    if check.verdict == "lost":
        corrected = "not significant after correction for all blocking checks"
        words += f"; {corrected if beyond else 'the loss may be within the margin'}"
        if check.decides is not None and check.decides.items is not None:
            words += f"; about {counted(check.decides.items, 'item')} would decide"
    return check.model_copy(update={"sentence": words})


def _make(rule: GateRule, group: str, **found: Any) -> CheckResult:
    return CheckResult(
        name=rule.check_name(group), rule=rule.label, tier=rule.tier, scope=rule.scope,
        group=group, quantity=rule.quantity, margin=rule.margin, status="INCONCLUSIVE", **found,
    )  # fmt: skip


def _unmeasured(rule: GateRule, group: str, message: str, code: str = "no_group") -> OpenCheck:
    check = _make(rule, group, sentence=message, reasons=[Notice(code, message)])
    return OpenCheck(check, lambda _: None)


# --- losses and accuracy drops -----------------------------------------------------------------


def _group_checks(
    rule: GateRule, accept: Accept, comparison: Comparison, settings: VerdictSettings
) -> Iterator[OpenCheck]:
    evidence, covered = _evidence(rule, comparison)
    known = {*evidence, *(comparison.result.measures if rule.scope == "task" else covered)}
    names = rule.groups or tuple(sorted(known))
    if not names and rule.tier == "blocking":
        yield _unmeasured(rule, f"every {rule.scope}", f"no item has a {rule.scope}")
    there = {name: evidence[name] for name in names if name in evidence}
    if rule.tier == "blocking" or rule.quantity == "net_change":
        groups = [judge_group(name, part, settings) for name, part in there.items()]
    else:
        groups = judge_family(there, settings, FAMILIES[rule.scope])
    judged = {group.name: group for group in groups}
    parts = 1 if rule.tier == "blocking" else len(there)
    for name in names:
        if name not in known:
            named = with_suggestion(name, known)
            words = f"no item before has the {rule.scope} {named}"
            yield _unmeasured(rule, name, words, UNKNOWN_GROUP)
        elif name not in there:
            yield _unmeasured(rule, name, f"no item of the {rule.scope} {name!r} is on both sides")
        else:
            one = _judged(rule, accept, there[name], judged[name], settings, parts)
            share = covered.get(name, one.check.coverage)
            yield replace(one, check=one.check.model_copy(update={"coverage": share}))


def _evidence(
    rule: GateRule, comparison: Comparison
) -> tuple[dict[str, Evidence], dict[str, float]]:
    """Return the evidence of each group, and coverages that evidence does not know."""
    evidence = comparison.grounds.evidence
    if rule.scope == "total":
        return {"total": evidence.total()}, {}
    if rule.scope == "task":
        return evidence.by("task"), {}
    level: Literal["category", "tags"] = "tags" if rule.scope == "tag" else "category"
    return evidence.by(level), measure_group_coverage(comparison, level)


def _judged(
    rule: GateRule, accept: Accept, part: Evidence, group: GroupResult, settings: VerdictSettings,
    parts: int,
) -> OpenCheck:  # fmt: skip
    """Return the check of a group; `parts` groups share the error rate of accuracy drops."""
    is_net = rule.quantity == "net_change"

    def low_at(parts: int) -> float | None:
        strict = replace(settings, level=1 - (1 - settings.level) / parts)
        again = judge_group(group.name, part, strict)
        return (again.drop if is_net else again.loss).low

    if group.undecided or settings.selected:
        # Answers that helped to choose the items make accuracy before too high.
        undecided = group.undecided or (settings.selected if is_net else None)
        group = replace(group, undecided=undecided, drop=Estimate.missing("drop", "undecided"))
    decides = _decides(part, group.undecided, settings, is_net=is_net or accept == "net")
    words = sentence(replace(group, decides=decides))
    loss, verdict = group.loss, group.verdict
    if is_net:
        drop = group.drop if parts == 1 else replace(group.drop, low=low_at(parts))
        loss, verdict = NO_LIMITS, "cannot_tell"
        if drop.low is not None and drop.high is not None:
            loss = LimitsResult(low=drop.low, high=drop.high, carried_by="drop", p=None)
            verdict = _decide(drop.low, drop.high, rule.margin)
            words = drop_sentence(drop, rule.margin)
    return OpenCheck(
        _make(
            rule, group.name, accept=accept, verdict=verdict, loss=loss, drop_high=group.drop.high,
            forgotten=group.forgotten, gained=group.gained, items=group.items,
            coverage=group.coverage.before, decides=decides, sentence=words,
            reasons=[Notice(group.undecided, words)] if group.undecided else [],
        ),
        low_at,
    )  # fmt: skip


def _decide(low: float, high: float, margin: float) -> Verdict:
    return decide(LossLimits(low, high, high, "drop", math.nan), margin)


def _decides(
    part: Evidence, undecided: str | None, settings: VerdictSettings, *, is_net: bool
) -> DecidesResult | None:
    """Return what would show on which side of the margin the loss is, with 80 % probability.

    Rates so far are taken as true. If `is_net`, the accuracy drop is enough to pass.
    """
    if undecided not in (None, "selected", "all_right"):
        return None
    answers, margin = part.kinds.answers(), settings.margin
    asked = asking_again(answers, part.cells.first_flips, settings.alpha)
    if undecided:
        return asked
    items = items_to_decide(
        answers, margin, settings.alpha, above=margin,
        high_z=normal_quantile(1 - 2 * settings.high_alpha),
        fall=None if is_net else np.maximum(answers.change, 0.0),
    )  # fmt: skip
    return replace(asked, items=items if items and items > answers.sample.n else None)


# --- drift ----------------------------------------------------------------------------------------


def _drift_coverage(comparison: Comparison, drifted: DriftResult) -> dict[str, float | None]:
    """Return the smallest coverage of the compared tasks of each capability."""
    result = comparison.result
    by_task: dict[str, float | None] = dict.fromkeys(result.measures, 0.0)
    by_task |= {task.name: task.coverage.before for task in result.tasks}
    known = {
        cell.id: [
            share
            for metric in drifted.metrics
            if metric.capability == cell.id and (share := by_task.get(metric.task)) is not None
        ]
        for cell in drifted.capabilities
    }
    return {
        name: min(shares, default=result.total.coverage.before) for name, shares in known.items()
    }


def _drift_checks(
    rule: GateRule, result: DriftResult, level: float, coverage: dict[str, float | None]
) -> Iterator[OpenCheck]:
    cells = {cell.id: cell for cell in result.capabilities}
    for name in rule.groups or tuple(cells):
        cell = cells.get(name)
        if cell is None:
            words = f"there is no capability {with_suggestion(name, cells)}"
            yield _unmeasured(rule, name, words, UNKNOWN_GROUP)
            continue
        if cell.value is None or cell.low is None or cell.high is None:
            yield _unmeasured(rule, name, f"{name}: {cell.note or 'no data'}")
            continue

        def low_at(parts: int, cell: Cell = cell) -> float | None:
            return _drift_limits(cell, 1 - (1 - level) / parts)[0]

        low, high = _drift_limits(cell, level)
        verdict = _decide(low, high, rule.margin)
        check = _make(
            rule, name, loss=LimitsResult(low=low, high=high, carried_by=None, p=None),
            verdict=verdict, sentence=_drift_words(verdict, (low, high), rule.margin, cell.name),
            items=cell.n, coverage=coverage[name],
        )  # fmt: skip
        yield OpenCheck(check, low_at)


def _drift_words(verdict: Verdict, limits: tuple[float, float], margin: float, name: str) -> str:
    """Return the sentence of a verdict on drift, which is an effect and not a share of items."""
    low, high = (effect(value) for value in limits)
    if verdict == "no_material_loss":
        return f"no drift of {name} beyond an effect of {margin:g}: at most {high}"
    if verdict == "cannot_tell":
        return f"cannot tell: {name} drifted by an effect of {low} to {high}"
    than = ", within" if verdict == "small_loss" else ", more than" if limits[0] > margin else ""
    size = f"at least {low}, at most {high}"
    return f"{name} drifted by an effect of {size}{than and f'{than} the margin of {margin:g}'}"


def _drift_limits(cell: Cell, level: float) -> tuple[float, float]:
    """Return drift as a loss: a decrease if more is better, else a change in either direction.

    At levels other than 95 %, the limits are scaled as for a normal distribution.
    """
    value, low, high = (float(number or 0.0) for number in (cell.value, cell.low, cell.high))
    wider = normal_quantile(level) / normal_quantile(LEVEL)
    low, high = value - wider * (value - low), value + wider * (high - value)
    if cell.direction == "better":
        return -high, -low
    inner = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return inner, max(abs(low), abs(high))
