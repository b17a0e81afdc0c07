"""Evaluation of rules on a comparison: one check per group of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forgetmap.capabilities import DriftResult, drift
from forgetmap.comparison import (
    Comparison,
    DecidesResult,
    Evidence,
    GroupKind,
    JudgedQuantity,
    Judgement,
    Policy,
    Verdict,
    decide,
    group_evidence,
    items_that_decide,
    judge_family,
    judge_group,
    make_group_policy,
    measure_group_coverage,
)
from forgetmap.gate.policy import Condition, GatePolicy, GateRule
from forgetmap.gate.result import CheckResult, Status, effect
from forgetmap.results import Estimate, Notice
from forgetmap.stats import LEVEL, normal_quantile
from forgetmap.text import counted, percent

PASSING: tuple[Verdict, ...] = ("no_material_loss", "small_loss")
CONDITION_CODES: dict[Condition, tuple[str, ...]] = {
    "prompt": ("template", "system_prompt", "protocol", "n_shot", "prompts"),
    "scorer": ("metric",),
    "suite": ("conflict",),
    "decoding": ("decoding",),
    "harness": ("harness",),
}
"""Notices of a comparison that show a change of each condition."""


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A rule and a group, before the correction for all blocking checks.

    Attributes:
        rule: rule of the policy.
        group: name of the group.
        loss: the quantity with its interval.
        verdict: verdict against the margin.
        sentence: the verdict in words.
        low_at: computes the lower bound at another level; None if there is none.
        items: number of items.
        measured: of them, items behind the quantity.
        coverage: paired and scored share of the items that BEFORE scored.
        estimator: estimator of the quantity.
        noise_assumed: noise floor subtracted from the lower bound.
        reasons: reasons why nothing can be decided, whatever the numbers are.
    """

    rule: GateRule
    group: str
    loss: Estimate
    verdict: Verdict
    sentence: str
    low_at: Callable[[float], float | None]
    items: int = 0
    measured: int = 0
    coverage: float | None = None
    estimator: str | None = None
    noise_assumed: float = 0.0
    reasons: tuple[Notice, ...] = field(default=())

    @property
    def is_beyond(self) -> bool:
        """Whether the lower bound is above the margin."""
        return self.verdict == "lost" and (self.loss.low or 0.0) > self.rule.margin


def open_checks(comparison: Comparison, policy: GatePolicy, level: float) -> list[OpenCheck]:
    """Evaluate every rule of a policy on each of its groups."""
    changes = find_changes(comparison.result.pairing.warnings, policy)
    checks = []
    drifted: DriftResult | None = None
    for rule in policy.rules:
        if rule.quantity == "drift":
            drifted = drifted or _drift(comparison, policy)
            checks += [*_drift_checks(rule, drifted, level, _coverage(comparison, drifted))]
        else:
            checks += [*_group_checks(rule, rule.quantity, comparison, level)]
    floor = policy.coverage
    return [_with_reasons(check, changes, floor) for check in checks]


def refused_checks(policy: GatePolicy, reason: Notice) -> list[OpenCheck]:
    """Return the checks of runs that cannot be compared at all."""
    return [_unmeasured(rule, group, reason) for rule in policy.rules for group in _names(rule)]


def find_changes(notices: Sequence[Notice], policy: GatePolicy) -> tuple[Notice, ...]:
    """Return changed conditions that the policy forbids; an unknown condition is not changed."""
    codes = {code: name for name in policy.unchanged for code in CONDITION_CODES[name]}
    return tuple(
        Notice(f"{codes[notice.code]}_changed", notice.message)
        for notice in notices
        if notice.code in codes
    )


def close_check(check: OpenCheck, *, is_rejected: bool, level: float) -> CheckResult:
    """Return the status of a check.

    Args:
        check: the check before correction.
        is_rejected: the loss exceeds the margin, corrected for all blocking checks.
        level: confidence level of its interval.
    """
    status: Status = "INCONCLUSIVE"
    if not check.reasons:
        status = "PASS" if check.verdict in PASSING else "FAIL" if is_rejected else status
    decides = None if status != "INCONCLUSIVE" else _decides(check, level)
    rule = check.rule
    return CheckResult(
        rule=rule.label,
        tier=rule.tier,
        scope=rule.scope,
        group=check.group,
        quantity=rule.quantity,
        estimator=check.estimator,
        margin=rule.margin,
        status=status,
        verdict=check.verdict,
        loss=Estimate(**check.loss.model_dump(include=set(Estimate.model_fields))),
        items=check.items,
        coverage=check.coverage,
        decides=decides,
        sentence=_sentence(check, status, decides),
        reasons=list(check.reasons),
    )


def reject(checks: Sequence[OpenCheck], level: float) -> list[bool]:
    """Return which losses exceed their margins, by Holm (1979) over all checks.

    A check is rejected if its lower bound at the stricter level is above the margin, so interval
    and test are one procedure.
    """
    rejected = [False] * len(checks)
    while True:
        remaining = len(checks) - sum(rejected)
        strict = 1 - (1 - level) / max(remaining, 1)
        added = [
            index
            for index, check in enumerate(checks)
            if not rejected[index] and check.is_beyond and _is_above(check, strict, level)
        ]
        if not added:
            return rejected
        for index in added:
            rejected[index] = True


def _is_above(check: OpenCheck, strict: float, level: float) -> bool:
    low = check.loss.low if strict == level else check.low_at(strict)
    return low is not None and low > check.rule.margin


def _names(rule: GateRule) -> tuple[str, ...]:
    return ("total",) if rule.scope == "total" else rule.groups or (f"every {rule.scope}",)


def _group_checks(
    rule: GateRule, quantity: JudgedQuantity, comparison: Comparison, level: float
) -> Iterator[OpenCheck]:
    kind: GroupKind = rule.scope if rule.scope != "capability" else "total"
    evidence = group_evidence(comparison, kind)
    covered = measure_group_coverage(comparison, kind)
    names = rule.groups or tuple(sorted({*evidence, *covered}))
    if kind == "task" and not rule.groups:
        names = tuple(sorted({*evidence, *comparison.result.measures}))
    if not names and rule.tier == "blocking":
        yield _unmeasured(rule, f"every {kind}", _no_group(f"no item has a {kind}"))
    policy = make_group_policy(
        comparison, margin=rule.margin, estimator=rule.estimator, level=level
    )
    there = {name: evidence[name] for name in names if name in evidence}
    if rule.tier != "blocking" and len(there) > 1:
        judgements = judge_family(there, policy, kind, quantity)
    else:
        judgements = [judge_group(name, part, policy, quantity) for name, part in there.items()]
    by_name = dict(zip(there, judgements, strict=True))
    for name in names:
        if name not in there:
            reason = f"no item of the {kind} {name!r} is on both sides"
            yield _unmeasured(rule, name, _no_group(reason))
            continue

        def low_at(strict: float, name: str = name, part: Evidence = there[name]) -> float | None:
            stricter = replace(policy, level=strict)
            return judge_group(name, part, stricter, quantity).loss.low

        check = _judged(rule, name, by_name[name], low_at)
        yield replace(check, coverage=covered.get(name, check.coverage))


def _judged(
    rule: GateRule, name: str, judgement: Judgement, low_at: Callable[[float], float | None]
) -> OpenCheck:
    group = judgement.group
    is_forgetting = rule.quantity != "net_change"
    return OpenCheck(
        rule,
        name,
        judgement.loss,
        judgement.verdict,
        judgement.sentence,
        low_at,
        items=group.items,
        measured=judgement.measured,
        coverage=group.coverage.before,
        estimator=judgement.estimator,
        noise_assumed=(group.noise_assumed or 0.0) if is_forgetting else 0.0,
        reasons=() if judgement.reason is None else (Notice("outcomes", judgement.reason),),
    )


def _no_group(message: str) -> Notice:
    return Notice("no_group", message)


def _unmeasured(rule: GateRule, group: str, reason: Notice) -> OpenCheck:
    missing = Estimate.missing(rule.quantity, reason.message)
    return OpenCheck(
        rule, group, missing, "cannot_tell", reason.message, lambda _: None, reasons=(reason,)
    )


def _with_reasons(check: OpenCheck, changes: tuple[Notice, ...], floor: float) -> OpenCheck:
    """Add the reasons that prevent a decision."""
    if not check.items and check.reasons:
        return check
    reasons = [*changes, *check.reasons]
    if check.coverage is None or check.coverage < floor:
        covered = "nothing" if check.coverage is None else percent(check.coverage)
        message = (
            f"only {covered} of the items scored in BEFORE are paired and scored after; "
            f"{percent(floor)} is required"
        )
        reasons.append(Notice("coverage", message))
    if check.measured < floor * check.items:
        message = (
            f"the loss was measured on {check.measured:,} of {counted(check.items, 'item')}, "
            f"those with repeats; {percent(floor)} is required"
        )
        reasons.append(Notice("repeats", message))
    if check.items < check.rule.min_items:
        message = f"{counted(check.items, 'item')}; at least {check.rule.min_items:,} are required"
        reasons.append(Notice("too_few_items", message))
    return replace(check, reasons=tuple(reasons))


def _decides(check: OpenCheck, level: float) -> DecidesResult:
    """Return the items that would show on which side of the margin the loss is, with 80 % power."""
    if check.reasons:
        return DecidesResult(items=None, repeats=None)
    margin = check.rule.margin
    policy = Policy(margin=margin, level=level)
    floor = margin + check.noise_assumed
    return items_that_decide(check.loss, check.items, policy, floor=floor)


def _sentence(check: OpenCheck, status: Status, decides: DecidesResult | None) -> str:
    if check.reasons:
        return "; ".join(reason.message.rstrip(".") for reason in check.reasons)
    if status != "INCONCLUSIVE" or check.verdict != "lost":
        return check.sentence
    why = "the loss may be within the margin"
    if check.is_beyond:
        why = "not significant after correction for all blocking checks"
    need = ""
    if decides is not None and decides.items is not None:
        need = f"; about {counted(decides.items, 'item')} would decide"
    return f"{check.sentence}; {why}{need}"


# --- drift ----------------------------------------------------------------------------------------


def _drift(comparison: Comparison, policy: GatePolicy) -> DriftResult:
    options: dict[str, Any] = {"taxonomy": policy.drift.taxonomy}
    return drift(comparison.before, comparison.after, **options)


def _coverage(comparison: Comparison, drifted: DriftResult) -> dict[str, float | None]:
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
    names = rule.groups or tuple(cells)
    for name in names:
        cell = cells.get(name)
        if cell is None or cell.value is None or cell.low is None or cell.high is None:
            known = "" if cell is not None else f"; the capabilities are {', '.join(cells)}"
            note = "no such capability" if cell is None else cell.note or "no data"
            yield _unmeasured(rule, name, _no_group(f"{name}: {note}{known}"))
            continue
        ends = (cell.value, cell.low, cell.high)
        is_signed = cell.direction == "better"
        loss = _drift_loss(ends, is_signed=is_signed, level=level)

        def low_at(
            strict: float, ends: tuple[float, float, float] = ends, *, signed: bool = is_signed
        ) -> float | None:
            return _drift_loss(ends, is_signed=signed, level=strict).low

        verdict = decide(loss, rule.margin)
        words = _drift_words(verdict, loss, rule.margin, cell.name)
        yield OpenCheck(
            rule,
            name,
            loss,
            verdict,
            words,
            low_at,
            items=cell.n,
            measured=cell.n,
            coverage=coverage[name],
            estimator="drift",
        )


def _drift_words(verdict: Verdict, loss: Estimate, margin: float, name: str) -> str:
    """Return the sentence of a verdict on drift, which is an effect and not a share of items."""
    low, high = effect(loss.low), effect(loss.high)
    if verdict == "no_material_loss":
        return f"no drift of {name} beyond an effect of {margin:g}: at most {high}"
    if verdict == "cannot_tell":
        return f"cannot tell: {name} drifted by an effect of {low} to {high}"
    if verdict == "small_loss":
        limits = f"at least {low}, at most {high}"
        return f"{name} drifted by an effect of {limits}, within the margin of {margin:g}"
    more = f", more than the margin of {margin:g}" if (loss.low or 0.0) > margin else ""
    estimate = f"estimate {effect(loss.value)}, at most {high}"
    return f"{name} drifted by an effect of at least {low}{more} ({estimate})"


def _drift_loss(ends: tuple[float, float, float], *, is_signed: bool, level: float) -> Estimate:
    """Return drift as a loss: a decrease if more is better, else a change in either direction.

    At levels other than 95 %, the bounds are scaled as for a normal distribution.
    """
    value, low, high = ends
    wider = normal_quantile(level) / normal_quantile(LEVEL)
    low, high = value - wider * (value - low), value + wider * (high - value)
    if is_signed:
        return Estimate(value=-value, low=-high, high=-low, method="drift, fall")
    inner = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    outer = max(abs(low), abs(high))
    return Estimate(value=abs(value), low=inner, high=outer, method="drift, either way")
