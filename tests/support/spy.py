"""A counter of the rows that are fetched from lazy tables."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pytest


class Spy:
    """Wraps every way to fetch rows and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heights: list[int] = []
        self._patch = monkeypatch
        self.watch(nw.LazyFrame, "collect")
        self.watch(pl.LazyFrame, "collect")
        for name in ("fetchall", "to_arrow_table", "arrow", "df", "pl", "fetchnumpy"):
            self.watch(duckdb.DuckDBPyRelation, name)

    def watch(self, owner: Any, name: str) -> None:
        fetch: Callable[..., Any] = getattr(owner, name)

        def noted(this: Any, *args: Any, **options: Any) -> Any:
            fetched = fetch(this, *args, **options)
            self.heights.append(_height(fetched))
            return fetched

        self._patch.setattr(owner, name, noted)

    @property
    def highest(self) -> int:
        return max(self.heights)


def _height(fetched: Any) -> int:
    if isinstance(fetched, dict):
        return max(map(len, fetched.values()), default=0)
    return len(fetched) if isinstance(fetched, Sized) else fetched.num_rows
