"""Columns of samples as rows of the tables of a run folder: one for each sample and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forgetmap.records import BY_NAME, TEXT_NAMES, HashColumn, Outcome, scores_schema, texts_schema
from forgetmap.sources.columns import SampleColumns

_OF_ROWS = (
    "item", "gold", "gold_index", "category", "answer", "tokens_in", "tokens_out", "finish_reason",
    "logprob_gold",
)  # fmt: skip


class ScoreColumns(msgspec.Struct):
    """Columns of some samples for the table of scores.

    Attributes:
        form: equal for all columns that may be joined.
        metrics: names of the metrics.
        constants: columns with one value.
        of_rows: columns with a value for each row of the log.
        of_metrics: columns with a list of such values for each metric.
        hashes: columns of hashes.
        order: row times number of metrics plus index of the metric, in the order of samples.
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
    repeats: Sequence[int] | None = None,
) -> ScoreColumns:
    """Return the columns of these samples for the table of scores.

    Args:
        columns: the samples.
        hashes: hashes by the names of their columns.
        outcomes: for each metric, the outcomes of all rows; None if unknown.
        repeats: repeat of each row, if not the same for all samples.
    """
    constants: dict[str, Any] = {"task": columns.task, "scorer": columns.scorer}
    of_rows = {name: column for name in _OF_ROWS if (column := getattr(columns, name)) is not None}
    if columns.options is not None:
        of_rows["k"] = [len(options) if len(options) > 1 else None for options in columns.options]
    if repeats is None:
        constants["repeat"] = columns.repeat
    else:
        of_rows["repeat"] = repeats
    named = {
        "score": columns.values,
        "outcome": outcomes,
        "choice": columns.choice,
        "logprob_answer": columns.logprob_answer,
    }
    of_metrics = {name: lists for name, lists in named.items() if lists is not None}
    form = (*constants.values(), *columns.metrics, *of_rows, *of_metrics, *hashes)
    return ScoreColumns(
        form, columns.metrics, constants, of_rows, of_metrics, hashes, _score_order(columns)
    )


def score_batch(parts: Sequence[ScoreColumns]) -> pa.RecordBatch:
    """Return rows of the table of scores from columns of the same form."""
    first, metrics = parts[0], len(parts[0].metrics)
    of_rows = {name: _chained([part.of_rows[name] for part in parts]) for name in first.of_rows}
    hashes = {name: [part.hashes[name] for part in parts] for name in first.hashes}
    of_metrics = {
        name: _chained(
            chain.from_iterable(zip(*[part.of_metrics[name] for part in parts], strict=True))
        )
        for name in first.of_metrics
    }
    total = sum(len(part.order) for part in parts)
    constants = {name: cell for name, cell in first.constants.items() if cell is not None}
    if metrics == 1:
        constants["metric"] = first.metrics[0]
        cells = {name: _hashes(columns) for name, columns in hashes.items()}
    else:
        order = _joined_order(parts)
        rows, indexes = order // metrics, order % metrics
        cells = {name: _hashes(columns, rows) for name, columns in hashes.items()}
        of_rows = {name: _take(column, rows) for name, column in of_rows.items()}
        at = indexes * (total // metrics) + rows
        of_metrics = {name: _take(column, at) for name, column in of_metrics.items()}
        of_metrics["metric"] = _take(first.metrics, indexes)
    for name, column in (of_rows | of_metrics).items():
        cells[name] = arrow_array(column, BY_NAME[name].type)
    return _batch(cells, constants, scores_schema(), total)


def text_batch(
    columns: SampleColumns, rows: Sequence[int], repeats: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Return these rows of the samples as rows of the table of texts."""
    named = {name: getattr(columns, name, None) for name in ("item", *TEXT_NAMES)}
    named["repeat"] = repeats
    cells = {
        name: arrow_array([column[row] for row in rows], BY_NAME[name].type)
        for name, column in named.items()
        if column is not None
    }
    constants = {"task": columns.task, "repeat": columns.repeat}
    return _batch(cells, constants, texts_schema(), len(rows))


def _score_order(columns: SampleColumns) -> npt.NDArray[np.int64]:
    metrics = len(columns.metrics)
    order = np.arange(len(columns) * metrics)
    if metrics > 2 and columns.picks is not None:  # else a sample has all metrics, or one
        for row in range(len(columns)):
            groups = columns.groups(row)
            if len(groups) > 1:
                own = [row * metrics + index for indexes in groups for index in indexes]
                order[row * metrics : (row + 1) * metrics] = own
    return order


def _joined_order(parts: Sequence[ScoreColumns]) -> npt.NDArray[np.int64]:
    sizes = [len(part.order) for part in parts]
    starts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    order: npt.NDArray[np.int64] = np.concatenate([part.order for part in parts]) + starts
    return order


def _chained(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


def _take(values: Sequence[Any], indexes: npt.NDArray[np.int64]) -> list[Any]:
    return [values[index] for index in indexes.tolist()]


def _hashes(columns: Sequence[HashColumn], rows: npt.NDArray[np.int64] | None = None) -> pa.Array:
    values = np.concatenate([column.values for column in columns])
    known = np.concatenate([column.known for column in columns])
    if rows is not None:
        values, known = values[rows], known[rows]
    return pa.array(values, mask=None if known.all() else ~known)


def _batch(
    cells: Mapping[str, pa.Array], constants: Mapping[str, Any], schema: pa.Schema, rows: int
) -> pa.RecordBatch:
    # pyarrow.compute is avoided: importing it takes as long as reading some thousand rows.
    single = {
        name: arrow_array([value], schema.field(name).type)[0] for name, value in constants.items()
    }
    arrays = [
        cells[field.name]
        if field.name in cells
        else pa.repeat(single[field.name], rows)
        if field.name in single
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; characters that cannot be encoded as UTF-8 are replaced."""
    if values[0] is None and values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate: valid in JSON, but not in UTF-8
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, list):
        return [_encodable(element) for element in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
