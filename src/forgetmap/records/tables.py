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
import pyarrow.parquet as pq

from forgetmap.errors import OutputError
from forgetmap.records.folder import batches_of
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import BY_NAME, KEY, TEXT_NAMES


def write_table(run: Run, path: Path, *, overwrite: bool = False) -> Path:
    """Write scores and texts side by side; the ending of `path` says in which format."""
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already", hint="choose another name, or --overwrite.")
    frame = _with_texts(run.scores, run.texts)
    schema = pa.schema([(name, BY_NAME[name].type) for name in frame.collect_schema().names()])
    write = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}[path.suffix]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            write(Path(partial), batches_of(frame, schema), schema)
            Path(partial).chmod(0o644)
            Path(partial).replace(path)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose a place you may write to, on a disk with room.",
        ) from None
    return path


def _with_texts(scores: Frame, texts: Frame | None) -> Frame:
    if texts is None:
        return scores
    present = [name for name in TEXT_NAMES if name in texts.collect_schema().names()]
    key = [name for name in KEY if name in texts.collect_schema().names()]
    once = texts.select(*key, *present).unique(subset=key, keep="any")
    renamed = once.select(*(nw.col(name).alias(f"text_{name}") for name in key), *present)
    joined = scores.join(
        renamed, left_on=key, right_on=[f"text_{name}" for name in key], how="left"
    )
    return joined.select(*scores.collect_schema().names(), *present)


def _write_parquet(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Lists are written as JSON, because a CSV cell is text."""
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
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))


def _write_jsonl(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    del schema
    with path.open("w", encoding="utf-8") as stream:
        for batch in batches:
            for row in batch.to_pylist():
                known = {name: value for name, value in row.items() if value is not None}
                stream.write(json.dumps(known | {"score": row["score"]}, ensure_ascii=False) + "\n")
