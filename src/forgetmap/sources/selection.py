"""Selection of one model from a table of several: `TABLE#NAME`.

`scores.csv#tuned` takes the column `tuned` as score, or the rows whose column `model` is `tuned`,
or the row that begins with `tuned`. `log.jsonl#tuned.is_correct` is a path into the rows, and
`log.json#tuned` a list in a document. Columns of matrices are chosen by number: see matrix.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError
from forgetmap.records import Run, listed
from forgetmap.sources.documents import as_rows, read_document
from forgetmap.sources.matrix import (
    MARK,
    TASK,
    ScoreLine,
    line_of_lists,
    line_of_name,
    line_of_numbers,
    line_of_value,
    names_in,
    read_line,
)
from forgetmap.sources.models import (
    MODELS,
    model_column,
    score_columns,
    score_within,
    selector,
)
from forgetmap.sources.paths import NOTHING, value_at
from forgetmap.sources.rows import first_rows, raw_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table import (
    column_names,
    distinct_texts,
    has_items,
    leads_into,
    prepare_table,
    read_table,
)
from forgetmap.sources.table_map import TableMap

ROWS_LOOKED_AT = 200
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """A path and the chosen model.

    Attributes:
        path: the table.
        model: name of a column or of a model in it, or number of a column or row; None for all.
    """

    path: Path
    model: str | None = None


def is_remote(source: object) -> bool:
    """Whether this is a URL rather than a path."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


def parse_selection(source: str) -> ModelSelection:
    """Split a source at its last `#`, unless a file has exactly this name."""
    path, mark, model = source.rpartition(MARK)
    if not mark or not model or Path(source).exists() or not Path(path).exists():
        return ModelSelection(Path(source))
    return ModelSelection(Path(path), model)


def read_selection(file: TableFile, model: str, *, name: str, table_map: TableMap) -> Run:
    """Read the results of one model from a table of several."""
    origin = f"{file.path}{MARK}{model}"
    line = line_of_numbers(file, model) if file.headerless else _of_document(file, model, table_map)
    if isinstance(line, ScoreLine):
        return read_line(file, line, name=name, origin=origin, table_map=table_map)
    if line is not None:
        table_map = replace(table_map, rows=line)
        return read_table([file], name=name, origin=origin, table_map=_with_task(table_map))
    return _of_table(file, model, name, origin, table_map)


def _of_document(file: TableFile, model: str, table_map: TableMap) -> ScoreLine | str | None:
    """Return the scores at a path of a JSON document, or the path of a list of results; or None."""
    if file.kind != "json" and not file.single:
        return None
    document = read_document(file)
    if isinstance(document, list):
        is_matrix = bool(document) and all(isinstance(row, list) for row in document)
        return line_of_lists(file, document, model) if is_matrix else None
    value = value_at(document, model)
    if value is NOTHING or table_map.rows is not None:
        return None
    if as_rows(value) is not None and line_of_value(value) is None:
        return model
    return line_of_value(value)


def _of_table(file: TableFile, model: str, name: str, origin: str, table_map: TableMap) -> Run:
    whole = file
    file = prepare_table(file, table_map)
    source = file.flattening.source if file.flattening else file
    rows = _looked_at(file)
    present = list(dict.fromkeys(key for row in rows for key in row)) or column_names(file)
    if file.kind in {"csv", "parquet"} and file.flattening is None:
        present = column_names(file)
    column = _score_path(rows, present, model)
    if column is not None:
        mapped = table_map.with_columns(score=column)
        if has_items(present, mapped.columns):
            mapped = _with_task(mapped, present)
            return read_table([whole], name=name, origin=origin, table_map=mapped)
        cells = [(line, row["score"]) for line, row in raw_rows(file, {"score": model})]
        by_place = ScoreLine([cell for _, cell in cells], [line for line, _ in cells])
        return read_line(file, by_place, name=name, origin=origin, table_map=table_map)
    by = model_column(file.path, present, table_map, MODELS)
    known = distinct_texts(file, by) if by is not None and by in column_names(file) else []
    if model in known and by is not None and _is_long(present, table_map):
        only, mapped = (by, model), _with_task(table_map, present)
        return read_table([whole], name=name, origin=origin, table_map=mapped, only=only)
    first = by or (present[0] if present else "")
    is_plain = file.flattening is None or file.flattening.rows is None
    named = line_of_name(source, first, model) if is_plain else None
    if named is None:
        known = known or score_columns(rows) or names_in(source, first)
        raise _no_such(file, model, known or present)
    return read_line(file, named, name=name, origin=origin, table_map=table_map)


def _looked_at(file: TableFile) -> list[Any]:
    source, rows = file, None
    if file.flattening is not None:
        source, rows = file.flattening.source, file.flattening.rows
    return first_rows(source, rows, ROWS_LOOKED_AT)


def _score_path(rows: Sequence[Any], present: Sequence[str], model: str) -> str | None:
    """Return the column or path of a model's scores, also inside a column of objects."""
    if model in present:
        holds_objects = any(isinstance(row.get(model), dict) for row in rows)
        return score_within(rows, model) if holds_objects else model
    if leads_into(model, present) and any(value_at(row, model) is not NOTHING for row in rows):
        return model
    return None


def _is_long(present: Sequence[str], table_map: TableMap) -> bool:
    """Whether the table has a row per result, not a row per model."""
    return has_items(present, table_map.columns)


def _with_task(table_map: TableMap, present: Sequence[str] = ()) -> TableMap:
    """Set a fallback task for a table without tasks."""
    has_task = "task" in table_map.columns or "task" in present
    return table_map if table_map.task or has_task else replace(table_map, fallback_task=TASK)


def _no_such(file: TableFile, model: str, known: Sequence[str]) -> ColumnError:
    return ColumnError(
        f"there is no column or model {model!r}; the choices are {listed(list(known))}",
        file=str(file.path),
        field=model,
        hint=f"choose one of them, such as {selector(file.path, known[0])}.",
    )
