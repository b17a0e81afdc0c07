"""Which column, or columns, tell rows apart and are on both sides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from forgetmap.sources.column_words import (
    GOLD,
    ITEM,
    NEVER,
    QUESTION,
    REPEAT,
    TASK,
    as_number,
    has_lists,
    kind_of,
    name_rank,
    word_of,
    words_of,
)
from forgetmap.sources.documents import Collection
from forgetmap.sources.maps import TableMap

MIN_OVERLAP = 0.8
"""Share of the items of the smaller side that the other side must have, too."""
MAX_SETTING_VALUES = 30
MAX_SETTINGS = 10
"""Columns that together tell rows apart."""
MAX_ID_LENGTH = 200
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def choose_item(table: Collection, other: Collection | None, known: TableMap) -> str | None:
    """Return the column, or columns, that tell rows apart and are on both sides."""
    used = {column for name, column in known.columns.items() if name != "item"}
    names = [
        path
        for path, values in table.columns.items()
        if path not in used and path != known.model and not has_lists(values)
        and sum(value not in (None, "") for value in values) == len(values)
    ]  # fmt: skip
    tasks = [path for path in names if word_of(path) in TASK and are_few(table.columns[path])]

    def tells_apart(path: str) -> bool:
        """Whether a column, with the task if there is one, tells all rows apart."""
        of_task = table.columns[tasks[0]] if tasks else [""] * len(table.rows)
        return is_unique([*zip(of_task, table.columns[path], strict=True)])

    if "item" in names:
        return "item"
    ids = sorted(
        (path for path in names if word_of(path) in ITEM),
        key=lambda path: (
            _are_random(table.columns[path]), path.count("."), ITEM.index(word_of(path))
        ),
    )  # fmt: skip
    texts = [path for path in names if word_of(path) in QUESTION and not path.count(".")]
    shared = [path for path in (*ids, *texts) if _overlaps(path, table, other)]
    # Numbers of rows are on both sides, too, but with other content.
    shared = [path for path in shared if _has_same_content(path, table, other)] or texts[:1]
    for path in shared:
        if tells_apart(path) and not (len(shared) > 1 and _are_random(table.columns[path])):
            return path
    rest = [
        path for path in names
        if words_of(path) and path not in shared and tells_apart(path)
        and not NEVER.intersection(words_of(path)) and name_rank(words_of(path)) is None
        and other is not None and _overlaps(path, table, other)
        and max(map(len, map(str, table.columns[path]))) <= MAX_ID_LENGTH
        and not _are_measurements(table.columns[path])
    ]  # fmt: skip
    if rest and not shared:
        return rest[0]
    several = [path for path in shared if word_of(path) != "task"]
    several = [path for path in several if not _are_random(table.columns[path])] or several
    several = [path for path in several if not _is_constant(table.columns[path])] or several
    return _settings(several, names, table, other) if several else None


def _is_constant(values: Sequence[Any]) -> bool:
    return len({*map(str, values)}) < min(len(values), 2)


def are_few(values: Sequence[Any]) -> bool:
    """Whether a column has so few values that it may name tasks."""
    return 0 < len({*map(str, values)}) <= max(1, len(values) // 5)


def _has_same_content(path: str, table: Collection, other: Collection | None) -> bool:
    """Whether the rows of an id have the same question or right answer on both sides.

    An id whose rows have another content on the other side is the place of a row.
    """
    if other is None:
        return True
    about = [
        name for name, values in table.columns.items()
        if name != path and name in other.columns and kind_of(values) == "text"
        and (word_of(name) in QUESTION or GOLD & {*words_of(name)} or word_of(name) == "answer")
    ]  # fmt: skip
    place = {str(value): row for row, value in enumerate(other.values(path))}
    pairs = [
        (row, place[str(value)]) for row, value in enumerate(table.values(path))
        if str(value) in place
    ]  # fmt: skip
    return not about or any(
        2 * sum(str(table.columns[name][a]) == str(other.columns[name][b]) for a, b in pairs)
        >= len(pairs)
        for name in about
    )


def _settings(
    shared: Sequence[str], names: Sequence[str], table: Collection, other: Collection | None
) -> str:
    """Return an id whose rows are answers to the same item, or the id with the settings asked.

    Rows of an id that differ in settings which both sides have are items of their own.
    """
    count = len(table.rows)
    first = max(shared, key=lambda path: len({*map(str, table.columns[path])}))
    if other is None or len(table.columns[first]) == len({*map(str, table.columns[first])}):
        return first
    repeats = [[path] for path in names if word_of(path) in REPEAT]
    if any(_combinations(table, [first, *one]) == count for one in repeats):
        return first
    sides = (table, other)
    settings = sorted(
        path for path in names
        if path != first and word_of(path) not in REPEAT and name_rank(words_of(path)) is None
        and _is_setting(*({str(value) for value in one.values(path)} for one in sides))
    )  # fmt: skip
    chosen = [first, *settings[:MAX_SETTINGS]]
    full = "+".join(chosen)
    is_item = len(chosen) > 1 and any(
        _combinations(table, [*chosen, *one]) == count for one in ([], *repeats)
    )
    return full if is_item and _overlaps(full, table, other) else first


def _is_setting(ours: set[str], theirs: set[str]) -> bool:
    """Whether two columns have few values, several on some side, that one side shares wholly."""
    is_few = 1 < max(len(ours), len(theirs)) <= MAX_SETTING_VALUES
    return is_few and (ours <= theirs or theirs <= ours)


def _combinations(table: Collection, paths: Sequence[str]) -> int:
    return len(set(zip(*(map(str, table.columns[path]) for path in paths), strict=True)))


def _overlaps(spec: str, table: Collection, other: Collection | None) -> bool:
    if other is None:
        return True
    ours, theirs = ({str(value) for value in one.values(spec)} for one in (table, other))
    if theirs == {"None"}:
        return other.columns.keys().isdisjoint({spec})  # another layout, with its own names
    return len(ours & theirs) >= MIN_OVERLAP * min(len(ours), len(theirs))


def is_unique(values: Sequence[Any]) -> bool:
    """Whether all values differ."""
    return len({*map(str, values)}) == len(values)


def _are_random(values: Sequence[Any]) -> bool:
    """Whether these are random ids (UUID version 4), which no other run has."""
    return all(_RANDOM_ID.fullmatch(str(value)) for value in values[:5])


def _are_measurements(values: Sequence[Any]) -> bool:
    return any((as_number(value) or 0) % 1 for value in values)
