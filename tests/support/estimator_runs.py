"""Runs with every column that estimators use, in every dataframe library."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow, as_frame, dumped
from estimator_oracle import Row, Shape

SHAPE = Shape(repeats=2, clusters=True, items=16)


def rows_of(side: str, shape: Shape = SHAPE, seed: int = 9) -> list[Row]:
    """Return rows with every column that estimators use, with nulls where they are allowed."""
    return oracle.random_run(seed, shape, side)


def read_halves(before: list[Row], after: list[Row], **options: Any) -> dict[tuple[str, str], int]:
    """Return the half of every item by its task and id.

    Every item gets a tag of its own, so that it is a kind of its own.
    """
    tables = [
        as_arrow([row | {"tags": f"{row['task']}\x1f{row['item']}"} for row in rows])
        for rows in (before, after)
    ]
    kinds = fm.compare(tables[0], tables[1], **options).grounds.evidence.kinds
    found: dict[tuple[str, str], int] = {}
    for label, half in zip(kinds.label, kinds.half, strict=True):
        task, _, item = str(kinds.labels[label].tags).partition("\x1f")
        assert found.setdefault((task, item), int(half)) == half
    return found


SINGLE = Shape(clusters=True, items=30)
CASES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "repeats and noise": (SHAPE, {"noise": "again"}),
    "noise": (SINGLE, {"noise": "again"}),
    "published averages": (SHAPE, {"rollup": "post-forget", "task_table": "as-run"}),
}


def compare_in(name: str, library: str, folder: Path, spark: Any = None) -> dict[str, Any]:
    shape, options = CASES[name]
    before, after, again = (
        as_frame(rows_of(side, shape), library, folder / f"{side}.parquet", spark)
        for side in ("before", "after", "again")
    )
    noise = again if options.get("noise") else None
    return dumped(fm.compare(before, after, **(options | {"noise": noise})).result)


@cache
def said_by_polars(name: str) -> dict[str, Any]:
    return compare_in(name, "polars", Path())
