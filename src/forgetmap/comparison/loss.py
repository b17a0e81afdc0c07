"""The headline loss: one estimator, its parts, and the bounds to quote.

"At least" is the lower bound and "at most" the upper. A loss is claimed if and only if the lower
bound is above 0, so interval and test are one procedure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from forgetmap.comparison import from_counts, repeated
from forgetmap.comparison.estimators import Estimator
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.from_counts import Part, as_estimate, loss_interval, mean_over_tasks
from forgetmap.comparison.luck import Luck
from forgetmap.results import Estimate, Estimates, outer_end
from forgetmap.stats import (
    Interval,
    LuckPart,
    combined_interval,
    guess_rate_latent,
    guess_rate_matched,
    luck_needed,
    luck_needed_by_test,
    normal_quantile,
    raw_sums,
    score_interval,
)

FROM_COUNTS = ("raw", "latent", "upper", "matched")
PARTS: tuple[Part, ...] = ("loss", "knowledge", "answering")


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a group.

    Attributes:
        total: the headline loss, as a share of all items; a range has no value.
        knowledge: of it, what is no longer known.
        answering: of it, what is no longer answered.
        p: one-sided p-value of no loss.
        noise_assumed: noise floor that was assumed; None if it was measured.
        luck_ratio: how many times as often as any other option the right one must be guessed to
            explain the loss by luck.
        guess_rate: the same as a rate of lucky guesses; None if items differ in k.
    """

    total: Estimate
    knowledge: Estimate
    answering: Estimate
    p: float | None = None
    noise_assumed: float | None = None
    luck_ratio: float | None = None
    guess_rate: float | None = None


def measure_loss(row: Estimator, evidence: Evidence, noise_floor: float) -> Loss:
    """Compute the loss of one group under an estimator.

    Args:
        row: the estimator; its needs are met.
        evidence: counts of the group.
        noise_floor: assumed noise floor, if the data do not show it.
    """
    if row.name in FROM_COUNTS or row.is_range:
        return _from_counts(row, evidence, noise_floor)
    if row.from_repeats and evidence.items is not None:
        return _from_repeats(row.name, evidence)
    return _from_estimate(row, evidence)


def measure_total(row: Estimator, evidence: Evidence, noise_floor: float) -> Estimate:
    """Compute the loss alone, without its parts and the luck that would explain it."""
    if not (row.name in FROM_COUNTS or row.is_range):
        return measure_loss(row, evidence, noise_floor).total
    total = _part_of(row, "loss", evidence, noise_floor)
    return _less(total, _noise_of(evidence, noise_floor))


def measure_macro(
    row: Estimator,
    tasks: Sequence[Evidence],
    noise_floor: float,
    repeated_mean: Estimate | None = None,
) -> Loss:
    """Compute the mean loss over tasks.

    Args:
        row: the estimator.
        tasks: counts of each task.
        noise_floor: assumed noise floor, if the data do not show it.
        repeated_mean: the mean over tasks, for an estimator that needs repeats.
    """
    if row.name in FROM_COUNTS or row.is_range:
        total, knowledge, answering = (_macro_part(row, part, tasks) for part in PARTS)
        noise = _noise_of(Evidence.total(tasks), noise_floor)
        return _beyond_noise(Loss(total, knowledge, answering), noise)
    parts = _no_parts(row.name, "only for single groups")
    if repeated_mean is None:
        losses = [measure_loss(row, task, noise_floor).total for task in tasks]
        return Loss(_mean_of_intervals(losses, tasks), *parts)
    items = [task.items for task in tasks if task.items is not None]
    p = repeated.excess_p(repeated.ItemSums.total(items))
    total = _agree(repeated_mean, p, tasks[0].level)
    return Loss(_with_unrepeated(total, tasks, row.name), *parts)


def _macro_part(row: Estimator, part: Part, tasks: Sequence[Evidence]) -> Estimate:
    def end(name: str) -> Estimate:
        interval = mean_over_tasks(name, part, tasks, "lost", at_least=True)
        if interval is None:
            return Estimate.missing(row.name, from_counts.NO_ITEMS)
        return as_estimate(interval, f"{name}, mean over tasks, score interval")

    return _of_ends(row, end)


def _mean_of_intervals(parts: Sequence[Estimate], tasks: Sequence[Evidence]) -> Estimate:
    missing = [part for part in parts if part.value is None or part.low is None]
    if missing:
        return missing[0]
    freedom = [max(task.cells.items, 2) - 1 for task in tasks]
    intervals = [Interval(*(np.asarray(x) for x in (t.value, t.low, t.high))) for t in parts]
    combined = combined_interval(intervals, freedom, level=tasks[0].level, inflate=tasks[0].across)
    return as_estimate(combined, f"{parts[0].method}, mean over tasks")


def _agree(total: Estimate, p: float | None, level: float) -> Estimate:
    """Set the lower bound to 0 or below if the one-sided test does not reject."""
    if p is None or p <= (1 - level) / 2 or total.low is None:
        return total
    return total.model_copy(update={"low": min(total.low, 0.0)})


def _from_counts(row: Estimator, evidence: Evidence, floor: float) -> Loss:
    lowest = _ends(row)[0]
    _, p = loss_interval(lowest, "loss", evidence, floor)
    total, knowledge, answering = (_part_of(row, part, evidence, floor) for part in PARTS)
    noise = _noise_of(evidence, floor)
    is_lost = (total.low or 0.0) > 0
    ratio, rate = _assumption(lowest, evidence, is_lost=is_lost)
    loss = Loss(total, knowledge, answering, p, luck_ratio=ratio, guess_rate=rate)
    return _beyond_noise(loss, noise)


def _part_of(row: Estimator, part: Part, evidence: Evidence, floor: float) -> Estimate:
    return _of_ends(row, lambda name: loss_interval(name, part, evidence, floor)[0])


def _ends(row: Estimator) -> tuple[str, ...]:
    """Return the estimators of a row: those of both ends, or itself."""
    return from_counts.END_NAMES if row.is_range else (row.name,)


def _of_ends(row: Estimator, interval_of: Callable[[str], Estimate]) -> Estimate:
    """Return the interval of an estimator; for a range, the outer bounds of both ends."""
    intervals = [interval_of(name) for name in _ends(row)]
    return outer_end(*intervals) if row.is_range else intervals[0]


def _assumption(
    name: str, evidence: Evidence, *, is_lost: bool
) -> tuple[float | None, float | None]:
    """Return the luck that would explain the loss: as a ratio, and as a rate.

    Computed from the interval; from the test only if the test decides that nothing was lost.
    """
    terms = from_counts.terms(name, "loss", evidence)
    lucky = [term for term in terms if term.u]
    if not lucky or not any(term.lost for term in terms):
        return None, None
    parts = [LuckPart(t.k, t.n, t.lost, t.e, t.u, t.c) for t in terms]
    design = from_counts.design_of(evidence, name, "loss", "lost", terms)
    ratio = luck_needed(parts, z=design.quantile, inflate=design.inflate)
    if ratio > 1 and not is_lost:
        ratio = luck_needed_by_test(parts, size=(1 - evidence.level) / 2, most=1.0)
    ks = {term.k for term in terms if term.n}
    if len(ks) != 1 or math.isinf(ratio):
        return (None if math.isinf(ratio) else ratio), None
    (k,) = ks
    by_choices = Luck.CHOICES in evidence.luck and name in ("matched", "low") and k > 2
    return ratio, (guess_rate_matched if by_choices else guess_rate_latent)(ratio, k)


class Noise(NamedTuple):
    """The noise floor subtracted from the estimate, its lower bound and its upper bound."""

    off_value: float
    off_low: float
    off_high: float
    assumed: float | None = None


def _noise_of(evidence: Evidence, assumed: float) -> Noise:
    """Return the noise floor: an assumed one lowers only "at least", a measured one lowers all."""
    measured = None
    if evidence.items is not None:
        measured = repeated.noise_interval(evidence.items, evidence.level, evidence.item_clusters)
    if measured is None:
        return Noise(0.0, assumed, 0.0, assumed)
    return Noise(float(measured.value), float(measured.high), float(measured.low))


def _beyond_noise(loss: Loss, noise: Noise) -> Loss:
    """Subtract the noise floor. It may lie in either part, so each part is lowered by all of it."""
    in_part = Noise(0.0, noise.off_low, 0.0)
    return replace(
        loss,
        total=_less(loss.total, noise),
        knowledge=_less(loss.knowledge, in_part),
        answering=_less(loss.answering, in_part),
        noise_assumed=noise.assumed,
    )


def _less(estimate: Estimate, noise: Noise) -> Estimate:
    if estimate.low is None or estimate.high is None:
        return estimate
    value = None if estimate.value is None else estimate.value - noise.off_value
    limits = {"low": estimate.low - noise.off_low, "high": estimate.high - noise.off_high}
    return estimate.model_copy(update={"value": value, **limits})


def _from_repeats(name: str, evidence: Evidence) -> Loss:
    items = evidence.items
    assert items is not None  # noqa: S101  # the caller looked
    total = _repeated_part(name, evidence)
    after = 1 if name == "excess_before" else 2
    freedom = float(items.repeated(after=after).weight.sum()) - 1
    p = None if name == "excess_before" else repeated.excess_p(items)
    if p is None and total.value is not None and total.low is not None:
        interval = Interval(*(np.asarray(x, float) for x in (total.value, total.low, total.high)))
        p = repeated.interval_p(interval, max(freedom, 1.0), evidence.level)
    total = _with_unrepeated(_agree(total, p, evidence.level), [evidence], name)
    if name == "net":
        knowledge, answering = (
            _repeated_part(part, evidence) for part in ("net_knowledge", "net_answering")
        )
    else:
        reason = f"{name} cannot separate what is no longer known from what is no longer answered"
        knowledge, answering = _no_parts(name, reason)
    return Loss(total, knowledge, answering, p)


def _with_unrepeated(total: Estimate, groups: Sequence[Evidence], name: str) -> Estimate:
    """Add items without repeats to a loss by repeats: their counted and their largest loss.

    Args:
        total: loss of the items with repeats.
        groups: groups that are averaged.
        name: name of the estimator.
    """
    if total.value is None or total.low is None or total.high is None:
        return total
    shares, losses, most = np.array([_unrepeated(group, name) for group in groups]).T
    if not shares.any():
        return total
    share, noise = float(shares.mean()), _noise_of(Evidence.total(groups), 0.0).off_value
    limits = {
        "value": (1 - share) * total.value + float(losses.mean()) - share * noise,
        "low": (1 - float(shares.max())) * total.low if total.low > 0 else total.low,
        "high": max((1 - share) * total.high, 0.0) + float(most.mean()),
    }
    return total.model_copy(update={**limits, "method": f"{total.method}, of all items"})


def _unrepeated(evidence: Evidence, name: str) -> tuple[float, float, float]:
    """Return the share of items without repeats, and their loss: counted, and at most."""
    items = evidence.items or repeated.ItemSums()
    share, number, lost = repeated.count_unrepeated(items, name)
    if not number:
        return 0.0, 0.0, 0.0
    interval = score_interval(raw_sums(number, lost), z=normal_quantile(evidence.level))
    return share, share * lost / number, share * float(interval.high)


def _no_parts(name: str, reason: str) -> tuple[Estimate, Estimate]:
    return (
        Estimate.missing(f"{name}, knowledge", reason),
        Estimate.missing(f"{name}, answering", reason),
    )


def _repeated_part(name: str, evidence: Evidence) -> Estimate:
    assert evidence.items is not None  # noqa: S101  # the caller looked
    interval = repeated.interval_of(
        name, evidence.items, level=evidence.level, clusters=evidence.item_clusters
    )
    if interval is None:
        return Estimate.missing(name, "needs two or more items with repeats")
    note = ", clustered" if evidence.item_clusters is not None else ""
    return as_estimate(interval, f"{name}, t interval{note}")


def _from_estimate(row: Estimator, evidence: Evidence) -> Loss:
    """Use an estimator of a package for the whole loss; its parts are unknown."""
    value = row.estimate(evidence)
    total = value.forgetting if isinstance(value, Estimates) else value
    parts = _no_parts(row.name, "not among its results")
    if total.value is None or total.low is None:
        return Loss(total, *parts)
    from scipy.special import ndtr  # heavy, only here

    error = (total.value - total.low) / normal_quantile(evidence.level)
    p = float(ndtr(-total.value / error)) if error > 0 else float(total.value <= 0)
    return Loss(total, *parts, p)


def symmetric_loss(evidence: Evidence) -> Estimate:
    """Return bounds that hold for noise of any size that flips as many answers either way.

    At least the lower bound of losses minus gains, at most the upper bound of the losses.
    """
    if not evidence.cells.n:
        return Estimate.missing("symmetric noise", from_counts.NO_ITEMS)
    upper, _ = loss_interval("upper", "loss", evidence)
    return _symmetric(from_counts.drop_interval(evidence), upper.high)


def symmetric_macro(tasks: Sequence[Evidence]) -> Estimate:
    """Return the same for the mean over tasks."""
    drop, losses = (
        mean_over_tasks(name, "loss", tasks, "lost", at_least=True)
        for name in (from_counts.DROP, "upper")
    )
    if drop is None or losses is None:
        return Estimate.missing("symmetric noise", from_counts.NO_ITEMS)
    return _symmetric(drop, float(losses.high))


def _symmetric(drop: Interval, high: float | None) -> Estimate:
    return Estimate(
        value=float(drop.value),
        low=float(drop.low),
        high=high,
        method="losses minus gains, score interval; at most the losses",
    )
