"""From evidence to numbers: every estimate that the data allow, its interval, its test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from forgetmap.comparison import from_counts, repeated
from forgetmap.comparison.cells import REASONS, Cells
from forgetmap.comparison.choice_counts import PAIR, ByOptions, reverse
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.headline import Judge
from forgetmap.comparison.result import GroupResult, PublishedResult
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import (
    FEWEST,
    ClusterVariance,
    Interval,
    ScoreSums,
    agree_with_test,
    between_interval,
    combined_interval,
    false_discovery,
    mcnemar_p,
    normal_quantile,
    raw_sums,
    repeats_found,
    score_interval,
    score_p,
    weighted_interval,
)

NO_ITEMS = "no scored pair"
NO_REPEATS = "needs two or more answers per item from both models"
NO_NOISE = "needs two or more answers per item from the model before"
NO_CHOICES = "the chosen options are not recorded on both sides"
ONLY_PAIRS = "two options: the one wrong answer does not tell how luck moved; see the bracket"
NO_OPTIONS = "open-ended items: nothing to match; see the raw rate"
LOPSIDED = "right answers sit on some places far more often than on others"

Sums = Callable[[ByOptions], ScoreSums | None]
SCORES: dict[str, Sums] = {
    "raw": from_counts.raw,
    "latent": from_counts.latent,
    "upper": from_counts.upper,
    "matched": from_counts.matched,
}
NOT_NEGATIVE = ("raw", "upper")


def group_result(name: str, found: Evidence, judge: Judge) -> GroupResult:
    """Counts, rates and estimates of one group; a rate of nothing is null, with a reason."""
    cells = found.cells
    numbers = _counts(name, cells) | _estimates(found, sampled=bool(judge.sampled))
    numbers["conditional_forgetting"] = _conditional(found)
    return judge.with_headline(GroupResult.model_construct(**numbers), found)


def group_results(evidence: Mapping[str, Evidence], judge: Judge) -> list[GroupResult]:
    """One result per group, with q-values over them."""
    results = [group_result(name, found, judge) for name, found in evidence.items()]
    return with_q(results)


def with_q(results: Sequence[GroupResult]) -> list[GroupResult]:
    """The same with the false discovery rate controlled over all of them."""
    p = [math.nan if each.p_lost is None else each.p_lost for each in results]
    q = false_discovery(p).tolist() if p else []
    return [
        each.model_copy(update={"q_lost": None if math.isnan(value) else value})
        for each, value in zip(results, q, strict=True)
    ]


def macro_result(
    tasks: Mapping[str, Evidence], each: Sequence[GroupResult], total: GroupResult, judge: Judge
) -> GroupResult:
    """Counts of all tasks, rates as plain means over the tasks that have them."""
    parts = [found for found in tasks.values() if found.cells.n]
    singles = [one for one in each if one.n]
    update: dict[str, Any] = {"name": "macro"}
    for name in ("acc_before", "acc_after", "conventional_forgetting", "known_before"):
        update[name] = _mean([getattr(each, name) for each in singles])
    for name, sums in SCORES.items():
        pair = _macro_scores(name, sums, parts, getattr(total, name) if name != "raw" else None)
        if name == "raw":
            update |= {"forgetting": pair.forgetting, "backward_transfer": pair.backward_transfer}
        else:
            update[name] = pair
    matched = update["matched"].forgetting.value is not None
    update["bracket_low"] = update["matched" if matched else "latent"]
    update["bracket_high"] = (
        _macro_scores("matched_upper", from_counts.matched_upper, parts, None)
        if matched
        else update["upper"]
    )
    for name in ("excess", "net"):
        update[name] = _macro_means(name, [getattr(each, name) for each in singles], parts)
    update["published"] = _macro_published([each.published for each in singles])
    update["excess_before"] = _combined("excess_before", [e.excess_before for e in singles], parts)
    for name in ("conditional_forgetting", "noise_floor"):
        update[name] = _plain_mean([getattr(each, name) for each in singles])
    update["between_tasks"] = _between(singles)
    return judge.with_headline(total.model_copy(update=update), Evidence.total(parts))


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
        "q_lost": None,
        "between_tasks": None,
    }


def _estimates(found: Evidence, *, sampled: bool) -> dict[str, Any]:
    blocker = matched_blocker(found)
    use_options = blocker is None
    raw = _scored(found, "raw", from_counts.raw)
    latent = _scored(found, "latent", from_counts.latent)
    upper = _scored(found, "upper", from_counts.upper)
    matched = _matched(found, blocker)
    tighter = _scored(found, "matched_upper", from_counts.matched_upper) if use_options else upper
    return {
        "forgetting": raw.forgetting,
        "backward_transfer": raw.backward_transfer,
        "known_before": from_counts.known_share(found.options),
        "published": _published(found.options),
        "latent": latent,
        "upper": upper,
        "bracket_low": matched if use_options else latent,
        "bracket_high": tighter,
        "matched": matched,
        "excess": _pair("excess", found, repeated.excess, NO_REPEATS),
        "excess_before": _excess_before(found),
        "net": _net(found),
        "noise_floor": _noise_floor(found),
        "p_lost": _lost_p(found, use_options=use_options, sampled=sampled),
        "mcnemar_p": float(mcnemar_p(found.cells.n10, found.cells.n01)) if found.cells.n else None,
        "detectable": _detectable(found, use_options=use_options),
    }


def _scored(found: Evidence, name: str, sums: Sums) -> Estimates:
    """Forgetting and backward transfer of an estimator that is a mean of item scores."""
    forward, backward = found.options, reverse(found.options)
    return Estimates(
        forgetting=_score(found, name, sums(forward), "lost", _score_p(name, forward)),
        backward_transfer=_score(found, name, sums(backward), "gained", _score_p(name, backward)),
    )


def _score_p(name: str, options: ByOptions) -> float | None:
    if name not in ("latent", "matched"):
        return None
    return from_counts.lost_p(options, use_options=name == "matched")


def _score(
    found: Evidence, name: str, sums: ScoreSums | None, direction: str, p: float | None
) -> Estimate:
    if sums is None or not float(sums.n):
        return Estimate(value=None, method=name, reason=NO_ITEMS)
    z, inflate, note = _design(found, f"{name}_{direction}", float(sums.s2))
    interval = score_interval(sums, z=z, inflate=inflate)
    if p is not None:
        interval = agree_with_test(interval, p)
    return _estimate(interval, f"{name}, score interval{note}", not_negative=name in NOT_NEGATIVE)


def _design(found: Evidence, name: str, squares: float) -> tuple[float, float, str]:
    """Quantile, design effect and a remark, for clustered items."""
    from scipy.special import stdtrit  # heavy, only here

    variance = _cluster_variance(found, name, squares)
    if variance is None:
        return normal_quantile(), 1.0, ""
    if math.isnan(variance.variance):
        return normal_quantile(), 1.0, ", one cluster, as if its items were independent"
    few = f", fewer than {FEWEST} affected clusters" if 0 < variance.affected < FEWEST else ""
    return float(stdtrit(variance.freedom, 0.975)), variance.inflation, f", clustered{few}"


def _cluster_variance(found: Evidence, name: str, squares: float) -> ClusterVariance | None:
    """None where no cluster has two items."""
    if found.clusters is None or name not in found.clusters.names:
        return None
    return found.clusters.variance(name, squares)


def _conditional(found: Evidence) -> Estimate:
    known = found.cells.n10 + found.cells.n11
    sums = raw_sums(known, found.cells.n10)
    return _score(found, "raw", sums if known else None, "lost", None)


def matched_blocker(found: Evidence) -> str | None:
    """Why `matched` cannot be had or trusted, if so."""
    closed = {k: c for k, c in found.options.items() if not math.isinf(k) and c.n}
    if not closed:
        return NO_OPTIONS
    if all(k == PAIR for k in closed):
        return ONLY_PAIRS
    if any(counts.unknown for k, counts in closed.items() if k > PAIR):
        return NO_CHOICES
    return LOPSIDED if found.lopsided else None


def _matched(found: Evidence, blocker: str | None) -> Estimates:
    if blocker is not None:
        return _nothing("matched", blocker if found.cells.n else NO_ITEMS)
    estimates = _scored(found, "matched", from_counts.matched)
    if PAIR not in found.options:
        return estimates
    note = ", two-option items as latent"
    return Estimates(
        forgetting=_noted(estimates.forgetting, note),
        backward_transfer=_noted(estimates.backward_transfer, note),
    )


def _noted(estimate: Estimate, note: str) -> Estimate:
    return estimate.model_copy(update={"method": estimate.method + note})


def _pair(
    name: str, found: Evidence, of: Callable[..., Interval | None], why_not: str
) -> Estimates:
    if found.items is None:
        return _nothing(name, why_not)
    lost, gained = of(found.items), of(found.items, gained=True)
    if lost is None or gained is None:
        return _nothing(name, why_not)
    method = f"{name}, t interval"
    return Estimates(
        forgetting=_estimate(lost, method), backward_transfer=_estimate(gained, method)
    )


def _net(found: Evidence) -> Estimates:
    if found.items is not None and repeated.lacks_choices(found.items):
        return _nothing("net", NO_CHOICES)
    return _pair("net", found, repeated.net, NO_REPEATS)


def _excess_before(found: Evidence) -> Estimate:
    interval = None if found.items is None else repeated.excess_before(found.items)
    if interval is None:
        return Estimate(value=None, method="excess_before", reason=NO_NOISE)
    return _estimate(interval, "excess_before, t interval")


def _noise_floor(found: Evidence) -> Estimate:
    """Mean self-churn of the models that were repeated."""
    sides = ("before", "after")
    floors = [] if found.items is None else [repeated.noise_floor(found.items, s) for s in sides]
    known = [floor for floor in floors if floor is not None]
    if not known:
        return Estimate(value=None, method="self-churn", reason="needs repeats of a model")
    return Estimate(value=sum(known) / len(known), method="self-churn")


def _published(options: ByOptions) -> PublishedResult:
    found = from_counts.as_published(options)
    names = PublishedResult.model_fields
    if found is None:
        nothing = Estimate(value=None, method="published", reason=NO_ITEMS)
        return PublishedResult(**dict.fromkeys(names, nothing))
    return PublishedResult(
        **{
            name: Estimate(value=float(getattr(found, name)), method="published, no interval")
            for name in names
        }
    )


def _lost_p(found: Evidence, *, use_options: bool, sampled: bool) -> float | None:
    """P-value that nothing was lost: from repeats where there are any, else from luck.

    Of sampled answers without repeats there is none: self-churn alone would reject.
    """
    if found.items is not None:
        p = repeated.excess_p(found.items)
        p = repeated.excess_before_p(found.items) if p is None else p
        if p is not None:
            return p
    if sampled:
        return None
    p = from_counts.lost_p(found.options, use_options=use_options)
    return p if p is None else _clustered_p(found, p, use_options=use_options)


def _clustered_p(found: Evidence, p: float, *, use_options: bool) -> float:
    """The luck test takes items as independent; clustered ones are tested by their score."""
    name = "matched" if use_options else "latent"
    sums = SCORES[name](found.options)
    variance = None if sums is None else _cluster_variance(found, f"{name}_lost", float(sums.s2))
    if sums is None or variance is None or variance.inflation <= 1:
        return p
    return float(score_p(sums, inflate=variance.inflation, freedom=variance.freedom))


def _detectable(found: Evidence, *, use_options: bool) -> float | None:
    if not found.cells.n:
        return None
    interval = None
    if found.items is not None:
        interval = repeated.excess(found.items) or repeated.excess_before(found.items)
    if interval is None:
        return from_counts.detectable_loss(found.options, use_options=use_options)
    loss = float(repeats_found(interval))
    right = (found.cells.n11 + found.cells.n10) / found.cells.n
    return loss if loss <= right else None


def _macro_scores(
    name: str, sums: Sums, parts: Sequence[Evidence], total: Estimates | None
) -> Estimates:
    """Mean over tasks of a score, with the variance of every task carried."""
    if total is not None and total.forgetting.value is None:
        return total
    if name == "matched" and any(matched_blocker(p) in (NO_CHOICES, LOPSIDED) for p in parts):
        return _nothing(name, "some tasks do not have it")
    estimates = []
    for direction, turn in (("lost", dict), ("gained", reverse)):
        each = [(part, sums(turn(part.options))) for part in parts]
        found = [(part, one) for part, one in each if one is not None]
        if not found:
            return _nothing(name, NO_ITEMS)
        designs = [_design(p, f"{name}_{direction}", float(one.s2)) for p, one in found]
        interval = weighted_interval(
            [one for _, one in found],
            [1 / len(found)] * len(found),
            z=max(z for z, _, _ in designs),
            inflate=[inflate for _, inflate, _ in designs],
        )
        method = f"{name}, mean over tasks, score interval"
        estimates.append(_estimate(interval, method, not_negative=name in NOT_NEGATIVE))
    return Estimates(forgetting=estimates[0], backward_transfer=estimates[1])


def _macro_means(name: str, each: Sequence[Estimates], parts: Sequence[Evidence]) -> Estimates:
    return Estimates(
        forgetting=_combined(name, [one.forgetting for one in each], parts),
        backward_transfer=_combined(name, [one.backward_transfer for one in each], parts),
    )


def _combined(name: str, each: Sequence[Estimate], parts: Sequence[Evidence]) -> Estimate:
    """Mean over tasks of Student intervals."""
    missing = [one for one in each if one.value is None]
    if missing or not each:
        return missing[0] if missing else Estimate(value=None, method=name, reason=NO_ITEMS)
    intervals = [Interval(*(_array(x) for x in (one.value, one.low, one.high))) for one in each]
    least = 1 if name == "excess_before" else 2
    items = [int(part.items.repeated(after=least).weight.sum()) for part in parts if part.items]
    interval = combined_interval(intervals, items)
    return _estimate(interval, f"{name}, mean over tasks, t interval")


def _array(value: float | None) -> Any:
    import numpy as np

    return np.asarray(math.nan if value is None else value)


def _macro_published(each: Sequence[PublishedResult]) -> PublishedResult:
    return PublishedResult(
        **{
            name: _plain_mean([getattr(one, name) for one in each])
            for name in PublishedResult.model_fields
        }
    )


def _plain_mean(each: Sequence[Estimate]) -> Estimate:
    """Mean of values that have no interval of their own."""
    known = [one for one in each if one.value is not None]
    method = f"{known[0].method.partition(',')[0]}, mean over tasks" if known else "mean over tasks"
    reason = None if known else (each[0].reason if each else NO_ITEMS)
    return Estimate(value=_mean([one.value for one in known]), method=method, reason=reason)


def _between(tasks: Sequence[GroupResult]) -> Estimates | None:
    """For tasks like these, not just these: the spread between them."""
    if len(tasks) < 2:
        return None
    found = []
    for name in ("forgetting", "backward_transfer"):
        interval = between_interval([getattr(task, name).value for task in tasks])
        found.append(_estimate(interval, "raw, mean over tasks, t interval between tasks"))
    return Estimates(forgetting=found[0], backward_transfer=found[1])


def _reasons(cells: Cells) -> dict[str, int | None]:
    """Zero where the way of ending was recorded for all lost items, null where for none."""
    if cells.n10 and cells.reasons.get("unknown") == cells.n10:
        return {name: cells.n10 if name == "unknown" else None for name in REASONS}
    return {name: cells.reasons.get(name, 0) for name in REASONS}


def _nothing(name: str, why_not: str) -> Estimates:
    nothing = Estimate(value=None, method=name, reason=why_not)
    return Estimates(forgetting=nothing, backward_transfer=nothing)


def _estimate(interval: Interval, method: str, *, not_negative: bool = False) -> Estimate:
    low = max(float(interval.low), 0.0) if not_negative else float(interval.low)
    return Estimate(value=float(interval.value), low=low, high=float(interval.high), method=method)


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
