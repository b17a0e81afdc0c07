"""Runs as plain tables: built from columns, written as CSV, JSON Lines or Parquet, summarised."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.csv

from forgetmap._disk import whole_file
from forgetmap.errors import OutputError
from forgetmap.records.content import ContentDeriver
from forgetmap.records.engine import connection
from forgetmap.records.folder import batches_of, writable, write_parquet
from forgetmap.records.manifest import RunInfo
from forgetmap.records.repeats import count_repeats
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import BY_NAME, KEY, SCORE_NAMES, TEXT_NAMES
from forgetmap.records.validate import reading

Columns = Mapping[str, Sequence[Any]]
LONG_TEXTS = ("question", "prompt", "response", "material")
"""Texts that may be long, and are the same in all rows of an answer."""
# Texts that a spreadsheet would run as formulas are prefixed by a quote, which reading removes.
_RISKY = r"\A'*[=+\-@\t\r]"
_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def build_run(columns: Columns, info: RunInfo, name: str) -> Run:
    """Make a run of canonical columns; content hashes are derived from its texts.

    An answer has a row per metric, all with the same texts, which are stored once.
    """
    first_rows, answers = _answers(columns)
    firsts = _derive(
        {key: [cells[index] for index in first_rows] for key, cells in columns.items()}, name
    )
    rows = _derive({key: cells for key, cells in columns.items() if key not in LONG_TEXTS}, name)
    for key in SCORE_NAMES:
        if key in firsts.column_names and key not in rows.column_names:
            rows = rows.append_column(key, firsts.column(key).take(answers))
    engine = connection()
    scores = rows.select([key for key in SCORE_NAMES if key in rows.column_names])
    texts = firsts.select([*KEY, *(key for key in TEXT_NAMES if key in firsts.column_names)])
    return Run(
        info=info,
        scores=nw.from_native(engine.from_arrow(scores)),
        texts=nw.from_native(engine.from_arrow(texts)),
        name=name,
        origin=name,
    )


def _answers(columns: Columns) -> tuple[list[int], pa.Array]:
    """Return the first row of each answer, and the number of the answer of each row."""
    firsts: list[int] = []
    numbers: dict[tuple[Any, ...], int] = {}
    answers = []
    for index, key in enumerate(zip(*(columns[name] for name in KEY), strict=True)):
        if key not in numbers:
            numbers[key] = len(firsts)
            firsts.append(index)
        answers.append(numbers[key])
    return firsts, pa.array(answers, pa.int64())


def _derive(columns: Columns, name: str) -> pa.Table:
    schema = pa.schema([(key, BY_NAME[key].type) for key in columns])
    table = pa.table(dict(columns), schema=schema)
    return ContentDeriver(tuple(columns), origin=name).table(table)


def write_table(run: Run, path: Path, *, overwrite: bool = False) -> Path:
    """Write scores and texts as one table; the ending of `path` determines the format."""
    with writable(path):
        _refuse_to_write(path, overwrite=overwrite)
        frame = _with_texts(run.scores, run.texts)
        schema = pa.schema([(name, BY_NAME[name].type) for name in frame.collect_schema().names()])
        with whole_file(path) as partial:
            WRITERS[path.suffix](partial, batches_of(frame, schema, run), schema)
    return path


def _refuse_to_write(path: Path, *, overwrite: bool) -> None:
    if path.suffix not in WRITERS:
        raise OutputError(
            f"cannot tell the format from the name {path}",
            hint=f"use one of the extensions {', '.join(WRITERS)}.",
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists", hint="choose another name, or add --overwrite to replace it."
        )


def _with_texts(scores: Frame, texts: Frame | None) -> Frame:
    if texts is None:
        return scores
    if scores.implementation.is_pyarrow():
        # Arrow does not join tables with lists.
        scores, texts = _in_engine(scores), _in_engine(texts)
    present = [name for name in TEXT_NAMES if name in texts.collect_schema().names()]
    key = [name for name in KEY if name in texts.collect_schema().names()]
    once = texts.select(*key, *present).unique(subset=key, keep="any")
    renamed = once.select(*(nw.col(name).alias(f"text_{name}") for name in key), *present)
    joined = scores.join(
        renamed, left_on=key, right_on=[f"text_{name}" for name in key], how="left"
    )
    return joined.select(*scores.collect_schema().names(), *present)


def _in_engine(frame: Frame) -> Frame:
    embedded: Frame = nw.from_native(connection().from_arrow(frame.collect().to_arrow()))
    return embedded


def _write_csv(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write CSV; lists are written as JSON, and formulas are quoted."""
    flat = pa.schema(
        [(f.name, pa.string() if pa.types.is_list(f.type) else f.type) for f in schema]
    )
    with pa.csv.CSVWriter(path, flat) as writer:
        for batch in batches:
            columns = [
                pa.array(
                    [json.dumps(v) if v is not None else None for v in column.to_pylist()],
                    pa.string(),
                )
                if pa.types.is_list(column.type)
                else column
                for column in batch.columns
            ]
            safe = quote_formulas(pa.RecordBatch.from_arrays(columns, schema=flat))
            writer.write_batch(pa.RecordBatch.from_arrays(safe, schema=flat))


def _write_jsonl(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    del schema
    with path.open("w", encoding="utf-8") as stream:
        for batch in batches:
            for row in batch.to_pylist():
                known = {name: value for name, value in row.items() if value is not None}
                stream.write(json.dumps(known | {"score": row["score"]}, ensure_ascii=False) + "\n")


WRITERS = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": write_parquet}


def quote_formulas(table: pa.RecordBatch | pa.Table) -> list[pa.Array | pa.ChunkedArray]:
    """Return the columns with a quote before texts that begin like a formula, but no numbers."""
    return [_quoted(c) if pa.types.is_string(c.type) else c for c in table.columns]


def _quoted(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    import pyarrow.compute as pc  # large, and most tables are read

    risky = pc.match_substring_regex(column, _RISKY)
    number = pc.match_substring_regex(column, _NUMBER)
    quoted = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_not(risky, number), quoted, column)


def unquote_formula(text: str) -> str:
    """Undo `quote_formulas` for a cell."""
    return text[1:] if _QUOTED.match(text) else text


def unquoted_sql(column: str) -> str:
    """Return SQL that undoes `quote_formulas` for a column."""
    is_quoted = f"starts_with({column}, '''') AND regexp_matches({column}, '^''+[=+\\-@\\t\\r]')"
    return f"CASE WHEN {is_quoted} THEN substr({column}, 2) ELSE {column} END"


@dataclass(frozen=True, slots=True)
class TaskSurvey:
    """Counts of a task, metric and scorer."""

    task: str
    metric: str
    scorer: str
    rows: int
    items: int
    scored: int
    mean_score: float | None


@dataclass(frozen=True, slots=True)
class Survey:
    """Summary of the contents of a run."""

    name: str
    origin: str
    rows: int
    repeats: int
    columns: tuple[str, ...]
    has_texts: bool
    tasks: tuple[TaskSurvey, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def survey(run: Run) -> Survey:
    """Summarise the contents of a run."""
    present = [name for name in ("metric", "scorer") if name in run.columns]
    counted = run.scores.group_by("task", *present).agg(
        nw.len().alias("rows"),
        nw.col("item").n_unique().alias("items"),
        nw.col("score").count().alias("scored"),
        nw.col("score").mean().alias("mean_score"),
    )
    with reading(run):
        counts = counted.sort("task", *present).collect()
    tasks = tuple(
        TaskSurvey(
            task=row["task"],
            metric=row.get("metric") or "score",
            scorer=row.get("scorer") or "default",
            rows=int(row["rows"]),
            items=int(row["items"]),
            scored=int(row["scored"]),
            mean_score=row["mean_score"],
        )
        for row in counts.rows(named=True)
    )
    return Survey(
        name=run.name,
        origin=run.origin,
        rows=sum(task.rows for task in tasks),
        repeats=count_repeats(run),
        columns=tuple(sorted(run.columns)),
        has_texts=run.texts is not None,
        tasks=tasks,
    )
