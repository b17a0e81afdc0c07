"""The cells of a drift as one table for spreadsheets, with a row per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.csv

from forgetmap.records import quote_formulas

_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("level", "base", "model", "id", "name", "within")),
        *((name, pa.float64()) for name in ("value", "low", "high", "std", "p", "q", "noise")),
        ("state", pa.string()),
        *((name, pa.int64()) for name in ("items", "metrics", "of_metrics")),
        *((name, pa.float64()) for name in ("before", "after", "points", "points_low")),
        *((name, pa.float64()) for name in ("points_high", "relative", "forgotten", "gained")),
        ("note", pa.string()),
    ]
)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with the same columns for every result."""
    plain = [{name: row.get(name) for name in _SCHEMA.names} for row in rows]
    return pa.Table.from_pylist(plain, _SCHEMA)


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV; texts that spreadsheets would read as formulas are escaped."""
    stream = BytesIO()
    safe = pa.Table.from_arrays(quote_formulas(table_of(rows)), schema=_SCHEMA)
    pa.csv.write_csv(safe, stream)
    return stream.getvalue().decode("utf-8")
