"""Estimates from the counts of a group: every estimator that is a mean of item scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add

from forgetmap.comparison.choice_counts import TWO_OPTIONS, ByOptions, OptionCounts, reverse
from forgetmap.comparison.evidence import NEEDS, Evidence
from forgetmap.results import Estimate, Estimates, PublishedResult
from forgetmap.stats import (
    MIN_CLUSTERS,
    ClusterVariance,
    Interval,
    Published,
    ScoreSums,
    agree_with_test,
    detectable,
    knowledge_scale,
    latent_sums,
    matched_sums,
    mixed_luck_p,
    normal_quantile,
    published,
    raw_sums,
    score_interval,
    score_p,
    upper_sums,
    weighted_interval,
)

NO_ITEMS = NEEDS["items"].reason


def total_sums(parts: Iterable[ScoreSums]) -> ScoreSums | None:
    """The sum of several groups; None of none."""
    parts = list(parts)
    return reduce(add, parts) if parts else None


def raw(counts: ByOptions) -> ScoreSums | None:
    """Sums of the raw score."""
    return total_sums(raw_sums(part.n, part.n10) for part in counts.values())


def upper(counts: ByOptions) -> ScoreSums | None:
    """Sums of the upper end of the range."""
    return total_sums(upper_sums(part.n, part.n10, k) for k, part in counts.items())


def latent(counts: ByOptions) -> ScoreSums | None:
    """Sums of the lower end of the range."""
    return total_sums(latent_sums(part.n, part.n10, part.n00, k) for k, part in counts.items())


def matched(counts: ByOptions) -> ScoreSums | None:
    """Sums of `matched`; two-option items, which it cannot tell, count with their latent score."""
    return total_sums(_matched(k, part) for k, part in counts.items())


def matched_upper(counts: ByOptions) -> ScoreSums | None:
    """The same with the upper end of the range for two-option items."""
    return total_sums(
        upper_sums(part.n, part.n10, k) if k == TWO_OPTIONS else _matched(k, part)
        for k, part in counts.items()
    )


def _matched(k: float, counts: OptionCounts) -> ScoreSums:
    if k == TWO_OPTIONS:
        return latent_sums(counts.n, counts.n10, counts.n00, k)
    if math.isinf(k):
        return raw_sums(counts.n, counts.n10)
    return matched_sums(
        counts.n,
        counts.n10 - counts.lost_to_none,
        counts.different,
        k,
        to_none=counts.lost_to_none,
        wrong_to_none=counts.wrong_to_none,
    )


SUMS: dict[str, Callable[[ByOptions], ScoreSums | None]] = {
    "raw": raw,
    "latent": latent,
    "upper": upper,
    "matched": matched,
    "matched_upper": matched_upper,
}
NEVER_NEGATIVE = ("raw", "upper")


def estimate(name: str, evidence: Evidence) -> Estimates:
    """Forgetting and backward transfer of an estimator that is a mean of item scores."""
    forward, backward = evidence.options, reverse(evidence.options)
    estimates = Estimates(
        forgetting=_score(evidence, name, "lost", forward),
        backward_transfer=_score(evidence, name, "gained", backward),
    )
    if name != "matched" or TWO_OPTIONS not in evidence.options:
        return estimates
    method = f"{estimates.forgetting.method}, two-option items as latent"
    gained = f"{estimates.backward_transfer.method}, two-option items as latent"
    return Estimates(
        forgetting=estimates.forgetting.model_copy(update={"method": method}),
        backward_transfer=estimates.backward_transfer.model_copy(update={"method": gained}),
    )


def knows_choices(evidence: Evidence) -> bool:
    """Whether the wrong options that were chosen tell how luck moved."""
    return evidence.lacks(("items", "options", "third_option", "choices", "balance")) is None


def bracket_ends(evidence: Evidence) -> tuple[Estimates, Estimates]:
    """Lower and upper end with all that the data allow."""
    if knows_choices(evidence):
        return estimate("matched", evidence), estimate("matched_upper", evidence)
    return estimate("latent", evidence), estimate("upper", evidence)


def outer_ends(low: Estimates, high: Estimates) -> Estimates:
    """Both ends of a range and the uncertainty of each."""
    return Estimates(
        forgetting=_outer(low.forgetting, high.forgetting),
        backward_transfer=_outer(low.backward_transfer, high.backward_transfer),
    )


def _outer(low: Estimate, high: Estimate) -> Estimate:
    method = f"from {low.method} to {high.method}"
    reason = (
        low.reason or "guesses may be redrawn or repeated: the data allow a range, not one value"
    )
    return Estimate(value=None, low=low.low, high=high.high, method=method, reason=reason)


def conditional_forgetting(evidence: Evidence) -> Estimate:
    """Share of what was right before."""
    known = evidence.cells.n10 + evidence.cells.n11
    return _interval(evidence, "raw", "lost", raw_sums(known, evidence.cells.n10), None)


def _score(evidence: Evidence, name: str, direction: str, options: ByOptions) -> Estimate:
    p = None
    if name in ("latent", "matched"):
        p = lost_p(options, use_options=name == "matched")
    return _interval(evidence, name, direction, SUMS[name](options), p)


def _interval(
    evidence: Evidence, name: str, direction: str, sums: ScoreSums | None, p: float | None
) -> Estimate:
    if sums is None or not float(sums.n):
        return Estimate.missing(name, NO_ITEMS)
    z, inflate, note = _design(evidence, f"{name}_{direction}", float(sums.s2))
    interval = score_interval(sums, z=z, inflate=inflate)
    if p is not None:
        interval = agree_with_test(interval, p)
    method = f"{name}, score interval{note}"
    return as_estimate(interval, method, not_negative=name in NEVER_NEGATIVE)


def as_estimate(interval: Interval, method: str, *, not_negative: bool = False) -> Estimate:
    """An interval as a value of results."""
    low = max(float(interval.low), 0.0) if not_negative else float(interval.low)
    return Estimate(value=float(interval.value), low=low, high=float(interval.high), method=method)


def _design(evidence: Evidence, name: str, squares: float) -> tuple[float, float, str]:
    """Quantile, design effect and a remark, for clustered items."""
    from scipy.special import stdtrit  # heavy, only here

    variance = _cluster_variance(evidence, name, squares)
    if variance is None:
        return normal_quantile(), 1.0, ""
    if math.isnan(variance.variance):
        return normal_quantile(), 1.0, ", one cluster, as if its items were independent"
    few = (
        f", fewer than {MIN_CLUSTERS} affected clusters"
        if 0 < variance.affected < MIN_CLUSTERS
        else ""
    )
    return float(stdtrit(variance.freedom, 0.975)), variance.inflation, f", clustered{few}"


def _cluster_variance(evidence: Evidence, name: str, squares: float) -> ClusterVariance | None:
    """None where no cluster has two items."""
    if evidence.clusters is None or name not in evidence.clusters.names:
        return None
    return evidence.clusters.variance(name, squares)


def over_tasks(name: str, tasks: Sequence[Evidence]) -> Estimates:
    """Mean over tasks of a score, with the variance of every task carried."""
    means = []
    for direction, turn in (("lost", dict), ("gained", reverse)):
        sums = [(task, SUMS[name](turn(task.options))) for task in tasks]
        parts = [(evidence, one) for evidence, one in sums if one is not None]
        if not parts:
            return Estimates.missing(name, NO_ITEMS)
        designs = [_design(e, f"{name}_{direction}", float(one.s2)) for e, one in parts]
        interval = weighted_interval(
            [one for _, one in parts],
            [1 / len(parts)] * len(parts),
            z=max(z for z, _, _ in designs),
            inflate=[inflate for _, inflate, _ in designs],
        )
        method = f"{name}, mean over tasks, score interval"
        means.append(as_estimate(interval, method, not_negative=name in NEVER_NEGATIVE))
    return Estimates(forgetting=means[0], backward_transfer=means[1])


def mean_of_estimates(tasks: Sequence[Estimates], total: Estimates) -> Estimates:
    """Mean over tasks of everything in the estimates, without an interval."""
    kind = type(total)
    return kind(
        **{name: plain_mean([getattr(task, name) for task in tasks]) for name in kind.model_fields}
    )


def plain_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of values that have no interval of their own."""
    known = [one for one in estimates if one.value is not None]
    if not known:
        reason = estimates[0].reason if estimates else NO_ITEMS
        return Estimate(value=None, method="mean over tasks", reason=reason)
    mean = sum(one.value for one in known if one.value is not None) / len(known)
    return Estimate(value=mean, method=f"{known[0].method.partition(',')[0]}, mean over tasks")


def published_estimates(evidence: Evidence) -> PublishedResult:
    """The published adjustment with its ceilings."""
    values = as_published(evidence.options)
    if values is None:
        return PublishedResult.missing("published", NO_ITEMS)
    return PublishedResult(
        **{
            name: Estimate(value=float(getattr(values, name)), method="published, no interval")
            for name in PublishedResult.model_fields
        }
    )


def luck_p(evidence: Evidence, *, use_options: bool) -> float | None:
    """P-value that nothing was lost but luck.

    The test takes items as independent; clustered ones are tested by their score.
    """
    p = lost_p(evidence.options, use_options=use_options)
    name = "matched" if use_options else "latent"
    sums = SUMS[name](evidence.options)
    if p is None or sums is None:
        return p
    variance = _cluster_variance(evidence, f"{name}_lost", float(sums.s2))
    if variance is None or variance.inflation <= 1:
        return p
    return float(score_p(sums, inflate=variance.inflation, freedom=variance.freedom))


def lost_p(counts: ByOptions, *, use_options: bool) -> float | None:
    """Mid-p that nothing was lost; open-ended items say nothing about luck and are left out."""
    closed = {k: part for k, part in counts.items() if not math.isinf(k) and part.n}
    if not closed:
        return None
    losses, trials, chances = [], [], []
    for k, part in closed.items():
        by_options = use_options and k > TWO_OPTIONS
        lost = part.n10 - part.lost_to_none if by_options else part.n10
        losses.append(lost)
        trials.append(lost + (part.different if by_options else part.n00))
        chances.append(1 / (k - 1) if by_options else 1 / k)
        if by_options and part.lost_to_none + part.wrong_to_none:
            losses.append(part.lost_to_none)
            trials.append(part.lost_to_none + part.wrong_to_none)
            chances.append(1 / k)
    return mixed_luck_p(losses, trials, chances)


def known_share(counts: ByOptions) -> float | None:
    """Share of items known before beyond guessing: the mean of c (a - 1/k)."""
    n = sum(part.n for part in counts.values())
    if not n:
        return None
    known = 0.0
    for k, part in counts.items():
        luck = 0.0 if math.isinf(k) else part.n / k
        known += float(knowledge_scale(k)) * (part.n11 + part.n10 - luck)
    return known / n


def as_published(counts: ByOptions) -> Published | None:
    """The published adjustment of one group, with k averaged over items by its luck 1/(k-1)."""
    n = sum(part.n for part in counts.values())
    if not n:
        return None
    n11, n10, n01 = (
        sum(getattr(part, name) for part in counts.values()) for name in ("n11", "n10", "n01")
    )
    k = average_options(counts)
    return published((n11 + n10) / n, (n11 + n01) / n, n10 / n, n01 / n, k)


def average_options(counts: ByOptions) -> float:
    """The k of which the luck 1/(k-1) is the mean over the items; `inf` if all are open-ended."""
    n = sum(part.n for part in counts.values())
    luck = sum(0.0 if math.isinf(k) else part.n / (k - 1) for k, part in counts.items())
    return 1 + n / luck if luck else math.inf


def detectable_loss(counts: ByOptions, *, use_options: bool) -> float | None:
    """The smallest loss found four times in five; None where all that is known would not do."""
    sums = (matched if use_options else latent)(counts)
    known = known_share(counts)
    if sums is None or known is None:
        return None
    n = float(sums.n)
    c, spread = float(sums.c) / n, float(sums.a) / n
    h = sum(_subtracted(k, use_options=use_options) * part.n for k, part in counts.items()) / n
    loss = float(detectable(n, c=c, h=h, share_e=spread / (h * (c + h)) if h else 0.0))
    return loss if loss <= known else None


def _subtracted(k: float, *, use_options: bool) -> float:
    if math.isinf(k):
        return 0.0
    c = k / (k - 1)
    return c / (k - 2) if use_options and k > TWO_OPTIONS else c**2 / k
