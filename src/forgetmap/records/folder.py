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
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.errors import (
    TRUNCATED_HINT,
    ColumnError,
    ForgetmapError,
    OutputError,
    UnreadableError,
)
from forgetmap.records.engine import connection, readable, scan
from forgetmap.records.frames import cast_columns
from forgetmap.records.identity import parse_options
from forgetmap.records.manifest import read_manifest
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import (
    BY_NAME,
    KEY,
    MORE_TEXTS,
    SCORE_NAMES,
    SCORES,
    TEXT_NAMES,
    TEXTS,
    scores_schema,
    texts_schema,
)
from forgetmap.records.validate import FileRow, reading

MANIFEST = "manifest.json"
"""The file of a run folder that says what is known about the run."""
ROWS_PER_BATCH = 100_000


def is_run_folder(path: Path) -> bool:
    """Whether this is a folder that `write_run` made."""
    return (path / MANIFEST).is_file() and (path / SCORES).is_file()


def read_run(path: Path) -> Run:
    """Open a run folder; nothing but the manifest is read yet."""
    info = read_manifest(path / MANIFEST)
    scores = _read_parquet(path / SCORES, needed=("task", "item", "score"))
    texts = _texts_of(path)
    return Run(
        info=info,
        scores=scores,
        texts=_read_parquet(*texts, needed=KEY) if texts else None,
        name=info.run_id or path.name,
        origin=str(path),
        rows=lambda: _raw_rows(path, scores.collect_schema().names()),
    )


def write_run(run: Run, path: Path, *, overwrite: bool = False) -> Path:
    """Write a run folder; it appears under its name only when it is complete."""
    with complete_folder(path, overwrite=overwrite) as partial:
        scores = fill_scores(run.scores)
        write_parquet(partial / SCORES, batches_of(scores, scores_schema(), run), scores_schema())
        if run.texts is not None:
            texts = batches_of(fill_texts(run.texts), texts_schema(), run)
            write_parquet(partial / TEXTS, texts, texts_schema())
        # Rare, so that manifests without it stay as older versions wrote them.
        empty = set() if run.info.left_out else {"left_out"}
        manifest = run.info.model_dump_json(indent=2, exclude=empty)
        (partial / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    return path


@contextlib.contextmanager
def complete_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the name `path` only if nothing failed.

    With `overwrite` an older result goes only once the new one is whole.
    """
    with writable(path):
        refuse_to_replace(path, overwrite=overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
        try:
            yield partial
            partial.chmod(0o755)
            _swap(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn what the system says about a place that cannot be written to into a typed error."""
    try:
        yield
    except ForgetmapError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose a place you may write to, on a disk with room.",
        ) from None


def fill_scores(scores: Frame) -> Frame:
    """All columns of `scores.parquet`, what nobody recorded filled with null or its default."""
    present = scores.collect_schema().names()
    defaults = {
        "repeat": nw.lit(0, dtype=nw.Int32),
        "metric": nw.lit("score"),
        "scorer": nw.lit("default"),
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


def batches_of(frame: Frame, schema: pa.Schema, run: Run) -> Iterator[pa.RecordBatch]:
    """The rows of a frame as Arrow batches of this schema, streamed where the library streams.

    Args:
        frame: columns in the order of the schema.
        schema: what to make of them.
        run: where the frame came from, to point at a fault.
    """
    with reading(run):
        if frame.implementation.is_duckdb():
            batches = nw.to_native(frame).to_arrow_reader(ROWS_PER_BATCH)
        else:
            batches = frame.collect().to_arrow().to_batches(ROWS_PER_BATCH)
        for batch in batches:
            yield _fitted(batch, schema)


def write_parquet(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write batches as they come."""
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def parquet_columns(path: Path, *, origin: str) -> list[str]:
    """The columns of a Parquet file as they are named in it, doubled ones included."""
    with readable(origin):
        return list(pq.read_schema(path).names)


def parquet_rows(
    path: Path, columns: Iterable[str], *, origin: str
) -> Iterator[tuple[int, FileRow]]:
    """Rows of a Parquet file with their number, counted from 1.

    Args:
        path: the file.
        columns: those to read.
        origin: what to call the file.

    Raises:
        UnreadableError: a column is damaged, and in which rows.
    """
    columns = list(columns)
    require_sound(path, columns, origin=origin)
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS_PER_BATCH, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield number, FileRow(row, file=origin)


def require_sound(path: Path, columns: Iterable[str], *, origin: str) -> None:
    """Read these columns of a Parquet file through, to name one that is damaged."""
    with readable(origin), pq.ParquetFile(path) as file:
        end = 0
        for group in range(file.num_row_groups):
            start, end = end + 1, end + file.metadata.row_group(group).num_rows
            for name in columns:
                try:
                    file.read_row_group(group, columns=[name]).validate(full=True)
                except (pa.ArrowException, OSError):
                    raise UnreadableError(
                        f"column {name!r} is damaged in rows {start:,} to {end:,}",
                        file=origin,
                        field=name,
                        hint=TRUNCATED_HINT,
                    ) from None


def _raw_rows(folder: Path, columns: Iterable[str]) -> Iterator[tuple[int, FileRow]]:
    """The scores row by row, and then whether the texts can be read at all."""
    yield from parquet_rows(folder / SCORES, columns, origin=str(folder / SCORES))
    for texts in _texts_of(folder):
        require_sound(texts, parquet_columns(texts, origin=str(texts)), origin=str(texts))


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast columns to their types, and lists of options that are written as text to lists."""
    columns = [
        _parsed(batch.column(field.name))
        if pa.types.is_list(field.type) and not _is_list(batch.column(field.name).type)
        else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, names=schema.names).cast(schema)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_null(kind))


def _parsed(column: pa.Array) -> pa.Array:
    try:
        return pa.array(map(parse_options, column.to_pylist()), pa.list_(pa.string()))
    except ValueError as error:
        raise pa.ArrowInvalid(f"options are no list: {str(error)[:60]}") from None


def fill_texts(texts: Frame) -> Frame:
    """All columns of `texts.parquet`, what nobody recorded filled with null."""
    present = texts.collect_schema().names()
    defaults = {"repeat": nw.lit(0, dtype=nw.Int32)}
    return texts.select(
        *(
            nw.col(name) if name in present else defaults.get(name, nw.lit(None)).alias(name)
            for name in (*KEY, *TEXT_NAMES)
        )
    )


def _texts_of(folder: Path) -> list[Path]:
    return [path for path in (folder / TEXTS, *sorted(folder.glob(MORE_TEXTS))) if path.is_file()]


def _read_parquet(path: Path, *more: Path, needed: tuple[str, ...]) -> Frame:
    parts = [f"(FROM {scan('read_parquet', file)})" for file in (path, *more)]
    with readable(str(path)):
        native = connection().sql(" UNION ALL BY NAME ".join(parts))
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
    frame = cast_columns(frame.select(*(name for name in present if name in BY_NAME)), str(path))
    if "repeat" in present and not frame.collect_schema()["repeat"].is_integer():
        raise ColumnError(
            "column 'repeat' holds no whole numbers",
            file=str(path),
            field="repeat",
            hint="number the repeats of an item 0, 1, 2, ...",
        )
    return frame


def refuse_to_replace(path: Path, *, overwrite: bool) -> None:
    """Raise unless `path` is free, or a result of ours that may be replaced."""
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists already", hint="choose another folder, or replace it with --overwrite."
        )
    if path.exists() and not _is_ours(path):
        raise OutputError(
            f"{path} was not written by forgetmap and is not replaced",
            hint="choose another folder for the result.",
        )


def _is_ours(path: Path) -> bool:
    """Whether this folder is empty or has a mark that forgetmap left in it."""
    if not path.is_dir():
        return False
    marks = [path / name for name in (MANIFEST, "comparison.json") if (path / name).is_file()]
    return not any(path.iterdir()) or any(map(_is_our_mark, marks))


def _is_our_mark(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError):
        return False
    return isinstance(content, dict) and not content.keys().isdisjoint(OUR_KEYS)


OUR_KEYS = {"schema_version", "simulated"}


def _swap(partial: Path, path: Path) -> None:
    """Put the new folder in the place of the old one, or leave the old one where it is."""
    if not path.exists():
        partial.rename(path)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent))
    old = path.rename(aside / path.name)
    try:
        partial.rename(path)
    except OSError:
        old.rename(path)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)
