"""The models in a table, and how to choose one: `TABLE#NAME`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError
from forgetmap.records import BY_NAME, SYNONYMS, listed, missing_columns
from forgetmap.sources.decode import number
from forgetmap.sources.documents import RowList
from forgetmap.sources.paths import scalar_paths
from forgetmap.sources.rows import first_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table_map import TableMap
from forgetmap.sources.unknown import map_command, nearest_formats

MODELS = ("model", "model_name", "template", "system")
"""Columns with the model of a row."""
WHOSE = MODELS[:2]
"""Those of them in which several values always mean several models."""
ROWS_LOOKED_AT = 200
MAX_DEPTH = 3
SHAPES = {"jsonl": "JSON lines", "json": "a JSON list", "csv": "a CSV", "parquet": "Parquet"}


def selector(path: str | Path, name: str) -> str:
    """Return `TABLE#NAME`, quoted for the shell."""
    return shlex.quote(f"{path}#{name}")


def model_column(
    path: Path, present: Sequence[str], table_map: TableMap, names: Sequence[str] = WHOSE
) -> str | None:
    """Return the column with the model of each row; None if there is none, or no unique one.

    Raises:
        ColumnError: the map names a column that does not exist.
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
    """Return the error for a table with several models of which none is chosen."""
    return ColumnError(
        f"this table contains results of {len(models):,} models: {listed(list(models))}",
        file=str(path),
        field="model",
        hint=_choices(path, models),
    )


def several_lists(path: Path, lists: Sequence[RowList]) -> ColumnError:
    """Return the error for a document with several similar lists of results."""
    names = [one.path for one in lists]
    return ColumnError(
        f"this document contains {len(lists):,} lists of results: {listed(names)}",
        file=str(path),
        field="rows",
        hint=_choices(path, names),
    )


def empty_path(file: TableFile, field: str, column: str, rows: str | None) -> ColumnError:
    """Return the error for a column or path of a map without any value."""
    paths = list(_numbers(_looked_at(file, rows)))
    return ColumnError(
        f"--columns {field}={column}: all values are empty",
        file=str(file.path),
        field=field,
        hint=f"columns with numbers are {listed(paths)}." if paths else map_command(file.path),
    )


def explain_columns(file: TableFile, error: ColumnError) -> ColumnError:
    """Extend the error for a missing column by the columns that the table has."""
    path, source = file.path, file.flattening.source if file.flattening else file
    rows = _looked_at(source, file.flattening.rows if file.flattening else None)
    missing_scores = "score" in error.missing
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
    if error.missing in ((), ("task",)):
        return error
    facts = f"{missing_columns(error.missing)}; the columns are {listed(sorted(known))}"
    if source.kind in {"json", "jsonl"}:
        facts = f"unknown format: {SHAPES[source.kind]}; {facts}; {nearest_formats(known)}"
    explained = ColumnError(
        facts,
        file=str(path),
        field=error.field,
        hint=f"{map_command(path)} proposes a mapping; or {error.hint}",
    )
    explained.missing = error.missing
    return explained


def score_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns with scores from 0 to 1, or with objects that contain one."""
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
    """Return the path of the score inside the objects of a column; None if it is not clear."""
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
    """Return the paths whose values are all numbers or truth values, with these values."""
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
