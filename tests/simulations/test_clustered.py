"""Intervals for clustered items cover the common rate."""

from __future__ import annotations

import random

import pyarrow as pa

import forgetmap as fm
from estimator_runs import passages

TRIES = 40


def test_clustered_intervals_cover_the_rate_that_all_passages_share() -> None:
    """The tries are the tasks of one comparison: a task alone has the same interval."""
    dice = random.Random(3)
    sides: tuple[list[pa.Table], list[pa.Table]] = ([], [])
    for number in range(TRIES):
        lost = {passage for passage in range(30) if dice.random() < 0.3}
        for side, table in zip(sides, passages(lost, size=4, count=30), strict=True):
            task = pa.array([f"try {number}"] * len(table))
            side.append(table.set_column(table.column_names.index("task"), "task", task))
    before, after = (pa.concat_tables(side) for side in sides)
    bare = [table.drop_columns("cluster") for table in (before, after)]
    covered = dict.fromkeys(("clustered", "alone"), 0)
    for name, tables in (("clustered", (before, after)), ("alone", bare)):
        tasks = fm.compare(tables[0], tables[1]).result.tasks
        assert len(tasks) == TRIES
        for task in tasks:
            found = task.forgetting
            assert found.low is not None
            assert found.high is not None
            covered[name] += found.low <= 0.3 <= found.high
    assert covered["clustered"] >= 35
    assert covered["alone"] < 35
