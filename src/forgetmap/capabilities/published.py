"""CapTrack's own metric files, and the arithmetic that was published on them.

A metric changes by 100 (after - before) / before percent. A capability is the mean of its metrics,
with their population standard deviation; a group is the mean of its capabilities, with the root of
the mean square of their deviations over the root of their number. Where the published code writes
0.0 for what has no data, nothing is written here.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.capabilities.cells import WHY_MISSING, empty_cell
from forgetmap.capabilities.choices import Aggregator
from forgetmap.capabilities.drift_result import DriftResult
from forgetmap.capabilities.effects import effect
from forgetmap.capabilities.result import Caution, Cell, MetricCell, MetricCoverage
from forgetmap.capabilities.taxonomy import SHARES, Capability, CapabilityGroup, Metric, Taxonomy
from forgetmap.capabilities.values import TaxonomyRun
from forgetmap.errors import EmptyInputError, FieldError, UnreadableError
from forgetmap.records import Run

MODEL = "model_name"


@dataclass(frozen=True, slots=True)
class MetricFile:
    """Averages of one model, one per metric.

    Attributes:
        name: of the model.
        origin: where they came from.
        values: id of the metric -> its average; metrics without one are absent.
    """

    name: str
    origin: str
    values: Mapping[str, float]


def is_metric_file(source: Any, taxonomy: Taxonomy) -> bool:
    """Whether this is a CSV whose columns are metrics of the taxonomy."""
    if not isinstance(source, str | os.PathLike) or Path(source).suffix.lower() != ".csv":
        return False
    try:
        with Path(source).open(encoding="utf-8-sig", newline="") as stream:
            header = next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False  # whoever reads it as results will say what is wrong
    return any(metric.column in header for metric in taxonomy.metrics if metric.column)


def read_metric_file(path: Path, taxonomy: Taxonomy) -> MetricFile:
    """Averages from the first row of a metric file; of other columns nothing is read.

    Raises:
        EmptyInputError: there is no row.
        FieldError: an average is no number.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            row = next(csv.DictReader(stream), None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableError(
            f"not a CSV: {error}", file=str(path), hint="write the file again."
        ) from None
    if row is None:
        raise EmptyInputError(
            "there is no model in it", file=str(path), hint="a metric file has one row of averages."
        )
    columns = {metric.id: metric.column for metric in taxonomy.metrics if metric.column in row}
    values = {id_: _number(path, str(column), row[str(column)]) for id_, column in columns.items()}
    known = {id_: value for id_, value in values.items() if value is not None}
    return MetricFile(row.get(MODEL) or path.stem, str(path), known)


def _number(path: Path, column: str, cell: str | None) -> float | None:
    if cell is None or not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        raise FieldError(
            f"{cell!r:.40} is no number",
            file=str(path),
            line=2,
            field=column,
            hint="leave the cell empty where there is no value.",
        ) from None
    return value if math.isfinite(value) else None


def averages_of(run: Run, taxonomy: Taxonomy) -> MetricFile:
    """The average of each metric over all items of a run, paired or not, as was published."""
    source = TaxonomyRun(run, taxonomy)
    values = {}
    for metric in taxonomy.metrics:
        # Published is accuracy on paraphrases, not agreement with what they paraphrase.
        plain = replace(metric, agrees_with=None)
        measure = source.measure(plain, plain.field)
        if measure is None:
            continue
        mean = source.values(plain, measure).mean
        if not np.isnan(mean).all():
            values[metric.id] = float(np.nanmean(mean))
    return MetricFile(run.name, run.origin, values)


def drift_of_averages(
    taxonomy: Taxonomy, averages: Sequence[MetricFile], aggregator: Aggregator
) -> DriftResult:
    """Drift of averages, without items: there are no intervals and no tests."""
    before, *later = averages
    metrics: list[MetricCell] = []
    capabilities: list[Cell] = []
    groups: list[Cell] = []
    for after in later:
        cells = [_metric(metric, before, after, aggregator) for metric in taxonomy.metrics]
        parts = [_capability(after.name, capability, cells) for capability in taxonomy.capabilities]
        metrics += cells
        capabilities += parts
        groups += [_group(after.name, group, parts) for group in taxonomy.groups]
    return DriftResult(
        taxonomy=taxonomy.name,
        aggregator=aggregator,
        before=before.name,
        models=tuple(after.name for after in later),
        cautions=tuple(
            caution for after in later for caution in _cautions(taxonomy, before, after)
        ),
        groups=tuple(groups),
        capabilities=tuple(capabilities),
        metrics=tuple(metrics),
    )


def _cautions(taxonomy: Taxonomy, before: MetricFile, after: MetricFile) -> list[Caution]:
    notices = [
        Caution(
            "averages",
            "averages only: no items, so no intervals, no tests and no flips can be had.",
            after.name,
        )
    ]
    for metric in taxonomy.metrics:
        mean = before.values.get(metric.id)
        if mean is not None and mean < metric.chance / 2:
            message = (
                f"{metric.name} [{metric.id}] is {mean:.3f} before, where guessing gives about "
                f"{metric.chance:.2f}: it hardly measures what it should."
            )
            notices.append(Caution("below_chance", message, after.name, metric.id))
        if mean == 0 and after.values.get(metric.id) is not None:
            message = f"{metric.name} [{metric.id}] is 0 before: there is no relative change."
            notices.append(Caution("zero", message, after.name, metric.id))
    return notices


def _metric(
    metric: Metric, before: MetricFile, after: MetricFile, aggregator: Aggregator
) -> MetricCell:
    value_before, value_after = before.values.get(metric.id), after.values.get(metric.id)
    published = aggregator == "captrack-relative"
    cell = replace(
        empty_cell(after.name, metric, WHY_MISSING[metric.needs]),
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
