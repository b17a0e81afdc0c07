"""Parquet files of a log, opened without reading them whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.errors import TRUNCATED_HINT, UnreadableError
from forgetmap.sources.files import LogFile


@contextmanager
def parquet(file: LogFile) -> Iterator[pq.ParquetFile]:
    """The file, open; what is broken in it is a typed error."""
    try:
        with pq.ParquetFile(file.local) as opened:
            yield opened
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"this Parquet file cannot be read: {str(error).splitlines()[0]:.200}",
            file=file.name,
            hint=TRUNCATED_HINT,
        ) from None
