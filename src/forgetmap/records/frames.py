"""Dataframes as input: pandas, Polars, PyArrow, DuckDB, PySpark, eager or lazy.

Columns are renamed and cast, never read: the result is a lazy frame of the same library.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._cache import temporary_path
from forgetmap.errors import ColumnError, FieldError, UnknownFormatError
from forgetmap.records.content import ContentDeriver
from forgetmap.records.engine import fresh_name, scan
from forgetmap.records.manifest import RunInfo
from forgetmap.records.only_task import name_only_task
from forgetmap.records.run import Frame, Rows, Run
from forgetmap.records.schema import BY_NAME, HASHES, KEY, SCORE_NAMES, TEXT_NAMES
from forgetmap.records.spark import travelling_code

ColumnMap = Mapping[str, str]
"""Canonical name -> name in the table."""

DTYPES: dict[str, Any] = {
    "string": nw.String,
    "int32": nw.Int32,
    "int64": nw.Int64,
    "double": nw.Float64,
}
ROWS_PER_BATCH = 100_000
MAX_REPEATS = 1000
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "task": ("benchmark", "dataset", "subject", "eval", "task_name"),
    "item": (
        "id", "item_id", "question_id", "sample_id", "doc_id", "prompt_id", "example_id",
        "instance_id", "input",
    ),
    "score": ("correct", "is_correct", "acc", "accuracy", "exact_match"),
}  # fmt: skip
"""Other names of the required fields."""
MORE_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "item": ("problem_id", "task_id", "unique_id", "uid", "qid"),
    "score": (
        "pass@1", "pass_at_1", "passed", "success", "resolved", "is_resolved", "solved", "reward",
    ),
}  # fmt: skip
"""Ambiguous names, in lower case; they are used only if no other name matches."""
UNHASHED_TEXTS = ("response", "error")
"""Texts that are not part of the identity of an item."""


def run_from_frame(
    native: Any,
    *,
    name: str = "dataframe",
    column_map: ColumnMap | None = None,
    task: str | None = None,
) -> Run:
    """Make a run of a dataframe of any supported library.

    Args:
        native: pandas, Polars, PyArrow, DuckDB or PySpark; eager or lazy.
        name: display name.
        column_map: canonical name -> name in the frame, for columns with other names.
        task: name of the only task.
    """
    wrapped = _wrapped(native, name)
    frame = rename_columns(wrapped.lazy(), column_map or {}, origin=name, task=task)
    if frame.implementation.is_pandas():
        frame = _with_nulls(frame)
    is_eager = isinstance(wrapped, nw.DataFrame)
    rows = _eager_rows(frame) if is_eager else None
    run = canonical_run(frame, info=RunInfo(), name=name, origin=name, rows=rows)
    run = replace(run, handed_in="eager" if is_eager else "lazy")
    return (
        run
        if task is None or not _has_tasks(wrapped, column_map or {})
        else (name_only_task(run, task))
    )


def _has_tasks(frame: Any, column_map: ColumnMap) -> bool:
    present = frame.collect_schema().names()
    known = {name: name for name in BY_NAME if name in present} | dict(column_map)
    return "task" in {**by_synonyms(present, known), **known}


def _wrapped(native: Any, name: str) -> Any:
    try:
        return nw.from_native(native)
    except TypeError:
        raise UnknownFormatError(
            f"cannot read results from a {type(native).__name__}",
            file=name,
            hint="give a path, a forgetmap Run, or a pandas, Polars, PyArrow, DuckDB or PySpark "
            "dataframe.",
        ) from None
    except nw.exceptions.DuplicateError as error:
        raise ColumnError(
            f"two columns have the same name: {error}",
            file=name,
            hint="give each column its own name.",
        ) from None


def _with_nulls(frame: Frame) -> Frame:
    """Convert a pandas frame to Arrow types.

    Plain pandas writes missing values as NaN or None and turns integers in such a column into
    floats, which damages ids and 64-bit hashes.
    """
    import pandas as pd  # installed if the caller passes pandas

    native = nw.to_native(frame).convert_dtypes(dtype_backend="pyarrow")
    for name, column in native.items():
        if column.isna().all():
            native[name] = column.astype(pd.ArrowDtype(BY_NAME[name].type))
        elif column.dtype in ("object", "category") and name != "options":
            texts = column.map(str, na_action="ignore")
            native[name] = texts.astype(pd.ArrowDtype(pa.string()))
    lazy: Frame = nw.from_native(native).lazy()
    return lazy


def rename_columns(frame: Frame, column_map: ColumnMap, *, origin: str, task: str | None) -> Frame:
    """Give columns their canonical names, and drop all others."""
    schema = frame.collect_schema()
    # Other tools have columns of the same names, with digests.
    foreign = [name for name in HASHES if name in schema and not schema[name].is_integer()]
    present = [name for name in schema.names() if name not in foreign]
    chosen = match_columns(present, column_map, origin=origin, task=task)
    columns: list[nw.Expr] = [nw.col(column).alias(field) for field, column in chosen.items()]
    if task is not None and "task" not in chosen:
        columns.append(nw.lit(task).alias("task"))
    return frame.select(*columns)


def match_columns(
    present: list[str], column_map: ColumnMap, *, origin: str, task: str | None = None
) -> dict[str, str]:
    """Return the column of each field; raise a typed error if a required one is missing."""
    _check_map(present, column_map, origin)
    mapped = set(column_map.values())
    chosen = {name: name for name in BY_NAME if name in present and name not in mapped}
    chosen |= dict(column_map)
    chosen = by_synonyms(present, chosen) | chosen
    needed = {"score"} if task is not None else {"task", "score"}
    missing = sorted(needed - chosen.keys(), key=list(BY_NAME).index)
    if "item" not in chosen and "question" not in chosen:
        missing.append("item")
    if missing:
        error = ColumnError(
            f"{missing_columns(missing)}; the columns are {listed(present)}",
            file=origin,
            field=missing[0],
            hint=_missing_hint(missing, present),
        )
        error.missing = tuple(missing)
        raise error
    return chosen


def missing_columns(names: Sequence[str]) -> str:
    """Return that these columns are missing."""
    return f"missing column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def by_synonyms(present: Sequence[str], chosen: ColumnMap) -> dict[str, str]:
    """Return columns with other names of required fields, if only one column matches."""
    columns: dict[str, str] = {}
    free = set(present) - set(chosen.values())
    for name, synonyms in SYNONYMS.items():
        fitting = [column for column in synonyms if column in free] or [
            column for column in free if str(column).lower() in MORE_SYNONYMS.get(name, ())
        ]
        if name not in chosen and len(fitting) == 1:
            columns[name] = fitting[0]
    if "question" in chosen:
        columns.pop("item", None)
    return columns


def canonical_run(
    frame: Frame,
    *,
    info: RunInfo,
    name: str,
    origin: str,
    rows: Rows | None = None,
    texts: Frame | None = None,
) -> Run:
    """Cast columns to the schema, derive content hashes, and separate scores from texts.

    Args:
        frame: columns with canonical names.
        info: metadata of the run.
        name: display name.
        origin: path or name of the source, for messages.
        rows: raw rows, to locate errors.
        texts: frame with the texts, if not `frame`.
    """
    frame = cast_columns(frame, origin)
    has_ids = "item" in frame.collect_schema().names()
    texts = frame if texts is None else cast_columns(texts, origin)
    if needs_content(frame.collect_schema().names()):
        frame = derive_content(
            frame if not has_ids else _without(frame, UNHASHED_TEXTS), origin=origin
        )
        texts = texts if has_ids else frame
    columns = frame.collect_schema().names()
    scores = frame.select(*(c for c in columns if c in SCORE_NAMES))
    kept_texts = _texts(texts)
    if "repeat" in columns:
        number = repeat_numbers(scores, origin)
        scores = scores.with_columns(repeat=number)
        kept_texts = None if kept_texts is None else kept_texts.with_columns(repeat=number)
    return Run(info, scores, kept_texts, name, origin, rows, ids_are_occurrences=not has_ids)


def cast_columns(frame: Frame, origin: str) -> Frame:
    """Cast columns to the types of the schema."""
    # Arrow has several types of text, which cannot be joined with each other.
    always = {nw.String} if frame.implementation.is_pyarrow() else set()
    dtypes = {
        name: DTYPES[str(BY_NAME[name].type)]
        for name in frame.collect_schema().names()
        if name not in ("repeat", "options")
    }
    # DuckDB and Spark cast a list to text, which is fine for a question, but not for tags.
    writes_lists = frame.implementation.is_duckdb() or frame.implementation.is_spark_like()
    for name, dtype in frame.collect_schema().items():
        if name in dtypes and dtype.is_nested() and (name == "tags" or not writes_lists):
            raise ColumnError(
                f"column {name!r} has type {dtype}, expected text",
                file=origin,
                field=name,
                hint=f"convert {name!r} to text; separate several tags by ';'.",
            )
    casts = [
        _cast(name, dtype, dtypes[name], origin)
        for name, dtype in frame.collect_schema().items()
        if name in dtypes and (dtype != dtypes[name] or dtypes[name] in always)
    ]
    return frame.with_columns(*casts) if casts else frame


def _cast(name: str, dtype: nw.dtypes.DType, target: Any, origin: str) -> nw.Expr:
    column = nw.col(name)
    if target is nw.String:
        return _as_text(column, dtype) if dtype.is_float() else column.cast(nw.String)
    if not (dtype.is_numeric() or dtype in {nw.Boolean, nw.Unknown}):
        raise ColumnError(
            f"column {name!r} has type {dtype}, expected numbers",
            file=origin,
            field=name,
            hint=f"convert {name!r} to numbers, or map another column to it.",
        )
    if target is nw.Int32 and dtype.is_numeric():
        return _as_int32(column, dtype, refuse=name == "k")
    return column.cast(target)


def _as_text(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """Return numbers as text; 7.0 becomes 7, since a column with missing values has floats."""
    is_whole = _is_whole(column, dtype, 2**53)
    digits = nw.when(is_whole).then(column).otherwise(nw.lit(0.0)).cast(nw.Int64).cast(nw.String)
    return nw.when(is_whole).then(digits).otherwise(column.cast(nw.String))


def _as_int32(column: nw.Expr, dtype: nw.dtypes.DType, *, refuse: bool) -> nw.Expr:
    """Return whole numbers; others become null, or -1 if validation is to refuse them."""
    is_whole = _is_whole(column, dtype, 2**31 - 1)
    number = nw.when(is_whole).then(column).otherwise(nw.lit(-1)).cast(nw.Int32)
    return nw.when((~column.is_null()) if refuse else is_whole).then(number)


def _is_whole(column: nw.Expr, dtype: nw.dtypes.DType, largest: int) -> nw.Expr:
    small = column.abs() <= largest
    return small if dtype.is_integer() else small & (column == column.floor())


def repeat_numbers(scores: Frame, origin: str) -> nw.Expr:
    """Number seeds or other labels of repeats as 0, 1, 2, ..., in sorted order."""
    label_of = nw.col("repeat").cast(nw.String)
    distinct = scores.select(label_of).drop_nulls().unique()
    values = distinct.head(MAX_REPEATS + 1).collect()["repeat"].to_list()
    labels = sorted(values, key=_natural)
    if len(labels) > MAX_REPEATS:
        raise ColumnError(
            f"'repeat' has more than {MAX_REPEATS:,} different values",
            file=origin,
            field="repeat",
            hint="repeat numbers the answers to the same item (0, 1, 2, ...); check that it is "
            "not the item id.",
        )
    later = enumerate(labels[1:], start=1)
    numbers = (nw.when(label_of == label).then(nw.lit(number)) for number, label in later)
    numbered = nw.coalesce(*numbers, nw.lit(0)).cast(nw.Int32)
    return nw.when(~nw.col("repeat").is_null()).then(numbered)


def derive_content(frame: Frame, *, origin: str) -> Frame:
    """Add content hashes with the library of the frame, which maps Arrow batches in its own way."""
    columns = tuple(frame.collect_schema().names())
    deriver = ContentDeriver(columns, origin=origin)
    native = nw.to_native(frame)
    implementation = frame.implementation
    if implementation.is_pyspark():
        derived = _derive_spark(native, deriver, origin)
    elif implementation.is_duckdb():
        derived = _derive_duckdb(native, deriver)
    elif implementation.is_polars():
        derived = _derive_polars(native, columns, origin)
    else:
        derived = _to_library(deriver.table(frame.collect().to_arrow()), implementation)
    lazy: Frame = nw.from_native(derived).lazy()
    return lazy


def _to_library(table: pa.Table, implementation: nw.Implementation) -> Any:
    if not implementation.is_pandas():
        return nw.from_arrow(table, backend=cast("Any", implementation)).to_native()
    import pandas as pd  # installed if the caller passes pandas

    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _derive_duckdb(native: Any, deriver: ContentDeriver) -> Any:
    """Stream batches through the deriver into a file, which the connection of the relation reads.

    A connection cannot write a table while it streams another, and relations of two connections
    cannot be joined; a file works for any connection.
    """
    path = temporary_path(".parquet")
    with native.to_arrow_reader(ROWS_PER_BATCH) as reader:
        schema = deriver.schema(reader.schema)
        kept = pa.schema([schema.field(name) for name in _kept(schema.names, deriver)])
        with pq.ParquetWriter(path, kept) as writer:
            for batch in reader:
                writer.write_batch(deriver(batch).select(kept.names))
    return native.query(fresh_name(), f"FROM {scan('read_parquet', path)}")


def _derive_polars(native: Any, columns: tuple[str, ...], origin: str) -> Any:
    """Stream batches through the deriver into a file, so that texts are hashed only once."""
    import polars as pl  # installed if the caller passes Polars

    path = temporary_path(".parquet")
    deriver = ContentDeriver(columns, origin=origin)
    try:
        _sink(native, deriver, path, in_order=deriver.needs_item)
    except FieldError:
        # A stream is unordered; in order, the error can name the row.
        _sink(native, ContentDeriver(columns, origin=origin), path, in_order=True)
    return pl.scan_parquet(path)


def _sink(native: Any, deriver: ContentDeriver, path: Path, *, in_order: bool) -> None:
    import polars as pl

    def derive(frame: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame(deriver.table(frame.to_arrow()))

    schema = derive(native.collect_schema().to_frame()).schema
    derived = native.map_batches(
        derive,
        schema=schema,
        streamable=not in_order,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )
    derived.select(_kept(schema.names(), deriver)).sink_parquet(path)


def _kept(names: list[str], deriver: ContentDeriver) -> list[str]:
    """Return the columns to write; texts are read from the source, unless items have no ids."""
    return [name for name in names if deriver.needs_item or name not in TEXT_NAMES]


def _derive_spark(native: Any, deriver: ContentDeriver, origin: str) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    if deriver.needs_item:
        raise ColumnError(
            "missing column 'item'; the rows of a distributed table have no order to number "
            "items by",
            file=origin,
            field="item",
            hint="add an 'item' column with one id per question.",
        )
    schema = from_arrow_schema(deriver.schema(to_arrow_schema(native.schema)))

    def derive(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from map(deriver, batches)

    with travelling_code():
        return native.mapInArrow(derive, schema)


def needs_content(columns: Collection[str]) -> bool:
    """Whether there are questions or options without hashes."""
    return any(
        text in columns and f"{text}_hash" not in columns for text in ("question", "options")
    )


def _without(frame: Frame, names: tuple[str, ...]) -> Frame:
    return frame.select(*(c for c in frame.collect_schema().names() if c not in names))


def _texts(frame: Frame) -> Frame | None:
    columns = frame.collect_schema().names()
    present = [name for name in TEXT_NAMES if name in columns]
    if not present or "item" not in columns:
        return None
    return frame.select(*(name for name in KEY if name in columns), *present)


def _check_map(present: list[str], column_map: ColumnMap, origin: str) -> None:
    for field, column in column_map.items():
        if field not in BY_NAME:
            raise ColumnError(
                f"--columns contains the unknown field {field!r}",
                file=origin,
                field=field,
                hint=_close(field, list(BY_NAME)),
            )
        if column not in present:
            raise ColumnError(
                f"--columns {field}={column}: there is no column {column!r}; "
                f"the columns are {listed(present)}",
                file=origin,
                field=field,
                hint=_close(column, present),
            )


def _missing_hint(missing: list[str], present: list[str]) -> str:
    pairs = []
    for name in missing:
        known = [column for column in SYNONYMS[name] if column in present]
        pairs.append(f"{name}={known[0] if known else 'COLUMN'}")
    hint = f"name them with --columns {','.join(pairs)}"
    return hint + (
        " (or --task NAME if all rows belong to one task)." if "task" in missing else "."
    )


def _close(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only here

    matches = get_close_matches(name, map(str, known), n=3, cutoff=0.5)
    return (
        f"did you mean {' or '.join(map(repr, matches))}?"
        if matches
        else f"choose from {listed(known)}."
    )


def listed(names: list[str], most: int = 12) -> str:
    """Return the first few names and the total number."""
    text = ", ".join(str(name)[:40] for name in names[:most])
    return text + (f", ... ({len(names):,} in total)" if len(names) > most else "")


def _natural(label: str) -> tuple[int, float, str]:
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    return (0, number, label) if math.isfinite(number) else (1, 0.0, label)


def _eager_rows(frame: Frame) -> Rows:
    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        batches = frame.collect().to_arrow().to_batches(ROWS_PER_BATCH)
        yield from enumerate(chain.from_iterable(b.to_pylist() for b in batches), start=1)

    return rows
