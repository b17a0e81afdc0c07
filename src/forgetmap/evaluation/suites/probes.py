"""A suite that is a part of another one: the items that `forgetmap probe` chose.

Every line names the suite it is of, so that the items are asked word by word as in a full run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from forgetmap.errors import FieldError
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.suites.tables import table_rows

MARK = "probe"
"""Column of a file of items that names the suite they were chosen from."""


def suite_of_probe(path: Path) -> str | None:
    """The suite that a file of items is a part of; None if it is not the part of any."""
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    for _, row in table_rows(path):
        mark = row.get(MARK)
        suite = mark.get("suite") if isinstance(mark, Mapping) else None
        if not isinstance(suite, str):
            return None
        beside = path.parent / suite
        return str(beside) if beside.is_file() else suite
    return None


def part_of(suite: Suite, path: Path) -> Suite:
    """The items of a suite that a file names.

    Raises:
        FieldError: the suite does not have one of them.
    """
    tasks = {task.name: task for task in suite.tasks}
    chosen: dict[str, dict[str, int]] = {}
    for line, row in table_rows(path):
        name, item = str(row.get("task")), str(row.get("id"))
        if name not in tasks:
            raise _missing(f"the suite {suite.name!r} has no task {name!r}", path, line, "task")
        chosen.setdefault(name, {})[item] = line
    # Second turns need the first ones that they follow.
    for name, items in [*chosen.items()]:
        follows = tasks[name].follows
        if follows is not None:
            chosen[follows] = {**items, **chosen.get(follows, {})}
    kept = [
        replace(task, load=_picking(task, chosen[task.name], path))
        for task in suite.tasks
        if task.name in chosen
    ]
    return Suite(path.stem, tuple(kept))


def _picking(task: Task, lines: Mapping[str, int], path: Path) -> Callable[[], tuple[Item, ...]]:
    return partial(_picked, task, lines, path)


def _picked(task: Task, lines: Mapping[str, int], path: Path) -> tuple[Item, ...]:
    items = tuple(item for item in task.load() if item.id in lines)
    there = {item.id for item in items}
    for name, line in lines.items():
        if name not in there:
            raise _missing(f"the task {task.name!r} has no item {name!r}", path, line, "id")
    return items


def _missing(message: str, path: Path, line: int, field: str) -> FieldError:
    return FieldError(
        message,
        file=str(path),
        line=line,
        field=field,
        hint="the suite has changed since the probe was chosen; choose it again.",
    )
