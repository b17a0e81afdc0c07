"""Estimates of a group with intervals and tests, as far as the data allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from forgetmap.comparison import from_counts, repeated
from forgetmap.comparison.cells import REASONS, Cells
from forgetmap.comparison.choice_counts import TWO_OPTIONS
from forgetmap.comparison.clustered import FALL
from forgetmap.comparison.coverage import missing_items
from forgetmap.comparison.estimators import BUILT_IN_NAMES, Estimator, number_estimators
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.from_counts import loss_variance
from forgetmap.comparison.graded import GradedSums
from forgetmap.comparison.loss import (
    FROM_COUNTS,
    measure_macro,
    symmetric_loss,
    symmetric_macro,
)
from forgetmap.comparison.result import (
    CoverageResult,
    FamilyResult,
    GradedResult,
    GroupResult,
)
from forgetmap.comparison.verdict import Claim, Policy, Standing, conclude, make_claim
from forgetmap.errors import UsageError
from forgetmap.pairing import SIDES
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import (
    FDR,
    ClusterVariance,
    Interval,
    Shrinkage,
    between_interval,
    combined_interval,
    detectable_excess,
    false_discovery,
    graded_interval,
    mcnemar_p,
    normal_quantile,
    shrink,
)

RESERVED = GroupResult.model_fields.keys() - set(BUILT_IN_NAMES)
"""Field names that estimators of packages may not use."""


def group_result(name: str, evidence: Evidence, policy: Policy) -> GroupResult:
    """Compute counts, rates, estimates and verdict of one group that is a claim of its own."""
    group = _numbers(name, evidence, policy)
    return conclude(group, make_claim(group, evidence, policy), policy)


def group_results(
    evidence: Mapping[str, Evidence], policy: Policy, family: str
) -> list[GroupResult]:
    """Compute one result per group, with verdicts corrected for the number of groups.

    Args:
        evidence: evidence by the name of the group.
        policy: rules of the verdict.
        family: kind of the groups: tasks, categories or tags.
    """
    groups = [_numbers(name, counted, policy) for name, counted in evidence.items()]
    claims = [
        make_claim(group, counted, policy)
        for group, counted in zip(groups, evidence.values(), strict=True)
    ]
    return with_q(conclude_family(groups, claims, policy, family))


def conclude_family(
    groups: Sequence[GroupResult], claims: Sequence[Claim], policy: Policy, family: str
) -> list[GroupResult]:
    """Reach verdicts of groups that are examined together, by Benjamini and Hochberg."""
    q = false_discovery([claim.p for claim in claims]).tolist() if claims else []
    size = sum(not math.isnan(value) for value in q)
    if size < 2:
        return [conclude(group, claim, policy) for group, claim in zip(groups, claims, strict=True)]
    called = sum(
        value <= FDR and (claim.loss.total.low or 0.0) > 0
        for value, claim in zip(q, claims, strict=True)
    )
    standings = [
        Standing(FamilyResult(name=family, size=size), value, max(called, 1)) for value in q
    ]
    return [
        conclude(group, claim, policy, standing)
        for group, claim, standing in zip(groups, claims, standings, strict=True)
    ]


def with_q(results: Sequence[GroupResult]) -> list[GroupResult]:
    """Add q-values that control the false discovery rate over all groups."""
    p = [math.nan if group.p_lost is None else group.p_lost for group in results]
    q = false_discovery(p).tolist() if p else []
    return [
        group.model_copy(update={"q_lost": None if math.isnan(value) else value})
        for group, value in zip(results, q, strict=True)
    ]


def with_shrinkage(
    results: Sequence[GroupResult], evidence: Mapping[str, Evidence], policy: Policy
) -> list[GroupResult]:
    """Add losses that are shrunk towards the mean, and the probability to exceed the margin."""
    values = [math.nan if (v := g.headline.forgetting.value) is None else v for g in results]

    def shrink_at(loss: float | None) -> tuple[Shrinkage | None, list[float]]:
        variances = [_variance(group, evidence[group.name], policy, loss) for group in results]
        return shrink(values, variances, margin=policy.margin, level=policy.level), variances

    first, _ = shrink_at(None)
    if first is None:
        return list(results)
    shrunk, variances = shrink_at(first.centre)
    assert shrunk is not None  # noqa: S101  # as many tasks as before
    return [
        group.model_copy(update=_shrunk_fields(shrunk, index))
        if not math.isnan(variances[index])
        else group
        for index, group in enumerate(results)
    ]


def _variance(group: GroupResult, evidence: Evidence, policy: Policy, loss: float | None) -> float:
    """Return the variance of the loss of a task, assuming this loss; nan if there is none."""
    total = group.headline.forgetting
    if group.headline.estimator in FROM_COUNTS and total.value is not None:
        return loss_variance(group.headline.estimator, evidence, at=loss)
    if total.value is not None and total.low is not None and total.high is not None:
        return ((total.high - total.low) / (2 * normal_quantile(policy.level))) ** 2
    return math.nan


def _shrunk_fields(shrunk: Shrinkage, index: int) -> dict[str, Any]:
    value, low, high = (
        float(getattr(shrunk.interval, end)[index]) for end in ("value", "low", "high")
    )
    method = "shrunk towards the mean of the tasks, Paule-Mandel and Morris"
    return {
        "shrunk": Estimate(value=value, low=low, high=high, method=method),
        "loss_exceeds_margin": float(shrunk.exceeds[index]),
    }


def _numbers(name: str, evidence: Evidence, policy: Policy) -> GroupResult:
    """Compute counts, rates and estimates of one group; a rate of no items is null."""
    numbers = {
        **_counts(name, evidence.cells),
        **_estimates(evidence),
        **_tests(evidence, policy),
        **_facts(evidence),
    }
    return GroupResult.model_construct(**numbers)


def macro_result(
    tasks: Mapping[str, Evidence],
    results: Sequence[GroupResult],
    total: GroupResult,
    policy: Policy,
) -> GroupResult:
    """Add up the counts of all tasks, and average their rates without weights."""
    evidence = [task for task in tasks.values() if task.cells.n]
    scored = [task for task in results if task.n]
    update: dict[str, Any] = {
        "name": "macro",
        "between_tasks": _between(scored, policy.level),
        "symmetric_noise": symmetric_macro(evidence),
        "graded": _graded_macro(evidence),
    }
    for name in ("acc_before", "acc_after", "conventional_forgetting", "known_before"):
        update[name] = _mean([getattr(task, name) for task in scored])
    for row in number_estimators():
        estimates = [task.estimates(row.name) for task in scored]
        mean = row.over_tasks(row.name, evidence, estimates, total.estimates(row.name))
        update |= _fields_of(row, mean)
    update["bracket_low"] = from_counts.over_tasks("low", evidence)
    update["bracket_high"] = from_counts.over_tasks("high", evidence)
    for name in ("conditional_forgetting", "noise_floor"):
        update[name] = from_counts.plain_mean([getattr(task, name) for task in scored])
    macro = total.model_copy(update=update)
    claim = make_claim(macro, Evidence.total(evidence), policy)
    if evidence and claim.reason is None:
        repeated_mean = None
        if claim.row.from_repeats:
            repeated_mean = macro.estimates(claim.row.name).forgetting
        loss = measure_macro(claim.row, evidence, policy.noise_floor, repeated_mean)
        known = claim.loss
        loss = replace(loss, luck_ratio=known.luck_ratio, guess_rate=known.guess_rate)
        claim = replace(claim, loss=loss)
    return conclude(macro, claim, policy)


def _counts(name: str, cells: Cells) -> dict[str, Any]:
    return {
        "name": name,
        "items": cells.items,
        "n": cells.n,
        "n00": cells.n00,
        "n01": cells.n01,
        "n10": cells.n10,
        "n11": cells.n11,
        "acc_before": _share(cells.n11 + cells.n10, cells.n),
        "acc_after": _share(cells.n11 + cells.n01, cells.n),
        "conventional_forgetting": _share(max(cells.n10 - cells.n01, 0), cells.n),
        "reasons": _reasons(cells),
        "between_tasks": None,
    }


def _facts(evidence: Evidence) -> dict[str, Any]:
    """Return the values beside the estimates."""
    return {
        "symmetric_noise": symmetric_loss(evidence),
        "coverage": CoverageResult(
            before=_covered(evidence, evidence.cells.scored_before),
            after=_covered(evidence, evidence.cells.scored_after),
        ),
        "worst_case": _worst_case(evidence),
        "answer_changes": _answer_changes(evidence),
        "graded": _graded(evidence),
    }


def _covered(evidence: Evidence, scored: int) -> float | None:
    """Return the share of the scored results of a side that are in a scored pair."""
    return min(evidence.cells.n / scored, 1.0) if scored else None


def _worst_case(evidence: Evidence) -> float | None:
    """Return the largest possible loss: everything missing after was lost (Manski's bound)."""
    cells = evidence.cells
    missing = missing_items(cells)
    if not cells.n or missing is None:
        return None
    raw, _ = from_counts.loss_interval("raw", "loss", evidence)
    return min((cells.n * (raw.high or 0.0) + missing[1]) / cells.scored_before, 1.0)


def _answer_changes(evidence: Evidence) -> int | None:
    """Count items with one wrong option before and another wrong option after."""
    closed = [part for k, part in evidence.options.items() if TWO_OPTIONS < k < math.inf]
    if not closed or any(part.unknown for part in closed):
        return None
    return sum(part.different for part in closed)


GRADED_METHOD = "mean of score before minus score after"


def _graded(evidence: Evidence) -> GradedResult | None:
    sums = evidence.graded
    if sums is None or not sums.graded:
        return None
    clusters = _graded_clusters(evidence)
    interval = _graded_interval(sums, clusters, evidence.level)
    note = "" if clusters is None else ", clustered"
    return _graded_result(interval, sums.graded, f"{GRADED_METHOD}, t interval{note}")


def _graded_interval(sums: GradedSums, clusters: ClusterVariance | None, level: float) -> Interval:
    moments = (sums.n, sums.total, sums.squares, sums.cubes)
    return graded_interval(*moments, clusters=clusters, level=level)


def _graded_clusters(evidence: Evidence) -> ClusterVariance | None:
    """Return how clusters widen the interval; None without clusters, or with a single one."""
    clusters, sums = evidence.clusters, evidence.graded
    if sums is None or clusters is None or FALL not in clusters.names:
        return None
    variance = clusters.variance([FALL], sums.squares)
    return None if variance is None or math.isnan(variance.variance) else variance


def _graded_macro(tasks: Sequence[Evidence]) -> GradedResult | None:
    """Average the decreases of scores over tasks, including tasks without graded scores."""
    known = [task.graded for task in tasks if task.graded is not None]
    pairs = sum(sums.graded for sums in known)
    if not pairs or len(known) < len(tasks):
        return None
    intervals, freedom = [], []
    for task, sums in zip(tasks, known, strict=True):
        clusters = _graded_clusters(task)
        intervals.append(_graded_interval(sums, clusters, task.level))
        freedom.append(max(sums.n - 1, 1.0) if clusters is None else clusters.freedom)
    combined = combined_interval(intervals, freedom, level=tasks[0].level, inflate=tasks[0].across)
    return _graded_result(combined, pairs, f"{GRADED_METHOD}, mean over tasks, t interval")


def _graded_result(interval: Interval, pairs: float, method: str) -> GradedResult:
    ends = (interval.value, interval.low, interval.high)
    value, low, high = (None if math.isnan(end) else float(end) for end in ends)
    return GradedResult(value=value, low=low, high=high, method=method, pairs=int(pairs))


def _estimates(evidence: Evidence) -> dict[str, Any]:
    estimates: dict[str, Any] = {}
    for row in number_estimators():
        if row.name in RESERVED:
            raise UsageError(
                f"an installed package adds an estimator {row.name!r}, which is the name of a rate",
                hint="uninstall the package, or rename its estimator.",
            )
        estimates |= _fields_of(row, _estimate(row, evidence))
    low, high = (from_counts.estimate(name, evidence) for name in from_counts.END_NAMES)
    return estimates | {
        "bracket_low": low,
        "bracket_high": high,
        "conditional_forgetting": from_counts.conditional_forgetting(evidence),
        "known_before": from_counts.known_share(evidence.options),
        "noise_floor": _noise_floor(evidence),
    }


def _estimate(row: Estimator, evidence: Evidence) -> Estimates | Estimate:
    reason = row.lacks(evidence)
    if reason is None:
        return row.estimate(evidence)
    return (Estimate if row.only_losses else Estimates).missing(row.name, reason)


def _fields_of(row: Estimator, value: Estimates | Estimate) -> dict[str, Estimates | Estimate]:
    """Return the fields of a result for an estimator; those of the raw one are named as rates."""
    if isinstance(value, Estimates) and row.name == "raw":
        return {"forgetting": value.forgetting, "backward_transfer": value.backward_transfer}
    if isinstance(value, Estimates) and row.only_losses:
        return {row.name: value.forgetting}
    return {row.name: value}


def _noise_floor(evidence: Evidence) -> Estimate:
    """Average the noise floor over the repeated models."""
    items = evidence.items
    interval = None
    if items is not None:
        interval = repeated.noise_interval(items, evidence.level, evidence.item_clusters)
    if interval is None:
        floors = [] if items is None else [repeated.noise_floor(items, side) for side in SIDES]
        known = [floor for floor in floors if floor is not None]
        if not known:
            return Estimate.missing("noise floor", "needs repeats of a model")
        return Estimate(value=sum(known) / len(known), method="noise floor")
    return from_counts.as_estimate(interval, "noise floor, t interval")


def _tests(evidence: Evidence, policy: Policy) -> dict[str, float | None]:
    cells = evidence.cells
    return {
        "p_lost": _lost_p(evidence, sampled=bool(policy.sampled)),
        "q_lost": None,
        "mcnemar_p": float(mcnemar_p(cells.n10, cells.n01)) if cells.n else None,
        "detectable": _detectable(evidence, policy.noise_floor),
    }


def _lost_p(evidence: Evidence, *, sampled: bool) -> float | None:
    """Return the p-value of no loss: from repeats if there are any, else from luck.

    None for sampled answers without repeats: noise alone would reject.
    """
    if evidence.items is not None:
        p = repeated.excess_p(evidence.items)
        p = repeated.excess_before_p(evidence.items) if p is None else p
        if p is not None:
            return p
    if sampled:
        return None
    return from_counts.luck_p(evidence, use_options=from_counts.knows_choices(evidence))


def _detectable(evidence: Evidence, noise_floor: float) -> float | None:
    cells = evidence.cells
    if not cells.n:
        return None
    interval = None
    if evidence.items is not None:
        interval = repeated.excess(evidence.items) or repeated.excess_before(evidence.items)
    if interval is None:
        name = "matched" if from_counts.knows_choices(evidence) else "latent"
        return from_counts.detectable_loss(evidence, name, noise_floor)
    loss = float(detectable_excess(interval))
    return loss if loss <= (cells.n11 + cells.n10) / cells.n else None


def _between(tasks: Sequence[GroupResult], level: float) -> Estimates | None:
    """Return the mean over tasks with the spread between tasks, for tasks like these."""
    if len(tasks) < 2:
        return None
    method = "raw, mean over tasks, t interval between tasks"
    rates = {name: [getattr(task, name).value for task in tasks] for name in Estimates.model_fields}
    return Estimates(
        **{
            name: from_counts.as_estimate(between_interval(values, level=level), method)
            for name, values in rates.items()
        }
    )


def _reasons(cells: Cells) -> dict[str, int | None]:
    """Count forgotten items by reason; null for known reasons if no outcome is recorded."""
    if cells.n10 and cells.reasons.get("unknown") == cells.n10:
        return {name: cells.n10 if name == "unknown" else None for name in REASONS}
    return {name: cells.reasons.get(name, 0) for name in REASONS}


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
