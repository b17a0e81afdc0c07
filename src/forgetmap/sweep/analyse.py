"""Numbers along the path, from the answers of base, tuned models and their merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forgetmap.comparison import GroupResult
from forgetmap.merge import WeightDrift
from forgetmap.results import Estimate
from forgetmap.stats import (
    LEVEL,
    MIN_PAIRS,
    ClusterDesign,
    Reals,
    normal_quantile,
    rank_correlation,
    upper_limits,
)
from forgetmap.sweep import words
from forgetmap.sweep.measures import Rates, greatest, means, rates, share, sum_less_one
from forgetmap.sweep.result import (
    Barrier,
    Choice,
    Correlation,
    PairResult,
    PointGroup,
    PointResult,
    Within,
)
from forgetmap.sweep.states import Flags, States

BASE, TUNED = 0, 1
"""Indices of the parents among the runs; the merges follow."""
ALL_ITEMS = "all items"
"""Name of the group of all items."""
ERROR = 0.025
"""Probability of a false certificate in a sweep."""
DEFAULT_BUDGET = 0.5
"""Default budget of a merge, as a share of what the tuned model forgot."""
NO_GAIN = "the tuned model gained nothing"
NO_LOSS = "the tuned model forgot nothing"


class PathPoint(NamedTuple):
    """A merge on a path, and its index among the runs."""

    method: str
    weight: float
    run: int
    name: str

    @property
    def is_parent(self) -> bool:
        """Whether it is an end of the path, not a merge."""
        return self.run in (BASE, TUNED)


@dataclass(frozen=True, slots=True)
class Measured:
    """All measured quantities along a path."""

    forgetting: Rates
    transfer: Rates
    retained: Rates
    recovered: Rates
    benefit: Rates
    over: list[Estimate]
    over_limit: list[float | None]
    below_line: list[Estimate]
    loss_above: list[Estimate]


Compared = Mapping[int, Mapping[str, GroupResult]]
"""Run -> category (`ALL_ITEMS` for everything) -> result of the comparison with base."""


def analyse_pair(
    states: States,
    merges: Sequence[PathPoint],
    *,
    names: tuple[str, str],
    compared: Compared,
    drift: WeightDrift | None,
    budget: float = DEFAULT_BUDGET,
    notices: Sequence[str] = (),
) -> PairResult:
    """Return the result of the merges of two models.

    Args:
        states: answers of base, tuned and merges.
        merges: all points in display order.
        names: name of the tuned model as given, and of its run.
        compared: results of the comparisons with base.
        drift: weight difference.
        budget: maximum forgetting of a merge, as a share of what tuned forgot.
        notices: further notices.
    """
    measured = measure(states, merges, budget)
    family = [index for index, merge in enumerate(merges) if not merge.is_parent]
    base, tuned = states.right[BASE], states.right[TUNED]
    gained = ~base & tuned & _new(states)
    benefit, _ = greatest([measured.benefit.together[p] for p in family], "greatest benefit")
    points = _points(states, merges, measured, compared)
    return PairResult(
        tuned=names[0],
        name=names[1],
        items=int(base.size),
        left_out=states.left_out,
        lost=int((base & ~tuned & _old(states)).sum()),
        gained=int(gained.sum()),
        chance_gained=float(states.chance[gained].mean()) if gained.any() else None,
        points=points,
        barriers=_barriers(states, merges),
        best=choose(points, budget, names[1]),
        greatest_benefit=benefit,
        drift=drift,
        notices=[*notices, *words.notices(states, gained)],
    )


def measure(states: States, merges: Sequence[PathPoint], budget: float) -> Measured:
    """Compute shares and means along the path; bounds of `together` hold for all merges at once."""
    runs = [merge.run for merge in merges]
    family = [index for index, merge in enumerate(merges) if not merge.is_parent]
    base, tuned, here = states.right[BASE], states.right[TUNED], states.right[runs]
    old, new, design = _old(states), _new(states), states.design
    gained, lost = ~base & tuned & new, base & ~tuned & old
    lost_here = (base & ~here)[:, old]
    over = lost_here.astype(float) - budget * (base & ~tuned)[old]
    benefit = sum_less_one(
        here[:, gained],
        here[:, lost],
        (design.within(gained), design.within(lost)),
        family,
        NO_LOSS if gained.any() else NO_GAIN,
    )
    measures = {
        "forgetting": (rates(lost_here, design.within(old), family, "no items"), (0.0, None)),
        "transfer": (rates((~base & here)[:, new], design.within(new), family, ""), (0.0, None)),
        "retained": (rates(here[:, gained], design.within(gained), family, NO_GAIN), (0.0, 1.0)),
        "recovered": (rates(here[:, lost], design.within(lost), family, NO_LOSS), (1.0, 0.0)),
        "benefit": (benefit, (0.0, 0.0)),
    }
    return Measured(
        **{name: _with_ends(values, merges, ends) for name, (values, ends) in measures.items()},
        over=means(over, design.within(old), family, "forgetting minus budget"),
        over_limit=over_limits(over, design.within(old), merges),
        below_line=_below_line(states, merges, np.ones(base.size, bool), family),
        loss_above=_loss_above(states, merges, family),
    )


def over_limits(
    over: Reals, design: ClusterDesign, merges: Sequence[PathPoint]
) -> list[float | None]:
    """Return for each merge the one-sided upper limit of forgetting minus the budget.

    Every path is a separate sequence; they share the error rate.
    """
    if over.shape[1] < 2:
        return [None] * len(merges)
    paths = {merge.method for merge in merges if not merge.is_parent}
    limits = upper_limits(over, design, alpha=ERROR / max(len(paths), 1))
    return [
        None if merge.is_parent else float(limit)
        for merge, limit in zip(merges, limits, strict=True)
    ]


def certified_merges(merges: Sequence[PathPoint], limits: Sequence[float | None]) -> set[int]:
    """Return merges certified within the budget: per path, by weight, up to the first failure.

    The order is fixed in advance, so an error requires that the first merge beyond the budget
    passes: each is tested at the whole error rate, whatever the shape of the losses.
    """
    certified = set()
    for method in {merge.method for merge in merges}:
        path = [
            index
            for index, merge in enumerate(merges)
            if merge.method == method and not merge.is_parent
        ]
        for index in sorted(path, key=lambda index: merges[index].weight):
            limit = limits[index]
            if limit is None or limit > 0:
                break
            certified.add(index)
    return certified


def _with_ends(
    rates: Rates, merges: Sequence[PathPoint], ends: tuple[float | None, float | None]
) -> Rates:
    """Set the values of the parents that hold by definition: a model forgets nothing of itself."""

    def fixed(estimates: Sequence[Estimate]) -> list[Estimate]:
        return [
            estimate
            if estimate.value is None or not merge.is_parent or (value := ends[merge.run]) is None
            else Estimate(value=value, low=value, high=value, method="by definition")
            for estimate, merge in zip(estimates, merges, strict=True)
        ]

    return Rates(fixed(rates.alone), fixed(rates.together))


def choose(points: Sequence[PointResult], budget: float, tuned: str) -> Choice:
    """Choose the merge certified within the budget that keeps most of what tuned gained.

    If none of them keeps enough, choose the best merge within the budget by its estimate, marked
    as not certified. If that does not keep enough either, no merge helps.
    """
    merges = [index for index, point in enumerate(points) if point.reused is None]
    nothing = next((points[p].benefit.reason for p in merges if points[p].benefit.reason), None)
    if nothing is not None or not merges:
        reason = nothing or "there is no merge between the parents"
        return Choice(sure="none", point=None, words=words.no_choice(reason))
    sure, unsure = (_best(points, merges, state) for state in ("surely", "perhaps"))
    if sure is not None and _keeps_gains(points[sure]):
        text = words.choice(points[sure], budget, tuned)
        return Choice(sure="sure", point=sure, words=text)
    if unsure is not None and _keeps_gains(points[unsure]):
        text = words.unsure_choice(points[unsure], budget, tuned)
        return Choice(sure="estimate", point=unsure, words=text)
    if sure is not None or unsure is not None:
        best = points[sure if sure is not None else unsure or 0]
        return Choice(sure="none", point=None, words=words.none_helps(best, budget, tuned))
    least = min(merges, key=lambda index: points[index].forgetting.value or 0.0)
    text = words.none_within(points[least], budget, tuned)
    return Choice(sure="none", point=None, words=text)


def _best(points: Sequence[PointResult], merges: Sequence[int], state: Within) -> int | None:
    """Return the merge in a state that keeps most of the gains."""
    candidates = [index for index in merges if points[index].within == state]
    return max(candidates, key=lambda index: _order(points[index]), default=None)


def _keeps_gains(point: PointResult) -> bool:
    return (point.retained.value or 0.0) > words.WORTH_KEEPING


def correlate(pairs: Sequence[PairResult]) -> Correlation:
    """Compute the rank correlation of weight difference and benefit of merging."""
    known = [
        (pair.drift.total.relative, pair.greatest_benefit.value)
        for pair in pairs
        if pair.drift is not None
        and pair.drift.total.relative is not None
        and pair.greatest_benefit.value is not None
    ]
    correlation = rank_correlation(*zip(*known, strict=True)) if len(known) >= MIN_PAIRS else None
    if correlation is None:
        few = len(known) < MIN_PAIRS
        reason = f"too few pairs: {len(known)}, not {MIN_PAIRS}" if few else "all are the same"
        rank = Estimate(value=None, method="Spearman", reason=reason)
        return Correlation(pairs=len(known), rank=rank, p=None, words=words.no_correlation(known))
    rank = Estimate(
        value=correlation.value,
        low=correlation.low,
        high=correlation.high,
        method="Spearman, Fisher z interval",
    )
    return Correlation(pairs=len(known), rank=rank, p=correlation.p, words=words.correlation(rank))


def _order(point: PointResult) -> tuple[float, float]:
    return (point.retained.value or 0.0, -(point.forgetting.value or 0.0))


def _old(states: States) -> Flags:
    """Return the items that may be forgotten: all but the target; all if there is nothing else."""
    return ~states.target if not states.target.all() else np.ones_like(states.target)


def _new(states: States) -> Flags:
    """Return the items on which gains count: the target, or all."""
    return states.target if states.target.any() else np.ones_like(states.target)


def _line(merges: Sequence[PathPoint], base: np.ndarray, tuned: np.ndarray) -> np.ndarray:
    weights = np.array([merge.weight for merge in merges])[:, None]
    return np.asarray((1 - weights) * base + weights * tuned)


def _below_line(
    states: States, merges: Sequence[PathPoint], mask: Flags, family: Sequence[int]
) -> list[Estimate]:
    right = states.right[:, mask].astype(float)
    line = _line(merges, right[BASE], right[TUNED])
    apart = line - right[[merge.run for merge in merges]]
    return means(apart, states.design.within(mask), family, "line minus accuracy")


def _loss_above(
    states: States, merges: Sequence[PathPoint], family: Sequence[int]
) -> list[Estimate]:
    method = "loss minus line"
    if states.loss is None:
        reason = "log-probabilities of right answers are not recorded for all items"
        return [Estimate(value=None, method=method, reason=reason)] * len(merges)
    line = _line(merges, states.loss[BASE], states.loss[TUNED])
    return means(states.loss[[merge.run for merge in merges]] - line, states.design, family, method)


def _barriers(states: States, merges: Sequence[PathPoint]) -> list[Barrier]:
    """Return the largest distance below the line of every path, over all items and by category."""
    groups = {ALL_ITEMS: np.ones(states.category.size, bool)}
    groups |= {name: states.category == name for name in states.categories}
    barriers = []
    for method in dict.fromkeys(merge.method for merge in merges):
        path = [merge for merge in merges if merge.method == method and not merge.is_parent]
        if not path:
            continue
        family = range(len(path))
        for name, mask in groups.items():
            barriers.append(_barrier(path, name, _below_line(states, path, mask, family)))
        if states.loss is not None:
            loss = _barrier(path, ALL_ITEMS, _loss_above(states, path, family))
            barriers.append(loss.model_copy(update={"measure": "loss"}))
    return barriers


def _barrier(path: Sequence[PathPoint], group: str, estimates: Sequence[Estimate]) -> Barrier:
    height, index = greatest(estimates, "maximum over the path, simultaneous intervals")
    return Barrier(
        method=path[0].method,
        group=group,
        measure="accuracy",
        height=height,
        weight=path[index].weight,
    )


def _points(
    states: States, merges: Sequence[PathPoint], measured: Measured, compared: Compared
) -> list[PointResult]:
    tuned, old = states.right[TUNED], _old(states)
    design, z = states.design, normal_quantile(LEVEL)
    front, beaten = _front(merges, measured)
    certified = certified_merges(merges, measured.over_limit)
    points = []
    for index, merge in enumerate(merges):
        here = states.right[merge.run]
        lost, gained = (tuned & ~here)[old], (~tuned & here)[old]
        numbers = {
            "forgetting": measured.forgetting, "backward_transfer": measured.transfer,
            "retained": measured.retained, "recovered": measured.recovered,
            "benefit": measured.benefit,
        }  # fmt: skip
        estimates = {name: rates.alone[index] for name, rates in numbers.items()}
        estimates |= {f"{name}_all": rates.together[index] for name, rates in numbers.items()}
        points.append(
            PointResult(
                method=merge.method,
                weight=merge.weight,
                run=merge.name,
                reused=("base", "tuned")[merge.run] if merge.is_parent else None,
                accuracy=float(here.mean()),
                over_budget=measured.over[index],
                over_budget_limit=measured.over_limit[index],
                within=None
                if merge.is_parent
                else _within(measured.over[index], certified=index in certified),
                below_line=measured.below_line[index],
                loss=None if states.loss is None else float(states.loss[merge.run].mean()),
                loss_above_line=measured.loss_above[index],
                lost_from_tuned=share(lost.astype(float), design.within(old), z),
                gained_on_tuned=share(gained.astype(float), design.within(old), z),
                on_front=index in front,
                surely_beaten=index in beaten,
                groups=_groups(states, merge, compared.get(merge.run, {})),
                **estimates,
            )
        )
    return points


def _within(over: Estimate, *, certified: bool) -> Within:
    if certified:
        return "surely"
    return "perhaps" if over.value is not None and over.value <= 0 else "no"


def _front(merges: Sequence[PathPoint], measured: Measured) -> tuple[set[int], set[int]]:
    """Return the points that none beats in both, and those significantly beaten in both."""
    cost, kept = measured.forgetting, measured.retained
    places = [index for index in range(len(merges)) if kept.alone[index].value is not None]
    beaten, surely = set(), set()
    for one in places:
        for other in places:
            less = _value(cost.alone[other]) - _value(cost.alone[one])
            more = _value(kept.alone[other]) - _value(kept.alone[one])
            if less <= 0 <= more and (less < 0 or more > 0):
                beaten.add(one)
            far = _high(cost.together[other]) < _low(cost.together[one])
            if far and _low(kept.together[other]) > _high(kept.together[one]):
                surely.add(one)
    return set(places) - beaten, surely


def _value(estimate: Estimate) -> float:
    return estimate.value or 0.0


def _low(estimate: Estimate) -> float:
    return estimate.low or 0.0


def _high(estimate: Estimate) -> float:
    return estimate.high or 0.0


def _groups(
    states: States, merge: PathPoint, compared: Mapping[str, GroupResult]
) -> list[PointGroup]:
    masks = {ALL_ITEMS: np.ones(states.category.size, bool)}
    masks |= {name: states.category == name for name in states.categories}
    return [
        _group(name, states, mask, merge, compared.get(name), states.design.within(mask))
        for name, mask in masks.items()
    ]


def _group(
    name: str,
    states: States,
    mask: Flags,
    merge: PathPoint,
    compared: GroupResult | None,
    design: ClusterDesign,
) -> PointGroup:
    base, here = states.right[BASE][mask], states.right[merge.run][mask]
    lost, gained = (base & ~here).astype(float), (~base & here).astype(float)
    z = normal_quantile(LEVEL)
    nothing = Estimate(value=0.0, low=0.0, high=0.0, method="by definition")
    itself = merge.run == BASE
    return PointGroup(
        name=name,
        target=bool(states.target[mask].all()),
        n=int(mask.sum()),
        accuracy=float(here.mean()),
        forgetting=nothing if itself else share(lost, design, z),
        backward_transfer=nothing if itself else share(gained, design, z),
        loss=None if compared is None else compared.loss,
        verdict=None if compared is None else compared.verdict,
    )
