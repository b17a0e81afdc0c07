"""One model out of a table that holds several: `TABLE#NAME`.

`scores.csv#tuned` takes the column `tuned` as score, or the rows in which the column `model` says
so. In a matrix of numbers without header `#2` is the second column; `#row2` the second row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.errors import TRUNCATED_HINT, ColumnError, EmptyInputError, FieldError
from forgetmap.records import ColumnMap, FileRow, Run, RunInfo, canonical_run, connection, listed
from forgetmap.sources.rows import csv_cells, raw_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table import TASK, column_names, has_items, read_table

MARK = "#"
MODELS = ("model", "model_name", "template", "system")
"""Columns that say whose result a row is."""


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """A path and the model chosen from it.

    Attributes:
        path: the table.
        model: name of a column or of a model in it, or number of a column or row; None for all.
    """

    path: Path
    model: str | None = None


def parse_selection(source: str) -> ModelSelection:
    """What stands before and after the last `#`, unless a file is really named like that."""
    path, mark, model = source.rpartition(MARK)
    if not mark or not model or Path(source).exists() or not Path(path).is_file():
        return ModelSelection(Path(source))
    return ModelSelection(Path(path), model)


def read_selection(
    file: TableFile, model: str, *, name: str, column_map: ColumnMap, task: str | None
) -> Run:
    """The results of one model in a table of several."""
    origin = f"{file.path}{MARK}{model}"
    if file.headerless:
        scores, lines = _of_matrix(file, model)
        return _by_position(file, scores, lines, name=name, origin=origin, task=task)
    present = column_names(file)
    if model in present:
        mapped = {**column_map, "score": model}
        if has_items(present, mapped):
            return read_table([file], name=name, origin=origin, column_map=mapped, task=task)
        cells = [(line, row["score"]) for line, row in raw_rows(file, {"score": model})]
        lines, scores = [line for line, _ in cells], [cell for _, cell in cells]
        return _by_position(file, scores, lines, name=name, origin=origin, task=task)
    by = [column for column in MODELS if column in present and column not in column_map.values()]
    known = _models(file, by[0]) if len(by) == 1 else []
    if model not in known:
        raise _no_such(file, model, known or present)
    only = (by[0], model)
    return read_table([file], name=name, origin=origin, column_map=column_map, task=task, only=only)


def _models(file: TableFile, column: str) -> list[str]:
    models = {str(row["model"]): None for _, row in raw_rows(file, {"model": column})}
    return list(models)


def _no_such(file: TableFile, model: str, known: Sequence[str]) -> ColumnError:
    return ColumnError(
        f"there is no column or model {model!r}; there are {listed(list(known))}",
        file=str(file.path),
        field=model,
        hint=f"choose one of them, such as {file.path.name}{MARK}{known[0]}.",
    )


def _of_matrix(file: TableFile, model: str) -> tuple[list[Any], list[int]]:
    """The numbers of one column or row, and the lines they stand in."""
    rows = list(csv_cells(file))
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise FieldError(
                f"{len(cells)} numbers where the first line has {width}",
                file=str(file.path),
                line=line,
                hint="give every line as many numbers.",
            )
    kind, index = _matrix_index(file, model, len(rows), width)
    if kind == "row":
        line, cells = rows[index]
        return list(cells), [line] * width
    return [cells[index] for _, cells in rows], [line for line, _ in rows]


def _matrix_index(file: TableFile, model: str, height: int, width: int) -> tuple[str, int]:
    """Row or column, and which of them from 0."""
    kind = next((kind for kind in ("row", "col") if model.startswith(kind)), "")
    digits = model.removeprefix(kind)
    most = height if kind == "row" else width
    name = file.path.name
    if not digits.isdecimal() or not 1 <= int(digits[:9]) <= most:
        raise ColumnError(
            f"this table has no header, {height} rows and {width} columns; there is no {model!r}",
            file=str(file.path),
            field=model,
            hint=f"choose a column such as {name}{MARK}1, or a row such as {name}{MARK}row1.",
        )
    if not kind and width > height:
        raise ColumnError(
            f"this table has no header and more columns ({width}) than rows ({height}): are the "
            "rows items or models?",
            file=str(file.path),
            field=model,
            hint=f"say {name}{MARK}row{digits} if each row is a model, {name}{MARK}col{digits} if "
            "each column is one.",
        )
    return kind or "col", int(digits[:9]) - 1


def _by_position(
    file: TableFile, cells: Sequence[Any], lines: Sequence[int], *, name: str, origin: str,
    task: str | None,
) -> Run:  # fmt: skip
    """Items are known by their place in this one file."""
    if not cells:
        raise EmptyInputError("there is no result in it", file=str(file.path), hint=TRUNCATED_HINT)
    scores = [_score(file, cell, line) for cell, line in zip(cells, lines, strict=True)]
    items = [str(number) for number in range(1, len(scores) + 1)]
    tasks = [task or TASK] * len(scores)
    kinds = [("task", pa.string()), ("item", pa.string()), ("score", pa.float64())]
    table = pa.table([tasks, items, scores], schema=pa.schema(kinds))

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for line, row in zip(lines, table.to_pylist(), strict=True):
            yield line, FileRow(row, file=str(file.path))

    frame = nw.from_native(connection().from_arrow(table))
    run = canonical_run(frame, info=RunInfo(), name=name, origin=origin, rows=rows)
    return replace(run, positions_of=str(file.path.resolve()))


_TRUTH = {"true": 1.0, "false": 0.0}


def _score(file: TableFile, cell: Any, line: int) -> float | None:
    text = "" if cell is None else str(cell).strip()
    if not text:
        return None
    try:
        return _TRUTH[text.lower()] if text.lower() in _TRUTH else float(text)
    except ValueError:
        raise FieldError(
            f"{text[:60]!r} is no score",
            file=str(file.path),
            line=line,
            field="score",
            hint="give a number, true or false, or leave the cell empty.",
        ) from None
