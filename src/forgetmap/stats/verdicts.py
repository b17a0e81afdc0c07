"""The verdict: limits of a loss against a margin, by one rule.

The number of lower limits depends on the design alone, never on what the answers show; each gets
an equal part of the error rate, and the largest counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.limits import (
    MIN_TASKS,
    DropBound,
    Integers,
    ItemSample,
    PairedAnswers,
    ScoreBound,
    drop_upper,
    flips_lower,
    flips_upper,
    halve_tasks,
    normal_quantile_above,
    repeat_scores,
)
from forgetmap.stats.multiplicity import FDR, false_discovery
from forgetmap.stats.results import Reals

Verdict = Literal["lost", "small_loss", "no_material_loss", "no_net_loss", "cannot_tell"]
"""Conclusions from the limits of a loss and a margin."""
LOSSES = ("lost", "small_loss")
"""Verdicts that claim a loss."""
OPEN = ("no_net_loss", "cannot_tell")
"""Verdicts that leave open whether items were lost."""
BoundName = Literal["drop", "tasks", "repeats", "confirmed", "earlier_stage", "stated"]
"""What can carry a lower limit."""
POWER_QUANTILE = 0.84
"""Normal quantile of 80 %, the probability with which planned items decide."""


class Bound(Protocol):
    """A lower limit of the loss."""

    def lower(self, a: float) -> float:
        """Return the limit with one-sided error a."""

    @property
    def p_value(self) -> float:
        """Smallest a at which the limit is above 0."""


@dataclass(frozen=True, slots=True)
class LossLimits:
    """Limits of a loss and of the drop in accuracy.

    Attributes:
        low: lower limit of the loss; below 0 if none is proven.
        high: upper limit of the loss.
        drop_high: upper limit of the drop in accuracy.
        carried_by: the bound that gave `low`.
        p: two-sided p-value of no loss, corrected for the number of bounds.
    """

    low: float
    high: float
    drop_high: float
    carried_by: BoundName
    p: float


@dataclass(frozen=True)
class TaskSplit:
    """Tasks and halves of kinds of items.

    Attributes:
        task: index of the task of each kind.
        half: half of the items, 0 or 1.
        weights: weight of each task in the total; they add up to 1.
    """

    task: Integers
    half: Integers
    weights: Reals

    @property
    def is_offered(self) -> bool:
        """Whether there are enough tasks for their halves to carry a limit."""
        return int((self.weights > 0).sum()) >= MIN_TASKS


def offered_bounds(
    answers: PairedAnswers,
    tasks: TaskSplit | None = None,
    more: Mapping[BoundName, Bound] | None = None,
) -> dict[BoundName, Bound]:
    """Return the lower limits that the design offers.

    Args:
        answers: all items.
        tasks: their tasks, for totals.
        more: limits by confirmed flips, an earlier stage, or what a user stated.
    """
    bounds: dict[BoundName, Bound] = {"drop": DropBound(answers)}
    if tasks is not None and tasks.is_offered:
        bounds["tasks"] = halve_tasks(answers, tasks.task, tasks.half, tasks.weights)
    if answers.has_repeats:
        scores = repeat_scores(answers)
        assert scores is not None  # noqa: S101  # there are repeats
        bounds["repeats"] = ScoreBound(answers.sample, scores)
    return bounds | dict(more or {})


def divide_error(
    bounds: Mapping[BoundName, Bound], alpha: float, *, asked_later: bool = False
) -> dict[BoundName, float]:
    """Return the one-sided error of each lower limit.

    Args:
        bounds: from `offered_bounds`.
        alpha: error of all of them together.
        asked_later: flips were asked again only after an undecided comparison. Then the others
            keep their parts, and the confirmed flips get a quarter of alpha on top.
    """
    later = {"confirmed"} if asked_later else set()
    planned = max(sum(name not in later for name in bounds), 1)
    return {name: alpha / 4 if name in later else alpha / planned for name in bounds}


def measure_limits(
    answers: PairedAnswers,
    bounds: Mapping[BoundName, Bound],
    alpha: float,
    *,
    part: float = 1.0,
    high_alpha: float | None = None,
    asked_later: bool = False,
) -> LossLimits:
    """Return the limits of the loss.

    Args:
        answers: all items.
        bounds: from `offered_bounds`.
        alpha: one-sided error of all lower limits together.
        part: factor of alpha for the lower limits, if this group was selected among others.
        high_alpha: one-sided error of each upper limit; alpha by default.
        asked_later: as in `divide_error`.
    """
    errors = divide_error(bounds, alpha, asked_later=asked_later)
    lows = {name: bound.lower(part * errors[name]) for name, bound in bounds.items()}
    carried_by = max(lows, key=lambda name: lows[name])
    low, high_alpha = lows[carried_by], alpha if high_alpha is None else high_alpha
    return LossLimits(
        low=low,
        high=max(flips_upper(answers, high_alpha), low),
        drop_high=drop_upper(answers, high_alpha),
        carried_by=carried_by,
        p=loss_p(bounds, asked_later=asked_later),
    )


def loss_p(bounds: Mapping[BoundName, Bound], *, asked_later: bool = False) -> float:
    """Return the two-sided p-value of no loss, corrected for the number of bounds."""
    errors = divide_error(bounds, 1.0, asked_later=asked_later)
    return min(1.0, 2 * min(bound.p_value / errors[name] for name, bound in bounds.items()))


def select_in_family(p: ArrayLike, error: float = FDR) -> tuple[Reals, int]:
    """Return q-values, and how many of a family of groups are selected at 5 %, or at less."""
    q = false_discovery(np.asarray(p, float))
    return q, int((q <= error).sum())


def reject_in_order(p: ArrayLike, alpha: float) -> list[bool]:
    """Return which hypotheses Holm's procedure rejects, with family-wise error alpha."""
    values = np.asarray(p, float)
    rejected = [False] * values.size
    for rank, index in enumerate(np.argsort(values)):
        if not values[index] <= alpha / (values.size - rank):
            break
        rejected[index] = True
    return rejected


def decide(limits: LossLimits, margin: float) -> Verdict:
    """Return the verdict that the limits allow: the first line that applies."""
    if math.isnan(limits.high) or math.isnan(limits.low):
        return "cannot_tell"
    if limits.high < margin:
        return "small_loss" if limits.low > 0 else "no_material_loss"
    if limits.low > 0:
        return "lost"
    return "no_net_loss" if limits.drop_high < margin else "cannot_tell"


def without_claim(limits: LossLimits) -> LossLimits:
    """Return the limits of a group that was not selected in its family: nothing is proven."""
    return replace(limits, low=min(limits.low, 0.0))


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, its limits, and the q-value of the loss among those judged with it."""

    verdict: Verdict
    limits: LossLimits
    q: float


def decide_together(
    groups: Sequence[tuple[PairedAnswers, Mapping[BoundName, Bound]]], alpha: float, margin: float
) -> list[Judged]:
    """Return the verdicts of groups that are examined together, by Benjamini and Hochberg.

    Args:
        groups: answers and lower limits of each group.
        alpha: one-sided error.
        margin: largest acceptable loss.
    """
    q, selected = select_in_family([loss_p(bounds) for _, bounds in groups], 2 * alpha)
    part = max(selected, 1) / max(len(groups), 1)
    judged = []
    for (answers, bounds), own in zip(groups, q, strict=True):
        limits = measure_limits(answers, bounds, alpha, part=part)
        limits = limits if own <= 2 * alpha else without_claim(limits)
        judged.append(Judged(decide(limits, margin), limits, float(own)))
    return judged


def look_share(look: int, looks: int | None = None) -> float:
    """Return the part of the error rate for one of several looks at the same items.

    1 / (l (l + 1)), or 1 / looks if their number is fixed: the parts add up to at most 1.
    """
    return 1 / looks if looks else 1 / (look * (look + 1))


def detectable_drop(answers: PairedAnswers, a: float) -> float:
    """Return the smallest drop in accuracy that is detected with 80 %, with as many flips.

    Args:
        answers: the items.
        a: one-sided error of a lower limit.
    """
    n = answers.sample.n / answers.sample.design_effect(answers.change)
    change = answers.sample.mean_square(answers.change)
    spread = (normal_quantile_above(a) + POWER_QUANTILE) ** 2 * change
    return (3 + math.sqrt(9 + 4 * n * spread)) / (2 * n)


def items_to_decide(
    answers: PairedAnswers, margin: float, a: float, *,
    high_z: float = 1.96, above: float = 0.0, fall: Reals | None = None,
) -> int | None:  # fmt: skip
    """Return about how many items would decide with 80 %, if the observed rates are true.

    Args:
        answers: the items so far.
        margin: largest acceptable loss.
        a: one-sided error of a lower limit.
        high_z: normal quantile of the one-sided error of an upper limit.
        above: the lower limit decides if it is above this: 0, or for a gate the margin.
        fall: what must be shown to be below the margin; by default the drop in accuracy.
    """
    change, sample = answers.change, answers.sample
    fall = change if fall is None else fall
    numbers = []
    if (beyond := sample.mean(change) - above) > 0:
        v = sample.mean_square(change) - sample.mean(change) ** 2
        z = normal_quantile_above(a) + POWER_QUANTILE
        numbers.append(z**2 * v / beyond**2 + 3 / beyond)
    if (room := margin - sample.mean(fall)) > 0:
        mean = sample.mean(fall)
        v = sample.mean_square(fall) - mean**2
        spread = high_z * math.sqrt(max(margin + v + mean**2 - mean, 0.0))
        numbers.append(((spread + POWER_QUANTILE * math.sqrt(v)) / room) ** 2 + 2 / room)
    if not numbers:
        return None
    return math.ceil(min(numbers) * sample.design_effect(change))


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """How much went either way, and the noise that would explain it.

    Attributes:
        flips_low: lower limit of the share that went from right to wrong, noise included.
        rose_by: lower limit of the gain in accuracy; below 0 if none is proven.
    """

    flips_low: float
    rose_by: float


def measure_exchange(answers: PairedAnswers, alpha: float, bounds: int) -> ExchangeLimits:
    """Return what went either way; reruns that flip less than `flips_low` do not explain it.

    Args:
        answers: all items.
        alpha: one-sided error.
        bounds: number of lower limits among which alpha is divided.
    """
    rose = DropBound(answers.mirrored).lower(alpha / bounds)
    return ExchangeLimits(flips_lower(answers, alpha), rose)


def confirmed_bound(
    sample: ItemSample, fresh_change: Reals, flipped: float, asked: float
) -> ScoreBound:
    """Return the lower limit L4 by flips that were asked again; -inf if fewer than two were.

    It counts among the bounds even then: their number must not depend on what flipped.

    Args:
        sample: all items, also those that did not flip.
        fresh_change: for each kind, the share of right fresh answers before minus after; 0 for
            items that were not asked again.
        flipped: number of items that flipped in the first answers.
        asked: how many of them were asked again, all or a random part fixed beforehand.
    """
    if asked < 2:  # one item has no spread
        return ScoreBound(sample, np.zeros(sample.count.size), math.inf)
    scale = flipped / asked
    return ScoreBound(sample, scale * fresh_change, scale)
