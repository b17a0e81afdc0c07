"""Runs with every column that estimators use, in every dataframe library."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow, dumped
from estimator_oracle import Item, Row, Shape
from forgetmap.comparison.result import ComparisonResult, GroupResult

TYPES = {"score": pa.float64(), "k": pa.int64(), "repeat": pa.int64(), "gold_index": pa.int64()}
SHAPE = Shape(repeats=2, clusters=True, items=16)


def rows_of(side: str, shape: Shape = SHAPE, seed: int = 9) -> list[Row]:
    """Return rows with every column that estimators use, with nulls where they are allowed."""
    rows = oracle.random_run(seed, shape, side)
    return [
        row | {"gold_index": None if row["k"] is None else int(row["item"]) % row["k"]}
        for row in rows
    ]


def as_table(rows: list[Row]) -> pa.Table:
    fields = [(name, TYPES.get(name, pa.string())) for name in rows[0]]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def frame(rows: list[Row], library: str, path: Path, spark: Any = None) -> Any:
    table = as_table(rows)
    if library == "parquet":
        pq.write_table(table, path)
        return path
    build: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pd.DataFrame(rows),
        "pandas-arrow": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.DataFrame(table),
        "polars-lazy": lambda: pl.DataFrame(table).lazy(),
        "pyarrow": lambda: table,
        "duckdb": lambda: duckdb.from_arrow(table),
        "spark": lambda: spark.createDataFrame(table),
    }
    return build[library]()


SINGLE = Shape(clusters=True, items=30)
CASES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "repeats and noise": (SHAPE, {"noise": "again"}),
    "noise": (SINGLE, {"noise": "again"}),
    "published averages": (SHAPE, {"rollup": "post-forget", "task_table": "as-run"}),
}


def compare_in(name: str, library: str, folder: Path, spark: Any = None) -> dict[str, Any]:
    shape, options = CASES[name]
    before, after, again = (
        frame(rows_of(side, shape), library, folder / f"{side}.parquet", spark)
        for side in ("before", "after", "again")
    )
    noise = again if options.get("noise") else None
    return dumped(fm.compare(before, after, **(options | {"noise": noise})).result)


@cache
def said_by_polars(name: str) -> dict[str, Any]:
    return compare_in(name, "polars", Path())


@cache
def compared(shape: Shape, seed: int) -> tuple[ComparisonResult, list[Item]]:
    """Compare two random runs; return the result and the items for the oracle."""
    before, after = (oracle.random_run(seed, shape, side) for side in ("before", "after"))
    found = fm.compare(as_arrow(before), as_arrow(after)).result
    return found, oracle.items_of(before, after)


def every_group(shape: Shape, seed: int) -> list[tuple[GroupResult, list[Item]]]:
    result, items = compared(shape, seed)
    found = [(result.total, items)]
    for level, names in oracle.groups_of(items).items():
        groups = {group.name: group for group in getattr(result, level)}
        found += [(groups[name], own) for name, own in names.items()]
    return found


def passages(lost: set[int], *, size: int = 6, count: int = 12) -> tuple[pa.Table, pa.Table]:
    """Return two runs of passages, of which some are forgotten as a whole."""
    tables = []
    for side in (0, 1):
        rows = [
            {
                "task": "t",
                "item": f"{passage}-{place}",
                "cluster": f"p{passage}",
                "score": float(not (side and passage in lost)),
            }
            for passage in range(count)
            for place in range(size)
        ]
        tables.append(as_arrow(rows))
    return tables[0], tables[1]
