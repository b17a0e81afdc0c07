"""One quantity of one group, held against a margin: what a rule of a gate is made of.

The numbers and verdicts are those of a comparison; only margin, estimator and level may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.from_counts import as_estimate, drop_interval
from forgetmap.comparison.group_results import group_result, group_results
from forgetmap.comparison.result import DecidesResult, GroupResult, Verdict
from forgetmap.comparison.verdict import Policy, decide, decided_sentence
from forgetmap.results import Estimate
from forgetmap.stats import items_to_decide, normal_quantile
from forgetmap.text import counted, limit, share

JudgedQuantity = Literal["forgetting", "knowledge_loss", "answering_loss", "net_change"]
"""What may be held against a margin; a positive value is a loss."""
GroupKind = Literal["total", "task", "category", "tag"]
"""The groups that a comparison counts."""
_LABELS: dict[JudgedQuantity, str] = {
    "knowledge_loss": "no longer known",
    "answering_loss": "no longer answered",
    "net_change": "losses less gains",
}
_FAMILIES: dict[GroupKind, str] = {"task": "tasks", "category": "categories", "tag": "tags"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be concluded about one quantity of one group.

    Attributes:
        group: its numbers.
        loss: the quantity, with its interval; positive is a loss.
        verdict: against the margin.
        estimator: that the quantity was measured with.
        sentence: the verdict in words.
        decides: what would decide an open verdict.
    """

    group: GroupResult
    loss: Estimate
    verdict: Verdict
    estimator: str
    sentence: str
    decides: DecidesResult | None


def group_evidence(comparison: Comparison, kind: GroupKind) -> dict[str, Evidence]:
    """What was counted in each group of a kind, by name."""
    evidence = comparison.grounds.evidence
    if kind == "total":
        return {"total": evidence.total()}
    by_kind = {"task": evidence.tasks, "category": evidence.categories, "tag": evidence.tags}
    return by_kind[kind]()


def make_group_policy(
    comparison: Comparison, *, margin: float, estimator: str, level: float
) -> Policy:
    """The policy of a comparison with another margin, estimator and level."""
    policy = comparison.grounds.policy
    return replace(policy, margin=margin, estimator=estimator, level=level)


def judge_group(
    name: str, evidence: Evidence, policy: Policy, quantity: JudgedQuantity
) -> Judgement:
    """A group that is a claim of its own."""
    evidence = replace(evidence, level=policy.level)
    return _judge(group_result(name, evidence, policy), evidence, policy, quantity)


def judge_family(
    evidence: Mapping[str, Evidence], policy: Policy, kind: GroupKind, quantity: JudgedQuantity
) -> list[Judgement]:
    """Groups that are looked at together; verdicts on forgetting are corrected for that."""
    counted_at = {name: replace(group, level=policy.level) for name, group in evidence.items()}
    groups = group_results(counted_at, policy, _FAMILIES[kind])
    return [_judge(group, counted_at[group.name], policy, quantity) for group in groups]


def _judge(
    group: GroupResult, evidence: Evidence, policy: Policy, quantity: JudgedQuantity
) -> Judgement:
    headline = group.headline
    if quantity == "forgetting":
        words = headline.words
        return Judgement(
            group, headline.forgetting, group.verdict, headline.estimator, words, group.decides
        )
    if quantity == "net_change":
        loss, verdict = _net_change(evidence, policy)
        estimator = "net_change"
    else:
        part = group.knowledge if quantity == "knowledge_loss" else group.answering
        loss, verdict, estimator = part, part.verdict, headline.estimator
    decides = _decides(loss, verdict, group, policy)
    words = f"{_LABELS[quantity]}: {_sentence(loss, verdict, decides, policy)}"
    return Judgement(group, loss, verdict, estimator, words, decides)


def _net_change(evidence: Evidence, policy: Policy) -> tuple[Estimate, Verdict]:
    """The fall of accuracy: what noise flips either way cancels, and so do gains."""
    if not evidence.cells.n:
        return Estimate.missing("net change", "no item is scored on both sides"), "cannot_tell"
    loss = as_estimate(drop_interval(evidence), "losses less gains, score interval")
    return loss, decide(loss, policy.margin)


def _decides(
    loss: Estimate, verdict: Verdict, group: GroupResult, policy: Policy
) -> DecidesResult | None:
    if verdict != "cannot_tell":
        return None
    if loss.value is None or loss.low is None or loss.high is None:
        return DecidesResult(items=None, repeats=None)
    error = (loss.high - loss.low) / (2 * normal_quantile(policy.level))
    items = items_to_decide(loss.value, error, group.items, policy.margin)
    return DecidesResult(items=items, repeats=None)


def _sentence(
    loss: Estimate, verdict: Verdict, decides: DecidesResult | None, policy: Policy
) -> str:
    if verdict != "cannot_tell":
        return decided_sentence(verdict, loss, policy.margin, "all items")
    if loss.low is None or loss.high is None:
        return f"cannot tell: {loss.reason or 'no interval'}"
    high = limit(loss.high, policy.margin)
    words = f"cannot tell: between {share(loss.low)} and {high} of all items may be lost"
    if decides is not None and decides.items is not None:
        words += f"; about {counted(decides.items, 'item')} would decide"
    return words
