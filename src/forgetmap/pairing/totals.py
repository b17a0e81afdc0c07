"""Counts of one side before it is joined, in a single pass.

A cluster that reads files from a network, or derives content while reading, should do so once: the
checks, metrics, repeats and scores of a side are sums by a few columns, so one query is enough. The
embedded engine answers each of them from footers or single columns, which is faster there. Both use
the same expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from forgetmap.pairing.metric import (
    Measure,
    Offered,
    is_graded,
    measure_columns,
    measure_of,
    offered_by,
)
from forgetmap.records import (
    CONTENT_HASHES,
    Run,
    add_signs,
    fault_columns,
    is_spark,
    one_plan,
    repetition,
)

SideFacts = Callable[[frozenset[str]], Mapping[str, nw.Expr]]
"""The columns of a run -> further columns to count by, each with only a few values."""
KEY_NAMES = ("task", "item", "repeat")


@dataclass(frozen=True, slots=True)
class SideTotals:
    """Counts of the rows of a run.

    Attributes:
        rows: counts by task, measure, outcome and further columns; `rows` is the number of rows.
        repetition: estimated number of rows with the same id, or the same question.
    """

    rows: tuple[Mapping[str, Any], ...]
    repetition: Mapping[str, float]

    def faults(self) -> dict[str, int]:
        """Return the number of rows and of faults by field, for `check_run`."""
        names = [name for name in self.rows[0] if name.startswith("fault_")] if self.rows else []
        faults = {name.removeprefix("fault_"): self._sum(name) for name in names}
        return {"rows": self._sum("rows"), **faults}

    def offered(self) -> Offered:
        """Return the counts of all measures by task."""
        content = [name for name in CONTENT_HASHES if self.rows and f"has_{name}" in self.rows[0]]
        rows = ({**row, **{name: row[f"has_{name}"] for name in content}} for row in self.rows)
        return offered_by(rows, ("rows", "graded", *content))

    def of(self, measures: Mapping[str, Measure]) -> SideTotals:
        """Return the counts for one measure per task."""
        rows = (row for row in self.rows if measures.get(row["task"]) == measure_of(row))
        return SideTotals(tuple(rows), self.repetition)

    @property
    def repeats(self) -> int:
        """Largest number of answers to an item."""
        return max((int(row.get("last_repeat") or 0) for row in self.rows), default=0) + 1

    def renamed(self, names: Mapping[str, str]) -> SideTotals:
        """Return the counts with other names of tasks."""
        rows = tuple({**row, "task": names.get(row["task"], row["task"])} for row in self.rows)
        return SideTotals(rows, self.repetition)

    def _sum(self, name: str) -> int:
        return sum(int(row[name] or 0) for row in self.rows)


def count_totals(run: Run, facts: SideFacts) -> SideTotals | None:
    """Count the rows of a run that a cluster reads; None for others, for which it is no faster.

    Args:
        run: the run.
        facts: further columns to count by.
    """
    if not is_spark(run.scores):
        return None
    columns = run.columns
    by = {"task": nw.col("task"), **measure_columns(columns), **facts(columns)}
    if "outcome" in columns:
        by["outcome"] = nw.col("outcome")
    sums = _sums(run)
    rest: list[str] = [name for name in ("task", "repeat", "metric", "scorer") if name in columns]
    keys: dict[str, list[str]] = {
        name: rest for name in ("item", "question_hash") if name in columns
    }
    signed, signs = add_signs(run.scores, keys)
    last = {"last_repeat": nw.col("repeat")} if "repeat" in columns else {}
    counted = (
        signed.select(*signs, **by, **sums, **last)
        .group_by(*by)
        .agg(
            nw.len().alias("rows"),
            *(nw.col(name).sum() for name in (*sums, *signs)),
            *(nw.col(name).max() for name in last),
        )
    )
    with one_plan(run.scores):
        rows = tuple(counted.collect().rows(named=True))
    return SideTotals(rows, {name: _repetition(rows, name, signs) for name in keys})


def _sums(run: Run) -> dict[str, nw.Expr]:
    """Return the columns to sum: 1 for a row that counts, otherwise null or 0."""
    columns = run.columns
    faults = {name: _is_empty(name) for name in KEY_NAMES if name in columns}
    faults |= fault_columns(columns, run.info)
    sums = {f"fault_{name}": fault.cast(nw.Int64) for name, fault in faults.items()}
    present = {name: (~nw.col(name).is_null()).cast(nw.Int64) for name in columns}
    sums |= {f"has_{name}": present[name] for name in CONTENT_HASHES if name in columns}
    return {"graded": is_graded(), "has_item": present["item"], **sums}


def _is_empty(name: str) -> nw.Expr:
    column = nw.col(name)
    return column.is_null() if name == "repeat" else column.is_null() | (column == "")


def _repetition(rows: Iterable[Mapping[str, Any]], name: str, signs: Iterable[str]) -> float:
    rows = list(rows)
    count = sum(int(row[f"has_{name}"] or 0) for row in rows)
    own = [sign for sign in signs if sign.startswith(f"_sign_{name}_")]
    return repetition(count, [sum(int(row[sign] or 0) for row in rows) for sign in own])
