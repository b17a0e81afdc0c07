"""Named tables of tasks with their numbers of options and categories.

`as-run` reproduces the published averages of Harmon et al. (2026): the released category map does
not have the name of the task that was run for ARC, so ARC is in the category `Missing`, which
enters the total and is never plotted. `as-released` is that map as it is written: ARC is in its
deduction category, plotted as Logic. Everything else is the same in both. `corrected` has the true
numbers of options of the items, and the categories of the paper. A column k or category in the data
takes precedence over a table.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import narwhals as nw

from forgetmap.comparison.choices import TASK_TABLES
from forgetmap.errors import UsageError
from forgetmap.pairing import Pairs, side_value

IGNORED = "ignored"
MISSING = "Missing"


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """Entry of a task; k is `inf` for open-ended, None if it varies by item."""

    k: float | None
    category: str


@dataclass(frozen=True, slots=True)
class TaskTable:
    """A named table of tasks."""

    name: str
    entries: dict[str, TaskEntry]

    def find(self, task: str) -> TaskEntry | None:
        """Return the entry of a task, without what the harness adds around its name."""
        return self.entries.get(plain_name(task))


def load_table(name: str) -> TaskTable:
    """Read one of the included tables."""
    if name not in TASK_TABLES:
        raise UsageError(
            f"there is no task table {name!r}", hint=f"choose from {', '.join(TASK_TABLES)}."
        )
    text = files("forgetmap.comparison").joinpath("data", f"{name}.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    entries = {
        row["task"]: TaskEntry(_options(row["k"]), row["category"]) for row in csv.DictReader(lines)
    }
    return TaskTable(name, entries)


def with_task_table(pairs: Pairs, name: str | None) -> Pairs:
    """Add k and category of a table to pairs, if the data have none."""
    if name is None:
        return pairs
    table = load_table(name)
    tasks = list(pairs.keys.by_task)
    entries = {task: entry for task in tasks if (entry := table.find(task)) is not None}
    k = {task: e.k for task, e in entries.items() if e.k is not None and math.isfinite(e.k)}
    category = {task: entry.category for task, entry in entries.items()}
    missing = {task: MISSING for task in tasks if task not in entries}
    columns = {
        "k_before": _filled("k", pairs.columns, k, nw.Float64()),
        "category_before": _filled("category", pairs.columns, category | missing, nw.String()),
    }
    # A result without a counterpart before still has none.
    frame = pairs.frame.with_columns(**columns)
    return replace(pairs, frame=frame, columns=pairs.columns | frozenset(columns))


def _filled(
    name: str, columns: frozenset[str], by_task: dict[str, Any], dtype: nw.dtypes.DType
) -> nw.Expr:
    filled: nw.Expr = nw.lit(None, dtype=dtype)
    by_value: dict[Any, list[str]] = {}
    for task, value in by_task.items():
        by_value.setdefault(value, []).append(task)
    for value, tasks in by_value.items():
        here = nw.col("task").is_in(tasks)
        filled = nw.when(here).then(nw.lit(value, dtype=dtype)).otherwise(filled)
    if columns & {f"{name}_before", f"{name}_after"}:
        return nw.coalesce(side_value(name, columns).cast(dtype), filled)
    return filled


def plain_name(task: str) -> str:
    """`community|mmlu:sociology|0` -> `mmlu:sociology`."""
    parts = task.split("|")
    return parts[1] if len(parts) == len(("suite", "task", "shots")) else task


def _options(text: str) -> float | None:
    if text == "varies":
        return None
    return math.inf if text == "open" else float(text)
