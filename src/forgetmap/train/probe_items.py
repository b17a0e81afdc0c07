"""Items of a look: those of a suite or probe, or a part of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import Item, Settings, Suite, Task, load_suite
from forgetmap.train.alarm import Key, WatchedItems


def watched_suite(suite: str | Path | Suite, settings: Settings) -> Suite:
    """Return the suite with its items loaded, all of which can be graded.

    Raises:
        FieldError: an item has no right answer.
        UsageError: there are no items, or the settings have repeats or the protocol `published`.
    """
    if (settings.repeats or 1) > 1 or settings.protocol == "published":
        raise UsageError(
            "watch evaluates every item once per look",
            hint="remove repeats, and use the protocol `same`.",
        )
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    tasks = tuple(replace(task, load=partial(tuple, tuple(task.load()))) for task in chosen.tasks)
    for task in tasks:
        for item in task.load():
            _check_gold(task, item, suite)
    if not any(task.load() for task in tasks):
        raise UsageError(f"the suite {chosen.name!r} has no items", hint="choose another.")
    return replace(chosen, tasks=tasks)


def _check_gold(task: Task, item: Item, source: str | Path | Suite) -> None:
    if task.scorers or item.gold:
        return
    raise FieldError(
        f"item {item.id!r} of task {task.name!r} has no right answer, so forgetting cannot be "
        "measured",
        file=None if isinstance(source, Suite) else str(source),
        field="gold",
        hint="add a right answer, or remove the item.",
    )


def categories_of(suite: Suite) -> dict[str, str]:
    """Return the category of each task; a task without one is its own."""
    return {task.name: task.category or task.name for task in suite.tasks}


def watched_items(suite: Suite) -> WatchedItems:
    """Return what alarms need to know about the items."""
    clusters = {
        (task.name, item.id): item.cluster
        for task in suite.tasks
        for item in task.load()
        if item.cluster
    }
    return WatchedItems(categories_of(suite), clusters)


def count_items(suite: Suite) -> int:
    """Return the number of items of all tasks."""
    return sum(len(task.load()) for task in suite.tasks)


def part_of_suite(suite: Suite, items: int, seed: int) -> Suite:
    """Return about this many items, the same share of each task, and at least one of each.

    The choice depends on the seed and the ids of items, not on their order. Related tasks, such as
    turns of a conversation, keep the same items.
    """
    total = count_items(suite)
    if items >= total:
        return suite
    tasks = []
    for task in suite.tasks:
        own = task.load()
        kept = _draw(task, own, max(1, round(len(own) * items / total)), seed)
        tasks.append(replace(task, load=partial(tuple, kept)))
    return replace(suite, tasks=tuple(tasks))


def draw_keys(keys: Sequence[Key], count: int, seed: int) -> set[Key]:
    """Return this many keys, the same share of each task."""
    by_task: dict[str, list[Key]] = {}
    for key in keys:
        by_task.setdefault(key[0], []).append(key)
    share = min(1.0, count / len(keys)) if keys else 1.0
    # Tasks take turns in a random order, so that a few items are spread over many tasks.
    ranked = sorted(
        ((rank + _chance(seed, task)) / len(own), key)
        for task, own in by_task.items()
        for rank, key in enumerate(sorted(own, key=lambda key: _chance(seed, *key)))
    )
    return {key for _, key in ranked[: round(share * len(keys))]}


def suite_of_keys(suite: Suite, keys: Collection[Key]) -> Suite:
    """Return the suite with only these items."""
    tasks = [
        replace(
            task,
            load=partial(tuple, [item for item in task.load() if (task.name, item.id) in keys]),
        )
        for task in suite.tasks
    ]
    return replace(suite, tasks=tuple(tasks))


def _draw(task: Task, items: Sequence[Item], count: int, seed: int) -> list[Item]:
    among = "" if task.scorers else task.name  # turns of a conversation have the same ids
    ranked = sorted(items, key=lambda item: _chance(seed, among, item.id))
    kept = {item.id for item in ranked[:count]}
    return [item for item in items if item.id in kept]


def _chance(seed: int, *names: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the names."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(sha256(text.encode()).digest()[:7], "big") / 2**56
