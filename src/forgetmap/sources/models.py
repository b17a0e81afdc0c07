"""The models in a table, and how to choose one: `TABLE#NAME`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError
from forgetmap.records import BY_NAME, SYNONYMS, listed
from forgetmap.sources.decode import number
from forgetmap.sources.documents import RowList
from forgetmap.sources.paths import scalar_paths
from forgetmap.sources.rows import first_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table_map import TableMap
from forgetmap.sources.unknown import map_command, nearest_formats

MODELS = ("model", "model_name", "template", "system")
"""Columns that say whose result a row is."""
WHOSE = MODELS[:2]
"""Of these, those of which several values are several models."""
ROWS_LOOKED_AT = 200
MAX_DEPTH = 3
SHAPES = {"jsonl": "JSON lines", "json": "a JSON list", "csv": "a CSV", "parquet": "Parquet"}


def selector(path: str | Path, name: str) -> str:
    """What to type to choose a model of a table."""
    return shlex.quote(f"{path}#{name}")


def model_column(
    path: Path, present: Sequence[str], table_map: TableMap, names: Sequence[str] = WHOSE
) -> str | None:
    """The column that says whose result a row is, if exactly one may be meant.

    Raises:
        ColumnError: the map names one that is not there.
    """
    if table_map.model is not None and table_map.model not in present:
        raise ColumnError(
            f"--columns model={table_map.model}: there is no column {table_map.model!r}; the "
            f"columns are {listed(list(present))}",
            file=str(path),
            field="model",
            hint=f"{map_command(path)} shows the columns with examples.",
        )
    by = [name for name in names if name in present and name not in table_map.columns.values()]
    return table_map.model or (by[0] if len(by) == 1 else None)


def several_models(path: Path, models: Sequence[str]) -> ColumnError:
    """The error for a table that holds several models, of which none is chosen."""
    return ColumnError(
        f"this table contains results of {len(models):,} models: {listed(list(models))}",
        file=str(path),
        field="model",
        hint=_choices(path, models),
    )


def several_lists(path: Path, lists: Sequence[RowList]) -> ColumnError:
    """The error for a document with several lists of results that look alike."""
    names = [one.path for one in lists]
    return ColumnError(
        f"this document contains {len(lists):,} lists of results: {listed(names)}",
        file=str(path),
        field="rows",
        hint=_choices(path, names),
    )


def empty_path(file: TableFile, field: str, column: str, rows: str | None) -> ColumnError:
    """The error for a path of a map that leads nowhere."""
    paths = list(_numbers(_looked_at(file, rows)))
    return ColumnError(
        f"--columns {field}={column}: all values are empty",
        file=str(file.path),
        field=field,
        hint=f"columns with numbers are {listed(paths)}." if paths else map_command(file.path),
    )


def explain_columns(file: TableFile, error: ColumnError) -> ColumnError:
    """The error for a table that lacks a needed column, with what it has instead."""
    path, source = file.path, file.flattening.source if file.flattening else file
    rows = _looked_at(source, file.flattening.rows if file.flattening else None)
    missing_scores = error.field == "score" or "'score'" in error.message.partition(";")[0]
    names = score_columns(rows) if missing_scores else []
    if len(names) > 1:
        return ColumnError(
            f"there is no column 'score', but {len(names):,} columns contain scores: "
            f"{listed(names)}",
            file=str(path),
            field="score",
            hint=_choices(path, names),
        )
    known = {name for row in rows for name in row}
    if error.field == "task" and not missing_scores and "'item'" not in error.message:
        return error
    facts = f"{error.message.partition(';')[0]}; the columns are {listed(sorted(known))}"
    if source.kind in {"json", "jsonl"}:
        facts = f"unknown format: {SHAPES[source.kind]}; {facts}; {nearest_formats(known)}"
    return ColumnError(
        facts,
        file=str(path),
        field=error.field,
        hint=f"{map_command(path)} proposes a mapping; or {error.hint}",
    )


def score_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns that hold scores from 0 to 1, or objects with one, as they are chosen after `#`."""
    if not rows:
        return []
    numbers = _numbers(rows)
    scores = [
        path
        for path, values in numbers.items()
        if path not in _OTHERS and all(0 <= value <= 1 for value in values)
    ]
    top = [path for path in scores if path in rows[0]]
    inner: dict[str, list[str]] = {}
    for path in scores:
        parent, dot, leaf = path.rpartition(".")
        if dot and parent in rows[0]:
            inner.setdefault(leaf, []).append(parent)
    known = [leaf for leaf in SYNONYMS["score"] if len(inner.get(leaf, [])) > 1]
    by_leaf = inner[known[0]] if known else max(inner.values(), key=len, default=[])
    return by_leaf if len(by_leaf) > max(1, len(top)) else top


def score_within(rows: Sequence[Mapping[str, Any]], column: str) -> str | None:
    """The path of the score inside of the objects of a column; None if nothing is clearly it."""
    inside = [path for path in _numbers(rows) if path.startswith(f"{column}.")]
    named = [path for path in inside if path.removeprefix(f"{column}.") in _SCORES]
    if len(named) == 1 or len(inside) == 1:
        return (named or inside)[0]
    return None


_OTHERS = frozenset({*BY_NAME, *SYNONYMS["item"], *SYNONYMS["task"], *MODELS} - {"score"})
_SCORES = frozenset({"score", *SYNONYMS["score"]})


def _looked_at(file: TableFile, rows: str | None) -> list[Mapping[str, Any]]:
    return first_rows(file, rows, ROWS_LOOKED_AT)


def _numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Paths at which every row has a number or a truth value, or nothing, and these."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for path, value in scalar_paths(row, depth=MAX_DEPTH):
            if value not in (None, ""):
                values.setdefault(path, []).append(_as_number(value))
    return {path: cells for path, cells in values.items() if None not in cells}


def _as_number(value: Any) -> float | None:
    return None if isinstance(value, dict | list) else number(value)


def _choices(path: Path, names: Sequence[str]) -> str:
    first = f"choose one: {selector(path, names[0])}"
    return f"{first}, {selector(path, names[1])}, ..." if len(names) > 1 else f"{first}."
