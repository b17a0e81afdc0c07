"""Plain tables: CSV, JSON Lines, JSON and Parquet, compressed or not, in one file or many.

Parquet without texts stays lazy. Text formats are parsed once, by DuckDB, into a temporary table.
Cells of the wrong type become NaN or -1, which validation refuses; the file is then read again line
by line to locate the error.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import duckdb
import narwhals as nw
import pyarrow as pa

from forgetmap._cache import temporary_path
from forgetmap._disk import stamp_of
from forgetmap.errors import ColumnError, EmptyInputError, FieldError, UnreadableError
from forgetmap.records import (
    BY_NAME,
    HASHES,
    KEY,
    MORE_SYNONYMS,
    SYNONYMS,
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
    name_only_task,
    needs_content,
    parquet_columns,
    quote,
    readable,
    scan,
    unquoted_sql,
)
from forgetmap.sources.cells import EQUALS, columns_of, is_rule
from forgetmap.sources.documents import document_rows, find_row_lists, read_document
from forgetmap.sources.flatten import flatten
from forgetmap.sources.matrix import TASK
from forgetmap.sources.models import (
    MODELS,
    empty_path,
    explain_columns,
    model_column,
    selector,
    several_lists,
    several_models,
)
from forgetmap.sources.repeated_ids import find_repeated_ids, number_rows
from forgetmap.sources.rows import csv_header, first_rows, raw_rows, require_text
from forgetmap.sources.scale import rescaled, rescaled_rows
from forgetmap.sources.sniff import (
    MAX_COLUMNS,
    MAX_LINE_BYTES,
    MAX_WIDTH,
    UTF8_MARK,
    TableFile,
    readable_file,
    require_few_columns,
)
from forgetmap.sources.table_map import TableMap
from forgetmap.sources.unknown import summary_error, unknown_document

ROWS_LOOKED_AT = 200
MAX_LISTS = 20
"""Upper limit on lists of results in a document that are read as models."""
Chosen = Mapping[str, str]
"""Canonical name -> column of the file."""
Cell = tuple[str, str]
"""A column and a value in it."""
EVALSTATS = frozenset({"template", "input", "score"})
"""Columns of a table of evalstats, which may also have `run` and `evaluator`."""
_OF_EVALSTATS = {"repeat": "run", "scorer": "evaluator"}
_OTHER_TOOLS = frozenset(_OF_EVALSTATS.values())
MAX_NAMES_CACHED = 32
"""Number of tables whose column names are cached."""


def read_table(
    files: Sequence[TableFile], *, name: str, origin: str, table_map: TableMap,
    only: Cell | None = None,
) -> Run:  # fmt: skip
    """Read a run from one or several table files.

    Args:
        files: the tables.
        name: display name of the run.
        origin: path of the run, for messages.
        table_map: map of the tables.
        only: read only the rows with this value.
    """
    column_map, scale = table_map.columns, table_map.score_range
    files = [prepare_table(file, table_map, only) for file in files]
    task = table_map.task or _implied_task(files, column_map) or table_map.fallback_task
    if task is None and all(file.flattening and file.flattening.rows for file in files):
        task = TASK  # JSON documents come from other tools, which have no column of tasks
    chosen = [_chosen(file, table_map, task, only) for file in files]

    def rows() -> Iterator[tuple[int, FileRow]]:
        return rescaled_rows(_all_rows(files, chosen, only), scale)

    def as_run(scores: duckdb.DuckDBPyRelation, texts: duckdb.DuckDBPyRelation) -> Run:
        frames = nw.from_native(scores), nw.from_native(texts)
        return canonical_run(
            frames[0], info=RunInfo(), name=name, origin=origin, rows=rows, texts=frames[1]
        )

    try:
        selects = (
            _select(file, columns, only, task) for file, columns in zip(files, chosen, strict=True)
        )
        texts = relation = rescaled(_union(selects), scale)
        is_text = any(file.kind != "parquet" or file.flattening for file in files)
        if is_text and not needs_content(relation.columns):
            relation = _materialised(relation)
        run = as_run(relation, texts)
        repeated = find_repeated_ids(run)
        in_document = any(file.flattening and file.flattening.rows for file in files)
        numbered = None
        if repeated is not None:
            numbered = number_rows(texts, repeated, may_be_copies=not in_document)
        if repeated is not None and numbered is not None:
            run = replace(as_run(numbered, numbered), notices=(repeated.notice,))
    except (duckdb.Error, pa.ArrowException, OSError, FieldError) as error:
        raise locate_error(rows(), origin, error) from None
    has_tasks = any("task" in columns for columns in chosen)
    return name_only_task(run, table_map.task) if has_tasks and table_map.task else run


def prepare_table(file: TableFile, table_map: TableMap, only: Cell | None = None) -> TableFile:
    """Return a file that DuckDB can read: text is checked, nested or wide rows are flattened."""
    if file.flattening is not None or file.headerless:
        return file
    rows = table_map.rows or (_find_rows(file, table_map) if file.single else None)
    if rows is not None:
        names = _names_of_rows(file, rows)
        return _flat(file, names, table_map, only, rows)
    file = _readable(file)
    asked_for = [*table_map.columns.values(), *(only[:1] if only else ())]
    # Listing the columns of JSON takes a pass over the whole file.
    if file.kind == "csv" or any("." in column or is_rule(column) for column in asked_for):
        present = column_names(file)
        require_few_columns(file.path, len(present))
        is_deep = any(column not in present and leads_into(column, present) for column in asked_for)
        if is_deep or len(present) > MAX_COLUMNS:
            return _flat(file, present, table_map, only)
    return file


def _flat(
    file: TableFile, present: Sequence[str], table_map: TableMap, only: Cell | None,
    rows: str | None = None,
) -> TableFile:  # fmt: skip
    """Flatten the file.

    Raises:
        ColumnError: a path of the map has no value in any row.
    """
    own = _flat_names(file, present, rows)
    flat = flatten(file, _needed(own, present, table_map, only), rows=rows)
    for field, column in table_map.columns.items():
        if column in present or not leads_into(column, present):
            continue
        if is_rule(column, present) and EQUALS in column:
            continue  # no right answer in any row leaves all of them unscored
        counted = f"SELECT count({quote(column)}) FROM {_parquet_scan(flat)}"
        if connection().sql(counted).fetchall() == [(0,)]:
            raise empty_path(file, field, column, rows)
    return flat


def _flat_names(file: TableFile, present: Sequence[str], rows: str | None) -> list[str]:
    """Return the columns without those of objects, which are not fields themselves."""
    some = first_rows(file, rows, ROWS_LOOKED_AT)
    objects = {name for row in some for name, cell in row.items() if isinstance(cell, dict)}
    return [name for name in present if name not in objects]


def leads_into(path: str, present: Collection[str]) -> bool:
    """Whether a path leads inside one of these columns, or a rule is about some of them."""
    if is_rule(path, present):
        return all(one in present or leads_into(one, present) for one in columns_of(path))
    parts = path.split(".")
    return any(".".join(parts[:count]) in present for count in range(1, len(parts)))


def _needed(
    flat: Sequence[str], present: Sequence[str], table_map: TableMap, only: Cell | None
) -> list[str]:
    """Return the flat columns that may be fields, and all columns named by the map."""
    synonyms = {column for columns in SYNONYMS.values() for column in columns}
    asked_for = [*table_map.columns.values(), *(only[:1] if only else ())]
    asked_for += [table_map.model] if table_map.model else []
    mapped = [column for column in asked_for if column in present or leads_into(column, present)]
    further = {column for columns in MORE_SYNONYMS.values() for column in columns}
    known = {*BY_NAME, *synonyms, *MODELS, *_OTHER_TOOLS}
    own = [name for name in flat if name in known or name.lower() in further]
    return [*own, *mapped] or list(present[:1])


def _find_rows(file: TableFile, table_map: TableMap) -> str | None:
    """Return the path of the list of results in a document; None if the document is one result.

    Raises:
        UnknownFormatError: there is no list of results, or the file contains only averages.
        ColumnError: there are several such lists.
    """
    try:
        document = read_document(file)
    except UnreadableError:
        return None  # reading the rows reports the line of the error
    if not isinstance(document, dict):
        return None
    lists = [one for one in find_row_lists(document) if one.is_list]
    fitting = [one for one in lists if _fits(one.names, table_map)]
    # A document of many results may have an id and an accuracy, but is not itself a result.
    if _fits(list(document), table_map) and not any(one.count > 1 for one in fitting):
        return None
    require_few_columns(file.path, len(document))
    summary = summary_error(file.path, document)
    if summary is not None:
        raise summary
    alike = [one for one in fitting if one.names == fitting[0].names]
    if len(alike) > MAX_LISTS:
        # So many lists of the same kind are not models: each one is named after an item.
        named = [one for one in find_row_lists(document) if not one.is_list]
        return next((one.path for one in named if one.count >= len(alike)), alike[0].path)
    if len(alike) > 1:
        raise several_lists(file.path, alike)
    if not lists:
        raise unknown_document(file.path, document)
    return (fitting or lists)[0].path


def _fits(present: Sequence[str], table_map: TableMap) -> bool:
    """Whether rows with these columns have a score and an item."""
    columns = table_map.columns
    named = {
        field: column
        for field, column in columns.items()
        if column in present or leads_into(column, present)
    }
    known = _named_columns(present, named)
    fields = {*known, *by_synonyms(present, known)}
    return "score" in fields and not fields.isdisjoint({"item", "question"})


def _names_of_rows(file: TableFile, rows: str) -> list[str]:
    """Return the columns of all rows of a list in a document."""
    return list(dict.fromkeys(name for row in document_rows(file, rows) for name in row))


def _readable(file: TableFile) -> TableFile:
    if file.kind != "parquet":
        require_text(file)
    if file.kind == "parquet" and file.packing:
        return _unpacked(file, skip=0)
    if file.kind in {"json", "jsonl"} and file.marked:
        return _unpacked(file, skip=len(UTF8_MARK))
    return file


def _unpacked(file: TableFile, *, skip: int) -> TableFile:
    unpacked = temporary_path()
    with readable_file(file.path), unpacked.open("wb") as target, file.open() as stream:
        stream.read(skip)
        shutil.copyfileobj(stream, target)
    return replace(file, unpacked=unpacked, packing=None)


def has_items(present: Sequence[str], column_map: ColumnMap) -> bool:
    """Whether a table with these columns has ids or questions of items."""
    columns = _named_columns(present, column_map)
    known = columns.keys() | by_synonyms(present, columns).keys()
    return not known.isdisjoint({"item", "question"})


def _named_columns(present: Sequence[str], column_map: ColumnMap) -> dict[str, str]:
    return {name: name for name in BY_NAME if name in present} | dict(column_map)


def _implied_task(files: Sequence[TableFile], column_map: ColumnMap) -> str | None:
    """Return a single task if every table has a known synonym of `item` but no task."""
    for file in files:
        present = [] if file.headerless else column_names(file)
        columns = _named_columns(present, column_map)
        known = by_synonyms(present, columns)
        if "item" not in known or "task" in {*columns, *known}:
            return None
    return TASK


def _of_other_tools(present: Sequence[str]) -> dict[str, str]:
    """Return the columns of tables of other tools whose names are too common to match alone."""
    if not EVALSTATS.issubset(present):
        return {}
    return {field: column for field, column in _OF_EVALSTATS.items() if column in present}


def _chosen(
    file: TableFile, table_map: TableMap, task: str | None, only: Cell | None
) -> dict[str, str]:
    if file.headerless:
        raise ColumnError(
            "this table has no header: its first line contains only numbers",
            file=str(file.path),
            line=1,
            hint="choose the column of a model by its number, such as "
            f"{selector(file.path, 'col1')}, or its row, such as {selector(file.path, 'row1')}.",
        )
    present = column_names(file)
    require_few_columns(file.path, len(present))
    column_map = _of_other_tools(present) | dict(table_map.columns)
    # Spreadsheets append columns without a name.
    for name, count in Counter(filter(None, present)).most_common(1):
        if count > 1:
            raise ColumnError(
                f"column {name!r} occurs {count} times in the header",
                file=str(file.path),
                line=1,
                field=name,
                hint="give each column its own name.",
            )
    try:
        readable_names = [name for name in present if name not in table_map.left_out]
        chosen = match_columns(readable_names, column_map, origin=str(file.path), task=task)
    except ColumnError as error:
        if error.field in column_map:
            raise
        raise explain_columns(file, error) from None
    is_one = only is not None or "model" in table_map.left_out
    column = None if is_one else model_column(file.path, present, table_map)
    if column is not None and column not in chosen.values():
        models = distinct_texts(file, column)
        if len(models) > 1:
            raise several_models(file.path, models)
    foreign = [name for name in HASHES if name in chosen and name not in column_map]
    return {
        field: column
        for field, column in chosen.items()
        if field not in foreign or _holds_our_hashes(file, column)
    }


def _holds_our_hashes(file: TableFile, column: str) -> bool:
    """Whether a column named like one of our hashes has integers; other tools write digests."""
    if file.kind == "parquet":
        kinds = dict(zip(column_names(file), _parquet_kinds(file), strict=True))
        return kinds[column] in _WHOLE
    values = (row.get("hash") for _, row in raw_rows(file, {"hash": column}))
    first = next((value for value in values if value not in (None, "")), 0)
    return str(first).lstrip("-").isdecimal()


def column_names(file: TableFile) -> list[str]:
    """Return the names of the columns of a file."""
    if file.kind == "csv":
        return csv_header(file)
    if file.kind == "parquet":
        return parquet_columns(file.data, origin=str(file.path))
    return list(_json_names(file, stamp_of(file.data)))


@lru_cache(MAX_NAMES_CACHED)
def _json_names(file: TableFile, stamp: str) -> tuple[str, ...]:
    """Return the names of all fields; cached until the file changes, as every row is read."""
    del stamp
    names = f"SELECT DISTINCT unnest(json_keys(json)) FROM {_objects(file)} LIMIT {MAX_WIDTH + 1}"
    try:
        names_found = connection().sql(names).fetchall()
    except duckdb.Error as error:
        raise locate_error(raw_rows(file, {}), str(file.path), error) from None
    if not names_found:
        for _ in raw_rows(file, {}):
            pass
        raise EmptyInputError(
            "there are no results",
            file=str(file.path),
            hint="write one object per result, with task, item and score.",
        )
    return tuple(sorted(name for (name,) in names_found))


def distinct_texts(file: TableFile, column: str) -> list[str]:
    """Return the distinct values of a column as texts, sorted."""
    if file.kind == "parquet":
        position = column_names(file).index(column)
        names = [f"c{index}" for index in range(len(column_names(file)))]
        source, cell = f"{_parquet_scan(file)} AS scan({', '.join(names)})", names[position]
    elif file.kind == "csv":
        names = [f"c{index}" for index in range(len(column_names(file)))]
        source, cell = _csv_scan(file, names), names[column_names(file).index(column)]
    else:
        source, cell = _json_scan(file, {column: column}), quote(column)
    query = f"SELECT DISTINCT CAST({cell} AS VARCHAR) FROM {source} WHERE {cell} IS NOT NULL"
    try:
        return sorted(text for (text,) in connection().sql(query).fetchall())
    except duckdb.Error as error:
        raise locate_error(raw_rows(file, {}), str(file.path), error) from None


def _all_rows(
    files: Sequence[TableFile], chosen: Sequence[Chosen], only: Cell | None
) -> Iterator[tuple[int, FileRow]]:
    """Iterate over the rows of all files, with the columns of all of them."""
    blank = dict.fromkeys(name for columns in chosen for name in columns)
    for file, columns in zip(files, chosen, strict=True):
        selection = {**columns, _WHOSE: only[0]} if only else columns
        for line, row in raw_rows(file, selection):
            if only is None or str(row[_WHOSE]) == only[1]:
                known = {name: cell for name, cell in row.items() if name != _WHOSE}
                yield line, FileRow(blank | known, file=row.file)


def _union(parts: Iterable[str]) -> duckdb.DuckDBPyRelation:
    every = " UNION ALL BY NAME ".join(f"({part})" for part in parts)
    return connection().sql(f"SELECT * FROM ({every})")


def _materialised(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Parse a text file once into a table, without the columns of texts."""
    kept = ", ".join(quote(name) for name in relation.columns if name not in TEXT_NAMES)
    name = fresh_name()
    relation.project(kept).create(name)
    return connection().table(name)


_WHOSE = "whose"


def _select(file: TableFile, chosen: Chosen, only: Cell | None, task: str | None) -> str:
    constant = [] if task is None or "task" in chosen else [f"{literal(task)} AS task"]
    if file.kind in {"json", "jsonl"}:
        cells = [_cell(field, quote(column), None) for field, column in chosen.items()] + constant
        selection = dict(chosen) | ({_WHOSE: only[0]} if only else {})
        rows = f"{_json_scan(file, selection)}{_where(quote(only[0]), only[1]) if only else ''}"
        return f"SELECT {', '.join(cells)} FROM {rows}"
    # By position, because DuckDB ignores the case of names.
    present = column_names(file)
    indexes = {field: present.index(column) for field, column in chosen.items()}
    kinds = _parquet_kinds(file) if file.kind == "parquet" else [""] * len(present)
    names = [f"c{index}" for index in range(len(present))]
    where = _where(names[present.index(only[0])], only[1]) if only else ""
    if file.kind == "csv":
        cells = [_csv_cell(field, names[index]) for field, index in indexes.items()] + constant
        return f"SELECT {', '.join(cells)} FROM {_csv_scan(file, names)}{where}"
    cells = [_cell(field, names[index], kinds[index]) for field, index in indexes.items()]
    cells += constant
    rows = f"{_parquet_scan(file)} AS scan({', '.join(names)}){where}"
    return f"SELECT {', '.join(cells)} FROM {rows}"


def _where(column: str, value: str) -> str:
    return f" WHERE CAST({column} AS VARCHAR) = {literal(value)}"


def _csv_cell(field: str, column: str) -> str:
    """Return SQL for a cell of a CSV file, without the quote that protects formulas in texts."""
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
    return f"compression='{file.packing or 'none'}'"


def _columns(names: Iterable[str]) -> str:
    once = dict.fromkeys(names)
    return "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in once) + "}"


_SQL_TYPES = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE"}
_WHOLE = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)
_NUMBERS = _WHOLE | {"FLOAT", "DOUBLE", "BOOLEAN"}


def _cell(field: str, column: str, kind: str | None) -> str:
    """Return SQL for a column in the type of its field; misfits become values that are refused.

    Args:
        field: canonical field.
        column: SQL of the column.
        kind: type of the column; None in a text format.
    """
    if field == "options":
        is_list = kind is not None and kind.endswith("[]")
        return f"{column if is_list else f'CAST({column} AS VARCHAR)'} AS {field}"
    sql_type = _SQL_TYPES[str(BY_NAME[field].type)]
    # Keys are not cast, so that statistics in the footer of a Parquet file can be used.
    if kind == sql_type and (sql_type != "VARCHAR" or field in KEY):
        return f"{column} AS {field}"
    if field == "item" and kind in {"FLOAT", "DOUBLE"}:
        # In a column with missing values, the id 7 is stored as 7.0.
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
