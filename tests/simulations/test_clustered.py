"""Intervals for clustered items cover the common rate."""

from __future__ import annotations

import random

import pyarrow as pa

import forgetmap as fm
from backends import as_arrow

TRIES, PASSAGES, SIZE = 40, 30, 4


def passages(lost: set[int]) -> tuple[pa.Table, pa.Table]:
    """Return two runs of passages, of which some are forgotten as a whole."""
    before, after = (
        as_arrow([
            {"task": "t", "item": f"{passage}-{place}", "cluster": f"p{passage}",
             "score": float(not (side and passage in lost))}
            for passage in range(PASSAGES)
            for place in range(SIZE)
        ])
        for side in (0, 1)
    )  # fmt: skip
    return before, after


def test_clustered_intervals_cover_the_rate_that_all_passages_share() -> None:
    """The tries are the tasks of one comparison: a task alone has the same interval."""
    dice = random.Random(3)
    sides: tuple[list[pa.Table], list[pa.Table]] = ([], [])
    for number in range(TRIES):
        lost = {passage for passage in range(PASSAGES) if dice.random() < 0.3}
        for side, table in zip(sides, passages(lost), strict=True):
            task = pa.array([f"try {number}"] * len(table))
            side.append(table.set_column(table.column_names.index("task"), "task", task))
    before, after = (pa.concat_tables(side) for side in sides)
    bare = [table.drop_columns("cluster") for table in (before, after)]
    covered = dict.fromkeys(("clustered", "alone"), 0)
    for name, tables in (("clustered", (before, after)), ("alone", bare)):
        tasks = fm.compare(tables[0], tables[1], selected=False).result.tasks
        assert len(tasks) == TRIES
        for task in tasks:
            found = task.forgetting
            assert found.low is not None
            assert found.high is not None
            covered[name] += found.low <= 0.3 <= found.high
    assert covered["clustered"] >= 35
    assert covered["alone"] < 35
