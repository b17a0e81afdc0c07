"""Columns of samples as rows of the tables of a run folder: one for each sample and metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forgetmap.records import BY_NAME, TEXT_NAMES, Outcome, scores_schema, texts_schema
from forgetmap.sources.columns import HashColumn, SampleColumns


class ScoreColumns(msgspec.Struct):
    """What the table of scores needs of some samples.

    Attributes:
        form: what all must have in common that are put together.
        metrics: their names.
        constants: columns with one value.
        of_rows: columns with a value for each row of the log.
        of_metrics: columns with a list of these for each metric.
        hashes: columns of hashes.
        order: row times metrics plus the place of the metric, in the order of samples.
    """

    form: tuple[object, ...]
    metrics: Sequence[str]
    constants: Mapping[str, Any]
    of_rows: Mapping[str, Sequence[Any]]
    of_metrics: Mapping[str, Sequence[Sequence[Any]]]
    hashes: Mapping[str, HashColumn]
    order: npt.NDArray[np.int64]


def score_columns(
    columns: SampleColumns,
    hashes: Mapping[str, HashColumn],
    outcomes: Sequence[Sequence[Outcome | None]] | None,
) -> ScoreColumns:
    """What the table of scores needs of these samples.

    Args:
        columns: the samples.
        hashes: by the names of their columns.
        outcomes: for each metric those of all rows; None if nothing is known.
    """
    constants = {"task": columns.task, "scorer": columns.scorer, "repeat": 0, "k": columns.k}
    of_rows = {
        name: column
        for name in ("item", "gold", "gold_index", "category", "answer", "logprob_gold")
        if (column := getattr(columns, name)) is not None
    }
    named = {
        "score": columns.values,
        "outcome": outcomes,
        "choice": columns.choice,
        "logprob_answer": columns.logprob_answer,
    }
    of_metrics = {name: lists for name, lists in named.items() if lists is not None}
    form = (*constants.values(), *columns.metrics, *of_rows, *of_metrics)
    return ScoreColumns(
        form, columns.metrics, constants, of_rows, of_metrics, hashes, _score_order(columns)
    )


def score_batch(parts: Sequence[ScoreColumns]) -> pa.RecordBatch:
    """Rows of the table of scores, of columns that have the same form."""
    first, metrics = parts[0], len(parts[0].metrics)
    sizes = [len(part.order) for part in parts]
    starts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    order = np.concatenate([part.order for part in parts]) + starts
    rows, places = order // metrics, order % metrics
    cells: dict[str, pa.Array] = {
        name: _joined([part.of_rows[name] for part in parts], name) for name in first.of_rows
    }
    cells |= {name: _hashes([part.hashes[name] for part in parts]) for name in first.hashes}
    if metrics > 1:
        cells = {name: cell.take(pa.array(rows)) for name, cell in cells.items()}
    for name in first.of_metrics:
        by_metric = zip(*[part.of_metrics[name] for part in parts], strict=True)
        cell = _joined(list(chain.from_iterable(by_metric)), name)
        total = len(order) // metrics
        cells[name] = cell.take(pa.array(places * total + rows)) if metrics > 1 else cell
    cells["metric"] = _taken(first.metrics, "metric", places)
    nowhere = np.zeros(len(order), np.int64)
    cells |= {name: _taken([cell], name, nowhere) for name, cell in first.constants.items()}
    return _batch(cells, scores_schema(), len(order))


def text_batch(columns: SampleColumns) -> pa.RecordBatch:
    """Rows of the table of texts."""
    names = [name for name in ("item", *TEXT_NAMES) if getattr(columns, name, None) is not None]
    cells = {name: _joined([getattr(columns, name)], name) for name in names}
    nowhere = np.zeros(len(columns), np.int64)
    cells |= {"task": _taken([columns.task], "task", nowhere)}
    cells |= {"repeat": _taken([0], "repeat", nowhere)}
    return _batch(cells, texts_schema(), len(columns))


def _score_order(columns: SampleColumns) -> npt.NDArray[np.int64]:
    metrics = len(columns.metrics)
    order = np.arange(len(columns) * metrics)
    if metrics > 2 and columns.picks is not None:  # else a sample has all metrics, or one
        for row in range(len(columns)):
            groups = columns.groups(row)
            if len(groups) > 1:
                own = [row * metrics + place for places in groups for place in places]
                order[row * metrics : (row + 1) * metrics] = own
    return order


def _joined(lists: Sequence[Sequence[Any]], name: str) -> pa.Array:
    return arrow_array(list(chain.from_iterable(lists)), BY_NAME[name].type)


def _hashes(columns: Sequence[HashColumn]) -> pa.Array:
    values = np.concatenate([column.values for column in columns])
    known = np.concatenate([column.known for column in columns])
    return pa.array(values, mask=None if known.all() else ~known)


def _taken(values: Sequence[Any], name: str, places: npt.NDArray[np.int64]) -> pa.Array:
    return arrow_array(list(values), BY_NAME[name].type).take(pa.array(places))


def _batch(cells: Mapping[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    arrays = [
        cells[field.name] if field.name in cells else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column; what UTF-8 cannot hold is replaced."""
    if values[0] is None and values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a character that takes two: JSON can hold it, UTF-8 cannot
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, list):
        return [_encodable(element) for element in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
