"""Spark sessions, execution plans of comparisons, and errors without Java stack traces.

The queries are the narwhals expressions that every library runs. What is here is what narwhals has
no word for: how many partitions, what is kept for a second use, how rows leave without all being in
memory, and which of a page of Java is the cause.
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
"""Joined rows of one task: a sort of them fits into the memory that a core has by default."""
MAX_PARTITIONS = 100_000
"""Above that the driver is busy with its own lists; partitions get larger instead."""
SIGNS = 8
"""Bits of a hash that are summed to see whether keys repeat."""
CONNECT_SECONDS = 5.0
"""To wait for a master that does not answer."""
DELTA_HINT = (
    "start Spark with the package of Delta Lake, such as PYSPARK_SUBMIT_ARGS='--packages "
    "io.delta:delta-spark_2.13:VERSION pyspark-shell'."
)


def is_spark(frame: Frame) -> bool:
    """Whether a frame is computed by a Spark session of this process."""
    return frame.implementation.is_pyspark()


def session_of(frame: Frame) -> Any:
    """The Spark session that a frame belongs to."""
    return nw.to_native(frame).sparkSession


# Sessions.


def spark_session(engine: Any = "spark", master: str | None = None) -> Any:
    """The session to read with: the one handed in, the one that is active, or a new one.

    Args:
        engine: a session, or `spark` for one that is there or is started.
        master: address of a cluster, such as `spark://HOST:7077`, `yarn` or `local[4]`; by default
            as Spark is configured, else this machine.

    Raises:
        ClusterError: no cluster answers there, or Spark does not start.
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
    # It warns of pandas 3 wherever Arrow is used, and works with it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    with spark_errors(), _output_into(log_path()):
        return _builder(master).getOrCreate()


def _builder(master: str | None) -> Any:
    from pyspark.sql import SparkSession

    # Workers on this machine run the Python that has Arrow, not the first one on the path.
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
    """Whether somebody has said how Spark is to run on this machine."""
    names = ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_DRIVER_MEMORY")
    return any(name in os.environ for name in names)


def _driver_gigabytes() -> int:
    """A quarter of the memory: on one machine the driver does all the work."""
    if not hasattr(os, "sysconf"):
        return 1
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(32, size // 4 >> 30))


def _require_answer(master: str | None) -> None:
    """Spark itself tries for minutes, and then says that its context was stopped."""
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
    """The file that takes what Spark and Java write; gone at the end if nothing failed."""
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
    """A process that is started meanwhile writes into a file for all its life."""
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
    """One job per query, in as many partitions as its rows need.

    Rows are counted by then, so nothing is left for Spark to find out while it runs, for which it
    would run every stage as a job of its own. Settings of the session come back afterwards.

    Args:
        frame: of the session concerned; other libraries are left as they are.
        rows: that are joined; 0 where only sums are shuffled.
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
    """Full rounds of all cores, so that none is idle in the last one."""
    cores = max(1, int(session.sparkContext.defaultParallelism))
    rounds = max(1, math.ceil(rows / ROWS_PER_PARTITION / cores))
    return max(cores, min(rounds * cores, MAX_PARTITIONS))


class Kept:
    """Frames that are needed more than once, kept by the cluster until they are released."""

    def __init__(self) -> None:
        self._frames: list[Any] = []

    def keep(self, frame: Frame) -> Frame:
        """The same frame, computed once; other libraries compute it again."""
        if not is_spark(frame):
            return frame
        from pyspark import StorageLevel

        native = nw.to_native(frame)
        self._frames.append(native.persist(StorageLevel.MEMORY_AND_DISK))
        return frame

    def release(self) -> None:
        """Give the memory back."""
        with suppress(*spark_failures()):
            while self._frames:
                self._frames.pop().unpersist()


@contextmanager
def kept_frames() -> Iterator[Kept]:
    """What is kept within is released at the end."""
    kept = Kept()
    try:
        yield kept
    finally:
        kept.release()


def add_signs(frame: Frame, keys: Mapping[str, Sequence[str]]) -> tuple[Frame, list[str]]:
    """Columns whose sums tell how often keys repeat, without grouping by them.

    Each key sums +1 or -1 in every column, as its hash says. The square of such a sum is about the
    number of rows where all keys differ, and the square of a count where one key has so many.

    Args:
        frame: of Spark.
        keys: a column -> those that make a key with it; where it is empty, nothing is counted.

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
    """About how many rows share a key with a row, itself included: 1 where all keys differ.

    Args:
        rows: how many there are.
        ones: how many of them have a 1, by column of `add_signs`.
    """
    return sum((2 * count - rows) ** 2 for count in ones) / len(ones) / rows if rows else 1.0


def first_rows(frame: Frame, count: int) -> Frame:
    """Some rows, few: taken from the first partitions, not from all of them."""
    if not is_spark(frame):
        return frame.head(count)
    native = nw.to_native(frame)
    rows = [row.asDict() for row in native.take(count)]
    names = frame.collect_schema().names()
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in names}
    few: Frame = nw.from_native(pa.table(columns)).lazy()
    return few


def arrow_batches(frame: Frame) -> Iterator[pa.RecordBatch]:
    """All rows of a Spark frame, one partition after the other, never all of them in memory."""

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
    """Functions handed to Spark bring our code along: its workers need not have forgetmap."""
    from pyspark import cloudpickle

    package = sys.modules[__package__.partition(".")[0]]
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(package)  # type: ignore[no-untyped-call]


# Errors.


def spark_failures() -> tuple[type[BaseException], ...]:
    """What Spark raises; nothing where it was never loaded."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # Where the driver is lost between two calls, py4j connects anew, and that fails in plain words.
    return PySparkException, Py4JError, ConnectionError


@contextmanager
def spark_errors(origin: str = "") -> Iterator[None]:
    """Turn what Spark raises into a typed error of one sentence; the rest goes to a file."""
    try:
        yield
    except spark_failures() as error:
        raise spark_error(error, origin) from None


def spark_error(error: BaseException, origin: str = "") -> ForgetmapError:
    """The typed error for what Spark says.

    Args:
        error: what it raised.
        origin: what was read.
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
    """All that is known; an error of a lost driver cannot even be printed."""
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
    """The sentence that says why, out of a page of Java."""
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
"""What a text of Spark means: the first that fits."""
