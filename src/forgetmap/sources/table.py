"""Plain tables: CSV, JSON lines, JSON and Parquet, gzipped or not, in one file or split over many.

Parquet without texts stays lazy. Text formats are parsed once, by DuckDB, into a temporary table;
cells that do not fit become NaN or -1, which validation refuses, and only then is the file read
again line by line to say where.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from forgetmap.errors import ColumnError, UnreadableError
from forgetmap.records.engine import connection, fresh_name, literal, quote, readable
from forgetmap.records.frames import ColumnMap, canonical_run, match_columns
from forgetmap.records.manifest import RunInfo
from forgetmap.records.run import Run
from forgetmap.records.schema import BY_NAME, TEXT_NAMES
from forgetmap.sources.rows import raw_rows
from forgetmap.sources.sniff import TableFile, csv_header

LONGEST_LINE = 256 << 20
PEEK_OBJECTS = 1000


def read_table(
    files: Sequence[TableFile], *, name: str, origin: str, column_map: ColumnMap, task: str | None
) -> Run:
    """One run from one or several table files."""
    files = [_unpacked(file) for file in files]
    chosen = [_chosen(file, column_map, task) for file in files]
    parts = [_select(file, columns, task) for file, columns in zip(files, chosen, strict=True)]

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        return chain.from_iterable(map(raw_rows, files, chosen))

    try:
        texts = relation = _union(parts)
        if "question" not in relation.columns and any(file.kind != "parquet" for file in files):
            relation = _materialised(relation)
        return canonical_run(
            nw.from_native(relation),
            info=RunInfo(),
            name=name,
            origin=origin,
            rows=rows,
            texts=nw.from_native(texts),
        )
    except duckdb.Error as error:
        raise _diagnosed(files, chosen, origin, error) from None


def _union(parts: list[str]) -> duckdb.DuckDBPyRelation:
    if len(parts) == 1:
        return connection().sql(parts[0])
    return connection().sql(" UNION ALL BY NAME ".join(f"({part})" for part in parts))


def _materialised(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Parse a text file once; texts are left behind in it."""
    kept = ", ".join(quote(name) for name in relation.columns if name not in TEXT_NAMES)
    name = fresh_name()
    relation.project(kept).create(name)
    return connection().table(name)


def _chosen(file: TableFile, column_map: ColumnMap, task: str | None) -> dict[str, str]:
    present = _column_names(file)
    doubled = sorted({name for name in present if present.count(name) > 1})
    if doubled:
        raise ColumnError(
            f"column {doubled[0]!r} stands {present.count(doubled[0])} times in the header",
            file=str(file.path),
            line=1,
            field=doubled[0],
            hint="give each column its own name.",
        )
    return match_columns(present, column_map, origin=str(file.path), task=task)


def _column_names(file: TableFile) -> list[str]:
    if file.kind == "csv":
        return csv_header(file)
    if file.kind == "parquet":
        with readable(str(file.path)):
            return connection().read_parquet(str(file.path)).columns
    names: dict[str, None] = {}
    for _, row in islice(raw_rows(file), PEEK_OBJECTS):
        names.update(dict.fromkeys(row))
    return list(names)


def _select(file: TableFile, chosen: Mapping[str, str], task: str | None) -> str:
    kinds = _parquet_kinds(file) if file.kind == "parquet" else {}
    cells = [_cell(ours, theirs, kinds.get(theirs)) for ours, theirs in chosen.items()]
    if task is not None:
        cells.append(f"{literal(task)} AS task")
    return f"SELECT {', '.join(cells)} FROM {_scan(file, chosen)}"


def _scan(file: TableFile, chosen: Mapping[str, str]) -> str:
    path = literal(str(file.path))
    packed = "gzip" if file.gzipped else "none"
    if file.kind == "parquet":
        return f"read_parquet({path})"
    if file.kind == "csv":
        return (
            f"read_csv({path}, all_varchar=true, header=true, auto_detect=false, "
            f"columns={_columns(csv_header(file))}, delim={literal(file.delimiter)}, quote='\"', "
            f"escape='\"', nullstr='', compression='{packed}', max_line_size={LONGEST_LINE >> 3}, "
            "strict_mode=true)"
        )
    layout = "newline_delimited" if file.kind == "jsonl" else "array"
    return (
        f"read_json({path}, format='{layout}', columns={_columns(list(chosen.values()))}, "
        f"compression='{packed}', maximum_object_size={LONGEST_LINE >> 2})"
    )


def _columns(names: list[str]) -> str:
    return "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names) + "}"


def _cell(ours: str, theirs: str, kind: str | None) -> str:
    """The column as its field's type; what does not fit becomes a value that validation refuses."""
    column, wanted = quote(theirs), str(BY_NAME[ours].type)
    if ours == "repeat" or wanted == "string" or ours == "options":
        is_list = kind is not None and kind.endswith("[]")
        return f"{column if is_list else f'CAST({column} AS VARCHAR)'} AS {ours}"
    if kind in _NUMBERS:
        return f"{column} AS {ours}"
    text = f"nullif(trim(CAST({column} AS VARCHAR)), '')"
    truth = f"CASE lower({text}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    number = f"coalesce(TRY_CAST({text} AS DOUBLE), {truth})"
    if ours == "score":
        return f"CASE WHEN {text} IS NOT NULL THEN coalesce({number}, 'nan') END AS score"
    if ours == "k":
        whole = f"CASE WHEN {number} = floor({number}) THEN TRY_CAST({number} AS INTEGER) END"
        return f"CASE WHEN {text} IS NOT NULL THEN coalesce({whole}, -1) END AS k"
    return f"CAST({text} AS {'DOUBLE' if wanted == 'double' else 'BIGINT'}) AS {ours}"


_NUMBERS = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "FLOAT",
        "DOUBLE",
        "BOOLEAN",
    ]
)


def _parquet_kinds(file: TableFile) -> dict[str, str]:
    with readable(str(file.path)):
        relation = connection().read_parquet(str(file.path))
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _unpacked(file: TableFile) -> TableFile:
    """Parquet is read in place, so a gzipped one is unpacked first."""
    if file.kind != "parquet" or not file.gzipped:
        return file
    folder = Path(connection().sql("SELECT current_setting('temp_directory')").fetchall()[0][0])
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = folder / f"{fresh_name()}.parquet"
    with unpacked.open("wb") as target, file.open() as stream:
        shutil.copyfileobj(stream, target)
    return TableFile(unpacked, "parquet")


def _diagnosed(
    files: Sequence[TableFile],
    chosen: Sequence[Mapping[str, str]],
    origin: str,
    error: duckdb.Error,
) -> UnreadableError:
    """Read again slowly to say where the fault is; the engine's own words if nothing is found."""
    for file, columns in zip(files, chosen, strict=True):
        for _ in raw_rows(file, columns):
            pass
    return UnreadableError(
        f"cannot be read: {str(error).strip().splitlines()[0]}",
        file=origin,
        hint="is the file whole and in one format?",
    )
