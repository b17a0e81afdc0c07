"""Dataframes with columns of other types than in the schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.errors import ColumnError

ROWS = {"task": ["t"], "item": ["1"], "score": [1.0]}


@pytest.mark.parametrize("make", [lambda table: table, pl.from_arrow, duckdb.from_arrow])
def test_a_list_of_tags_is_a_typed_error(make: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(ColumnError, match="separate several tags by ';'") as error:
        fm.open_run(make(pa.table({**ROWS, "tags": [["a", "b"]]})))
    assert error.value.field == "tags"


@pytest.mark.parametrize("make", [lambda table: table, pl.from_arrow])
def test_a_list_that_cannot_be_text_is_a_typed_error(make: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(ColumnError) as error:
        fm.open_run(make(pa.table({**ROWS, "question": [["a", "b"]]})))
    assert error.value.field == "question"
