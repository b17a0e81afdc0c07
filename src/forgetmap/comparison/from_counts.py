"""Estimates from the counts of a group: every estimator that is a mean of item scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from forgetmap.comparison.choice_counts import TWO_OPTIONS, ByOptions, OptionCounts, reverse
from forgetmap.comparison.clustered import DIRECTIONS, RIGHT_BEFORE, SIZE
from forgetmap.comparison.evidence import NEEDS, Evidence, Need
from forgetmap.comparison.luck import Luck
from forgetmap.results import Estimate, Estimates, PublishedResult
from forgetmap.stats import (
    MIN_CLUSTERS,
    ClusterVariance,
    Interval,
    Published,
    ScoreSums,
    TaskPart,
    agree_with_test,
    at_least_p,
    detectable,
    knowledge_scale,
    mixed_luck_p,
    normal_quantile,
    published,
    score_interval,
    score_p,
    score_variance,
    tasks_interval,
)

NO_ITEMS = NEEDS["items"].reason

Part = Literal["loss", "knowledge", "answering"]
"""The whole loss; of it, what is no longer known, and what is no longer answered."""
END_NAMES = ("low", "high")
"""Ends of the plausible range."""
NEVER_NEGATIVE = ("raw",)
DROP = "drop"
"""Losses minus gains, as counted: unbiased under noise that flips as many answers either way."""


class Term(NamedTuple):
    """Counts of the items with one k for a score s = c[10] - h[E]; u lucky flips expected per E."""

    k: float
    n: int
    lost: int
    e: int
    c: float
    h: float
    u: float


def terms(name: str, part: Part, evidence: Evidence, direction: str = "lost") -> list[Term]:
    """Return the counts behind an estimator or a part of it."""
    if name == DROP:
        cells = evidence.cells
        return [Term(math.inf, cells.n, cells.n10, cells.n01, 1.0, 1.0, 1.0)]
    parts: list[Term] = []
    for luck, options in _by_luck(name, evidence).items():
        for k, counts in (options if direction == "lost" else reverse(options)).items():
            if part != "answering":
                parts.append(_knowledge(name, luck, k, counts))
            if part != "knowledge":
                # The knowledge part already counts these items.
                n = counts.n if part == "answering" else 0
                parts.append(_answering(name, k, counts, n))
    return parts


def _by_luck(name: str, evidence: Evidence) -> Mapping[Luck, ByOptions]:
    """Return the counts by luck: as trusted for the ends of the range, else as assumed by name."""
    if name in END_NAMES:
        return evidence.luck
    return {Luck.CHOICES if name == "matched" else Luck.REDRAWN: evidence.options}


def _knowledge(name: str, luck: Luck, k: float, counts: OptionCounts) -> Term:
    n, lost = counts.n, counts.lost_to_wrong
    if name == "raw" or math.isinf(k):
        return Term(k, n, lost, 0, 1.0, 0.0, 0.0)
    c = k / (k - 1)
    if name in ("matched", *END_NAMES) and luck is Luck.CHOICES and k > TWO_OPTIONS:
        return Term(k, n, lost, counts.different, c, c / (k - 2), 1 / (k - 2))
    if name in ("upper", "high"):
        return Term(k, n, lost, 0, c, 0.0, 0.0)
    if luck is Luck.MOVED:
        return Term(k, n, lost, counts.n01 - counts.gained_from_none, c, c, 1.0)
    return Term(k, n, lost, counts.wrong_to_wrong, c, c**2 / k, 1 / (k - 1))


def _answering(name: str, k: float, counts: OptionCounts, n: int) -> Term:
    if name == "raw" or math.isinf(k):
        return Term(k, n, counts.lost_to_none, 0, 1.0, 0.0, 0.0)
    h = 1 / (k - 1)
    return Term(k, n, counts.lost_to_none, counts.wrong_to_none, 1.0, h, h)


def total_sums(parts: Sequence[Term]) -> ScoreSums | None:
    """Sum over all items; None without items.

    Plain floats: with a hundred tasks and ten estimates each, arrays of one number take a second.
    """
    if not parts:
        return None
    n = s = s2 = c = a = b = 0.0
    for part in parts:
        spread = part.h * (part.c + part.h)
        n += part.n
        s += part.c * part.lost - part.h * part.e
        s2 += part.c**2 * part.lost + part.h**2 * part.e
        c += part.c * part.n
        a += spread * part.e
        b += spread * part.n
    return ScoreSums(*(np.asarray(value) for value in (n, s, s2, c, a, b)))


class IntervalDesign(NamedTuple):
    """Effect of clusters on an interval: its quantile, design effects, and a note."""

    quantile: float
    inflate: float = 1.0
    worst: float | None = None
    freedom: float = math.inf
    note: str = ""


def design_of(
    evidence: Evidence,
    name: str,
    part: Part,
    direction: str,
    parts: Sequence[Term],
    size: str = SIZE,
) -> IntervalDesign:
    """Return how the clusters of a group widen the interval of a score."""
    variance = _cluster_variance(evidence, name, part, direction, parts, size)
    if variance is None:
        return IntervalDesign(normal_quantile(evidence.level))
    from scipy.special import stdtrit  # heavy, only here

    if math.isnan(variance.variance):  # all its items may have been lost together
        worst, quantile = variance.size, float(stdtrit(1, 0.5 + evidence.level / 2))
        return IntervalDesign(quantile, worst, worst, freedom=1.0, note=", one cluster")
    few = (
        f", fewer than {MIN_CLUSTERS} affected clusters"
        if 0 < variance.affected < MIN_CLUSTERS
        else ""
    )
    return IntervalDesign(
        quantile=float(stdtrit(variance.freedom, 0.5 + evidence.level / 2)),
        inflate=variance.inflation,
        worst=variance.worst_case(sum(term.u * term.e for term in parts)),
        freedom=variance.freedom,
        note=f", clustered{few}",
    )


def _cluster_variance(
    evidence: Evidence,
    name: str,
    part: Part,
    direction: str,
    parts: Sequence[Term],
    size: str = SIZE,
) -> ClusterVariance | None:
    """Return the variance between clusters; None if no cluster has two items."""
    if evidence.clusters is None or not parts:
        return None
    is_count = name in ("raw", DROP)
    scores = {
        "knowledge": f"{'wrong' if is_count else name}_{direction}",
        "answering": f"{'none' if is_count else 'answering'}_{direction}",
    }
    lost = {"knowledge": f"wrong_{direction}", "answering": f"none_{direction}"}
    kinds = ["knowledge", "answering"] if part == "loss" else [part]
    if any(scores[one] not in evidence.clusters.names for one in kinds):
        return None
    squares = sum(term.c**2 * term.lost + term.h**2 * term.e for term in parts)
    return evidence.clusters.variance(
        [scores[one] for one in kinds],
        squares,
        [lost[one] for one in kinds],
        less=("wrong_gained", "none_gained") if name == DROP else (),
        size=size,
    )


def estimate(name: str, evidence: Evidence) -> Estimates:
    """Estimate forgetting and backward transfer by a mean of item scores."""
    estimates = Estimates(
        forgetting=_score(evidence, name, "lost"),
        backward_transfer=_score(evidence, name, "gained"),
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
    """Return whether the chosen wrong options show how guesses changed."""
    needs: tuple[Need, ...] = ("items", "options", "third_option", "choices", "balance")
    return evidence.lacks(needs) is None


def conditional_forgetting(evidence: Evidence) -> Estimate:
    """Estimate the forgotten share of the items that were right before."""
    known = evidence.cells.n10 + evidence.cells.n11
    term = Term(math.inf, known, evidence.cells.n10, 0, 1.0, 0.0, 0.0)
    return _interval(evidence, "raw", "lost", [term], None, size=RIGHT_BEFORE)


def _score(evidence: Evidence, name: str, direction: str) -> Estimate:
    parts = terms(name, "loss", evidence, direction)
    p = lost_p(parts) if name in ("latent", "matched", "low") else None
    return _interval(evidence, name, direction, parts, p)


def _interval(
    evidence: Evidence,
    name: str,
    direction: str,
    parts: Sequence[Term],
    p: float | None,
    size: str = SIZE,
) -> Estimate:
    sums = total_sums(parts)
    if sums is None or not float(sums.n):
        return Estimate.missing(name, NO_ITEMS)
    design = design_of(evidence, name, "loss", direction, parts, size)
    interval = score_interval(sums, z=design.quantile, inflate=design.inflate, worst=design.worst)
    if p is not None:
        interval = agree_with_test(interval, p, level=evidence.level)
    method = f"{name}, score interval{design.note}"
    return as_estimate(interval, method, not_negative=name in NEVER_NEGATIVE)


def loss_interval(
    name: str, part: Part, evidence: Evidence, floor: float = 0.0
) -> tuple[Estimate, float | None]:
    """Return the loss with an interval for "at least" statements, and the p-value of no loss.

    The lower bound is 0 or below if the test does not reject, so a loss is claimed if and only if
    the bound is above 0. Interval and test agree for one group.

    Args:
        name: an estimator that is a mean of item scores.
        part: the part of the loss.
        evidence: counts of the group.
        floor: noise floor that open-ended items are tested against.
    """
    parts = terms(name, part, evidence)
    sums = total_sums(parts)
    if sums is None or not float(sums.n):
        return Estimate.missing(name, NO_ITEMS), None
    design = design_of(evidence, name, part, "lost", parts)
    interval = score_interval(
        sums, z=design.quantile, inflate=design.inflate, worst=design.worst, at_least=True
    )
    p = part_p(parts, sums, design, floor)
    interval = agree_with_test(interval, p, level=evidence.level)
    result = as_estimate(interval, f"{name}, score interval{design.note}")
    if not any(term.lost for term in parts):
        result = result.model_copy(update={"low": min(result.low or 0.0, 0.0)})
    return result, p


def drop_interval(evidence: Evidence) -> Interval:
    """Return losses minus gains; the lower bound holds as an "at least" statement."""
    parts = terms(DROP, "loss", evidence)
    sums = total_sums(parts)
    assert sums is not None  # noqa: S101  # these are there always
    design = design_of(evidence, DROP, "loss", "lost", parts)
    return score_interval(sums, z=design.quantile, inflate=design.inflate, at_least=True)


def loss_variance(name: str, evidence: Evidence, at: float | None = None) -> float:
    """Return the variance of the loss, at its estimate or at another loss; nan without items."""
    parts = terms(name, "loss", evidence)
    sums = total_sums(parts)
    if sums is None or not float(sums.n):
        return math.nan
    design = design_of(evidence, name, "loss", "lost", parts)
    return float(score_variance(sums, inflate=design.inflate, at=at))


def part_p(parts: Sequence[Term], sums: ScoreSums, design: IntervalDesign, floor: float) -> float:
    """Return the one-sided p-value that only luck and noise changed answers.

    Of the items in 10 and E a share u / (1 + u) is in 10 by luck, so losses are binomial; of items
    that cannot be guessed a share `floor` flips by noise. Clustered items are tested by their
    score.
    """
    if design.inflate > 1:
        return float(score_p(sums, inflate=design.inflate, freedom=design.freedom, value=floor))
    lucky = [term for term in parts if term.u > 0 and term.lost + term.e]
    certain = [term for term in parts if not term.u and (term.n or term.lost)]
    n = sum(term.n for term in certain)
    if not lucky:
        return float(at_least_p(sum(term.lost for term in certain), n, floor)) if n else 1.0
    losses = [term.lost for term in lucky]
    trials = [term.lost + term.e for term in lucky]
    chances = [term.u / (1 + term.u) for term in lucky]
    if n:
        losses.append(sum(term.lost for term in certain))
        trials.append(n)
        chances.append(floor)
    return mixed_luck_p(losses, trials, chances)


def as_estimate(interval: Interval, method: str, *, not_negative: bool = False) -> Estimate:
    """Convert an interval to an estimate of a result."""
    low = max(float(interval.low), 0.0) if not_negative else float(interval.low)
    return Estimate(value=float(interval.value), low=low, high=float(interval.high), method=method)


def over_tasks(name: str, tasks: Sequence[Evidence]) -> Estimates:
    """Average a score over tasks, with the variances of all tasks."""
    means = []
    for direction in DIRECTIONS:
        interval = mean_over_tasks(name, "loss", tasks, direction)
        if interval is None:
            return Estimates.missing(name, NO_ITEMS)
        method = f"{name}, mean over tasks, score interval"
        means.append(as_estimate(interval, method, not_negative=name in NEVER_NEGATIVE))
    return Estimates(forgetting=means[0], backward_transfer=means[1])


def mean_over_tasks(
    name: str,
    part: Part,
    tasks: Sequence[Evidence],
    direction: str,
    *,
    at_least: bool = False,
) -> Interval | None:
    """Average a score over tasks; None if no task has items.

    Tasks with many clusters, or none, share one interval. A task with few keeps its own, and the
    two are added in quadrature, so that a tiny task adds no more than its weight.
    """
    parts = [(task, terms(name, part, task, direction)) for task in tasks if task.cells.n]
    if not parts:
        return None
    joined = []
    for task, counts in parts:
        sums = total_sums(counts)
        assert sums is not None  # noqa: S101  # a task with items has terms
        design = design_of(task, name, part, direction, counts)
        span = (-max(term.h for term in counts), max(term.c for term in counts))
        # Clusters that span tasks widen the mean as a whole.
        inflate = design.inflate * task.across
        worst = None if design.worst is None else design.worst * task.across
        joined.append(TaskPart(sums, design.quantile, inflate, worst, design.freedom, span))
    return tasks_interval(joined, z=normal_quantile(tasks[0].level), at_least=at_least)


def mean_of_estimates(tasks: Sequence[Estimates], total: Estimates) -> Estimates:
    """Average each value of the estimates over tasks, without an interval."""
    kind = type(total)
    return kind(
        **{name: plain_mean([getattr(task, name) for task in tasks]) for name in kind.model_fields}
    )


def plain_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Average values without intervals."""
    known = [one for one in estimates if one.value is not None]
    if not known:
        reason = estimates[0].reason if estimates else NO_ITEMS
        return Estimate(value=None, method="mean over tasks", reason=reason)
    mean = sum(one.value for one in known if one.value is not None) / len(known)
    return Estimate(value=mean, method=f"{known[0].method.partition(',')[0]}, mean over tasks")


def published_estimates(evidence: Evidence) -> PublishedResult:
    """Return the published adjustment with its ceilings."""
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
    """Return the p-value that only luck changed answers.

    The test assumes independent items; clustered items are tested by their score.
    """
    name = "matched" if use_options else "latent"
    parts = terms(name, "loss", evidence)
    p, sums = lost_p(parts), total_sums(parts)
    if p is None or sums is None:
        return p
    design = design_of(evidence, name, "loss", "lost", parts)
    if design.inflate <= 1:
        return p
    return float(score_p(sums, inflate=design.inflate, freedom=design.freedom))


def lost_p(parts: Sequence[Term]) -> float | None:
    """Return the mid-p value of no loss; open-ended items carry no luck and are left out."""
    lucky = [term for term in parts if term.u > 0]
    if not lucky:
        return None
    return mixed_luck_p(
        [term.lost for term in lucky],
        [term.lost + term.e for term in lucky],
        [term.u / (1 + term.u) for term in lucky],
    )


def known_share(counts: ByOptions) -> float | None:
    """Return the share of items known before beyond guessing: the mean of c (a - 1/k)."""
    n = sum(part.n for part in counts.values())
    if not n:
        return None
    known = 0.0
    for k, part in counts.items():
        luck = 0.0 if math.isinf(k) else part.n / k
        known += float(knowledge_scale(k)) * (part.n11 + part.n10 - luck)
    return known / n


def as_published(counts: ByOptions) -> Published | None:
    """Return the published adjustment of one group, with k averaged by its luck 1/(k-1)."""
    n = sum(part.n for part in counts.values())
    if not n:
        return None
    n11, n10, n01 = (
        sum(getattr(part, name) for part in counts.values()) for name in ("n11", "n10", "n01")
    )
    k = average_options(counts)
    return published((n11 + n10) / n, (n11 + n01) / n, n10 / n, n01 / n, k)


def average_options(counts: ByOptions) -> float:
    """Return the k whose luck 1/(k-1) is the mean over the items; `inf` if all are open-ended."""
    n = sum(part.n for part in counts.values())
    luck = sum(0.0 if math.isinf(k) else part.n / (k - 1) for k, part in counts.items())
    return 1 + n / luck if luck else math.inf


def detectable_loss(evidence: Evidence, name: str, floor: float) -> float | None:
    """Return the smallest loss beyond the noise floor that is detected with 80 % probability.

    None if even the loss of everything known would not be detected.
    """
    parts = terms(name, "loss", evidence)
    sums, known = total_sums(parts), known_share(evidence.options)
    if sums is None or known is None or not float(sums.n):
        return None
    n = float(sums.n)
    c, spread = float(sums.c) / n, float(sums.a) / n
    h = sum(term.h * term.n for term in parts) / n
    share = spread / (h * (c + h)) if h else 0.0
    size = (1 - evidence.level) / 2
    # Clustered items carry as much information as fewer independent ones.
    n /= design_of(evidence, name, "loss", "lost", parts).inflate
    loss = float(detectable(n, c=c, h=h, share_e=share, noise_floor=floor, size=size))
    return loss if loss <= known else None
