"""Matrices of items and models: numbers without names, or a row or column for each model.

Numbering: columns and rows are counted from 1. `#col2` is the second column, `#row2` the second
row; `#2` is the second column if there are at least as many rows as columns. The items are numbered
from 1, or named by the header if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.errors import TRUNCATED_HINT, ColumnError, EmptyInputError, FieldError
from forgetmap.records import FileRow, Run, RunInfo, canonical_run, connection
from forgetmap.sources.models import selector
from forgetmap.sources.rows import all_columns, csv_cells, object_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table_map import ScoreRange, TableMap

MARK = "#"
TASK = "all"
"""Name of the task for tables without tasks."""
MISSING = frozenset({"", "na", "nan"})
"""Missing values as R and NumPy write them."""
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A row or column of scores.

    Attributes:
        cells: the scores as written.
        lines: the line of each score.
        items: names of the items; None if they are known only by position.
    """

    cells: Sequence[Any]
    lines: Sequence[int]
    items: Sequence[str] | None = None


def line_of_numbers(file: TableFile, model: str) -> ScoreLine:
    """Return a row or column of a matrix without header, by its number."""
    rows = list(csv_cells(file))
    return _numbered(file, rows, model)


def line_of_lists(file: TableFile, rows: Sequence[Any], model: str) -> ScoreLine:
    """Return a row or column of a list of lists, by its number."""
    cells = [(1, row if isinstance(row, list) else [row]) for row in rows]
    return _numbered(file, cells, model)


def line_of_value(value: Any) -> ScoreLine | None:
    """Return the scores in a list of numbers, or in numbers by name; None if it is neither."""
    if isinstance(value, list) and value and all(map(_is_scalar, value)):
        return ScoreLine(value, [1] * len(value))
    if isinstance(value, dict) and value and all(map(_is_scalar, value.values())):
        return ScoreLine(list(value.values()), [1] * len(value), list(value))
    return None


def line_of_name(file: TableFile, column: str, model: str) -> ScoreLine | None:
    """Return the row of a model in a table with a row per model and a column per item."""
    for line, row in object_rows(file, None, columns=all_columns(file)):
        if str(row.get(column)) == model:
            scores = {name: cell for name, cell in row.items() if name != column}
            return ScoreLine(list(scores.values()), [line] * len(scores), list(scores))
    return None


def names_in(file: TableFile, column: str) -> list[str]:
    """Return the values of a column as texts."""
    rows = object_rows(file, None, columns=[column] if file.kind == "parquet" else ())
    return [str(row.get(column)) for _, row in rows]


def read_line(
    file: TableFile, line: ScoreLine, *, name: str, origin: str, table_map: TableMap
) -> Run:
    """Make a run of a row or column of scores."""
    if not line.cells:
        raise EmptyInputError("there are no results", file=str(file.path), hint=TRUNCATED_HINT)
    items = line.items or [str(number) for number in range(1, len(line.cells) + 1)]
    scale = table_map.score_range
    scores = [
        _score(file, cell, line_number, item, scale)
        for cell, line_number, item in zip(line.cells, line.lines, items, strict=True)
    ]
    tasks = [table_map.task or TASK] * len(scores)
    kinds = [("task", pa.string()), ("item", pa.string()), ("score", pa.float64())]
    table = pa.table([tasks, items, scores], schema=pa.schema(kinds))

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for line_number, row in zip(line.lines, table.to_pylist(), strict=True):
            yield line_number, FileRow(row, file=str(file.path))

    frame = nw.from_native(connection().from_arrow(table))
    run = canonical_run(frame, info=RunInfo(), name=name, origin=origin, rows=rows)
    return run if line.items else replace(run, positions_of=str(file.path.resolve()))


def _numbered(file: TableFile, rows: Sequence[tuple[int, list[Any]]], model: str) -> ScoreLine:
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise FieldError(
                f"the line has {len(cells)} numbers, but the first line has {width}",
                file=str(file.path),
                line=line,
                hint="use the same number of columns in every line.",
            )
    kind, index = _index(file, model, len(rows), width)
    if kind == "row":
        line, cells = rows[index]
        return ScoreLine(cells, [line] * width)
    return ScoreLine([cells[index] for _, cells in rows], [line for line, _ in rows])


def _index(file: TableFile, model: str, height: int, width: int) -> tuple[str, int]:
    """Return `row` or `col`, and the index of the row or column."""
    kind = next((kind for kind in ("row", "col") if model.startswith(kind)), "")
    digits = model.removeprefix(kind)
    most = height if kind == "row" else width
    if not digits.isdecimal() or not 1 <= int(digits[:9]) <= most:
        raise ColumnError(
            f"this table has no header, {height} rows and {width} columns; there is no {model!r}",
            file=str(file.path),
            field=model,
            hint=f"choose a column such as {selector(file.path, 'col1')}, or a row such as "
            f"{selector(file.path, 'row1')}.",
        )
    if not kind and width > height:
        raise ColumnError(
            f"this table has no header and more columns ({width}) than rows ({height}), so it is "
            "unclear whether the rows are items or models",
            file=str(file.path),
            field=model,
            hint=f"use {selector(file.path, f'row{digits}')} if each row is a model, or "
            f"{selector(file.path, f'col{digits}')} if each column is one.",
        )
    return kind or "col", int(digits[:9]) - 1


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


def _score(
    file: TableFile, cell: Any, line: int, item: str, scale: ScoreRange | None
) -> float | None:
    text = "" if cell is None else str(cell).strip()
    if text.lower() in MISSING:
        return None
    try:
        score = _TRUTH[text.lower()] if text.lower() in _TRUTH else float(text)
    except ValueError:
        raise FieldError(
            f"{text[:60]!r} of {item!r} is not a score",
            file=str(file.path),
            line=line,
            field="score",
            hint="give a number, true or false, or leave the cell empty.",
        ) from None
    if scale is None:
        return score
    if not scale.holds(score):
        raise FieldError(
            f"score is {score:g}, outside of --range {scale}",
            file=str(file.path),
            line=line,
            field="score",
            hint="give the worst and the best possible score, such as --range 0:100.",
        )
    return scale.share(score)
