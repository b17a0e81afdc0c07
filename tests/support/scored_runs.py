"""Small runs with scores, from plain tables of scores per item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from forgetmap.records.manifest import MetricInfo, RunInfo
from forgetmap.records.run import Run
from forgetmap.records.tables import build_run

Scores = Mapping[str, Sequence[float | None] | NDArray[Any]]
"""Metric -> score of each item."""

COUNTS = {"words": MetricInfo(high=None), "rating": MetricInfo(low=1.0, high=10.0)}


def row(task: str, item: object, metric: str, score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "task": task,
        "item": str(item),
        "repeat": 0,
        "metric": metric,
        "scorer": "s",
        "score": score,
        "outcome": "unscored" if score is None else None,
        "answer": None,
        "k": None,
        "cluster": None,
        **more,
    }


def rows_of(tasks: Mapping[str, Scores]) -> list[dict[str, Any]]:
    return [
        row(task, item, metric, score)
        for task, metrics in tasks.items()
        for metric, scores in metrics.items()
        for item, score in enumerate(scores)
    ]


def run_of(rows: Sequence[Mapping[str, Any]], name: str) -> Run:
    columns = {column: [row[column] for row in rows] for column in rows[0]}
    return build_run(columns, RunInfo(metrics=COUNTS), name)


def scored(name: str, tasks: Mapping[str, Scores]) -> Run:
    return run_of(rows_of(tasks), name)


TAXONOMY = b"""
name = "small"
groups = [{ id = "CAN", title = "can" }, { id = "WILL" }]
tasks = [{ name = "sums" }, { name = "facts" }, { name = "facts.again" }, { name = "chat" }]
capabilities = [
  { id = "maths", group = "CAN", title = "Mathematics" },
  { id = "knowledge", group = "CAN" },
  { id = "same", group = "CAN" },
  { id = "style", group = "WILL" },
  { id = "liked", group = "WILL" },
]

[[metrics]]
id = "maths.sums"
capability = "maths"
task = "sums"
scorer = "number"
field = "acc"
strict = "acc_strict"

[[metrics]]
id = "knowledge.facts"
capability = "knowledge"
task = "facts"
scorer = "option"
field = "acc"
chance = 0.25

[[metrics]]
id = "same.facts"
capability = "same"
task = "facts.again"
scorer = "option"
field = "acc"
agrees_with = "facts"

[[metrics]]
id = "style.words"
capability = "style"
task = "chat"
scorer = "style"
field = "words"
polarity = "both"
scale = "count"

[[metrics]]
id = "style.emoji"
capability = "style"
task = "chat"
scorer = "style"
field = "emoji"
polarity = "both"

[[metrics]]
id = "liked.chat"
capability = "liked"
task = "chat"
scorer = "rating"
field = "rating"
scale = "rating"
needs = "judge"
"""
