"""Results read with Spark: Parquet, Delta, catalogue tables; local or in an object store."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw

from forgetmap.errors import MissingInputError, UnknownFormatError, UsageError
from forgetmap.records import (
    SCORES,
    ColumnMap,
    Frame,
    Run,
    is_run_folder,
    read_run,
    run_from_frame,
    spark_errors,
    spark_session,
)
from forgetmap.sources.maps import ScoreRange, rescale_frame

DELTA_LOG = "_delta_log"
_FORMAT = re.compile(r"(delta|parquet|orc):(?!//)(.+)")
_TABLE = re.compile(r"[\w-]+(\.[\w-]+){0,2}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def engine_session(engine: Any, master: str | None) -> Any:
    """Return the Spark session to read with; None for the embedded engine.

    Args:
        engine: `duckdb`, `spark`, a session, or None for the embedded engine.
        master: address of the cluster.

    Raises:
        UsageError: the engine is unknown, or `master` is given without Spark.
    """
    if engine in (None, "duckdb"):
        if master is not None:
            raise UsageError(
                "--master is the address of a Spark cluster, but the engine is not Spark",
                hint="add --engine spark.",
            )
        return None
    if isinstance(engine, str) and engine != "spark":
        raise UsageError(f"there is no engine {engine!r}", hint="choose duckdb or spark.")
    return spark_session(engine, master)


def open_with_spark(
    source: str | os.PathLike[str],
    session: Any,
    *,
    name: str | None = None,
    column_map: ColumnMap | None = None,
    task: str | None = None,
    score_range: ScoreRange | None = None,
) -> Run:
    """Open a table with Spark; only its schema is read.

    Args:
        source: path or URL of Parquet or Delta, of a run folder, or the name of a table;
            `delta:PATH`, `parquet:PATH` and `orc:PATH` name the format.
        session: the Spark session.
        name: display name.
        column_map: canonical field -> column.
        task: name of the only task.
        score_range: the worst and the best score.

    Raises:
        MissingInputError: there is no such path or table.
        UnknownFormatError: Spark cannot distribute files of this format.
    """
    text = os.fspath(source)
    if _is_local(text) and is_run_folder(Path(text)):
        run = _open_folder(Path(text), session)
        return run if name is None else replace(run, name=name)
    label = text.rstrip("/").rsplit("/", 1)[-1].split(".parquet")[0] or text
    with spark_errors(text):
        native = _read(text, session)
    run = run_from_frame(native, name=name or label, column_map=column_map, task=task)
    return rescale_frame(replace(run, origin=text), score_range)


def _read(text: str, session: Any) -> Any:
    chosen = _FORMAT.fullmatch(text)
    if chosen is not None:
        return session.read.format(chosen[1]).load(_full_path(chosen[2]))
    is_local = _is_local(text)
    if not is_local and not _ADDRESS.match(text):
        if _TABLE.fullmatch(text) is None:
            raise MissingInputError(
                "the file or folder does not exist, and this is not a valid table name",
                file=text,
                hint="give a path, an address such as s3a://BUCKET/PATH, or a table as "
                "CATALOG.SCHEMA.TABLE.",
            )
        return session.table(text)
    if is_local and Path(text).is_file() and not _is_parquet(Path(text)):
        raise UnknownFormatError(
            "this is not a Parquet file; Spark reads only formats that it can distribute",
            file=text,
            hint="write it as a run folder first with `forgetmap records convert`, or remove "
            "--engine spark.",
        )
    path = _full_path(text)
    form = "delta" if _has_delta_log(path, session) else "parquet"
    return session.read.format(form).load(path)


def _open_folder(folder: Path, session: Any) -> Run:
    """Open a run folder: its manifest is read here, its tables by Spark."""
    known = read_run(folder, check_texts=False)
    with spark_errors(str(folder)):
        scores = _frame(session.read.parquet(_full_path(str(folder / SCORES))), known.scores)
        texts = known.texts
        if texts is not None:
            parts = [str(path) for path in sorted(folder.glob("texts*.parquet"))]
            texts = _frame(session.read.parquet(*map(_full_path, parts)), texts)
    return replace(known, scores=scores, texts=texts, rows=None, handed_in="lazy")


def _frame(native: Any, like: Frame) -> Frame:
    """Return the frame with the columns of `like`, in the same order."""
    frame: Frame = nw.from_native(native)
    return frame.select(*like.collect_schema().names())


def _has_delta_log(path: str, session: Any) -> bool:
    """Whether a folder is a Delta table, whose files also contain deleted rows."""
    java, context = (getattr(session, name, None) for name in ("_jvm", "_jsc"))
    if java is None or context is None:  # a session of Spark Connect
        return False
    log = java.org.apache.hadoop.fs.Path(path, DELTA_LOG)
    return bool(log.getFileSystem(context.hadoopConfiguration()).exists(log))


def _is_local(text: str) -> bool:
    return not _ADDRESS.match(text) and Path(text).exists()


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _full_path(text: str) -> str:
    """Return an absolute URI, since workers have other working folders than the driver."""
    return text if _ADDRESS.match(text) else Path(text).absolute().as_uri()
