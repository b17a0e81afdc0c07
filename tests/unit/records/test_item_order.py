"""The order of items in lists."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from forgetmap.records.item_order import item_order_sql, sort_items

IDS = ["0", "2", "10", "100", "9" * 30, "1" + "0" * 30, "007", "1.5", "a10", "a2"]
"""In order: whole numbers by value, then texts."""
SHUFFLED = random.Random(1).sample(IDS, len(IDS))
TABLE = pa.table({"task": ["t"] * len(IDS), "item": SHUFFLED})
FRAMES: dict[str, Any] = {
    "pyarrow": TABLE,
    "pandas": pd.DataFrame(TABLE.to_pydict()),
    "polars": pl.DataFrame(TABLE),
    "duckdb": duckdb.from_arrow(TABLE),
}


@pytest.mark.parametrize("library", FRAMES)
def test_whole_numbers_are_sorted_by_value_in_every_library(library: str) -> None:
    ordered = sort_items(nw.from_native(FRAMES[library]).lazy()).collect()
    assert ordered["item"].to_list() == IDS
    assert ordered.columns == ["task", "item"]


def test_sql_has_the_same_order() -> None:
    ordered = duckdb.from_arrow(TABLE).order(item_order_sql("item")).fetchall()
    assert [item for _, item in ordered] == IDS
