"""Tables as runs: CSV, JSON Lines, JSON and Parquet, packed or not, in one file or many.

Parquet with plain columns stays lazy. Rows of any other file are written to Parquet once, as texts
(rows.py), which DuckDB casts. A score that is no number becomes NaN, which validation refuses; the
rows are then read again to locate it. Of optional fields, what does not fit is left out, with a
problem that names the first row.

Repeated ids in a table without a column of repeats:

- Every id occurs equally often: these are repeats, numbered in the order of the file.
- Most ids occur several times, but not equally often: the id names a group, such as a question
  asked with several inputs. Its rows are items of their own, `ID#1`, `ID#2`, ..., in one cluster.
- A few ids occur again, or all rows of an id are the same in every column: a mistake, which
  validation refuses.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb
import narwhals as nw
import pyarrow as pa

from forgetmap.errors import ColumnError, FieldError, UnreadableError
from forgetmap.records import (
    BY_NAME,
    CONTENT_HASHES,
    HASHES,
    KEY,
    FileRow,
    Problem,
    Run,
    RunInfo,
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
from forgetmap.records import TEXT_NAMES as TEXTS
from forgetmap.sources.cells import EQUALS, columns_of, is_rule
from forgetmap.sources.decode import number
from forgetmap.sources.maps import TableMap, rescaled, rescaled_rows, selector
from forgetmap.sources.rows import as_parquet, raw_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.unknown import empty_path, missing_columns_error, several_models
from forgetmap.text import counted

TASK = "all"
"""Name of the task for tables without tasks."""
MODELS = ("model", "model_name")
"""Columns in which several values always mean several models."""
MAX_ROWS_OF_ID = 1000
"""Upper limit on the rows of an id that are read as repeats."""
NEARLY = 0.2
"""Share of its rows that an id may lack for the ids to occur about equally often."""
MAX_LABELLED = 0.1
"""Share of scores up to which labels among numbers are answers without score."""
MIN_SHARE = 0.5
"""Share of ids that must occur several times for their rows to be read as items of a group."""
Chosen = Mapping[str, str]
"""Canonical name -> column of the file."""
Cell = tuple[str, str]
"""A column and a value in it."""
_WHOSE, _PLACE = "whose", "forgetmap_place"
_SQL_TYPES = {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE"}
_WHOLE = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)
_NUMBERS = _WHOLE | {"FLOAT", "DOUBLE", "BOOLEAN"}
_OPTIONAL = {
    name: (2 if name == "k" else None, 2**31 - 1 if str(field.type) == "int32" else 2**63 - 1)
    for name, field in BY_NAME.items()
    if str(field.type) in {"int32", "int64", "double"} and name not in {"score", "repeat"}
}
"""Optional numbers -> the least and the greatest that fit."""


def read_table(
    files: Sequence[TableFile], *, name: str, origin: str, table_map: TableMap,
    only: Cell | None = None, is_inferred: bool = False,
) -> Run:  # fmt: skip
    """Read a run from one or several table files.

    Args:
        files: the tables.
        name: display name of the run.
        origin: path of the run, for messages.
        table_map: map of the tables.
        only: read only the rows with this value.
        is_inferred: whether the map was inferred: files without a score are left out, and ids that
            occur again are repeats.
    """
    scale, in_document = table_map.score_range, table_map.rows is not None
    files, notices = _prepared(files, table_map, only, may_skip=is_inferred and len(files) > 1)
    task = table_map.task or table_map.fallback_task
    chosen = [_chosen(file, table_map, task, only) for file in files]

    def rows() -> Iterator[tuple[int, FileRow]]:
        return rescaled_rows(_all_rows(files, chosen, only), scale)

    def as_run(scores: duckdb.DuckDBPyRelation, texts: duckdb.DuckDBPyRelation) -> Run:
        frame, texts_frame = nw.from_native(scores), nw.from_native(texts)
        return canonical_run(
            frame, info=RunInfo(), name=name, origin=origin, rows=rows, texts=texts_frame
        )

    try:
        tasks: Sequence[str | None] = [task] * len(files)
        if table_map.task is None and not any("task" in one for one in chosen):
            tasks = _tasks_of_files(files, chosen, only) or tasks
        if len({*tasks}) > 1:
            notices.append("ids occur in several files: the task is the name of the file.")
        texts = relation = rescaled(
            _union([_select(*one, only) for one in zip(files, chosen, tasks, strict=True)]), scale
        )
        problems = _misfits(files, chosen, only)
        if any(file.rows for file in files):
            texts = relation = _without_labels(relation, files, chosen, only, problems)
        if any(file.kind != "parquet" or file.rows for file in files):
            relation = relation if needs_content(relation.columns) else _materialised(relation)
        run = as_run(relation, texts)
        numbered = _numbered(run, texts, may_be_copies=not in_document, is_inferred=is_inferred)
        if numbered is not None:
            run = as_run(numbered[0], numbered[0])
            notices.append(numbered[1])
    except (duckdb.Error, pa.ArrowException, OSError, FieldError) as error:
        raise locate_error(rows(), origin, error) from None
    count = sum(number for number, _ in problems)
    run = replace(run, notices=tuple(notices), problem_count=count,
                  problems=tuple(problem for _, problem in problems))  # fmt: skip
    has_tasks = any("task" in columns for columns in chosen)
    return name_only_task(run, table_map.task) if has_tasks and table_map.task else run


def _prepared(
    files: Sequence[TableFile], table_map: TableMap, only: Cell | None, *, may_skip: bool
) -> tuple[list[TableFile], list[str]]:
    """Return the files as Parquet, and notices of those that are no part of the table."""
    prepared, notices = [], []
    score = table_map.columns.get("score", "score")
    for file in files:
        try:
            ready = prepare_table(file, table_map, only)
        except (ColumnError, UnreadableError) as error:
            if not may_skip:
                raise
            notices.append(f"{file.path.name} is left out: {error.message}.")
            continue
        if may_skip and score not in column_names(ready):
            notices.append(f"{file.path.name} has no {score!r}: left out.")
        else:
            prepared.append(ready)
    return prepared or [prepare_table(files[0], table_map, only)], notices


def prepare_table(file: TableFile, table_map: TableMap, only: Cell | None = None) -> TableFile:
    """Return a Parquet file with the fields of a table: itself, if it has plain columns.

    Raises:
        ColumnError: a path of the map has no value in any row.
    """
    if file.rows is not None or file.headerless:
        return file
    asked = [*table_map.columns.values(), *(only[:1] if only else ())]
    asked += [table_map.model] if table_map.model else []
    if file.kind == "parquet":
        present = parquet_columns(file.data, origin=str(file.path))
        if not any(name not in present and leads_into(name, present) for name in asked):
            return file
    asked += [] if table_map.model or only else MODELS
    flat = as_parquet(file, asked, table_map.rows)
    for field, column in table_map.columns.items():
        # No right answer in any row leaves all of them unscored.
        if column in flat.names or (is_rule(column, flat.names) and EQUALS in column):
            continue
        counts = f"SELECT count({quote(column)}) FROM {scan('read_parquet', flat.data)}"
        if leads_into(column, flat.names) and connection().sql(counts).fetchall() == [(0,)]:
            raise empty_path(file, field, column, table_map.rows)
    known = {name for name in asked if name in flat.names or leads_into(name, flat.names)}
    unknown = {*asked} - known
    return replace(flat, columns=tuple(name for name in flat.columns if name not in unknown))


def leads_into(path: str, present: Collection[str]) -> bool:
    """Whether a path leads inside one of these columns, or a rule is about some of them."""
    parts = path.split(".")
    if (
        any(".".join(parts[:count]) in present for count in range(1, len(parts)))
        and "==" not in path
    ):
        return True
    is_about = is_rule(path, present)
    return is_about and all(one in present or leads_into(one, present) for one in columns_of(path))


def column_names(file: TableFile) -> list[str]:
    """Return the names of the columns of a prepared table."""
    return list(file.columns) if file.rows else parquet_columns(file.data, origin=str(file.path))


def distinct_texts(file: TableFile, column: str) -> list[str]:
    """Return the distinct values of a column of a prepared table as texts, sorted."""
    source, names = _scan(file)
    cell = names[column_names(file).index(column)]
    query = f"SELECT DISTINCT CAST({cell} AS VARCHAR) FROM {source} WHERE {cell} IS NOT NULL"
    with readable(str(file.path)):
        return sorted(text for (text,) in connection().sql(query).fetchall())


def _chosen(
    file: TableFile, table_map: TableMap, task: str | None, only: Cell | None
) -> dict[str, str]:
    """Return the column of each field."""
    if file.headerless:
        raise ColumnError(
            "this table has no header: its first line contains only numbers",
            file=str(file.path),
            line=1,
            hint="choose the column of a model by its number, such as "
            f"{selector(file.path, 'col1')}, or its row, such as {selector(file.path, 'row1')}.",
        )
    present, columns = column_names(file), table_map.columns
    for name, count in Counter(present).most_common(1):
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
        chosen = match_columns(readable_names, columns, origin=str(file.path), task=task)
    except ColumnError as error:
        if error.field in columns:
            raise
        raise missing_columns_error(file, error, table_map.rows) from None
    by = [table_map.model] if table_map.model else [name for name in MODELS if name in present]
    if only is None and len(by) == 1 and by[0] not in {*chosen.values(), *table_map.left_out}:
        if by[0] not in present:
            raise ColumnError(
                f"--columns model={by[0]}: there is no column {by[0]!r}",
                file=str(file.path),
                field="model",
                hint=f"the columns are {', '.join(present[:12])}.",
            )
        models = distinct_texts(file, by[0])
        if len(models) > 1:
            raise several_models(file.path, models)
    foreign = {name for name in HASHES if name in chosen and name not in columns
               and not _holds_our_hashes(file, chosen[name])}  # fmt: skip
    return {field: column for field, column in chosen.items() if field not in foreign}


def _holds_our_hashes(file: TableFile, column: str) -> bool:
    """Whether a column named like one of our hashes has integers; other tools write digests."""
    if file.rows is None:
        return _kinds(file)[column_names(file).index(column)] in _WHOLE
    values = (row.get("hash") for _, row in raw_rows(file, {"hash": column}))
    first = next((value for value in values if value not in (None, "")), 0)
    return str(first).lstrip("-").isdecimal()


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


def _union(parts: Sequence[str]) -> duckdb.DuckDBPyRelation:
    every = " UNION ALL BY NAME ".join(f"({part})" for part in parts)
    return connection().sql(f"SELECT * FROM ({every})")


def _materialised(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Cast texts once into a table, without the columns of texts."""
    kept = ", ".join(quote(name) for name in relation.columns if name not in TEXTS)
    name = fresh_name()
    relation.project(kept).create(name)
    return connection().table(name)


# ---- cells of Parquet, in the type of their field ----


def _scan(file: TableFile) -> tuple[str, list[str]]:
    """Return SQL for the rows, and names of columns by position: DuckDB ignores their case."""
    stored = parquet_columns(file.data, origin=str(file.path))
    names = [f"c{index}" for index in range(len(stored))]
    source = f"{scan('read_parquet', file.data)} AS scan({', '.join(names)})"
    return source, [names[stored.index(name)] for name in column_names(file)]


def _kinds(file: TableFile) -> list[str]:
    """Return the type of each column."""
    if file.rows is not None:
        return ["VARCHAR"] * len(file.columns)
    with readable(str(file.path)):
        query = connection().sql(f"FROM {scan('read_parquet', file.data)}")
        return [str(kind) for kind in query.types]


def _cells(file: TableFile, chosen: Chosen, only: Cell | None) -> tuple[dict[str, Cell], str]:
    """Return SQL and type of the column of each field, and SQL for the rows."""
    (source, names), kinds, present = _scan(file), _kinds(file), column_names(file)
    where = ""
    if only is not None:
        whose = names[present.index(only[0])]
        where = f" WHERE CAST({whose} AS VARCHAR) = {literal(only[1])}"
    places = {field: present.index(column) for field, column in chosen.items()}
    return {field: (names[at], kinds[at]) for field, at in places.items()}, f"{source}{where}"


def _select(file: TableFile, chosen: Chosen, task: str | None, only: Cell | None) -> str:
    cells, rows = _cells(file, chosen, only)
    columns = []
    for field, (column, kind) in cells.items():
        is_text = str(BY_NAME[field].type) == "string"
        # Texts of a CSV file may have a quote that protects them from being formulas.
        cell = unquoted_sql(column) if file.source == "csv" and is_text else column
        columns.append(f"{_cell(field, cell, kind, is_stored=file.rows is None)} AS {field}")
    if task is not None and "task" not in chosen:
        columns.append(f"{literal(task)} AS task")
    return f"SELECT {', '.join(columns)} FROM {rows}"


def _cell(field: str, column: str, kind: str, *, is_stored: bool) -> str:
    """Return SQL for a column in the type of its field.

    Args:
        field: canonical field.
        column: SQL of the column.
        kind: type of the column.
        is_stored: whether the file is the user's, whose types count.
    """
    if field == "options":
        return column if kind.endswith("[]") else f"CAST({column} AS VARCHAR)"
    sql_type = _SQL_TYPES[str(BY_NAME[field].type)]
    # Keys are not cast, so that statistics in the footer of a Parquet file can be used.
    if kind == sql_type and is_stored and field != "k" and (sql_type != "VARCHAR" or field in KEY):
        return column
    if field == "item" and kind in {"FLOAT", "DOUBLE"}:
        # In a column with missing values, the id 7 is stored as 7.0.
        digits = f"CASE WHEN {column} = floor({column}) THEN TRY_CAST({column} AS BIGINT) END"
        return f"coalesce(CAST({digits} AS VARCHAR), CAST({column} AS VARCHAR))"
    if field == "repeat" or sql_type == "VARCHAR":
        return f"nullif(CAST({column} AS VARCHAR), '')"
    cell = column if kind in _NUMBERS else f"nullif(trim(CAST({column} AS VARCHAR)), '')"
    truth = f"CASE lower({cell}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    value = column if kind in _NUMBERS else f"coalesce(TRY_CAST({cell} AS DOUBLE), {truth})"
    if field == "score":
        return f"CASE WHEN {cell} IS NOT NULL THEN coalesce(CAST({value} AS DOUBLE), 'nan') END"
    if sql_type == "DOUBLE":
        return f"CASE WHEN isfinite({value}) THEN CAST({value} AS DOUBLE) END"
    exact = f"coalesce(TRY_CAST({cell} AS {sql_type}), TRY_CAST({value} AS {sql_type}))"
    is_whole = "TRUE" if kind in _WHOLE else f"{value} = floor({value})"
    return f"CASE WHEN {is_whole}{f' AND {value} >= 2' if field == 'k' else ''} THEN {exact} END"


def _misfits(
    files: Sequence[TableFile], chosen: Sequence[Chosen], only: Cell | None
) -> list[tuple[int, Problem]]:
    """Return how many values of an optional field do not fit, with the first of them."""
    found = []
    for file, columns in zip(files, chosen, strict=True):
        cells, rows = _cells(file, columns, only)
        is_stored = file.rows is None
        odd = {
            field: f"count(*) FILTER (nullif(trim(CAST({column} AS VARCHAR)), '') IS NOT NULL "
            f"AND ({_cell(field, column, kind, is_stored=is_stored)}) IS NULL)"
            for field, (column, kind) in cells.items()
            if field in _OPTIONAL
            and not (is_stored and field != "k" and kind == _SQL_TYPES[str(BY_NAME[field].type)])
        }
        if not odd:
            continue
        (counts,) = connection().sql(f"SELECT {', '.join(odd.values())} FROM {rows}").fetchall()
        for field, count in zip(odd, counts, strict=True):
            if count:
                found.append((count, _first_misfit(file, field, columns, only, count)))
    return found


def _without_labels(
    relation: duckdb.DuckDBPyRelation, files: Sequence[TableFile], chosen: Sequence[Chosen],
    only: Cell | None, problems: list[tuple[int, Problem]],
) -> duckdb.DuckDBPyRelation:  # fmt: skip
    """Leave out scores that are labels among numbers, such as REFUSAL: these are unscored."""
    (row,) = relation.aggregate("count(*), count(*) FILTER (isnan(score))").fetchall()
    if not 0 < row[1] <= MAX_LABELLED * row[0]:
        return relation
    for file, columns in zip(files, chosen, strict=True):
        problem = _first_misfit(file, "score", columns, only, row[1])
        if problem.line is not None:
            problems.append((row[1], problem))
            break
    return relation.project("* REPLACE (CASE WHEN NOT isnan(score) THEN score END AS score)")


def _first_misfit(
    file: TableFile, field: str, columns: Chosen, only: Cell | None, count: int
) -> Problem:
    least, greatest = _OPTIONAL.get(field, (None, sys.float_info.max))
    is_whole = str(BY_NAME[field].type) != "double"
    for line, row in _all_rows([file], [columns], only):
        value = row[field]
        known = None if isinstance(value, list | dict) else number(value)
        is_within = known is not None and (least or -greatest) <= known <= greatest
        if value is not None and not (is_within and not (is_whole and (known or 0) % 1)):
            what = f"{field} is {value!r:.40}"
            also = f", and so are {counted(count - 1, 'other value')}" if count > 1 else ""
            return Problem(row.file, line, field, f"{what}: left out{also}")
    return Problem(str(file.path), None, field, f"{counted(count, 'value')} left out")


# ---- tasks and repeats that no column names ----


def _tasks_of_files(
    files: Sequence[TableFile], chosen: Sequence[Chosen], only: Cell | None
) -> list[str | None]:
    """Return the names of files as tasks if they share ids; none if they are parts of one task."""
    names = [file.path.name.partition(".")[0] for file in files]
    if len({*names}) < 2 or not all("item" in columns for columns in chosen):
        return []
    parts = []
    for index, (file, columns) in enumerate(zip(files, chosen, strict=True)):
        cells, rows = _cells(file, columns, only)
        item = f"CAST({cells['item'][0]} AS VARCHAR) AS id"
        parts.append(f"SELECT {index} AS file, {item} FROM {rows}")
    ids = _union(parts).aggregate("id, count(DISTINCT file) AS files", "id")
    (row,) = ids.aggregate("count(*), count(*) FILTER (files > 1)").fetchall()
    return [*names] if row[1] > MIN_SHARE * row[0] else []


def _numbered(
    run: Run, rows: duckdb.DuckDBPyRelation, *, may_be_copies: bool, is_inferred: bool
) -> tuple[duckdb.DuckDBPyRelation, str] | None:
    """Number the repeats or items of repeated ids; None if ids are unique, or it is a mistake."""
    if "repeat" in run.columns or run.ids_are_occurrences:
        return None
    names = ("task", "item", "metric", "scorer", *CONTENT_HASHES)
    key = ", ".join(quote(name) for name in names if name in run.columns)
    groups = nw.to_native(run.scores).aggregate(f"{key}, count(*) AS n", key)
    (row,) = groups.aggregate("count(*), count(*) FILTER (n > 1), min(n), max(n)").fetchall()
    ids, repeated, least, most = (int(value or 0) for value in row)
    # Some answers are missing, or few ids occur again: these are repeats, too.
    is_nearly = is_inferred and (most - least <= NEARLY * most or repeated <= MIN_SHARE * ids)
    are_repeats = least == most or is_nearly
    is_clear = ids > 1 and (are_repeats or repeated > MIN_SHARE * ids)
    if not repeated or most > MAX_ROWS_OF_ID or not is_clear:
        return None
    source, numbered = fresh_name(), fresh_name()
    rows.create(source)
    names = ("task", "item", "metric", "scorer", "question", "options", "gold")
    key = ", ".join(quote(name) for name in names if name in rows.columns)
    place = f"row_number() OVER (PARTITION BY {key} ORDER BY rowid) - 1 AS {_PLACE}"
    connection().sql(f"SELECT *, {place} FROM {source} ORDER BY rowid").create(numbered)
    table = connection().table(numbered)
    if not are_repeats:
        cluster = "" if "cluster" in rows.columns else ", item AS cluster"
        item = f"concat(item, '#', {_PLACE} + 1)"
        return table.project(f"* EXCLUDE {_PLACE} REPLACE ({item} AS item){cluster}"), (
            f"{repeated:,} of {counted(ids, 'id')} occur several times, but not equally often: "
            "their rows are separate items, numbered in the order of the file, in one cluster per "
            "id."
        )
    every = ", ".join(quote(name) for name in rows.columns)
    unlike, of_ids = (
        table.project(columns).distinct().aggregate("count(*)").fetchall()
        for columns in (every, key)
    )
    if may_be_copies and unlike == of_ids:
        return None  # a file appended to itself
    numbered_rows = table.project(f"* EXCLUDE {_PLACE}, CAST({_PLACE} AS VARCHAR) AS repeat")
    if is_nearly and least != most:
        return numbered_rows, (
            f"{repeated:,} of {counted(ids, 'id')} occur {least} to {most} times: read as repeats, "
            "in the order of the file."
        )
    return numbered_rows, (
        f"every id occurs {most} times: read as {counted(most, 'repeat')}, in the order of the "
        "file."
    )
