"""The tasks of CapTrack as a suite, read from the hub on use."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.capabilities.taxonomy import FIRST, Taxonomy, load_taxonomy
from forgetmap.errors import InputError, UnreadableError
from forgetmap.evaluation import HubData, HubRow, Item, Suite, Task, load_rows
from forgetmap.scoring import find_scorer, needs_of
from forgetmap.sources import Sample, captrack_samples

DATASET = "tri-fair-lab/captrack"
SPLITS = ("test", "train")
SECOND = ".turn2"
"""Suffix of the tasks with the second turns of conversations."""


def captrack_suite(root: Path | None = None) -> Suite:
    """Return all 37 tasks of CapTrack, each a subset of its data set."""
    return Suite("captrack", tasks_of(load_taxonomy("captrack"), partial(_items, root=root)))


def tasks_of(taxonomy: Taxonomy, items: Callable[[str], Sequence[Item]]) -> tuple[Task, ...]:
    """Return the tasks of a taxonomy as tasks of a suite.

    Args:
        taxonomy: names the scorers of each task; a task whose name ends in `.turn2` gets a task
            before it with the first turns.
        items: returns the items of a task by name; called when the task is run.
    """
    tasks: list[Task] = []
    for name in (task.name for task in taxonomy.tasks):
        load = partial(items, name)
        scorers, title = scorers_of(taxonomy, name), _title(taxonomy, name)
        if not name.endswith(SECOND):
            tasks.append(Task(name, title, "text", load, scorers=scorers))
            continue
        opened = partial(_first_turns, load)
        tasks.append(Task(name + FIRST, None, "text", opened, scorers=("style",)))
        tasks.append(Task(name, title, "text", load, scorers=scorers, follows=name + FIRST))
    return tuple(tasks)


def scorers_of(taxonomy: Taxonomy, task: str) -> tuple[str, ...]:
    """Return the names of the scorers of a task; those by rule first."""
    names = [
        metric.scorer
        for metric in taxonomy.metrics
        if task in (metric.task, metric.agrees_with) and metric.scorer is not None
    ]
    return tuple(
        sorted(dict.fromkeys(names), key=lambda name: needs_of(find_scorer(name)) != "rule")
    )


def _title(taxonomy: Taxonomy, task: str) -> str | None:
    """Return the first capability of a task."""
    titles = {capability.id: capability.title for capability in taxonomy.capabilities}
    return next(
        (titles[metric.capability] for metric in taxonomy.metrics if metric.task == task), None
    )


def _items(task: str, *, root: Path | None) -> list[Item]:
    rows = map(_plain, _rows(task, root))
    return [_item(sample) for sample in captrack_samples(task, rows, origin=f"{DATASET}, {task}")]


def _rows(task: str, root: Path | None) -> Sequence[HubRow]:
    """Read the subset of a task, whether its name has a dot or an underscore."""
    refusals: list[InputError] = []
    for config in (task, task.replace(".", "_")):
        for split in SPLITS:
            try:
                return load_rows(HubData(DATASET, split, config), root=root)
            except UnreadableError as error:
                refusals.append(error)
    raise refusals[0]


def _plain(row: HubRow) -> dict[str, Any]:
    """Return the row without recorded outputs."""
    return {**row, "outputs": None}


def _item(sample: Sample) -> Item:
    options, index = tuple(sample.options or ()), sample.gold_index
    gold = options[index] if options and index is not None else sample.gold
    material = json.loads(sample.material) if sample.material else {}
    turns = material.get("turns")
    return Item(
        id=sample.item,
        question=sample.question or "",
        gold=gold or "",
        options=options,
        request=turns[-1] if turns else sample.prompt or "",
        material=material,
    )


def _first_turns(load: Callable[[], Sequence[Item]]) -> list[Item]:
    """Return the conversations of a task, up to the first question."""
    items = []
    for item in load():
        first = str((item.material.get("turns") or [item.question])[0])
        items.append(Item(item.id, first, ""))
    return items
