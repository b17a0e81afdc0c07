"""A run on disk.

    RUN/
      manifest.json     what is known about the run as a whole (records/manifest.py)
      scores.parquet    one row per task, item, repeat, metric and scorer
      texts.parquet     questions, options, prompts, responses; apart, so that counting skips them

A folder appears under its name only when it is complete: everything is written beside it and
renamed at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.errors import ColumnError, OutputError, UnreadableError
from forgetmap.records.engine import connection, readable
from forgetmap.records.frames import cast_columns
from forgetmap.records.manifest import read_manifest
from forgetmap.records.outcome import Outcome
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import (
    BY_NAME,
    KEY,
    SCORE_NAMES,
    TEXT_NAMES,
    scores_schema,
    texts_schema,
)

MANIFEST, SCORES, TEXTS = "manifest.json", "scores.parquet", "texts.parquet"
ROWS_PER_BATCH = 100_000


def is_run_folder(path: Path) -> bool:
    """Whether this is a folder that `write_run` made."""
    return (path / MANIFEST).is_file() and (path / SCORES).is_file()


def read_run(path: Path) -> Run:
    """Open a run folder; nothing but the manifest is read yet."""
    info = read_manifest(path / MANIFEST)
    scores = _read_parquet(path / SCORES, needed=("task", "item", "score"))
    texts = path / TEXTS
    return Run(
        info=info,
        scores=scores,
        texts=_read_parquet(texts, needed=KEY) if texts.is_file() else None,
        name=info.run_id or path.name,
        origin=str(path),
        rows=lambda: parquet_rows(path / SCORES),
    )


def write_run(run: Run, path: Path, *, overwrite: bool = False) -> Path:
    """Write a run folder; it appears under its name only when it is complete."""
    with complete_folder(path, overwrite=overwrite) as partial:
        _write_parquet(partial / SCORES, fill_scores(run.scores), scores_schema())
        if run.texts is not None:
            _write_parquet(partial / TEXTS, _fill_texts(run.texts), texts_schema())
        manifest = run.info.model_dump_json(indent=2)
        (partial / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    return path


@contextlib.contextmanager
def complete_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the name `path` only if nothing failed.

    With `overwrite` an older result goes only once the new one is whole.
    """
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists already", hint="choose another folder, or replace it with --overwrite."
        )
    if path.exists() and not _is_ours(path):
        raise OutputError(
            f"{path} was not written by forgetmap and is not replaced",
            hint="choose another folder for the result.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    except OSError as error:
        raise OutputError(
            f"cannot write to {path.parent}: {error.strerror}",
            hint="choose a folder you may write to, on a disk with room.",
        ) from None
    try:
        yield partial
        partial.chmod(0o755)
        _swap(partial, path)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose a folder you may write to, on a disk with room.",
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fill_scores(scores: Frame) -> Frame:
    """All columns of `scores.parquet`, what nobody recorded filled with null or its default."""
    present = scores.collect_schema().names()
    score = nw.col("score")
    implied = (
        nw.when(score.is_null()).then(nw.lit(str(Outcome.UNSCORED)))
        .when(score >= 1).then(nw.lit(str(Outcome.CORRECT)))
        .when(score > 0).then(nw.lit(str(Outcome.PARTIAL)))
        .otherwise(nw.lit(str(Outcome.INCORRECT)))
    )  # fmt: skip
    defaults = {
        "repeat": nw.lit(0, dtype=nw.Int32),
        "metric": nw.lit("score"),
        "scorer": nw.lit("default"),
        "outcome": implied,
    }
    filled = []
    for name in SCORE_NAMES:
        if name not in present:
            filled.append(defaults.get(name, nw.lit(None)).alias(name))
        elif name in defaults and name != "repeat":
            filled.append(nw.coalesce(nw.col(name), defaults[name]).alias(name))
        else:
            filled.append(nw.col(name))
    return scores.select(*filled)


def batches_of(frame: Frame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a frame as Arrow batches of this schema, streamed where the library streams."""
    native = nw.to_native(frame)
    if frame.implementation.is_duckdb():
        with readable("results"):
            yield from (batch.cast(schema) for batch in native.to_arrow_reader(ROWS_PER_BATCH))
        return
    yield from frame.collect().to_arrow().cast(schema).to_batches(ROWS_PER_BATCH)


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Rows of a Parquet file with their number, counted from 1."""
    number = 0
    for batch in pq.ParquetFile(path).iter_batches(ROWS_PER_BATCH):
        for row in batch.to_pylist():
            number += 1
            yield number, row


def _fill_texts(texts: Frame) -> Frame:
    present = texts.collect_schema().names()
    absent = {name: nw.lit(None) for name in TEXT_NAMES if name not in present}
    if "repeat" not in present:
        absent["repeat"] = nw.lit(0, dtype=nw.Int32)
    return texts.with_columns(**absent).select(*KEY, *TEXT_NAMES)


def _read_parquet(path: Path, *, needed: tuple[str, ...]) -> Frame:
    with readable(str(path)):
        native = connection().read_parquet(str(path))
    present = native.columns
    for name in needed:
        if name not in present:
            raise ColumnError(
                f"there is no column {name!r}",
                file=str(path),
                field=name,
                hint="write the run folder again with `forgetmap records convert`.",
            )
    frame: Frame = nw.from_native(native)
    return cast_columns(frame.select(*(name for name in present if name in BY_NAME)), str(path))


def _write_parquet(path: Path, frame: Frame, schema: pa.Schema) -> None:
    try:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in batches_of(frame, schema):
                writer.write_batch(batch)
    except pa.ArrowInvalid as error:
        raise UnreadableError(
            f"the results do not fit the schema: {error}",
            hint="run `forgetmap records check` on the input.",
        ) from None


def _is_ours(path: Path) -> bool:
    names = {child.name for child in path.iterdir()} if path.is_dir() else {"a file"}
    return not names or MANIFEST in names or "comparison.json" in names


def _swap(partial: Path, path: Path) -> None:
    if not path.exists():
        partial.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent))
    os.replace(path, old / path.name)  # noqa: PTH105  # a folder, atomically
    partial.rename(path)
    shutil.rmtree(old, ignore_errors=True)
