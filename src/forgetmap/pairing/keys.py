"""Keys of items, chosen for each task.

The key is the content if both sides recorded it (question, and the right answer and options that
both have), else the id. It is never the rendered prompt, which differs for base and chat models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw

from forgetmap.errors import PairingError
from forgetmap.pairing.choices import PairBy
from forgetmap.records import CONTENT_HASHES, Frame

Recorded = Mapping[str, Mapping[str, int]]
"""Task -> content column -> number of rows that have it; `rows` is the number of rows."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The columns that identify an item, for each task.

    Attributes:
        by_task: task -> columns.
        loosened: tasks whose right answers or options are written differently on the two sides, so
            that only the rest of the content identifies an item.
    """

    by_task: dict[str, tuple[str, ...]]
    loosened: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns used in any task."""
        used = {name for columns in self.by_task.values() for name in columns}
        return tuple(name for name in (*CONTENT_HASHES, "item") if name in used)

    @property
    def use_content(self) -> bool:
        """Whether any task is paired by content."""
        return "question_hash" in self.columns

    def joined_on(self, *, repeats: bool) -> list[str]:
        """Return the columns to join two sides on, which `add_to` adds."""
        return ["task", *(f"key_{name}" for name in self.columns), *(["repeat"] if repeats else [])]

    def add_to(self, scores: Frame) -> Frame:
        """Add key columns, and a column of repeats if there is none.

        In a key column that a task does not use, all its rows have the same value.
        """
        added = {f"key_{name}": self._expression(name) for name in self.columns}
        if "repeat" not in scores.collect_schema().names():
            added["repeat"] = nw.lit(0, dtype=nw.Int32)
        return scores.with_columns(**added)

    def _expression(self, name: str) -> nw.Expr:
        unused = nw.lit("") if name == "item" else nw.lit(0, dtype=nw.Int64)
        tasks = [task for task, columns in self.by_task.items() if name in columns]
        value = nw.coalesce(nw.col(name), unused) if name != "item" else nw.col(name)
        if len(tasks) == len(self.by_task):
            return value
        return nw.when(nw.col("task").is_in(tasks)).then(value).otherwise(unused)


def choose_keys(before: Recorded, after: Recorded, pair_by: PairBy) -> Keys:
    """Choose the key of every task that both sides have; the id for all others."""
    keys = {}
    for task in before.keys() | after.keys():
        if task in before and task in after:
            keys[task] = _task_key(task, before[task], after[task], pair_by)
        else:
            keys[task] = ("item",)
    return Keys(keys)


def loosen(keys: Keys, before: Frame, after: Frame) -> Keys:
    """Drop right answers or options from the key of tasks in which they are written differently.

    A task keeps the columns by which nearly as many items match as by the question alone.
    """
    candidates = [(*columns,) for columns in _CANDIDATES if set(columns) <= set(keys.columns)]
    agreeing = {columns: _agreeing(before, after, columns) for columns in candidates}
    by_task = dict(keys.by_task)
    for task, columns in keys.by_task.items():
        if "question_hash" in columns:
            fitting = [candidate for candidate in candidates if set(candidate) <= set(columns)]
            required = MIN_SHARED_KEYS * agreeing["question_hash",].get(task, 0)
            by_task[task] = next(c for c in fitting if agreeing[c].get(task, 0) >= required)
    loosened = tuple(sorted(task for task in by_task if by_task[task] != keys.by_task[task]))
    return Keys(by_task, loosened)


MIN_SHARED_KEYS = 0.9
_CANDIDATES = (
    CONTENT_HASHES,
    ("question_hash", "gold_hash"),
    ("question_hash", "options_hash"),
    ("question_hash",),
)


def _agreeing(before: Frame, after: Frame, columns: tuple[str, ...]) -> dict[str, int]:
    """Return for each task the number of distinct items on both sides, by these columns."""
    items_before, items_after = (
        frame.select("task", *columns).unique() for frame in (before, after)
    )
    joined = items_before.join(items_after, on=["task", *columns])
    counted = joined.group_by("task").agg(n=nw.len()).collect().rows(named=True)
    return {row["task"]: int(row["n"]) for row in counted}


def _task_key(
    task: str, before: Mapping[str, int], after: Mapping[str, int], pair_by: PairBy
) -> tuple[str, ...]:
    questions = [counts.get("question_hash", 0) for counts in (before, after)]
    has_content = questions == [before["rows"], after["rows"]]
    if has_content and pair_by != "id":
        shared = (name for name in CONTENT_HASHES[1:] if before.get(name) and after.get(name))
        return ("question_hash", *shared)
    if pair_by != "content":
        return ("item",)
    raise PairingError(
        f"task {task!r} cannot be paired by content: {questions[0]:,} of {before['rows']:,} "
        f"results before and {questions[1]:,} of {after['rows']:,} after have a question",
        hint="add a 'question' column to both sides, or remove --pair-by.",
    )
