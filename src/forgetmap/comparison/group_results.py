"""From evidence to numbers: every estimate that the data allow, its interval, its test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from forgetmap.comparison import from_counts, repeated
from forgetmap.comparison.cells import REASONS, Cells
from forgetmap.comparison.estimators import BUILT_IN_NAMES, Estimator, number_estimators
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.headline import HeadlinePolicy
from forgetmap.comparison.result import GroupResult
from forgetmap.errors import UsageError
from forgetmap.pairing import SIDES
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import between_interval, detectable_excess, false_discovery, mcnemar_p

RESERVED = GroupResult.model_fields.keys() - set(BUILT_IN_NAMES)
"""Names in a result that no estimator of a package may take."""


def group_result(name: str, evidence: Evidence, policy: HeadlinePolicy) -> GroupResult:
    """Counts, rates and estimates of one group; a rate of nothing is null, with a reason."""
    numbers = {
        **_counts(name, evidence.cells),
        **_estimates(evidence),
        **_tests(evidence, sampled=bool(policy.sampled)),
    }
    return policy.with_headline(GroupResult.model_construct(**numbers), evidence)


def group_results(evidence: Mapping[str, Evidence], policy: HeadlinePolicy) -> list[GroupResult]:
    """One result per group, with q-values over them."""
    results = [group_result(name, counted, policy) for name, counted in evidence.items()]
    return with_q(results)


def with_q(results: Sequence[GroupResult]) -> list[GroupResult]:
    """The same with the false discovery rate controlled over all of them."""
    p = [math.nan if group.p_lost is None else group.p_lost for group in results]
    q = false_discovery(p).tolist() if p else []
    return [
        group.model_copy(update={"q_lost": None if math.isnan(value) else value})
        for group, value in zip(results, q, strict=True)
    ]


def macro_result(
    tasks: Mapping[str, Evidence],
    results: Sequence[GroupResult],
    total: GroupResult,
    policy: HeadlinePolicy,
) -> GroupResult:
    """Counts of all tasks, rates as plain means over the tasks that have them."""
    evidence = [task for task in tasks.values() if task.cells.n]
    scored = [task for task in results if task.n]
    update: dict[str, Any] = {"name": "macro", "between_tasks": _between(scored)}
    for name in ("acc_before", "acc_after", "conventional_forgetting", "known_before"):
        update[name] = _mean([getattr(task, name) for task in scored])
    for row in number_estimators():
        estimates = [task.estimates(row.name) for task in scored]
        mean = row.over_tasks(row.name, evidence, estimates, total.estimates(row.name))
        update |= _fields_of(row, mean)
    if update["matched"].forgetting.value is not None:
        update["bracket_low"] = update["matched"]
        update["bracket_high"] = from_counts.over_tasks("matched_upper", evidence)
    else:
        update["bracket_low"], update["bracket_high"] = update["latent"], update["upper"]
    for name in ("conditional_forgetting", "noise_floor"):
        update[name] = from_counts.plain_mean([getattr(task, name) for task in scored])
    return policy.with_headline(total.model_copy(update=update), Evidence.total(evidence))


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


def _estimates(evidence: Evidence) -> dict[str, Any]:
    estimates: dict[str, Any] = {}
    for row in number_estimators():
        if row.name in RESERVED:
            raise UsageError(
                f"an installed package adds an estimator {row.name!r}, which is a rate of a result",
                hint="uninstall the package, or rename its estimator.",
            )
        estimates |= _fields_of(row, _estimate(row, evidence))
    knows_choices = from_counts.knows_choices(evidence)
    low, high = (
        (estimates["matched"], from_counts.estimate("matched_upper", evidence))
        if knows_choices
        else (estimates["latent"], estimates["upper"])
    )
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
    """Where a result has what an estimator says: the raw one under the names of the rates."""
    if isinstance(value, Estimates) and row.name == "raw":
        return {"forgetting": value.forgetting, "backward_transfer": value.backward_transfer}
    if isinstance(value, Estimates) and row.only_losses:
        return {row.name: value.forgetting}
    return {row.name: value}


def _noise_floor(evidence: Evidence) -> Estimate:
    """Mean over the models that were repeated."""
    items = evidence.items
    floors = [] if items is None else [repeated.noise_floor(items, side) for side in SIDES]
    known = [floor for floor in floors if floor is not None]
    if not known:
        return Estimate.missing("noise floor", "needs repeats of a model")
    return Estimate(value=sum(known) / len(known), method="noise floor")


def _tests(evidence: Evidence, *, sampled: bool) -> dict[str, float | None]:
    cells = evidence.cells
    return {
        "p_lost": _lost_p(evidence, sampled=sampled),
        "q_lost": None,
        "mcnemar_p": float(mcnemar_p(cells.n10, cells.n01)) if cells.n else None,
        "detectable": _detectable(evidence),
    }


def _lost_p(evidence: Evidence, *, sampled: bool) -> float | None:
    """P-value that nothing was lost: from repeats where there are any, else from luck.

    Of sampled answers without repeats there is none: noise alone would reject.
    """
    if evidence.items is not None:
        p = repeated.excess_p(evidence.items)
        p = repeated.excess_before_p(evidence.items) if p is None else p
        if p is not None:
            return p
    if sampled:
        return None
    return from_counts.luck_p(evidence, use_options=from_counts.knows_choices(evidence))


def _detectable(evidence: Evidence) -> float | None:
    cells = evidence.cells
    if not cells.n:
        return None
    interval = None
    if evidence.items is not None:
        interval = repeated.excess(evidence.items) or repeated.excess_before(evidence.items)
    if interval is None:
        use_options = from_counts.knows_choices(evidence)
        return from_counts.detectable_loss(evidence.options, use_options=use_options)
    loss = float(detectable_excess(interval))
    return loss if loss <= (cells.n11 + cells.n10) / cells.n else None


def _between(tasks: Sequence[GroupResult]) -> Estimates | None:
    """For tasks like these, not just these: the spread between them."""
    if len(tasks) < 2:
        return None
    method = "raw, mean over tasks, t interval between tasks"
    rates = {name: [getattr(task, name).value for task in tasks] for name in Estimates.model_fields}
    return Estimates(
        **{
            name: from_counts.as_estimate(between_interval(values), method)
            for name, values in rates.items()
        }
    )


def _reasons(cells: Cells) -> dict[str, int | None]:
    """Zero where the way of ending was recorded for all lost items, null where for none."""
    if cells.n10 and cells.reasons.get("unknown") == cells.n10:
        return {name: cells.n10 if name == "unknown" else None for name in REASONS}
    return {name: cells.reasons.get(name, 0) for name in REASONS}


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
