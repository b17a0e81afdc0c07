"""A table that is written in batches, from rows and from columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.sources.score_columns import arrow_array

REPEATED = ("task", "metric", "scorer", "outcome", "category", "gold", "choice", "answer")
"""Columns with repeated values; for others a dictionary costs more than it saves."""


class BatchTable:
    """Collects rows and writes them as columns.

    Args:
        path: the file to write.
        schema: schema of the file.
        names: names of the cells of a row, in the order of `add`.
        is_part: write Arrow IPC instead of Parquet, for `append` of another table.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, names: Sequence[str], *, is_part: bool
    ) -> None:
        self._schema, self._names = schema, names
        self._writer = pa.ipc.new_file(path, schema) if is_part else parquet_writer(path, schema)
        self._cells: list[Any] = []
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0

    def add(self, *parts: Sequence[Any]) -> None:
        """Add a row, given in parts."""
        for part in parts:
            self._cells += part
        self.rows += 1

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows that are columns already; the caller updates `rows`."""
        self._batches.append(batch)

    def append(self, path: Path) -> None:
        """Add the rows of a table written with `is_part`."""
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as part:
            for index in range(part.num_record_batches):
                self._batches.append(part.get_batch(index))
                self.rows += len(self._batches[-1])

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def take_rows(self) -> dict[str, list[Any]]:
        """Convert the single rows in memory to columns.

        Returns:
            These columns; nothing if there were no rows.
        """
        if not self._cells:
            return {}
        cells, width = self._cells, len(self._names)
        columns = {name: cells[index::width] for index, name in enumerate(self._names)}
        self._cells = []
        arrays = [arrow_array(columns[field.name], field.type) for field in self._schema]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return columns

    def write(self) -> None:
        """Write the rows in memory."""
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches, self._schema))
        self._batches, self.rows = [], 0


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file for writing."""
    repeated = [name for name in REPEATED if name in schema.names]
    return pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=1, use_dictionary=repeated
    )
