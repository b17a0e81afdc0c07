"""Spark sessions, execution plans of comparisons, and errors without Java stack traces.

The queries are the narwhals expressions that every library runs. This module adds what narwhals
does not cover: the number of partitions, caching, streaming of rows, and the cause of a Java error.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap._lazy import require
from forgetmap.errors import (
    ClusterError,
    FieldError,
    ForgetmapError,
    MissingInputError,
    UnreadableError,
)
from forgetmap.records.run import Frame

ROWS_PER_PARTITION = 1_000_000
"""Joined rows of a Spark task, few enough to be sorted in the default memory of a core."""
MAX_PARTITIONS = 100_000
"""Upper limit, to spare the driver; beyond it partitions become larger."""
SIGNS = 8
"""Bits of a hash that are summed to detect repeated keys."""
CONNECT_SECONDS = 5.0
"""Timeout for connecting to a master."""
DELTA_HINT = (
    "start Spark with the package of Delta Lake, such as PYSPARK_SUBMIT_ARGS='--packages "
    "io.delta:delta-spark_2.13:VERSION pyspark-shell'."
)


def is_spark(frame: Frame) -> bool:
    """Whether a frame is computed by a Spark session of this process."""
    return frame.implementation.is_pyspark()


def session_of(frame: Frame) -> Any:
    """Return the Spark session of a frame."""
    return nw.to_native(frame).sparkSession


# Sessions.


def spark_session(engine: Any = "spark", master: str | None = None) -> Any:
    """Return the session to read with: the given one, the active one, or a new one.

    Args:
        engine: a session, or `spark` for the active or a new one.
        master: address of a cluster, such as `spark://HOST:7077`, `yarn` or `local[4]`; by default
            the one configured for Spark, else this machine.

    Raises:
        ClusterError: the cluster does not answer, or Spark does not start.
    """
    if not isinstance(engine, str):
        return engine
    require("pyspark", "Spark")
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and (master is None or master == active.sparkContext.master):
        return active
    if active is not None:
        raise ClusterError(
            f"Spark already runs on {active.sparkContext.master}, not on {master}",
            hint="stop that session first, or remove --master.",
        )
    _require_answer(master)
    # PySpark warns about pandas 3 whenever Arrow is used, but works with it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    with spark_errors(), _output_into(log_path()):
        return _builder(master).getOrCreate()


def _builder(master: str | None) -> Any:
    from pyspark.sql import SparkSession

    # Local workers must run this Python, which has Arrow, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("forgetmap")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    if (master or "local").startswith("local") and not _is_configured():
        builder = builder.config("spark.driver.memory", f"{_driver_gigabytes()}g")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
    return builder


def _is_configured() -> bool:
    """Whether Spark is configured on this machine."""
    names = ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_DRIVER_MEMORY")
    return any(name in os.environ for name in names)


def _driver_gigabytes() -> int:
    """Return a quarter of the memory, since on one machine the driver does all the work."""
    if not hasattr(os, "sysconf"):
        return 1
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(32, size // 4 >> 30))


def _require_answer(master: str | None) -> None:
    """Raise if no master answers; Spark would try for minutes, and report a stopped context."""
    if master is None or not master.startswith("spark://"):
        return
    addresses = master.removeprefix("spark://").split(",")
    reasons = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            reasons.append(str(getattr(error, "strerror", None) or error))
        else:
            return
    raise ClusterError(
        f"no Spark master answers at {master}: {reasons[0].lower()}",
        hint="start it (docs/scale.md), or name another one with --master; a master writes its "
        "address, spark://HOST:PORT, into its log.",
    )


@cache
def log_path() -> Path:
    """Return the file for the output of Spark and Java; removed at exit if nothing failed."""
    handle, name = tempfile.mkstemp(prefix="forgetmap-spark-", suffix=".log")
    os.close(handle)
    path = Path(name)
    atexit.register(_remove_unused, path)
    return path


_failures: list[str] = []


def _remove_unused(path: Path) -> None:
    if not _failures:
        path.unlink(missing_ok=True)


@contextmanager
def _output_into(path: Path) -> Iterator[None]:
    """Redirect the standard error of processes started inside to a file, for their lifetime."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


# The plan.


@contextmanager
def one_plan(frame: Frame, rows: int = 0) -> Iterator[None]:
    """Run each query as one job, with as many partitions as its rows need.

    The rows are already counted, so adaptive execution, which runs every stage as a job of its own,
    is turned off. The settings of the session are restored afterwards.

    Args:
        frame: a frame of the session; frames of other libraries have no effect.
        rows: number of joined rows; 0 if only sums are shuffled.
    """
    if not is_spark(frame):
        yield
        return
    session = session_of(frame)
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(_partitions(session, rows)),
    }
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(*spark_failures()):  # the driver may be lost
            for name, value in before.items():
                session.conf.set(name, value)


def _partitions(session: Any, rows: int) -> int:
    """Return a multiple of the number of cores, so that none is idle in the last round."""
    cores = max(1, int(session.sparkContext.defaultParallelism))
    rounds = max(1, math.ceil(rows / ROWS_PER_PARTITION / cores))
    return max(cores, min(rounds * cores, MAX_PARTITIONS))


class Kept:
    """Frames that are used more than once, cached by the cluster until they are released."""

    def __init__(self) -> None:
        self._frames: list[Any] = []

    def keep(self, frame: Frame) -> Frame:
        """Cache a frame, so that it is computed once; only with Spark."""
        if not is_spark(frame):
            return frame
        from pyspark import StorageLevel

        native = nw.to_native(frame)
        self._frames.append(native.persist(StorageLevel.MEMORY_AND_DISK))
        return frame

    def release(self) -> None:
        """Release all cached frames."""
        with suppress(*spark_failures()):
            while self._frames:
                self._frames.pop().unpersist()


@contextmanager
def kept_frames() -> Iterator[Kept]:
    """Release the frames cached inside at the end."""
    kept = Kept()
    try:
        yield kept
    finally:
        kept.release()


def add_signs(frame: Frame, keys: Mapping[str, Sequence[str]]) -> tuple[Frame, list[str]]:
    """Add columns whose sums show how often keys repeat, without grouping by them.

    Each column is a bit of the hash of the key. With +1 and -1 for the bits, the square of the sum
    is about the number of rows if all keys differ, and larger if many rows share a key.

    Args:
        frame: a Spark frame.
        keys: column -> further columns of its key; rows in which it is null are not counted.

    Returns:
        The frame, and the names of the columns to sum.
    """
    from pyspark.sql import functions as spark

    native = nw.to_native(frame)
    hashes = {
        f"_hash_{name}": spark.when(spark.col(name).isNotNull(), spark.xxhash64(name, *more))
        for name, more in keys.items()
    }
    native = native.withColumns(hashes)
    signs = {
        f"_sign_{name}_{bit}": spark.shiftrightunsigned(f"_hash_{name}", bit).bitwiseAND(
            spark.lit(1)
        )
        for name in keys
        for bit in range(SIGNS)
    }
    native = native.withColumns(signs)
    signed: Frame = nw.from_native(native)
    return signed, list(signs)


def repetition(rows: int, ones: Sequence[int]) -> float:
    """Estimate how many rows share the key of a row, itself included: 1 if all keys differ.

    Args:
        rows: number of rows.
        ones: number of rows with a 1, for each column of `add_signs`.
    """
    return sum((2 * count - rows) ** 2 for count in ones) / len(ones) / rows if rows else 1.0


def first_rows(frame: Frame, count: int) -> Frame:
    """Return a few rows; with Spark, only the first partitions are read."""
    if not is_spark(frame):
        return frame.head(count)
    native = nw.to_native(frame)
    rows = [row.asDict() for row in native.take(count)]
    names = frame.collect_schema().names()
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in names}
    few: Frame = nw.from_native(pa.table(columns)).lazy()
    return few


def arrow_batches(frame: Frame) -> Iterator[pa.RecordBatch]:
    """Iterate over the rows of a Spark frame, partition by partition, never all in memory."""

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    native = nw.to_native(frame)
    with travelling_code():
        packets = native.mapInArrow(packed, "batch binary")
    for row in packets.toLocalIterator():
        yield from pa.ipc.open_stream(bytes(row["batch"]))


@contextmanager
def travelling_code() -> Iterator[None]:
    """Pickle our code by value inside, so that the workers of Spark need not have forgetmap."""
    from pyspark import cloudpickle

    package = sys.modules[__package__.partition(".")[0]]
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(package)  # type: ignore[no-untyped-call]


# Errors.


def spark_failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions of Spark; none if it is not loaded."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # If the driver is lost between two calls, py4j reconnects, which fails with a ConnectionError.
    return PySparkException, Py4JError, ConnectionError


@contextmanager
def spark_errors(origin: str = "") -> Iterator[None]:
    """Turn errors of Spark into a typed error of one sentence; the rest goes to a file."""
    try:
        yield
    except spark_failures() as error:
        raise spark_error(error, origin) from None


def spark_error(error: BaseException, origin: str = "") -> ForgetmapError:
    """Return the typed error for an error of Spark.

    Args:
        error: the error of Spark.
        origin: path or table that was read.
    """
    text = _full_text(error)
    _failures.append(text)
    path = log_path()
    with path.open("a", encoding="utf-8") as log:
        log.write(f"\n{text}\n{getattr(error, '_stackTrace', None) or ''}\n")
    cause = cause_of(text)
    for pattern, make in _KINDS:
        if re.search(pattern, text):
            return make(cause, origin, f" All that Spark wrote is in {path}.")
    return UnreadableError(
        f"Spark stopped: {cause}", file=origin or None, hint=f"all that Spark wrote is in {path}."
    )


def _full_text(error: BaseException) -> str:
    """Return the text of an error; that of a lost driver cannot be printed."""
    try:
        text = str(error)
    except AssertionError:
        text = ""
    except spark_failures():
        text = ""
    return text or f"{type(error).__name__}: {getattr(error, '_desc', '') or error.args}"


_MOST_RECENT = re.compile(r"most recent failure: .*?\): (.+)")
_CAUSED_BY = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)$", re.MULTILINE)
_JAVA = re.compile(r"^(?:: )?(?:[a-z][\w$]*\.)+[\w$]*?(\w+): ")
_CODES = re.compile(r"^\[[A-Z0-9_.]+\] |\s*SQLSTATE: \w+\.?")


def cause_of(text: str) -> str:
    """Extract the cause from a Java stack trace, as one sentence."""
    python = _PYTHON.findall(text) if "Traceback (most recent call last)" in text else []
    causes = _CAUSED_BY.findall(text)
    recent = _MOST_RECENT.findall(text)
    lines = [line for line in text.splitlines() if line.strip()]
    after_call = lines[1:2] if lines and lines[0].startswith("An error occurred while") else lines
    chosen = [*python[-1:], *causes[-1:], *recent[-1:], *after_call[:1], "no reason"][0]
    chosen = _CODES.sub("", _JAVA.sub("", chosen.strip()))
    return _CODES.sub("", chosen).strip(" .;")[:300]


Maker = Callable[[str, str, str], ForgetmapError]


def _cluster(sentence: str, hint: str) -> Maker:
    return lambda cause, _, log: ClusterError(sentence.format(cause=cause), hint=f"{hint}{log}")


def _input(kind: type[Any], sentence: str, hint: str) -> Maker:
    def make(cause: str, origin: str, log: str) -> ForgetmapError:
        error: ForgetmapError = kind(
            sentence.format(cause=cause), file=origin or None, hint=f"{hint}{log}"
        )
        return error

    return make


_DRIVER_GONE = (
    r"Py4JNetworkError|Answer from Java side is empty|Connection refused|ConnectionRe\w+Error"
    r"|Error while (?:sending|receiving)|SparkContext was shut down|stopped SparkContext"
    r"|does not exist in the JVM|BrokenPipe"
)
_KINDS: tuple[tuple[str, Maker], ...] = (
    (
        r"No space left on device|Disk quota exceeded",
        _cluster(
            "the disk that Spark shuffles on is full: {cause}",
            "point SPARK_LOCAL_DIRS (or spark.local.dir) of the workers to a larger disk.",
        ),
    ),
    (
        r"TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND",
        _input(
            MissingInputError,
            "there is no such table: {cause}",
            "SHOW TABLES lists what the catalogue of the session has.",
        ),
    ),
    (
        r"PATH_NOT_FOUND|FileNotFoundException",
        _input(MissingInputError, "there is no such path: {cause}", "check the path."),
    ),
    (
        r"DATA_SOURCE_NOT_FOUND|Failed to find the data source|ClassNotFoundException: delta",
        _input(UnreadableError, "Spark cannot read this format: {cause}", DELTA_HINT),
    ),
    (
        r"UnsupportedFileSystemException|ClassNotFoundException: Class org.apache.hadoop.fs",
        _input(
            UnreadableError,
            "Spark has no file system for this address: {cause}",
            "start Spark with it, such as --packages org.apache.hadoop:hadoop-aws:VERSION for "
            "s3a://.",
        ),
    ),
    (
        r"CAST_INVALID_INPUT|CANNOT_PARSE|NumberFormatException",
        _input(FieldError, "a value does not fit its column: {cause}", "correct the table."),
    ),
    (
        r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
        _input(
            UnreadableError,
            "files of one table have columns of different types: {cause}",
            "write them again with one schema.",
        ),
    ),
    (
        r"OutOfMemoryError|GC overhead limit|CANNOT_ACQUIRE_MEMORY|Container killed by YARN",
        _cluster(
            "a worker ran out of memory: {cause}",
            "give executors more (spark.executor.memory), or set more of them.",
        ),
    ),
    (
        r"JAVA_GATEWAY_EXITED|Unable to locate a Java Runtime|JAVA_HOME",
        _cluster("Spark did not start: {cause}", "`forgetmap doctor` lists its requirements."),
    ),
    (
        _DRIVER_GONE,
        _cluster(
            "the driver of Spark is gone: {cause}",
            "run the command again; if the system ended it, give it more memory "
            "(spark.driver.memory).",
        ),
    ),
    (
        r"ExecutorLostFailure|Master removed our application|All masters are unresponsive",
        _cluster(
            "the workers of Spark are gone: {cause}",
            "look at the workers' logs, and start them again (docs/scale.md).",
        ),
    ),
)  # fmt: skip
"""Patterns in the text of an error, with the typed error; the first match counts."""
