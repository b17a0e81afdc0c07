"""The embedded engine: one in-memory DuckDB per process that spills to the temporary folder."""

from __future__ import annotations

import atexit
import gc
import glob
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
from narwhals import _namespace as narwhals_namespace

from forgetmap._cache import temporary_folder
from forgetmap.errors import TRUNCATED_HINT, ForgetmapError, UnreadableError

_names = itertools.count()


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return the connection to DuckDB, one per process."""
    connected = duckdb.connect(config={"temp_directory": str(temporary_folder())})
    atexit.register(_close, connected)
    return connected


@contextmanager
def readable(origin: str) -> Iterator[None]:
    """Turn errors of DuckDB and Arrow for damaged files into a typed error."""
    try:
        yield
    except ForgetmapError:
        raise
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(origin, error) from None


def unreadable(origin: str, error: Exception) -> UnreadableError:
    """Return the typed error for an error of DuckDB or Arrow about a file."""
    facts = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        return UnreadableError(
            f"not enough memory or temporary disk: {facts}",
            file=origin,
            hint="close other programs, set TMPDIR to a larger disk, or use Spark.",
        )
    return UnreadableError(f"cannot be read: {facts}", file=origin, hint=TRUNCATED_HINT)


def quote(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def scan(reader: str, path: Path, options: str = "") -> str:
    """Return SQL that reads exactly this file as a table.

    DuckDB would read a name as a pattern, and folders such as `task=arc` as columns.
    """
    name = literal(glob.escape(str(path)))
    return f"{reader}({name}, hive_partitioning=false{', ' * bool(options)}{options})"


def fresh_name() -> str:
    """Return an unused table name."""
    return f"forgetmap_{next(_names)}"


def _close(connected: duckdb.DuckDBPyConnection) -> None:
    connected.close()
    # narwhals caches its DuckDB namespace for the life of the process; DuckDB 2.0 (nanobind)
    # complains on stderr about every type still referenced when its module is torn down.
    cached = getattr(narwhals_namespace, "_builtin_namespace", None)
    if cached is not None:
        cached.cache_clear()
    gc.collect()
