"""What is in a run: tasks, items, repeats, metrics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import narwhals as nw

from forgetmap.records.run import Run
from forgetmap.records.validate import reading


@dataclass(frozen=True, slots=True)
class TaskSurvey:
    """One task under one metric and scorer."""

    task: str
    metric: str
    scorer: str
    rows: int
    items: int
    scored: int
    mean_score: float | None


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a run."""

    name: str
    origin: str
    rows: int
    repeats: int
    columns: tuple[str, ...]
    has_texts: bool
    tasks: tuple[TaskSurvey, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def survey(run: Run) -> Survey:
    """Count what is in a run."""
    present = [name for name in ("metric", "scorer") if name in run.columns]
    counted = run.scores.group_by("task", *present).agg(
        nw.len().alias("rows"),
        nw.col("item").n_unique().alias("items"),
        nw.col("score").count().alias("scored"),
        nw.col("score").mean().alias("mean_score"),
    )
    with reading(run):
        found = counted.sort("task", *present).collect()
    tasks = tuple(
        TaskSurvey(
            task=row["task"],
            metric=row.get("metric") or "score",
            scorer=row.get("scorer") or "default",
            rows=int(row["rows"]),
            items=int(row["items"]),
            scored=int(row["scored"]),
            mean_score=row["mean_score"],
        )
        for row in found.rows(named=True)
    )
    return Survey(
        name=run.name,
        origin=run.origin,
        rows=sum(task.rows for task in tasks),
        repeats=count_repeats(run),
        columns=tuple(sorted(run.columns)),
        has_texts=run.texts is not None,
        tasks=tasks,
    )


def count_repeats(run: Run) -> int:
    """How many answers there are to an item, at most."""
    if "repeat" not in run.columns:
        return 1
    with reading(run):
        return int(run.scores.select(nw.col("repeat").max()).collect().item() or 0) + 1
