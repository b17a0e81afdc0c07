"""Writers of the same rows in every format, and a reader of cells."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.sources.open import open_run

Row = dict[str, Any]
ROWS: list[Row] = [
    {"task": "t", "item": "a", "score": 1.0},
    {"task": "t", "item": "b", "score": 0.25},
    {"task": "u", "item": "a", "score": None},
]


def as_csv(rows: Sequence[Row], delimiter: str = ",") -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def as_jsonl(rows: Sequence[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_json(rows: Sequence[Row]) -> bytes:
    return json.dumps(rows).encode()


def as_pretty_json(rows: Sequence[Row]) -> bytes:
    return json.dumps(rows, indent=4).encode()


def as_parquet(rows: Sequence[Row]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return bytes(sink.getvalue())


WRITERS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "json": as_json,
    "pretty json": as_pretty_json,
    "parquet": as_parquet,
}
every_format = pytest.mark.parametrize("kind", WRITERS)


def found(path: Path, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return the cells of these columns, sorted."""
    frame = open_run(path, **options).scores.select(*columns or ("task", "item", "score"))
    return sorted((tuple(row) for row in frame.collect().iter_rows()), key=str)


def wanted(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=str)
