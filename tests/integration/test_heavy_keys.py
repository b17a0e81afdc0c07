"""A key with very many rows is refused before a join multiplies them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import forgetmap as fm
from forgetmap.errors import DuplicateKeyError

SECONDS = 60
"""Generous, for a slow machine; the join would have 10^10 rows and not end at all."""


def as_parquet(rows: pl.DataFrame, folder: Path) -> Path:
    rows.write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


WAYS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "polars": lambda rows, _: rows,
    "polars-lazy": lambda rows, _: rows.lazy(),
    "pandas": lambda rows, _: rows.to_pandas(),
    "pyarrow": lambda rows, _: rows.to_arrow(),
    "duckdb": lambda rows, _: duckdb.from_arrow(rows.to_arrow()),
    "parquet": as_parquet,
}


def rows_with(items: pl.Expr, number: int) -> pl.DataFrame:
    rows = pl.DataFrame({"row": range(number)})
    return rows.with_columns(task=pl.lit("t"), item=items, score=pl.lit(1.0)).drop("row")


def refused(source: Any) -> DuplicateKeyError:
    """The rows against the same rows; the same path on both sides would be refused for that."""
    other = source
    if isinstance(source, Path):
        other = source.with_name("copy.parquet")
        other.write_bytes(source.read_bytes())
    started = time.monotonic()
    with pytest.raises(DuplicateKeyError) as caught:
        fm.compare(source, other)
    assert time.monotonic() - started < SECONDS
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_one_id_for_all_rows_of_both_sides(way: str, tmp_path: Path) -> None:
    source = WAYS[way](rows_with(pl.lit("same"), 100_000), tmp_path)
    assert "100000 rows" in refused(source).message.replace(",", "")


@pytest.mark.parametrize("way", ["polars-lazy", "parquet"])
def test_one_id_for_half_of_two_million_rows(way: str, tmp_path: Path) -> None:
    own = pl.col("row").cast(pl.String)
    half = rows_with(pl.when(pl.col("row") % 2 == 0).then(pl.lit("same")).otherwise(own), 2_000_000)
    source = WAYS[way](half, tmp_path)
    assert "1000000 rows" in refused(source).message.replace(",", "")


def test_a_few_doubles_among_a_million_rows(tmp_path: Path) -> None:
    """Too few to be seen before the join; the join then says more rows than there are."""
    number = pl.col("row")
    ids = pl.when(number < 10).then(number + 10).otherwise(number).cast(pl.String)
    source = as_parquet(rows_with(ids, 1_100_000), tmp_path)
    assert "2 rows" in refused(source).message
