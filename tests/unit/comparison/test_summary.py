"""The first screen: losses of groups that the total hides are shown."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import forgetmap as fm
from forgetmap.comparison.summary import Summary, summarize
from small_runs import table


def first_screen(*tasks: tuple[str, int, int], **columns: list[Any]) -> Summary:
    """Of tasks with a name, so many items, and so many of them lost; all were right before."""
    sides = []
    for lost_counts in (0, 1):
        parts = [
            table(
                [0.0] * (lost * lost_counts) + [1.0] * (items - lost * lost_counts),
                task=name,
                **columns,
            )
            for name, items, lost in tasks
        ]
        sides.append(pa.concat_tables(parts))
    return summarize(fm.compare(sides[0], sides[1]).result)


def test_a_task_that_lost_is_named_where_all_items_did_not() -> None:
    summary = first_screen(("large", 20_000, 0), ("small", 100, 30))
    assert summary.badge == "NO LOSS BEYOND 2%"
    assert summary.by_task.startswith("1 of 2 tasks lost: small; mean over tasks: lost, at least ")


def test_one_task_is_all_there_is() -> None:
    assert first_screen(("only", 100, 30)).by_task == ""


def test_clusters_are_counted_in_what_it_rests_on() -> None:
    passages = [f"passage {number // 5}" for number in range(100)]
    summary = first_screen(("only", 100, 30), cluster=passages)
    assert summary.rests_on.startswith("Based on 100 items in 20 clusters; estimator raw")
