"""Cells of all levels from the paired values of one model after and the model before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forgetmap.capabilities.bootstrap import Distance, distance, limits
from forgetmap.capabilities.cautions import MAX_JUDGE_ERRORS
from forgetmap.capabilities.effects import (
    Effect,
    Levels,
    Means,
    Series,
    levels,
    metric_effect,
    relative_change,
    size,
    task_means,
    weighted_effects,
)
from forgetmap.capabilities.result import (
    AnyCell,
    Cell,
    Direction,
    FormDrift,
    MetricCell,
    MetricCoverage,
)
from forgetmap.capabilities.taxonomy import SHARES, Metric, Taxonomy
from forgetmap.capabilities.values import TaskPairs, TaxonomyRun, Values, align
from forgetmap.capabilities.verdicts import Answered, judge_answers
from forgetmap.comparison import GroupResult
from forgetmap.pairing import Measure
from forgetmap.results import Notice
from forgetmap.stats import Reals, false_discovery, mcnemar_p

EXTREME = 10.0
"""Times the median from which on a count is extreme, such as the length of an endless answer."""
MIN_ITEMS_FOR_SPREAD = 2
"""Minimum number of items to estimate a spread."""
WHY_MISSING = {
    "rule": "not measured: the run has neither scores for it nor responses to score",
    "judge": "needs an LLM judge: --judge URL MODEL",
    "sandbox": "needs to run model-written code: --allow-exec",
}


_WHERE_ABSENT = {
    (True, True): "in neither run",
    (True, False): "missing before",
    (False, True): "missing after",
}


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of the bootstrap.

    Attributes:
        seed: random seed.
        draws: number of draws.
    """

    seed: int
    draws: int


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """Drift of one model after.

    Attributes:
        cells: cells of all metrics of the taxonomy, in its order.
        levels: effects with their draws.
        contradictions: what contradicts the scores, so that nothing is concluded from them.
    """

    cells: tuple[MetricCell, ...]
    levels: Levels
    contradictions: tuple[Notice, ...] = ()


def compare_metrics(
    model: str,
    taxonomy: Taxonomy,
    sides: tuple[TaxonomyRun, TaxonomyRun],
    pairs: Mapping[str, TaskPairs],
    how: Resampling,
    *,
    judge: bool = True,
    selected: bool | None = None,
) -> ModelDrift:
    """Compute the drift of every metric, and from these that of capabilities and groups.

    Args:
        model: name of the model after.
        taxonomy: the metrics.
        sides: both models.
        pairs: items of each task that are on both sides.
        how: settings of the bootstrap.
        judge: whether right and wrong answers get the verdicts of `compare`.
        selected: whether the model before helped to choose the items; None looks for signs of it.
    """
    cells: dict[str, MetricCell] = {}
    effects: dict[str, Effect] = {}
    answers: dict[str, Answered] = {}
    for task in dict.fromkeys(metric.task for metric in taxonomy.metrics):
        metrics = [metric for metric in taxonomy.metrics if metric.task == task]
        readings = [_MetricReading(metric, sides, pairs.get(task)) for metric in metrics]
        usable = [reading for reading in readings if reading.note is None]
        for reading in readings:
            cells[reading.metric.id] = empty_cell(model, reading.metric, reading.note)
        if not usable:
            continue
        for reading, cell, effect in _of_task(model, task, usable, pairs[task], how):
            cells[reading.metric.id], effects[reading.metric.id] = cell, effect
            if reading.metric.scale == "binary" and reading.metric.polarity == "up":
                answers[reading.metric.id] = Answered(reading.metric, reading.measures)
    ordered = with_q([cells[metric.id] for metric in taxonomy.metrics])
    against: tuple[Notice, ...] = ()
    if judge and answers:
        judged, against = judge_answers([*answers.values()], sides, pairs, selected=selected)
        ordered = _with_verdicts(ordered, judged)
    return ModelDrift(ordered, levels(taxonomy, effects), against)


class _MetricReading:
    """The values of one metric on both sides, or the reason why there are none."""

    def __init__(
        self, metric: Metric, sides: tuple[TaxonomyRun, TaxonomyRun], pairs: TaskPairs | None
    ) -> None:
        self.metric = metric
        self.series: list[Series] = []
        self.note = self._read(sides, pairs)

    def _read(self, sides: tuple[TaxonomyRun, TaxonomyRun], pairs: TaskPairs | None) -> str | None:
        """Read the values; return the reason if there are none or they do not count."""
        absent = [self.metric.task not in source.tasks for source in sides]
        if any(absent):
            return f"no data: its task is {_WHERE_ABSENT[absent[0], absent[1]]}"
        measures = self._measures(sides, self.metric.field)
        if measures is None:
            return WHY_MISSING[self.metric.needs]
        if not pairs:
            return "no item is on both sides"
        self.measures = measures
        self.scorer = (str(measures[0]), str(measures[1]))
        self.sides = self._values(sides, measures)
        self.series = [self._series(self.sides, pairs)]
        note = self._withheld()
        if not self.series[0].known.any():
            return note or "no item has a score on both sides"
        if self.metric.strict is None:
            return note
        strict = self._measures(sides, self.metric.strict)
        if strict is not None:
            self.series.append(self._series(self._values(sides, strict), pairs))
        return note

    def _measures(
        self, sides: tuple[TaxonomyRun, TaxonomyRun], field: str | None
    ) -> tuple[Measure, Measure] | None:
        before = sides[0].measure(self.metric, field)
        after = None if before is None else sides[1].measure(self.metric, field)
        return None if before is None or after is None else (before, after)

    def _values(
        self, sides: tuple[TaxonomyRun, TaxonomyRun], measures: tuple[Measure, Measure]
    ) -> tuple[Values, Values]:
        before, after = (
            source.values(self.metric, measure)
            for source, measure in zip(sides, measures, strict=True)
        )
        return before, after

    def _series(self, sides: tuple[Values, Values], pairs: TaskPairs) -> Series:
        return Series(self.metric, align(sides[0], pairs.before), align(sides[1], pairs.after))

    def _withheld(self) -> str | None:
        if self.metric.needs != "judge" and self.metric.judge is None:
            return None
        worst = max(_share(side.errors, side.answers) or 0.0 for side in self.sides)
        if worst <= MAX_JUDGE_ERRORS:
            return None
        return f"withheld: the judge failed on {100 * worst:.1f} % of answers"


def _of_task(
    model: str, task: str, readings: Sequence[_MetricReading], pairs: TaskPairs, how: Resampling
) -> list[tuple[_MetricReading, MetricCell, Effect]]:
    series = [values for reading in readings for values in reading.series]
    means = iter(
        task_means(task, series, pairs.cluster, seed=how.seed, draws=how.draws, shared=pairs.shared)
    )
    results = []
    for reading in readings:
        own = [next(means) for _ in reading.series]
        effect = metric_effect(reading.metric, own[0])
        cell = _cell(model, reading, own, effect, pairs, how)
        results.append((reading, cell, effect))
    return results


def _cell(
    model: str,
    reading: _MetricReading,
    means: Sequence[Means],
    effect: Effect,
    pairs: TaskPairs,
    how: Resampling,
) -> MetricCell:
    metric, lenient, series = reading.metric, means[0], reading.series[0]
    known = series.known
    before, after = series.before[known], series.after[known]
    scale = 100.0 if metric.scale in SHARES else 1.0
    low, high = _limits(effect.draws, lenient.n)
    is_count = metric.range.high is None
    points = (None, None) if is_count else _limits(scale * lenient.point_draws, lenient.n)
    chance = pairs.chance if metric.chance and pairs.chance is not None else metric.chance
    error = float(before.std() / max(lenient.n, 1) ** 0.5)
    filled = replace(
        empty_cell(model, metric, None),
        value=effect.value,
        low=low,
        high=high,
        std=_std(effect, lenient.n),
        n=lenient.n,
        coverage=MetricCoverage(1, 1),
        scorer=reading.scorer,
        before=lenient.before,
        after=lenient.after,
        points=scale * (lenient.after - lenient.before),
        points_low=points[0],
        points_high=points[1],
        relative=relative_change(
            lenient.before, lenient.after, error=error, chance=chance, low=metric.range.low
        ),
        chance=chance,
        constant=len(np.unique(np.concatenate([before, after]))) == 1,
        p=None if low is None else effect.p,
        form=_form(means),
        distance=_distance(metric, before, after, how),
    )
    median = float(np.median(np.concatenate([before, after])))
    if is_count and median > 0:
        extreme = [int((side > EXTREME * median).sum()) for side in (before, after)]
        filled = replace(filled, extreme_before=extreme[0], extreme_after=extreme[1])
    return _with_failures(_with_flips(filled, metric, before, after), reading)


def _with_verdicts(
    cells: Sequence[MetricCell],
    judged: Mapping[str, GroupResult],
) -> tuple[MetricCell, ...]:
    """Add the verdicts of `compare` on right and wrong answers."""
    return tuple(
        replace(
            cell,
            verdict=one.verdict,
            undecided=one.undecided,
            lost_at_least=None if one.loss.low is None else max(one.loss.low, 0.0),
            lost_at_most=one.loss.high,
            lost_by=one.loss.carried_by,
        )
        if (one := judged.get(cell.id)) is not None
        else cell
        for cell in cells
    )


def _limits(draws: Reals, n: int) -> tuple[float | None, float | None]:
    interval = limits(draws) if n >= MIN_ITEMS_FOR_SPREAD else None
    return interval or (None, None)


def _std(effect: Effect, n: int) -> float | None:
    return None if n < MIN_ITEMS_FOR_SPREAD or np.isnan(effect.std) else effect.std


def _with_flips(cell: MetricCell, metric: Metric, before: Reals, after: Reals) -> MetricCell:
    """Add the flips of a binary metric; with repeats, averaged over all pairs of repeats."""
    if metric.scale != "binary":
        return cell
    forgotten = float((before * (1 - after)).sum())
    gained = float(((1 - before) * after).sum())
    is_binary = bool(np.isin(np.concatenate([before, after]), (0.0, 1.0)).all())
    test = float(mcnemar_p(forgotten, gained)) if is_binary else None
    return replace(cell, forgotten=forgotten, gained=gained, mcnemar_p=test)


def _with_failures(cell: MetricCell, reading: _MetricReading) -> MetricCell:
    before, after = reading.sides
    return replace(
        cell,
        failed_before=_share(before.failed, before.answers),
        failed_after=_share(after.failed, after.answers),
        errors_before=_share(before.errors, before.answers),
        errors_after=_share(after.errors, after.answers),
    )


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def _form(means: Sequence[Means]) -> FormDrift | None:
    if len(means) == 1:
        return None
    lenient, strict = means
    change = 100 * ((strict.after - strict.before) - (lenient.after - lenient.before))
    low, high = _limits(100 * (strict.point_draws - lenient.point_draws), strict.n)
    return FormDrift(strict.before, strict.after, change, low, high)


def _distance(metric: Metric, before: Reals, after: Reals, how: Resampling) -> Distance | None:
    if metric.polarity != "both" or metric.scale == "binary" or len(before) < MIN_ITEMS_FOR_SPREAD:
        return None
    scale = metric.range
    values = [
        np.log1p(side) if scale.high is None else (side - scale.low) / (scale.high - scale.low)
        for side in (before, after)
    ]
    return distance(values[0], values[1], seed=how.seed, name=metric.id, draws=how.draws)


def empty_cell(model: str, metric: Metric, note: str | None) -> MetricCell:
    """Return the cell of a metric without values."""
    return MetricCell(
        model=model,
        id=metric.id,
        name=metric.name or metric.id,
        value=None,
        low=None,
        high=None,
        std=None,
        n=0,
        coverage=MetricCoverage(0, 1),
        capability=metric.capability,
        task=metric.task,
        polarity=metric.polarity,
        scale=metric.scale,
        needs=metric.needs,
        weight=metric.weight,
        chance=metric.chance,
        note=note,
    )


def with_q(cells: Sequence[AnyCell]) -> tuple[AnyCell, ...]:
    """Add q-values over all cells."""
    qs = false_discovery([np.nan if cell.p is None else cell.p for cell in cells])
    return tuple(
        replace(cell, q=None if np.isnan(q) else float(q))
        for cell, q in zip(cells, qs, strict=True)
    )


def capability_cells(model: str, taxonomy: Taxonomy, compared: ModelDrift) -> tuple[Cell, ...]:
    """Return the capabilities of one model, with q-values over all of them."""
    cells = []
    for capability in taxonomy.capabilities:
        metrics = taxonomy.metrics_of(capability.id)
        effect = compared.levels.capabilities.get(capability.id)
        cell = _level_cell(model, capability.id, metrics, effect, compared)
        spread = size(weighted_effects(taxonomy, capability.id, compared.levels.metrics))
        cells.append(
            replace(
                cell,
                name=capability.title or capability.id,
                code=capability.code,
                group=capability.group,
                published=capability.published,
                size=spread,
            )
        )
    return with_q(cells)


def group_cells(model: str, taxonomy: Taxonomy, compared: ModelDrift) -> tuple[Cell, ...]:
    """Return the groups of one model."""
    cells = []
    for group in taxonomy.groups:
        members = taxonomy.capabilities_of(group.id)
        metrics = [
            metric for capability in members for metric in taxonomy.metrics_of(capability.id)
        ]
        effect = compared.levels.groups.get(group.id)
        known = compared.levels.capabilities
        spread = size(
            [(known[capability.id], 1.0) for capability in members if capability.id in known]
        )
        cell = _level_cell(model, group.id, metrics, effect, compared)
        cells.append(replace(cell, name=group.title or group.id, size=spread))
    return tuple(cells)


def _level_cell(
    model: str, id_: str, metrics: Sequence[Metric], effect: Effect | None, compared: ModelDrift
) -> Cell:
    counting = {metric.id for metric in metrics if metric.weight}
    cells = [cell for cell in compared.cells if cell.id in counting]
    have = [cell for cell in cells if cell.value is not None]
    items = {cell.task: cell.n for cell in sorted(have, key=lambda cell: cell.n)}
    n = sum(items.values())
    low, high = _limits(effect.draws, n) if effect else (None, None)
    return Cell(
        model=model,
        id=id_,
        name=id_,
        value=effect.value if effect else None,
        low=low,
        high=high,
        std=_std(effect, n) if effect else None,
        n=n,
        coverage=MetricCoverage(len(have), len(cells)),
        direction=_direction(metrics),
        p=effect.p if effect and low is not None else None,
        note=None if effect else _why_empty(cells),
    )


def _why_empty(cells: Sequence[MetricCell]) -> str:
    notes = list(dict.fromkeys(cell.note for cell in cells if cell.note))
    return notes[0] if len(notes) == 1 else "no data"


def _direction(metrics: Sequence[Metric]) -> Direction:
    either = {metric.polarity == "both" for metric in metrics if metric.weight}
    if len(either) > 1:
        return "mixed"
    return "more" if True in either else "better"
