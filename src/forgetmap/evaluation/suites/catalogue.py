"""All suites by name: built-in ones, and those of installed packages.

A package adds one by an entry point in the group `forgetmap.suites`: a function that takes the
folder
with local copies of data sets (or None) and returns a suite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap._plugins import Registry
from forgetmap.errors import FieldError, ForgetmapError, UsageError
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.suites.files import file_suite, hub_suite
from forgetmap.evaluation.suites.hub import HubData
from forgetmap.evaluation.suites.tables import table_rows

HUB = "hub:"
PROBE_COLUMN = "probe"
"""Column that `forgetmap probe` writes: the suite whose prompts the items are to have."""


def _check_suite(value: object) -> Callable[[Path | None], Suite]:
    if not callable(value):
        raise TypeError("it is not a function of a folder of data sets that returns a suite")
    return value


SUITES = Registry(
    "forgetmap.suites",
    "suite",
    {
        "basics": "forgetmap.evaluation.suites.basics:basics_suite",
        "post-forget": "forgetmap.evaluation.suites.post_forget:post_forget_suite",
        "world": "forgetmap.evaluation.suites.world:suite",
        "world-badges": "forgetmap.evaluation.suites.world_badges:badge_suite",
        "world-far": "forgetmap.evaluation.suites.world_badges:far_suite",
        "world-held-out": "forgetmap.evaluation.suites.world_badges:held_out_suite",
        "world-near": "forgetmap.evaluation.suites.world_badges:near_suite",
    },
    _check_suite,
)
"""All suites: built-in ones and those of other packages."""


def load_suite(
    name_or_path: str | Path,
    *,
    only: Sequence[str] = (),
    limit: int | None = None,
    column_map: Mapping[str, str] | None = None,
    root: Path | None = None,
) -> Suite:
    """Load a suite by name, from a file of items, or from a hub data set.

    Args:
        name_or_path: `basics`, `post-forget`, `world`, `capabilities`, `captrack`, a suite of a
            package, a file, or `hub:OWNER/NAME`, optionally followed by `:SUBSET` and `@SPLIT`
            (default: `test`).
        only: names of tasks, with wildcards, such as `mmlu:*`; by default all tasks.
        limit: maximum number of items per task; the same items each time, independent of order.
        column_map: for files and hub data sets: canonical field -> column.
        root: a folder with local copies of hub data sets as `root/OWNER/NAME`.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"a limit of {limit} leaves no items", hint="use 1 or more.")
    suite = _find_suite(str(name_or_path), column_map, root)
    return replace(
        suite,
        tasks=tuple(_with_limit(task, limit) for task in _select_tasks(suite, only)),
        source=str(name_or_path),
        columns=dict(column_map or {}),
        chosen_by=_chosen_by(_first_mark(Path(name_or_path))),
    )


def _find_suite(name: str, column_map: Mapping[str, str] | None, root: Path | None) -> Suite:
    if name in SUITES.names():
        if column_map:
            raise UsageError(
                f"the suite {name!r} does not accept a column map",
                hint="remove it, or use a file or hub data set as the suite.",
            )
        return SUITES.get(name)(root)
    if name.startswith(HUB):
        return hub_suite(_hub_data(name), column_map=column_map, root=root)
    if Path(name).is_file() or Path(name).suffix:
        suite = _suite_of_probe(Path(name))
        if suite is not None:
            return _part_of(_find_suite(suite, column_map, root), Path(name))
        return file_suite(Path(name), column_map=column_map)
    raise UsageError(
        f"there is no suite {name!r}",
        hint=f"{_suggest(name, SUITES.names())} A file or {HUB}OWNER/NAME also works.",
    )


def _hub_data(name: str) -> HubData:
    rest, _, split = name.removeprefix(HUB).partition("@")
    dataset, _, config = rest.partition(":")
    return HubData(dataset, split or "test", config or None)


def _select_tasks(suite: Suite, only: Sequence[str]) -> list[Task]:
    names = [task.name for task in suite.tasks]
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"the suite {suite.name!r} has no task {pattern!r}",
                hint=_suggest(pattern, names),
            )
    return [
        task
        for task in suite.tasks
        if not only or any(fnmatchcase(task.name, pattern) for pattern in only)
    ]


def _suggest(name: str, known: Iterable[str]) -> str:
    known = list(known)
    # Users remember the part after the colon.
    tails = {known_name.rpartition(":")[2]: known_name for known_name in known}
    near = get_close_matches(name, known, n=5)
    near += [tails[tail] for tail in get_close_matches(name, tails, n=5)]
    if near:
        return f"did you mean {', '.join(dict.fromkeys(near))}?"
    names = ", ".join(known[:10])
    return f"choose from {names}{', ...' if len(known) > 10 else ''}."


def _with_limit(task: Task, limit: int | None) -> Task:
    """Limit the items of a task; they are read once, however often they are used."""
    return replace(task, load=cache(partial(_limited_items, task, limit)))


def _limited_items(task: Task, limit: int | None) -> tuple[Item, ...]:
    items = tuple(task.load())
    if limit is None or len(items) <= limit:
        return items
    # Turns of a conversation and paraphrases have the same ids, and must be kept together.
    among = "" if task.scorers else task.name
    order = {item.id: sha256(f"{among}\n{item.id}".encode()).digest() for item in items}
    names = set(sorted(order, key=order.__getitem__)[:limit])
    return tuple(item for item in items if item.id in names)


def _suite_of_probe(path: Path) -> str | None:
    """Return the suite that the items of a file belong to; None if there is none."""
    suite = _first_mark(path).get("suite")
    if not isinstance(suite, str):
        return None
    beside = path.parent / suite
    return str(beside) if beside.is_file() else suite


def _first_mark(path: Path) -> Mapping[str, Any]:
    """Return how the first item of a file was chosen; empty if the file does not say."""
    if path.suffix != ".jsonl" or not path.is_file():
        return {}
    mark = next((row.get(PROBE_COLUMN) for _, row in table_rows(path)), None)
    return mark if isinstance(mark, Mapping) else {}


def _chosen_by(mark: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the runs that chose the items; of a run without an id, only that there was one."""
    names = mark.get("chosen_by")
    if not isinstance(names, list):
        return ()
    return tuple(name if isinstance(name, str) else None for name in names) or (None,)


def _part_of(suite: Suite, path: Path) -> Suite:
    """Return the part of a suite that a file lists.

    Raises:
        FieldError: the suite does not have an item of the file.
    """
    chosen: dict[str, dict[str, int]] = {}
    for line, row in table_rows(path):
        chosen.setdefault(str(row.get("task")), {})[str(row.get("id"))] = line

    def missing(message: str, task: str, item: str | None) -> FieldError:
        if item is None:
            return _probe_error(message, path, min(chosen[task].values()), "task")
        # A first turn is in the file by its second turn.
        line = next(lines[item] for lines in chosen.values() if item in lines)
        return _probe_error(message, path, line, "id")

    return suite_part(suite, chosen, path.stem, missing)


Missing = Callable[[str, str, str | None], ForgetmapError]
"""Makes the error for a task, or an item of it, that a suite does not have."""


def suite_part(
    suite: Suite, chosen: Mapping[str, Collection[str]], name: str, missing: Missing
) -> Suite:
    """Return some items of a suite; second turns bring their first turns.

    Args:
        suite: the suite.
        chosen: ids of the items of each task.
        name: name of the part.
        missing: makes the error for what the suite does not have.
    """
    tasks = {task.name: task for task in suite.tasks}
    wanted = {task: dict.fromkeys(items) for task, items in chosen.items()}
    for task in chosen:
        if task not in tasks:
            raise missing(f"the suite {suite.name!r} has no task {task!r}", task, None)
        follows = tasks[task].follows
        if follows is not None:
            wanted[follows] = {**dict.fromkeys(chosen[task]), **wanted.get(follows, {})}
    kept = [
        replace(task, load=partial(_some_items, task, wanted[task.name], missing))
        for task in suite.tasks
        if task.name in wanted
    ]
    return Suite(name, tuple(kept))


def _some_items(task: Task, wanted: Collection[str], missing: Missing) -> tuple[Item, ...]:
    items = tuple(item for item in task.load() if item.id in wanted)
    present = {item.id for item in items}
    for name in wanted:
        if name not in present:
            raise missing(f"the task {task.name!r} has no item {name!r}", task.name, name)
    return items


def _probe_error(message: str, path: Path, line: int, field: str) -> FieldError:
    return FieldError(
        message,
        file=str(path),
        line=line,
        field=field,
        hint="choose the probe again; the suite has changed since.",
    )
