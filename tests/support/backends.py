"""Conversion of rows to every dataframe library and back."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.result import ComparisonResult, GroupResult
from oracle import KINDS, Counts, Expected, Row

# By default Spark starts the `python3` on the path, which may have no Arrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

LIBRARIES = ("pandas", "pandas-arrow", "polars", "polars-lazy", "pyarrow", "duckdb", "parquet")
TYPES = {
    "score": pa.float64(),
    "k": pa.int64(),
    "repeat": pa.int64(),
    "gold_index": pa.int64(),
    "options": pa.list_(pa.string()),
}
COVERAGE = (
    "rows_before", "rows_after", "paired", "items", "only_before", "only_after", "duplicates",
    "conflicts", "unscored", "scored_before", "scored_after",
)  # fmt: skip


def as_arrow(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table; all rows have the same columns."""
    names = list(rows[0])
    return pa.Table.from_pylist(
        list(rows), schema=pa.schema([(name, TYPES.get(name, pa.string())) for name in names])
    )


def as_frame(rows: Sequence[Row], library: str, path: Path, spark: Any = None) -> Any:
    """Return rows as a frame of a library, or the path of a Parquet file with them."""
    table = as_arrow(rows)
    if library == "spark":
        return spark.createDataFrame(table)
    if library == "parquet":
        pq.write_table(table, path)
        return path
    build: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pd.DataFrame(list(rows)),
        "pandas-arrow": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.DataFrame(table),
        "polars-lazy": lambda: pl.DataFrame(table).lazy(),
        "pyarrow": lambda: table,
        "duckdb": lambda: duckdb.from_arrow(table),
    }
    return build[library]()


def rows_of(frame: Any) -> list[Row]:
    """Return the rows of a native frame of any library."""
    rows = nw.from_native(frame).lazy().collect().to_arrow().to_pylist()
    return [{name: _null(value) for name, value in row.items()} for row in rows]


def _null(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def dumped(result: ComparisonResult) -> dict[str, Any]:
    """Return a result without the paths of its runs."""
    values = result.to_dict()
    for side in ("before", "after"):
        del values[side]["origin"]
    return values


def counted(comparison: Comparison, kinds: Sequence[str] = tuple(KINDS)) -> dict[str, Any]:
    """Return the quantities of the oracle, as computed by forgetmap."""
    result = comparison.result
    groups = {name: getattr(result, name) for name in ("tasks", "categories", "tags")}
    return {
        "pairing": {name: getattr(result.pairing, name) for name in COVERAGE},
        "total": _counts(result.total),
        "flips": {kind: _flips(comparison, kind) for kind in kinds},
        "unpaired": Counter(tuple(row.values()) for row in rows_of(comparison.unpaired())),
        **{name: {each.name: _counts(each) for each in groups[name]} for name in groups},
    }


def foretold(expected: Expected, kinds: Sequence[str] = tuple(KINDS)) -> dict[str, Any]:
    """Return the same quantities, as computed by the oracle."""
    return {
        "pairing": expected.pairing,
        "total": expected.total,
        "flips": {kind: expected.flips(kind) for kind in kinds},
        "unpaired": expected.unpaired(),
        "tasks": expected.tasks,
        "categories": expected.categories,
        "tags": expected.tags,
    }


def _counts(group: GroupResult) -> Counts:
    cells = {name: getattr(group, name) for name in ("items", "n", "n00", "n01", "n10", "n11")}
    known = {name: count for name, count in group.reasons.items() if count}
    return Counts(**cells, reasons=Counter(known))


def _flips(comparison: Comparison, kind: Any) -> set[tuple[Any, ...]]:
    rows = rows_of(comparison.flips(kind))
    found = {(row["task"], row["item"], row["item_after"], row["repeat"]) for row in rows}
    assert len(found) == len(rows)
    return found
