"""A run as one plain table: CSV, JSON lines or Parquet, texts included."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.csv

from forgetmap.errors import OutputError
from forgetmap.records.engine import connection
from forgetmap.records.folder import batches_of, writable, write_parquet
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import BY_NAME, KEY, TEXT_NAMES
from forgetmap.records.spreadsheet import quote_formulas


def write_table(run: Run, path: Path, *, overwrite: bool = False) -> Path:
    """Write scores and texts side by side; the ending of `path` says in which format."""
    with writable(path):
        _refuse_to_write(path, overwrite=overwrite)
        frame = _with_texts(run.scores, run.texts)
        schema = pa.schema([(name, BY_NAME[name].type) for name in frame.collect_schema().names()])
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            WRITERS[path.suffix](Path(partial), batches_of(frame, schema, run), schema)
            Path(partial).chmod(0o644)
            Path(partial).replace(path)
        finally:
            Path(partial).unlink(missing_ok=True)
    return path


def _refuse_to_write(path: Path, *, overwrite: bool) -> None:
    if path.suffix not in WRITERS:
        raise OutputError(
            f"{path} does not say which format to write",
            hint=f"end its name in {', '.join(WRITERS)}.",
        )
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already", hint="choose another name, or --overwrite.")


def _with_texts(scores: Frame, texts: Frame | None) -> Frame:
    if texts is None:
        return scores
    if scores.implementation.is_pyarrow():
        # Arrow does not join tables that hold lists.
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
    """Lists are written as JSON, because a CSV cell is text; no cell is a formula."""
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
