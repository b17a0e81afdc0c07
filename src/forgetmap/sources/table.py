"""Plain tables: CSV, JSON lines, JSON and Parquet, gzipped or not, in one file or split over many.

Parquet without texts stays lazy. Text formats are parsed once, by DuckDB, into a temporary table;
cells that do not fit become NaN or -1, which validation refuses, and only then is the file read
again line by line to say where.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb
import narwhals as nw
import pyarrow as pa

from forgetmap._cache import temporary_path
from forgetmap.errors import ColumnError, EmptyInputError, FieldError
from forgetmap.records import (
    BY_NAME,
    HASHES,
    KEY,
    TEXT_NAMES,
    ColumnMap,
    FileRow,
    Run,
    RunInfo,
    by_synonyms,
    canonical_run,
    connection,
    fresh_name,
    literal,
    locate_error,
    match_columns,
    needs_content,
    parquet_columns,
    quote,
    readable,
    scan,
    unquoted_sql,
)
from forgetmap.sources.rows import csv_header, raw_rows, require_text
from forgetmap.sources.sniff import (
    MAX_COLUMNS,
    MAX_LINE_BYTES,
    UTF8_MARK,
    TableFile,
    readable_file,
    require_few_columns,
)

Chosen = Mapping[str, str]
"""Canonical name -> column of the file."""
Cell = tuple[str, str]
"""A column and what stands in it."""
TASK = "all"
"""What the task is called in a table of another tool that knows no tasks."""
EVALSTATS = frozenset({"template", "input", "score"})
"""Columns of a table of evalstats, which may have `run` and `evaluator` as well."""


def read_table(
    files: Sequence[TableFile],
    *,
    name: str,
    origin: str,
    column_map: ColumnMap,
    task: str | None,
    only: Cell | None = None,
) -> Run:
    """One run from one or several table files.

    Args:
        files: the tables.
        name: what to call the run.
        origin: where it came from.
        column_map: canonical field -> column, for tables that name them otherwise.
        task: name of the task, for tables without such a column.
        only: take only the rows that say this.
    """
    files = [_prepared(file) for file in files]
    task = task or _implied_task(files, column_map)
    chosen = [_chosen(file, column_map, task) for file in files]

    def rows() -> Iterator[tuple[int, FileRow]]:
        return _all_rows(files, chosen, only)

    try:
        selects = (
            _select(file, columns, only) for file, columns in zip(files, chosen, strict=True)
        )
        texts = relation = _union(selects, task)
        is_text = any(file.kind != "parquet" for file in files)
        if is_text and not needs_content(relation.columns):
            relation = _materialised(relation)
        return canonical_run(
            nw.from_native(relation),
            info=RunInfo(),
            name=name,
            origin=origin,
            rows=rows,
            texts=nw.from_native(texts),
        )
    except (duckdb.Error, pa.ArrowException, OSError, FieldError) as error:
        raise locate_error(rows(), origin, error) from None


def _prepared(file: TableFile) -> TableFile:
    """What the engine can read in place; text must be text throughout."""
    if file.kind != "parquet":
        require_text(file)
    if file.kind == "parquet" and file.gzipped:
        return _unpacked(file, skip=0)
    if file.kind in {"json", "jsonl"} and file.marked:
        return _unpacked(file, skip=len(UTF8_MARK))
    return file


def _unpacked(file: TableFile, *, skip: int) -> TableFile:
    unpacked = temporary_path()
    with readable_file(file.path), unpacked.open("wb") as target, file.open() as stream:
        stream.read(skip)
        shutil.copyfileobj(stream, target)
    return replace(file, unpacked=unpacked, gzipped=False)


def has_items(present: Sequence[str], column_map: ColumnMap) -> bool:
    """Whether a table with these columns says which item a row is about."""
    columns = _named_columns(present, column_map)
    known = columns.keys() | by_synonyms(present, columns).keys()
    return not known.isdisjoint({"item", "question"})


def _named_columns(present: Sequence[str], column_map: ColumnMap) -> dict[str, str]:
    return {name: name for name in BY_NAME if name in present} | dict(column_map)


def _implied_task(files: Sequence[TableFile], column_map: ColumnMap) -> str | None:
    """One task for all, where a table names its items in its own way and has no task at all."""
    for file in files:
        present = [] if file.headerless else column_names(file)
        columns = _named_columns(present, column_map)
        known = by_synonyms(present, columns)
        if "item" not in known or "task" in {*columns, *known}:
            return None
    return TASK


def _of_other_tools(present: Sequence[str]) -> dict[str, str]:
    """Fields that tables of other tools have under names too common to go by alone."""
    if not EVALSTATS.issubset(present):
        return {}
    names = {"repeat": "run", "scorer": "evaluator"}
    return {field: column for field, column in names.items() if column in present}


def _chosen(file: TableFile, column_map: ColumnMap, task: str | None) -> dict[str, str]:
    if file.headerless:
        raise ColumnError(
            "this table has no header: its first line holds nothing but numbers",
            file=str(file.path),
            line=1,
            hint=f"choose the column of a model by its number, such as {file.path.name}#1, or its "
            f"row, such as {file.path.name}#row1.",
        )
    present = column_names(file)
    column_map = _of_other_tools(present) | dict(column_map)
    require_few_columns(file.path, len(present))
    # Spreadsheets write columns without name behind the last one.
    for name, count in Counter(filter(None, present)).most_common(1):
        if count > 1:
            raise ColumnError(
                f"column {name!r} stands {count} times in the header",
                file=str(file.path),
                line=1,
                field=name,
                hint="give each column its own name.",
            )
    chosen = match_columns(present, column_map, origin=str(file.path), task=task)
    foreign = [name for name in HASHES if name in chosen and name not in column_map]
    return {
        field: column
        for field, column in chosen.items()
        if field not in foreign or _holds_our_hashes(file, column)
    }


def _holds_our_hashes(file: TableFile, column: str) -> bool:
    """Whether a column named like a hash of ours holds whole numbers; others hold digests."""
    if file.kind == "parquet":
        kinds = dict(zip(column_names(file), _parquet_kinds(file), strict=True))
        return kinds[column] in _WHOLE
    values = (row.get("hash") for _, row in raw_rows(file, {"hash": column}))
    first = next((value for value in values if value not in (None, "")), 0)
    return str(first).lstrip("-").isdecimal()


def column_names(file: TableFile) -> list[str]:
    """The names of its columns."""
    if file.kind == "csv":
        return csv_header(file)
    if file.kind == "parquet":
        return parquet_columns(file.data, origin=str(file.path))
    names = f"SELECT DISTINCT unnest(json_keys(json)) FROM {_objects(file)} LIMIT {MAX_COLUMNS + 1}"
    try:
        names_found = connection().sql(names).fetchall()
    except duckdb.Error as error:
        raise locate_error(raw_rows(file, {}), str(file.path), error) from None
    if not names_found:
        for _ in raw_rows(file, {}):
            pass
        raise EmptyInputError(
            "there is no result in it",
            file=str(file.path),
            hint="give one object per result, with task, item and score.",
        )
    return sorted(name for (name,) in names_found)


def _all_rows(
    files: Sequence[TableFile], chosen: Sequence[Chosen], only: Cell | None
) -> Iterator[tuple[int, FileRow]]:
    """The rows of all files, with every column that any of them has."""
    blank = dict.fromkeys(name for columns in chosen for name in columns)
    for file, columns in zip(files, chosen, strict=True):
        selection = {**columns, _WHOSE: only[0]} if only else columns
        for line, row in raw_rows(file, selection):
            if only is None or str(row[_WHOSE]) == only[1]:
                known = {name: cell for name, cell in row.items() if name != _WHOSE}
                yield line, FileRow(blank | known, file=row.file)


def _union(parts: Iterable[str], task: str | None) -> duckdb.DuckDBPyRelation:
    constant = f", {literal(task)} AS task" if task is not None else ""
    every = " UNION ALL BY NAME ".join(f"({part})" for part in parts)
    return connection().sql(f"SELECT *{constant} FROM ({every})")


def _materialised(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Parse a text file once; texts are left behind in it."""
    kept = ", ".join(quote(name) for name in relation.columns if name not in TEXT_NAMES)
    name = fresh_name()
    relation.project(kept).create(name)
    return connection().table(name)


_WHOSE = "whose"


def _select(file: TableFile, chosen: Chosen, only: Cell | None) -> str:
    if file.kind in {"json", "jsonl"}:
        cells = [_cell(field, quote(column), None) for field, column in chosen.items()]
        selection = dict(chosen) | ({_WHOSE: only[0]} if only else {})
        rows = f"{_json_scan(file, selection)}{_where(quote(only[0]), only[1]) if only else ''}"
        return f"SELECT {', '.join(cells)} FROM {rows}"
    # By place, because the engine takes names that differ only in case for the same.
    present = column_names(file)
    indexes = {field: present.index(column) for field, column in chosen.items()}
    kinds = _parquet_kinds(file) if file.kind == "parquet" else [""] * len(present)
    names = [f"c{index}" for index in range(len(present))]
    where = _where(names[present.index(only[0])], only[1]) if only else ""
    if file.kind == "csv":
        cells = [_csv_cell(field, names[index]) for field, index in indexes.items()]
        return f"SELECT {', '.join(cells)} FROM {_csv_scan(file, names)}{where}"
    cells = [_cell(field, names[index], kinds[index]) for field, index in indexes.items()]
    rows = f"{_parquet_scan(file)} AS scan({', '.join(names)}){where}"
    return f"SELECT {', '.join(cells)} FROM {rows}"


def _where(column: str, value: str) -> str:
    return f" WHERE CAST({column} AS VARCHAR) = {literal(value)}"


def _csv_cell(field: str, column: str) -> str:
    """A cell of a CSV; a text has no quote before what a spreadsheet would take for a formula."""
    is_text = str(BY_NAME[field].type) == "string"
    return _cell(field, unquoted_sql(column) if is_text else column, None)


def _parquet_scan(file: TableFile) -> str:
    return scan("read_parquet", file.data)


def _csv_scan(file: TableFile, names: list[str]) -> str:
    options = (
        f"{_compression(file)}, auto_detect=false, header=true, columns={_columns(names)}, "
        f"delim={literal(file.delimiter)}, quote='\"', escape='\"', nullstr='', "
        f"max_line_size={MAX_LINE_BYTES}, strict_mode=true"
    )
    return scan("read_csv", file.data, options)


def _json_scan(file: TableFile, chosen: Chosen) -> str:
    options = f"{_json_layout(file)}, columns={_columns(chosen.values())}"
    return scan("read_json", file.data, options)


def _objects(file: TableFile) -> str:
    return scan("read_json_objects", file.data, _json_layout(file))


def _json_layout(file: TableFile) -> str:
    layout = "newline_delimited" if file.kind == "jsonl" else "array"
    return f"{_compression(file)}, format='{layout}', maximum_object_size={MAX_LINE_BYTES}"


def _compression(file: TableFile) -> str:
    return f"compression='{'gzip' if file.gzipped else 'none'}'"


def _columns(names: Iterable[str]) -> str:
    once = dict.fromkeys(names)
    return "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in once) + "}"


_SQL_TYPES = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE"}
_WHOLE = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)
_NUMBERS = _WHOLE | {"FLOAT", "DOUBLE", "BOOLEAN"}


def _cell(field: str, column: str, kind: str | None) -> str:
    """The column as its field's type; what does not fit becomes a value that validation refuses.

    Args:
        field: the field.
        column: where it is.
        kind: the type of that column, or None in a text format.
    """
    if field == "options":
        is_list = kind is not None and kind.endswith("[]")
        return f"{column if is_list else f'CAST({column} AS VARCHAR)'} AS {field}"
    sql_type = _SQL_TYPES[str(BY_NAME[field].type)]
    # Keys stay as they are, because the footer of a Parquet file then answers for them.
    if kind == sql_type and (sql_type != "VARCHAR" or field in KEY):
        return f"{column} AS {field}"
    if field == "item" and kind in {"FLOAT", "DOUBLE"}:
        # 7.0 is the id 7 beside a missing value.
        digits = f"CASE WHEN {column} = floor({column}) THEN TRY_CAST({column} AS BIGINT) END"
        return f"coalesce(CAST({digits} AS VARCHAR), CAST({column} AS VARCHAR)) AS item"
    if field == "repeat" or sql_type == "VARCHAR":
        return f"nullif(CAST({column} AS VARCHAR), '') AS {field}"
    return f"{_number(field, column, kind)} AS {field}"


def _number(field: str, column: str, kind: str | None) -> str:
    cell = column if kind in _NUMBERS else f"nullif(trim(CAST({column} AS VARCHAR)), '')"
    truth = f"CASE lower({cell}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    value = column if kind in _NUMBERS else f"coalesce(TRY_CAST({cell} AS DOUBLE), {truth})"
    if field == "score":
        real = f"coalesce(CAST({value} AS DOUBLE), 'nan')"
        return f"CASE WHEN {cell} IS NOT NULL THEN {real} END"
    if field == "k":
        is_whole = "TRUE" if kind in _WHOLE else f"{value} = floor({value})"
        count = f"coalesce(CASE WHEN {is_whole} THEN TRY_CAST({value} AS INTEGER) END, -1)"
        return f"CASE WHEN {cell} IS NOT NULL THEN {count} END"
    return f"CAST({cell} AS {_SQL_TYPES[str(BY_NAME[field].type)]})"


def _parquet_kinds(file: TableFile) -> list[str]:
    with readable(str(file.path)):
        return [str(kind) for kind in connection().sql(f"FROM {_parquet_scan(file)}").types]
