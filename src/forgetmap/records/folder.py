"""The run folder: a run on disk.

    RUN/
      manifest.json     metadata of the run (records/manifest.py)
      scores.parquet    one row per task, item, repeat, metric and scorer
      texts.parquet     questions, options, prompts, responses; separate, since counting needs none

A folder appears under its name only when it is complete: it is written to a temporary folder next
to it, which is renamed at the end.
"""

from __future__ import annotations

import contextlib
import glob
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._disk import (
    checksum_of,
    exchange,
    in_use,
    remove_unused,
    stamp_of,
    sync,
    sync_tree,
)
from forgetmap.errors import (
    TRUNCATED_HINT,
    ChecksumError,
    ColumnError,
    ForgetmapError,
    ManifestError,
    OutputError,
    UnreadableError,
)
from forgetmap.records.engine import connection, readable, scan
from forgetmap.records.frames import cast_columns
from forgetmap.records.identity import parse_options
from forgetmap.records.manifest import (
    FileInfo,
    RunInfo,
    is_unchanged,
    read_manifest,
    write_manifest,
)
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import (
    BY_NAME,
    KEY,
    SCORE_NAMES,
    SCORES,
    TEXT_NAMES,
    TEXTS,
    scores_schema,
    texts_schema,
)
from forgetmap.records.spark import arrow_batches, is_spark
from forgetmap.records.validate import FileRow, reading

MANIFEST = "manifest.json"
"""The file of a run folder with the metadata of the run."""
CHANGED = "the manifest was changed after it was written; its contents may be wrong"
ROWS_PER_BATCH = 100_000


def is_run_folder(path: Path) -> bool:
    """Whether this is a run folder, as written by `write_run`."""
    return (path / MANIFEST).is_file() and (path / SCORES).is_file()


def read_run(path: Path, *, check_texts: bool = True) -> Run:
    """Open a run folder: its checksums are verified, but its tables not yet read.

    Args:
        path: the folder.
        check_texts: whether to verify the files of texts, too, which can be large.

    Raises:
        ChecksumError: a file was changed after it was written.
    """
    manifest = path / MANIFEST
    info = read_manifest(manifest)
    texts = path / TEXTS if (path / TEXTS).is_file() else None
    _require_unchanged((path / SCORES, *([texts] if texts and check_texts else ())), info)
    scores = _read_parquet(path / SCORES, needed=("task", "item", "score"))
    return Run(
        # The files are those of this folder, not of the run.
        info=info.model_copy(update={"files": {}, "contradictions": []}),
        scores=scores,
        texts=_read_parquet(texts, needed=KEY) if texts else None,
        name=info.run_id or path.name,
        origin=str(path),
        rows=lambda: _raw_rows(path, scores.collect_schema().names()),
        notices=(*info.notes, *(() if is_unchanged(manifest, info) else (CHANGED,))),
        contradictions=tuple(info.contradictions),
    )


def is_undamaged(folder: Path) -> bool:
    """Whether a run folder exists and all its checksums match."""
    if not is_run_folder(folder):
        return False
    try:
        info = read_manifest(folder / MANIFEST)
        _require_unchanged(filter(Path.is_file, folder.iterdir()), info)
    except (ManifestError, ChecksumError):
        return False
    return is_unchanged(folder / MANIFEST, info)


FileStatus = Literal["as written", "changed", "missing", "no checksum"]
"""State of a file of a run folder, compared with the manifest."""


def check_files(folder: Path) -> dict[str, FileStatus]:
    """Compare every file of a run folder with the manifest; all bytes are read again."""
    info = read_manifest(folder / MANIFEST)
    _checksum.cache_clear()
    states: dict[str, FileStatus] = {
        name: _status(folder / name, expected)
        for name, expected in info.files.items()
        if name == Path(name).name
    }
    for file in sorted(filter(Path.is_file, folder.iterdir())):
        states.setdefault(file.name, "no checksum")
    if info.files:
        states[MANIFEST] = "as written" if is_unchanged(folder / MANIFEST, info) else "changed"
    return states


def _status(file: Path, expected: FileInfo) -> FileStatus:
    try:
        if not file.is_file():
            return "missing"
    except OSError:  # no file can have such a name
        return "missing"
    return "as written" if _has_bytes(file, expected) else "changed"


def _require_unchanged(files: Iterable[Path], info: RunInfo) -> None:
    """Raise if a file differs from its checksum in the manifest."""
    for file in files:
        expected = info.files.get(file.name)
        if expected is None or not file.is_file() or _has_bytes(file, expected):
            continue
        raise ChecksumError(
            "the file was changed after it was written: its checksum differs from the manifest",
            file=str(file),
            hint="copy the folder again; if the change was intended, remove 'files' from its "
            f"{MANIFEST}.",
        )


def _has_bytes(file: Path, expected: FileInfo) -> bool:
    if file.stat().st_size != expected.bytes:
        return False
    with readable(str(file)):
        return _checksum(file, stamp_of(file)) == expected.xxh3


@lru_cache(maxsize=1_024)
def _checksum(file: Path, stamp: str) -> str:
    """Return the checksum of a file; cached as long as its stamp is the same."""
    del stamp
    return checksum_of(file)


def write_run(run: Run, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a run folder; it appears under its name only when it is complete."""
    path = Path(path)
    with complete_folder(path, overwrite=overwrite) as partial:
        scores = fill_scores(run.scores)
        write_parquet(partial / SCORES, batches_of(scores, scores_schema(), run), scores_schema())
        if run.texts is not None:
            texts = batches_of(fill_texts(run.texts), texts_schema(), run)
            write_parquet(partial / TEXTS, texts, texts_schema())
        known = {"contradictions": list(run.contradictions)}
        describe_folder(partial, run.info.model_copy(update=known))
    return path


def describe_folder(folder: Path, info: RunInfo) -> None:
    """Write the manifest of a run folder, with a checksum of every file in it."""
    known = {
        file.name: FileInfo(bytes=file.stat().st_size, xxh3=checksum_of(file))
        for file in sorted(folder.iterdir())
    }
    write_manifest(folder / MANIFEST, info.model_copy(update={"files": known}))


@contextlib.contextmanager
def complete_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Provide a folder to write into, which is renamed to `path` if nothing fails.

    It is flushed to disk before the rename. With `overwrite`, an older result is removed only after
    the new one is complete; if the system can exchange names, there is always a result. Folders
    left over from processes that were killed are removed.
    """
    with writable(path):
        _undo_half_swap(path)
        refuse_to_replace(path, overwrite=overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        with _partial_folder(path) as partial:
            yield partial
            partial.chmod(0o755)
            sync_tree(partial)
            if overwrite and path.exists():
                _swap(partial, path)
            else:
                partial.rename(path)  # fails if another process was faster
            sync(path.parent)


@contextlib.contextmanager
def _partial_folder(path: Path) -> Iterator[Path]:
    """Provide a temporary folder next to `path`, which is removed at the end."""
    while True:
        partial = Path(tempfile.mkdtemp(prefix=f"{_hidden(path)}.partial-", dir=path.parent))
        with in_use(partial) as is_ours:
            if not is_ours:
                continue
            try:
                yield partial
            finally:
                shutil.rmtree(partial, ignore_errors=True)
            return


def _hidden(path: Path) -> str:
    return f".{path.name}"


def _remove_leftovers(path: Path) -> None:
    for kind in ("partial", "old"):
        for folder in path.parent.glob(f"{glob.escape(_hidden(path))}.{kind}-*"):
            remove_unused(folder)


def _undo_half_swap(path: Path) -> None:
    """Restore the older result if a process was killed between the two renames of a swap."""
    if path.exists():
        return
    for folder in path.parent.glob(f"{glob.escape(_hidden(path))}.old-*"):
        with in_use(folder) as is_ours:
            if is_ours and (folder / path.name).exists() and not path.exists():
                (folder / path.name).rename(path)


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn errors of the system for a path that cannot be written to into a typed error."""
    try:
        yield
    except ForgetmapError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose a writable folder on a disk with enough space.",
        ) from None


def fill_scores(scores: Frame) -> Frame:
    """Return all columns of `scores.parquet`; absent ones are null or have their default."""
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
    """Iterate over a frame as Arrow batches of this schema, streamed if the library can stream.

    Args:
        frame: columns in the order of the schema.
        schema: schema of the batches.
        run: the run of the frame, to locate errors.
    """
    with reading(run):
        if frame.implementation.is_duckdb():
            batches = nw.to_native(frame).to_arrow_reader(ROWS_PER_BATCH)
        elif is_spark(frame):
            batches = arrow_batches(frame)
        else:
            batches = frame.collect().to_arrow().to_batches(ROWS_PER_BATCH)
        for batch in batches:
            yield _fitted(batch, schema)


def write_parquet(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write batches to a Parquet file."""
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def parquet_columns(path: Path, *, origin: str) -> list[str]:
    """Return the columns of a Parquet file; duplicate names are kept."""
    with readable(origin):
        return list(pq.read_schema(path).names)


def parquet_rows(
    path: Path, columns: Iterable[str], *, origin: str
) -> Iterator[tuple[int, FileRow]]:
    """Iterate over the rows of a Parquet file with their number, from 1.

    Args:
        path: the file.
        columns: columns to read.
        origin: name of the file for messages.

    Raises:
        UnreadableError: a column is damaged; the message names it and its rows.
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
    """Read all of these columns of a Parquet file; raise an error that names a damaged one."""
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
    """Iterate over the rows of scores, then check that the texts can be read."""
    yield from parquet_rows(folder / SCORES, columns, origin=str(folder / SCORES))
    if (texts := folder / TEXTS).is_file():
        require_sound(texts, parquet_columns(texts, origin=str(texts)), origin=str(texts))


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast columns to their types; options written as text become lists."""
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
        raise pa.ArrowInvalid(f"options are not a list: {str(error)[:60]}") from None


def fill_texts(texts: Frame) -> Frame:
    """Return all columns of `texts.parquet`; absent ones are null."""
    present = texts.collect_schema().names()
    defaults = {"repeat": nw.lit(0, dtype=nw.Int32)}
    return texts.select(
        *(
            nw.col(name) if name in present else defaults.get(name, nw.lit(None)).alias(name)
            for name in (*KEY, *TEXT_NAMES)
        )
    )


def _read_parquet(path: Path, *, needed: tuple[str, ...]) -> Frame:
    with readable(str(path)):
        native = connection().sql(f"FROM {scan('read_parquet', path)}")
    present = native.columns
    for name in needed:
        if name not in present:
            raise ColumnError(
                f"there is no column {name!r}",
                file=str(path),
                field=name,
                hint="re-create the run folder with `forgetmap records convert`.",
            )
    frame: Frame = nw.from_native(native)
    frame = cast_columns(frame.select(*(name for name in present if name in BY_NAME)), str(path))
    if "repeat" in present and not frame.collect_schema()["repeat"].is_integer():
        raise ColumnError(
            "column 'repeat' contains values other than whole numbers",
            file=str(path),
            field="repeat",
            hint="number the repeats of an item 0, 1, 2, ...",
        )
    return frame


def refuse_to_replace(path: Path, *, overwrite: bool) -> None:
    """Raise unless `path` is unused, or a result of forgetmap that may be replaced."""
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists",
            hint="choose another folder, or add --overwrite to replace it.",
            occupied=path,
        )
    if path.exists() and not _is_ours(path):
        raise OutputError(
            f"{path} was not written by forgetmap, so it is not replaced",
            hint="choose another folder for the result.",
            occupied=path,
        )


def _is_ours(path: Path) -> bool:
    """Whether this folder is empty or was written by forgetmap."""
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
    """Replace the old folder by the new one; if that fails, keep the old one."""
    if exchange(partial, path):
        return
    aside = Path(tempfile.mkdtemp(prefix=f"{_hidden(path)}.old-", dir=path.parent))
    with in_use(aside):
        old = path.rename(aside / path.name)
        try:
            partial.rename(path)
        except OSError:
            old.rename(path)
            aside.rmdir()
            raise
        shutil.rmtree(aside, ignore_errors=True)
