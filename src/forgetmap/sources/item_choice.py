"""Which column, or columns, tell rows apart and are on both sides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from forgetmap.sources.column_words import (
    CONTENT,
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
    names_rows,
    word_of,
    words_of,
)
from forgetmap.sources.documents import Collection
from forgetmap.sources.maps import TableMap

MIN_OVERLAP = 0.8
"""Share of the items of the smaller side that the other side must have, too."""
MIN_SHARED = 0.1
"""Share from which on a column named like an id is one if the rows have the same content."""
MAX_SETTING_VALUES, MAX_SETTINGS, MAX_TEXTS = 30, 10, 6
MAX_ID_LENGTH = 200
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def choose_item(table: Collection, other: Collection | None, known: TableMap) -> str | None:
    """Return the column, or columns, that tell rows apart and are on both sides."""
    used = {column for name, column in known.columns.items() if name != "item"}
    names = [
        path for path, values in table.columns.items()
        if path not in used and path != known.model and not has_lists(values)
        and all(value not in (None, "") for value in values)
    ]  # fmt: skip
    if "item" in names:
        return "item"
    tasks = [path for path in names if word_of(path) in TASK and are_few(table.columns[path])]

    def tells_apart(*paths: str) -> bool:
        """Whether columns, with the task if there is one, tell all rows apart."""
        columns = (table.values(path) for path in (*tasks[:1], *paths))
        return is_unique([*zip(*columns, strict=True)])

    ids = sorted(
        (path for path in names if names_rows(path) and word_of(path) not in REPEAT),
        key=lambda path: (
            are_random(table.columns[path]), word_of(path) not in ITEM, path.count("."),
            ITEM.index(word_of(path)) if word_of(path) in ITEM else 0,
        ),
    )  # fmt: skip
    texts = [path for path in names if word_of(path) in QUESTION and not path.count(".")]
    texts += _last_questions(table)
    shared = [path for path in (*ids, *texts) if _overlaps(path, table, other)]
    # Numbers of rows are on both sides, too, but with other content.
    shared = [path for path in shared if _has_same_content(path, table, other)]
    partly = [
        path for path in ids
        if path not in shared and _overlaps(path, table, other, MIN_SHARED)
        and _has_same_content(path, table, other, is_proof=True)
    ]  # fmt: skip
    shared = shared + partly or texts[:1]
    for path in shared:
        if tells_apart(path) and not (len(shared) > 1 and are_random(table.values(path))):
            return path
    if other is not None:
        rest = [path for path in names if path not in shared and _may_be_id(path, table)]
        rest += [path for path, values in table.columns.items() if _are_short_lists(values)]
        rest = [path for path in rest if tells_apart(path) and _overlaps(path, table, other)]
        if rest and not shared:
            return rest[0]
        pair = _pair_of_texts(names, table, other, tells_apart)
        if pair is not None and not any(path in ids for path in shared):
            return pair
    several = [path for path in shared if word_of(path) != "task"]
    several = [path for path in several if not are_random(table.values(path))] or several
    several = [path for path in several if not _is_constant(table.values(path))] or several
    return _settings(several, names, table, other) if several else None


def _last_questions(table: Collection) -> list[str]:
    """Return the paths of the last message of the user, where it stands at the same place."""
    paths = []
    for name, values in table.columns.items():
        places = {_last_question(value) for value in values} if has_lists(values[:1]) else {None}
        if len(places) == 1 and None not in places:
            paths.append(f"{name}.{places.pop()}")
    return paths


def _last_question(messages: Any) -> str | None:
    turns = messages if isinstance(messages, list) else []
    for number, turn in reversed([*enumerate(turns)]):
        if isinstance(turn, dict) and turn.get("role", turn.get("from")) in {"user", "human"}:
            content = turn.get("content", turn.get("value"))
            path = f"{number}.{'content' if 'content' in turn else 'value'}"
            if isinstance(content, list) and content and isinstance(content[-1], dict):
                part = next((name for name in CONTENT[::-1] if name in content[-1]), None) or next(
                    (name for name in CONTENT if name in content[-1]), "text"
                )
                return f"{path}.-1.{part}"
            return path if isinstance(content, str) else None
    return None


def _are_short_lists(values: Sequence[Any]) -> bool:
    """Whether these are lists of a few numbers or words, such as the four of a puzzle."""
    return all(
        isinstance(value, list) and value and len(str(value)) <= MAX_ID_LENGTH
        and not has_lists(value) for value in values
    )  # fmt: skip


def _may_be_id(path: str, table: Collection) -> bool:
    """Whether a column of any name may tell rows apart: no score, setting or measurement."""
    words, values = words_of(path), table.columns[path]
    return (
        bool(words) and not NEVER.intersection(words) and name_rank(words) is None
        and max(map(len, map(str, values))) <= MAX_ID_LENGTH
        and not any((as_number(value) or 0) % 1 for value in values)
    )  # fmt: skip


def _pair_of_texts(
    names: Sequence[str], table: Collection, other: Collection, tells_apart: Any
) -> str | None:
    """Return a text, or two that together tell rows apart: a question and its passage."""
    texts = [
        path for path in names
        if kind_of(table.columns[path]) == "text" and not _is_constant(table.columns[path])
        and "+" not in path and name_rank(words_of(path)) is None
    ]  # fmt: skip
    texts = [path for path in texts if _overlaps(path, table, other)][:MAX_TEXTS]
    texts.sort(key=lambda path: word_of(path) not in QUESTION)
    whole = [path for path in texts if tells_apart(path)]
    pairs = (f"{a}+{b}" for a, b in combinations(texts, 2) if tells_apart(a, b))
    return next(iter(whole), None) or next((p for p in pairs if _overlaps(p, table, other)), None)


def _is_constant(values: Sequence[Any]) -> bool:
    return len({*map(str, values)}) < min(len(values), 2)


def are_few(values: Sequence[Any]) -> bool:
    """Whether a column has so few values that it may name tasks."""
    return 0 < len({*map(str, values)}) <= max(1, len(values) // 5)


def _has_same_content(
    path: str, table: Collection, other: Collection | None, *, is_proof: bool = False
) -> bool:
    """Whether the rows of an id have the same question or right answer on both sides.

    An id whose rows have another content on the other side is the place of a row.

    Args:
        path: the id.
        table: the rows.
        other: the rows of the other run.
        is_proof: whether there must be such a content.
    """
    if other is None:
        return not is_proof
    about = [
        name for name, values in table.columns.items()
        if name != path and name in other.columns and _is_content(name, values)
    ]  # fmt: skip
    place = {str(value): row for row, value in enumerate(other.values(path))}
    pairs = [
        (row, place[str(value)]) for row, value in enumerate(table.values(path))
        if str(value) in place
    ]  # fmt: skip
    if not about or not pairs:
        # Names, unlike numbers, are not on both sides by chance.
        return not is_proof or all(kind_of([value]) == "text" for value in table.values(path)[:20])
    return any(
        2 * sum(str(table.columns[name][a]) == str(other.columns[name][b]) for a, b in pairs)
        >= len(pairs)
        for name in about
    )


def _is_content(name: str, values: Sequence[Any]) -> bool:
    """Whether a column is named like a question or right answer, and is no score."""
    kind = kind_of(values)
    is_kind = kind == "text" or (kind in {"label", "graded"} and name_rank(words_of(name)) is None)
    words = {*words_of(name)}
    return is_kind and (word_of(name) in {*QUESTION, "answer"} or bool(GOLD & words))


def _settings(
    shared: Sequence[str], names: Sequence[str], table: Collection, other: Collection | None
) -> str:
    """Return an id whose rows are answers to the same item, or the id with the settings asked.

    Rows of an id that differ in settings which both sides have are items of their own.
    """
    count = len(table.rows)
    first = max(shared, key=lambda path: len({*map(str, table.values(path))}))
    if other is None or count == len({*map(str, table.values(first))}):
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
    return len(set(zip(*(map(str, table.values(path)) for path in paths), strict=True)))


def _overlaps(
    spec: str, table: Collection, other: Collection | None, least: float = MIN_OVERLAP
) -> bool:
    if other is None:
        return True
    ours, theirs = ({str(value) for value in one.values(spec)} for one in (table, other))
    if theirs == {"None"}:
        return other.columns.keys().isdisjoint({spec})  # another layout, with its own names
    return len(ours & theirs) >= max(1, least * min(len(ours), len(theirs)))


def is_unique(values: Sequence[Any]) -> bool:
    """Whether all values differ."""
    return len({*map(str, values)}) == len(values)


def are_random(values: Sequence[Any]) -> bool:
    """Whether these are random ids (UUID version 4), which no other run has."""
    return all(_RANDOM_ID.fullmatch(str(value)) for value in values[:5])
