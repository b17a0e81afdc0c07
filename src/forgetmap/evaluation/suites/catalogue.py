"""All suites by name: ours, and those that installed packages add.

A package adds one by an entry point in the group `forgetmap.suites` that names a function from the
folder with local copies of data sets (or None) to a suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from forgetmap._plugins import Registry
from forgetmap.errors import UsageError
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.suites.files import file_suite, hub_suite
from forgetmap.evaluation.suites.hub import HubData
from forgetmap.evaluation.suites.probes import part_of, suite_of_probe

HUB = "hub:"


def _check_suite(value: object) -> Callable[[Path | None], Suite]:
    if not callable(value):
        raise TypeError("it is no function from a folder of data sets to a suite")
    return value


SUITES = Registry(
    "forgetmap.suites",
    "suite",
    {
        "basics": "forgetmap.evaluation.suites.basics:basics_suite",
        "post-forget": "forgetmap.evaluation.suites.post_forget:post_forget_suite",
        "world": "forgetmap.evaluation.suites.world:suite",
        "world-units": "forgetmap.evaluation.suites.world:units_suite",
    },
    _check_suite,
)


def load_suite(
    name_or_path: str | Path,
    *,
    only: Sequence[str] = (),
    limit: int | None = None,
    column_map: Mapping[str, str] | None = None,
    root: Path | None = None,
) -> Suite:
    """A suite by its name, from a file of items, or from a data set on the hub.

    Args:
        name_or_path: `basics`, `post-forget`, `world`, one that a package adds (`capabilities` and
            `captrack` are ours), a file, or `hub:OWNER/NAME` with `:SUBSET` and `@SPLIT` behind it
            if needed (split `test` unless said).
        only: names of tasks, wildcards allowed, such as `mmlu:*`; all tasks without it.
        limit: at most so many items of each task; the same ones each time, whatever their order.
        column_map: for files and hub data sets, our name of a column -> its name there.
        root: a folder whose `root/OWNER/NAME` stand in for data sets on the hub.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"a limit of {limit} leaves no items", hint="give 1 or more.")
    suite = _found(str(name_or_path), column_map, root)
    return replace(suite, tasks=tuple(_prepared(task, limit) for task in _chosen(suite, only)))


def _found(name: str, column_map: Mapping[str, str] | None, root: Path | None) -> Suite:
    if name in SUITES.names():
        if column_map:
            raise UsageError(
                f"the suite {name!r} takes no column map",
                hint="leave it out, or give a file or hub data set as the suite.",
            )
        return SUITES.get(name)(root)
    if name.startswith(HUB):
        return hub_suite(_hub_data(name), column_map=column_map, root=root)
    if Path(name).is_file() or Path(name).suffix:
        whole = suite_of_probe(Path(name))
        if whole is not None:
            return part_of(_found(whole, column_map, root), Path(name))
        return file_suite(Path(name), column_map=column_map)
    raise UsageError(
        f"there is no suite {name!r}",
        hint=f"{_meant(name, SUITES.names())}; or give a file, or {HUB}OWNER/NAME.",
    )


def _hub_data(name: str) -> HubData:
    rest, _, split = name.removeprefix(HUB).partition("@")
    dataset, _, config = rest.partition(":")
    return HubData(dataset, split or "test", config or None)


def _chosen(suite: Suite, only: Sequence[str]) -> list[Task]:
    names = [task.name for task in suite.tasks]
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"the suite {suite.name!r} has no task {pattern!r}",
                hint=f"{_meant(pattern, names)}.",
            )
    return [
        task
        for task in suite.tasks
        if not only or any(fnmatchcase(task.name, pattern) for pattern in only)
    ]


def _meant(name: str, known: Iterable[str]) -> str:
    known = list(known)
    # The part behind the colon is what people remember.
    tails = {known_name.rpartition(":")[2]: known_name for known_name in known}
    near = get_close_matches(name, known, n=5)
    near += [tails[tail] for tail in get_close_matches(name, tails, n=5)]
    if near:
        return f"did you mean {', '.join(dict.fromkeys(near))}?"
    shown = ", ".join(known[:10])
    return f"choose from {shown}{', ...' if len(known) > 10 else ''}"


def _prepared(task: Task, limit: int | None) -> Task:
    """Items are read once, however often they are asked for."""
    return replace(task, load=cache(partial(_loaded, task, limit)))


def _loaded(task: Task, limit: int | None) -> tuple[Item, ...]:
    items = tuple(task.load())
    if limit is None or len(items) <= limit:
        return items
    # Turns of a conversation and paraphrases share their ids, and must be kept together.
    among = "" if task.scorers else task.name
    kept = sorted(items, key=lambda item: _draw(among, item.id))[:limit]
    names = {item.id for item in kept}
    return tuple(item for item in items if item.id in names)


def _draw(task: str, item: str) -> bytes:
    return sha256(f"{task}\n{item}".encode()).digest()
