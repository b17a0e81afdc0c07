"""One quantity of one group compared with a margin, for the rules of a gate.

The numbers and verdicts are those of a comparison; only margin, estimator and level may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forgetmap.comparison.cells import count_scored_before, split_tags
from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.estimators import find_estimator
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.from_counts import as_estimate, drop_interval
from forgetmap.comparison.group_results import group_result, group_results
from forgetmap.comparison.result import DecidesResult, GroupResult, Verdict
from forgetmap.comparison.verdict import Policy, decide, decided_sentence, items_that_decide
from forgetmap.pairing import SIDES
from forgetmap.records import reading
from forgetmap.results import Estimate
from forgetmap.text import counted, limit, share

JudgedQuantity = Literal["forgetting", "knowledge_loss", "answering_loss", "net_change"]
"""Quantities that can be compared with a margin; a positive value is a loss."""
GroupKind = Literal["total", "task", "category", "tag"]
"""Kinds of groups in a comparison."""
_LABELS: dict[JudgedQuantity, str] = {
    "knowledge_loss": "no longer known",
    "answering_loss": "no longer answered",
    "net_change": "losses minus gains",
}
NET_CHANGE = "net_change"
_COLUMNS: dict[GroupKind, Literal["category", "tags"]] = {"category": "category", "tag": "tags"}
_FAMILIES: dict[GroupKind, str] = {"task": "tasks", "category": "categories", "tag": "tags"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The conclusion about one quantity of one group.

    Attributes:
        group: its numbers.
        loss: the quantity, with its interval; positive is a loss.
        verdict: verdict against the margin.
        estimator: estimator of the quantity.
        sentence: the verdict in words.
        decides: what would decide an open verdict.
        measured: number of items behind the quantity.
        reason: why nothing can be concluded whatever the interval is, if so.
    """

    group: GroupResult
    loss: Estimate
    verdict: Verdict
    estimator: str
    sentence: str
    decides: DecidesResult | None
    measured: int
    reason: str | None = None


def group_evidence(comparison: Comparison, kind: GroupKind) -> dict[str, Evidence]:
    """Return the evidence of each group of a kind, by name."""
    evidence = comparison.grounds.evidence
    if kind == "total":
        return {"total": evidence.total()}
    by_kind = {"task": evidence.tasks, "category": evidence.categories, "tag": evidence.tags}
    return by_kind[kind]()


def measure_group_coverage(comparison: Comparison, kind: GroupKind) -> dict[str, float]:
    """Return the share of the results scored before in a scored pair, by category or tag of BEFORE.

    Evidence has no category or tags of results without a counterpart, so these are counted here. If
    BEFORE does not record their label, they count against every group.

    Returns:
        Shares by name; empty if every result before has a counterpart: then evidence is enough.
    """
    column = _COLUMNS.get(kind)
    pairs = comparison.pairs
    if column is None or not comparison.result.pairing.only_before:
        return {}
    if not any(f"{column}_{side}" in pairs.columns for side in SIDES):
        return {}
    with reading(comparison.before, comparison.after):
        counts, unknown = count_scored_before(pairs, column, comparison.grounds.repeats)
    scored: dict[str, int] = {}
    for label, count in counts.items():
        for name in split_tags(label) if kind == "tag" else [label]:
            scored[name] = scored.get(name, 0) + count
    evidence = group_evidence(comparison, kind)
    return {
        name: min(evidence[name].cells.n / (count + unknown), 1.0) if name in evidence else 0.0
        for name, count in sorted(scored.items())
        if count + unknown
    }


def make_group_policy(
    comparison: Comparison, *, margin: float, estimator: str, level: float
) -> Policy:
    """Return the policy of a comparison with another margin, estimator and level."""
    policy = comparison.grounds.policy
    return replace(policy, margin=margin, estimator=estimator, level=level)


def judge_group(
    name: str, evidence: Evidence, policy: Policy, quantity: JudgedQuantity
) -> Judgement:
    """Judge a group that is a claim of its own."""
    evidence = replace(evidence, level=policy.level)
    return _judge(group_result(name, evidence, policy), evidence, policy, quantity)


def judge_family(
    evidence: Mapping[str, Evidence], policy: Policy, kind: GroupKind, quantity: JudgedQuantity
) -> list[Judgement]:
    """Judge groups that are examined together; verdicts on forgetting are corrected for that."""
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
            group,
            headline.forgetting,
            group.verdict,
            headline.estimator,
            words,
            group.decides,
            evidence.cells.items,
        )
    if quantity == "net_change":
        loss, verdict = _net_change(evidence, policy)
        estimator = NET_CHANGE
    else:
        part = group.knowledge if quantity == "knowledge_loss" else group.answering
        loss, verdict, estimator = part, part.verdict, headline.estimator
    is_open = verdict == "cannot_tell"
    decides = items_that_decide(loss, group.items, policy) if is_open else None
    words = f"{_LABELS[quantity]}: {_sentence(loss, verdict, decides, policy)}"
    measured = _count_measured(estimator, evidence)
    reason = _lacks_outcomes(loss, evidence, policy) if quantity == "answering_loss" else None
    return Judgement(group, loss, verdict, estimator, words, decides, measured, reason)


def _count_measured(estimator: str, evidence: Evidence) -> int:
    """Count the items behind a part of the loss; only repeated ones for an estimator by repeats."""
    if estimator == NET_CHANGE or not find_estimator(estimator).from_repeats:
        return evidence.cells.items
    return evidence.count_repeated(estimator)


def _lacks_outcomes(loss: Estimate, evidence: Evidence, policy: Policy) -> str | None:
    """Return a reason if unrecorded outcomes of forgotten answers could change the verdict."""
    cells = evidence.cells
    unknown = cells.reasons.get("unknown", 0)
    if loss.low is None or loss.high is None or not unknown or loss.low > policy.margin:
        return None
    if loss.high + unknown / cells.n < policy.margin:
        return None
    return (
        f"the outcome of {unknown:,} of {counted(cells.n10, 'forgotten answer')} is not "
        "recorded, so it is unknown whether an answer was given"
    )


def _net_change(evidence: Evidence, policy: Policy) -> tuple[Estimate, Verdict]:
    """Return the accuracy drop and its verdict; gains and symmetric noise cancel."""
    if not evidence.cells.n:
        return Estimate.missing("net change", "no item is scored on both sides"), "cannot_tell"
    loss = as_estimate(drop_interval(evidence), "losses minus gains, score interval")
    return loss, decide(loss, policy.margin)


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
