"""Metric files of CapTrack, and the arithmetic published with them.

A metric changes by 100 (after - before) / before percent. A capability is the mean of its metrics,
with their population standard deviation; a group is the mean of its capabilities, with the root of
the mean square of their deviations over the root of their number. Values without data are missing
here; the published code writes 0.0.

Averages of a known number of items also bound the width of an interval. A value between two bounds
varies most if it is always one of them, so that the variance of a mean m of n items is at most (m -
low) (high - m) / n (Bhatia and Davis 2000), and 1 / n in the angles of Cohen's h. The models are
assumed to be independent; answers to the same items are not, which makes the true interval
narrower.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.capabilities.bootstrap import generator
from forgetmap.capabilities.cells import (
    WHY_MISSING,
    ModelDrift,
    Resampling,
    capability_cells,
    empty_cell,
    group_cells,
    with_q,
)
from forgetmap.capabilities.choices import Aggregator
from forgetmap.capabilities.drift_result import DriftResult
from forgetmap.capabilities.effects import Effect, Levels, effect, levels
from forgetmap.capabilities.inputs import DriftPlan, base_name, column_names
from forgetmap.capabilities.ranking import find_recoveries, rank_drifts
from forgetmap.capabilities.result import Caution, Cell, MetricCell, MetricCoverage
from forgetmap.capabilities.taxonomy import (
    SHARES,
    Capability,
    CapabilityGroup,
    Metric,
    Taxonomy,
    with_deep_dive,
)
from forgetmap.capabilities.values import TaxonomyRun
from forgetmap.errors import EmptyInputError, FieldError, UnreadableError
from forgetmap.records import Run
from forgetmap.stats import Reals

MODEL = "model_name"
ROUNDING = 1e-9
"""Tolerance by which a mean of shares may lie beyond its ends."""


@dataclass(frozen=True, slots=True)
class MetricFile:
    """Averages of one model, one per metric.

    Attributes:
        name: name of the model.
        origin: path of the file.
        values: id of the metric -> its average; metrics without one are absent.
        of_run: they were computed here, from the items of a run.
    """

    name: str
    origin: str
    values: Mapping[str, float]
    of_run: bool = False


def is_metric_file(source: Any, taxonomy: Taxonomy) -> bool:
    """Return whether this is a CSV whose columns are metrics of the taxonomy."""
    if not isinstance(source, str | os.PathLike) or Path(source).suffix.lower() != ".csv":
        return False
    try:
        with Path(source).open(encoding="utf-8-sig", newline="") as stream:
            header = next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False  # reading it as results will report the problem
    return any(metric.column in header for metric in taxonomy.metrics if metric.column)


def read_metric_file(path: Path, taxonomy: Taxonomy) -> MetricFile:
    """Read averages from the row of a metric file; other columns are ignored.

    Raises:
        EmptyInputError: there is no row.
        FieldError: there is a second row, a duplicate column, or an average is not a number or out
            of range.
    """
    every = [metric for metric in with_deep_dive(taxonomy).metrics if metric.column]
    row = _only_row(path, {str(metric.column) for metric in every})
    values = {
        metric.id: _average(path, metric, row[str(metric.column)])
        for metric in every
        if metric.column in row
    }
    known = {id_: value for id_, value in values.items() if value is not None}
    return MetricFile(row.get(MODEL) or path.stem, str(path), known)


def _only_row(path: Path, columns: Collection[str]) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            _require_once(path, rows.fieldnames or (), columns)
            row, second = next(rows, None), next(rows, None)
            line = rows.line_num
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableError(
            f"not a valid CSV file: {error}", file=str(path), hint="create the file again."
        ) from None
    if row is None:
        raise EmptyInputError(
            "the file contains no model", file=str(path), hint="add one row of averages."
        )
    if second is not None:
        other = second.get(MODEL) or "another one"
        raise FieldError(
            f"there is a second row, of {other!r:.60}",
            file=str(path),
            line=line,
            hint="give each model its own file with one row of averages.",
        )
    return row


def _require_once(path: Path, names: Sequence[str], columns: Collection[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1 and name in columns:
            raise FieldError(
                f"there are {times} columns with this name",
                file=str(path),
                line=1,
                field=name,
                hint="keep only one of them.",
            )


def _average(path: Path, metric: Metric, cell: str | None) -> float | None:
    """Return the average in a cell; None if it is empty or nan."""
    if cell is None or not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.inf
    if math.isnan(value):
        return None
    problem, hint = None, "leave the cell empty if there is no value."
    if math.isinf(value):
        problem = "is not a number"
    elif metric.scale in SHARES and not -ROUNDING <= value <= 1 + ROUNDING:
        problem, hint = "is not a share", "write shares from 0 to 1, not percent."
    elif metric.scale == "count" and value < 0:
        problem, hint = "is negative, but is a count", "check the file."
    if problem is None:
        return value
    raise FieldError(
        f"{cell!r:.40} {problem}", file=str(path), line=2, field=str(metric.column), hint=hint
    )


def averages_of(run: Run, taxonomy: Taxonomy) -> MetricFile:
    """Average each metric over all items of a run, paired or not, as published."""
    source = TaxonomyRun(run, taxonomy)
    values = {}
    for metric in with_deep_dive(taxonomy).metrics:
        # The published metric is accuracy on paraphrases, not agreement with the original.
        plain = replace(metric, agrees_with=None)
        measure = source.measure(plain, plain.field)
        if measure is None:
            continue
        mean = source.values(plain, measure).mean
        if not np.isnan(mean).all():
            values[metric.id] = float(np.nanmean(mean))
    return MetricFile(run.name, run.origin, values, of_run=True)


def drift_of_averages(
    taxonomy: Taxonomy,
    plan: DriftPlan,
    averages: Sequence[MetricFile],
    aggregator: Aggregator,
    how: Resampling,
) -> DriftResult:
    """Compute the drift of averages, without items: intervals are bounds, or missing as published.

    Args:
        taxonomy: the taxonomy of the metrics.
        plan: the comparisons.
        averages: averages of every model.
        aggregator: how metrics are averaged.
        how: seed and number of draws of the chance variation of the averages.
    """
    labels = _unique_names(averages)
    names = column_names(plan, labels)
    metrics: list[MetricCell] = []
    capabilities: list[Cell] = []
    groups: list[Cell] = []
    deep: list[MetricCell] = []
    drifts: list[Levels] = []
    notices: list[Caution] = []
    chances = [_Chances(taxonomy, own, how, averages) for own in averages]
    for name, (first, second) in zip(names, plan.comparisons, strict=True):
        sides = averages[first], averages[second]
        cells = [_metric(name, metric, *sides, aggregator) for metric in taxonomy.metrics]
        deep += [_metric(name, metric, *sides, aggregator) for metric in taxonomy.deep_dive]
        notices += _cautions(name, taxonomy, *sides, aggregator)
        if aggregator == "captrack-relative":
            parts = [_capability(name, capability, cells) for capability in taxonomy.capabilities]
            capabilities += parts
            groups += [_group(name, group, parts) for group in taxonomy.groups]
        else:
            drifted = _with_bounds(taxonomy, cells, chances[first], chances[second])
            cells = list(drifted.cells)
            drifts.append(drifted.levels)
            capabilities += capability_cells(name, taxonomy, drifted)
            groups += group_cells(name, taxonomy, drifted)
        metrics += cells
    return DriftResult(
        taxonomy=taxonomy.name,
        aggregator=aggregator,
        before=base_name(plan, labels),
        models=tuple(names),
        cautions=tuple(notices),
        groups=tuple(groups),
        capabilities=tuple(capabilities),
        metrics=tuple(metrics),
        bases=tuple(labels[before] for before, _ in plan.comparisons),
        deep_dive=tuple(deep),
        ranking=rank_drifts(taxonomy, plan, names, drifts) if drifts else None,
        recoveries=tuple(find_recoveries(taxonomy, plan, names, drifts)) if drifts else (),
    )


def _unique_names(averages: Sequence[MetricFile]) -> list[str]:
    """Rename equal names by the names of their files."""
    names = [own.name for own in averages]
    return [Path(own.origin).stem if names.count(own.name) > 1 else own.name for own in averages]


class _Chances:
    """Chance variation of the averages of one model, as draws of effects."""

    def __init__(
        self,
        taxonomy: Taxonomy,
        averages: MetricFile,
        how: Resampling,
        every: Sequence[MetricFile],
    ) -> None:
        self._items = {task.name: task.items for task in taxonomy.tasks}
        self._averages, self._how = averages, how
        # The draws do not depend on order, names or a deep dive, but differ between two equal
        # files.
        counting = {metric.id for metric in taxonomy.metrics}
        known = [
            sorted((id_, value) for id_, value in own.values.items() if id_ in counting)
            for own in every
        ]
        own = next(known[place] for place, one in enumerate(every) if one is averages)
        equal = [one for one, values in zip(every, known, strict=True) if values == own]
        place = next(place for place, one in enumerate(equal) if one is averages)
        self._name = f"{place} {own}"

    def items(self, metric: Metric) -> int | None:
        """Return the items behind the average; None if unknown, or if its values are unbounded."""
        return None if metric.range.high is None else self._items.get(metric.task)

    def draws(self, metric: Metric) -> Reals:
        """Return the chance variation of the effect; nan if it is unknown."""
        items = self.items(metric)
        if items is None:
            return np.full(self._how.draws, np.nan)
        scale, mean = metric.range, self._averages.values[metric.id]
        spread = 1.0
        if (scale.low, scale.high) != (0.0, 1.0):
            low, high = scale.low, float(scale.high or 0.0)
            spread = math.sqrt(max((mean - low) * (high - mean), 0.0)) / (high - low)
        rng = generator(self._how.seed, f"{metric.id} {self._name}")
        return np.asarray(spread / math.sqrt(items) * rng.standard_normal(self._how.draws))


def _with_bounds(
    taxonomy: Taxonomy, cells: Sequence[MetricCell], before: _Chances, after: _Chances
) -> ModelDrift:
    """Return cells with the widest intervals that their numbers of items allow."""
    effects: dict[str, Effect] = {}
    filled = []
    for metric, cell in zip(taxonomy.metrics, cells, strict=True):
        if cell.value is None:
            filled.append(cell)
            continue
        effect = Effect(cell.value, cell.value + after.draws(metric) - before.draws(metric))
        effects[metric.id] = effect
        low, high = effect.limits or (None, None)
        std, p = (None, None) if low is None else (effect.std, effect.p)
        filled.append(replace(cell, low=low, high=high, std=std, p=p, n=after.items(metric) or 0))
    return ModelDrift(with_q(filled), levels(taxonomy, effects))


_NO_INTERVALS = "averages only: without items there are no intervals, tests or flips."
_BOUNDS = (
    "averages only: the intervals are upper bounds based on the item counts of the taxonomy, "
    "with the models taken as independent; metrics without an item count have none."
)


def _cautions(
    model: str, taxonomy: Taxonomy, before: MetricFile, after: MetricFile, aggregator: Aggregator
) -> Iterator[Caution]:
    published = aggregator == "captrack-relative"
    yield Caution("averages", _NO_INTERVALS if published else _BOUNDS, model)
    for metric in taxonomy.metrics:
        means = before.values.get(metric.id), after.values.get(metric.id)
        if means[0] is not None and means[0] < metric.chance / 2 and means[0] != 0:
            message = (
                f"{metric.name} [{metric.id}] is {means[0]:.3f} before, and guessing gives about "
                f"{metric.chance:.2f}: it can hardly show a change."
            )
            yield Caution("below_chance", message, model, metric.id)
        if 0 in means and None not in means:
            message = _zero(metric, *means, of_run=before.of_run)
            yield Caution("zero", message, model, metric.id)


def _zero(metric: Metric, before: float | None, after: float | None, *, of_run: bool) -> str:
    """Return a sentence on the meaning of an average of exactly 0."""
    name = f"{metric.name} [{metric.id}]"
    mark = "CapTrack writes 0.0 for a task that failed; if it did, leave the cell empty"
    if of_run:
        mark = "check whether the whole task failed"
    if before == after:
        return f"{name} is exactly 0 in both models: {mark}."
    if before == 0:
        return f"{name} is exactly 0 before, so there is no relative change: {mark}."
    return f"{name} is exactly 0 after, which counts as \N{MINUS SIGN}100%: {mark}."


def _metric(
    model: str, metric: Metric, before: MetricFile, after: MetricFile, aggregator: Aggregator
) -> MetricCell:
    value_before, value_after = before.values.get(metric.id), after.values.get(metric.id)
    published = aggregator == "captrack-relative"
    cell = replace(
        empty_cell(model, metric, WHY_MISSING[metric.needs]),
        weight=1.0 if published else metric.weight,
        before=value_before,
        after=value_after,
    )
    if value_before is None or value_after is None:
        return cell
    percent = 100 * (value_after - value_before) / value_before if value_before else None
    value = percent if published else float(effect(metric, value_before, value_after))
    return replace(
        cell,
        value=value,
        coverage=MetricCoverage(int(value is not None), 1),
        points=(100.0 if metric.scale in SHARES else 1.0) * (value_after - value_before),
        relative=percent,
        note=None,
    )


def _capability(model: str, capability: Capability, cells: Sequence[MetricCell]) -> Cell:
    own = [cell for cell in cells if cell.capability == capability.id and cell.weight]
    values = np.array([cell.value for cell in own if cell.value is not None])
    weights = np.array([cell.weight for cell in own if cell.value is not None])
    return Cell(
        model=model,
        id=capability.id,
        name=capability.title or capability.id,
        value=float(np.average(values, weights=weights)) if values.size else None,
        low=None,
        high=None,
        std=float(values.std()) if values.size else None,
        n=0,
        coverage=MetricCoverage(len(values), len(own)),
        code=capability.code,
        group=capability.group,
        published=capability.published,
        note=None if values.size else "no data",
    )


def _group(model: str, group: CapabilityGroup, capabilities: Sequence[Cell]) -> Cell:
    parts = [cell for cell in capabilities if cell.group == group.id]
    values = [cell.value for cell in parts if cell.value is not None]
    squares = [cell.std**2 for cell in parts if cell.std is not None]
    return Cell(
        model=model,
        id=group.id,
        name=group.title or group.id,
        value=sum(values) / len(values) if values else None,
        low=None,
        high=None,
        std=math.sqrt(sum(squares) / len(squares)) / math.sqrt(len(values)) if squares else None,
        n=0,
        coverage=MetricCoverage(
            sum(cell.coverage.have for cell in parts), sum(cell.coverage.of for cell in parts)
        ),
        note=None if values else "no data",
    )
