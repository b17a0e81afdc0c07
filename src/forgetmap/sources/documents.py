"""Lists of results inside a JSON document: `{"performances": [...]}`.

Rows are a list of objects; objects by name, whose names are the items; lists of objects by name,
whose names are the items or, if the rows have ids of their own, the tasks; such objects or lists by
model below each item; truth values by name; or lists of ids, of which one says which were right.
Numbers by name are a table of averages, never rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from forgetmap.errors import TRUNCATED_HINT, ColumnError, UnreadableError
from forgetmap.sources.decode import Malformed, decode
from forgetmap.sources.paths import NOTHING, value_at
from forgetmap.sources.sniff import TableFile, readable_file, whole_number

TOP = "."
"""The path of the document itself."""
MAX_DEPTH = 4
ROWS_LOOKED_AT = 200
MAX_MODELS = 20
MIN_ALIKE = 0.8
"""Share of objects by name that must have most fields of the fullest one to be rows."""
MIN_VERDICTS = 2
"""Truth values by name from which on they are verdicts of items, not settings."""
IDS = ("id", "item", "item_id", "question_id", "task_id", "sample_id", "doc_id", "idx", "index")
"""Fields that tell the rows of a list apart."""
RIGHT = frozenset({"resolved", "solved", "passed", "correct", "succeeded", "successful"})
WRONG = frozenset({"unresolved", "unsolved", "failed", "incorrect", "wrong"})
ALL = frozenset({"submitted", "all", "attempted", "total"})
"""Words in the names of lists of ids."""
_WORDS = re.compile(r"[a-z]+")
Row = Mapping[str, Any]
_DECODER = json.JSONDecoder(parse_int=whole_number)
_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class RowList:
    """Rows inside a document.

    Attributes:
        path: dotted path of the rows.
        count: number of rows.
        names: columns of the first rows.
        is_list: whether the rows are a list; objects by name may also be averages.
    """

    path: str
    count: int
    names: tuple[str, ...]
    is_list: bool


def read_document(file: TableFile) -> Any:
    """Return the JSON value of a file.

    Raises:
        UnreadableError: the file is not JSON.
    """
    with readable_file(file.path), file.open() as stream:
        data = stream.read()
    try:
        return decode(data.removeprefix(b"\xef\xbb\xbf"))
    except Malformed as error:
        raise UnreadableError(str(error), file=str(file.path), hint=TRUNCATED_HINT) from None


def find_row_lists(document: Any) -> list[RowList]:
    """Find all row lists in a document: lists before objects by name, longest first."""
    lists = sorted(_row_lists(document, TOP, MAX_DEPTH), key=lambda one: -one.count)
    return sorted(lists, key=lambda one: not one.is_list)


def as_rows(value: Any) -> list[Any] | None:
    """Return the rows in a value; None if it has none. A null stands for a result that failed."""
    if isinstance(value, list):
        known = [row for row in value if row is not None]
        is_rows = bool(known) and isinstance(known[0], dict)
        return [{} if row is None else row for row in value] if is_rows else None
    return _rows_of_members(value) if isinstance(value, dict) and value else None


def _rows_of_members(value: Mapping[str, Any]) -> list[Any] | None:
    members = value.values()
    if all(isinstance(member, dict) for member in members):
        if not any(map(_has_cells, members)):
            return _rows_by_model(value)
        fullest = max(members, key=len)
        if sum(_is_alike(member, fullest) for member in members) < MIN_ALIKE * len(members):
            return None
        return [{"item": name, **member} for name, member in value.items()]
    if all(isinstance(member, list) for member in members):
        return _rows_by_name(value)
    if len(value) >= MIN_VERDICTS and _are_verdicts(members):
        return [{"item": name, "score": member} for name, member in value.items()]
    return _rows_of_ids(value)


def _has_cells(member: Mapping[str, Any]) -> bool:
    """Whether an object has a plain value, so that it is a row, not objects by name itself."""
    return any(not isinstance(part, dict | list) for part in member.values())


def _are_verdicts(values: Collection[Any]) -> bool:
    """Whether these are truth values, or the numbers 0 and 1, both of them."""
    if all(isinstance(value, bool) for value in values):
        return True
    return all(isinstance(value, int) for value in values) and {*values} == {0, 1}


def _rows_by_name(lists: Mapping[str, list[Any]]) -> list[Any] | None:
    """Return the rows of lists by name; the name is the task if the rows have ids, else the item.

    Lists with the same ids may be those of models as well as of tasks: that is not for us to say.
    """
    rows = {name: as_rows(one) for name, one in lists.items()}
    if not any(rows.values()):
        return None
    filled = {name: one or [{} for _ in lists[name]] for name, one in rows.items()}
    first = max((one for one in filled.values() if one), key=lambda one: len(one[0]))
    if not all(_is_alike(row, first[0]) for one in filled.values() for row in one[:1] if row):
        return None
    known = next((name for name in IDS if name in first[0]), None)
    ids = [[str(row.get(known)) for row in one] for one in filled.values() if one]
    have_ids = known is not None and all(len({*one}) == len(one) for one in ids)
    if have_ids and max(map(len, ids)) > 1:
        if len({name for one in ids for name in one}) < sum(map(len, ids)):
            return None
        return [{"task": name, **row} for name, one in filled.items() for row in one]
    return _numbered([({"item": name}, one) for name, one in filled.items()])


def _is_alike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return 2 * len(row.keys() & other.keys()) >= len(other)


def _numbered(answers: Sequence[tuple[Mapping[str, str], list[Any]]]) -> list[Any]:
    """Return the answers to each item, numbered if an item has several."""
    if all(len(rows) == 1 for _, rows in answers):
        return [{**about, **row} for about, rows in answers for row in rows]
    return [
        {**about, "repeat": number, **row}
        for about, rows in answers
        for number, row in enumerate(rows)
    ]


def _rows_by_model(value: Mapping[str, Mapping[str, Any]]) -> list[Any] | None:
    """Return the rows below each item and model: `{ITEM: {MODEL: [ROW, ...]}}`."""
    answers: list[tuple[Mapping[str, str], list[Any]]] = []
    names = {model for models in value.values() for model in models}
    if not 0 < len(names) <= min(MAX_MODELS, len(value) - 1):
        return None
    for item, models in value.items():
        for model, below in models.items():
            one = as_rows(below) if isinstance(below, list) else [below]
            if one is None or not all(isinstance(row, dict) and _has_cells(row) for row in one):
                return None
            answers.append(({"item": item, "model": model}, one))
    return _numbered(answers) or None


def _rows_of_ids(value: Mapping[str, Any]) -> list[Any] | None:
    """Return a row for each id in the lists of a report: `{"submitted": [], "resolved": []}`."""
    lists = {name: one for name, one in value.items() if _is_ids(one)}
    words = {name: set(_WORDS.findall(name.lower())) for name in lists}
    right = [name for name in lists if words[name] & RIGHT]
    everything = [name for name in lists if words[name] & ALL]
    wrong = [name for name in lists if words[name] & WRONG]
    if len(right) != 1 or not (everything or wrong):
        return None
    passed = set(lists[right[0]])
    ids = (everything or [right[0], *wrong])[: 1 if everything else None]
    every = dict.fromkeys(name for one in ids for name in lists[one])
    if not passed or not passed <= every.keys():
        return None
    return [{"item": name, "score": name in passed} for name in every]


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def document_rows(file: TableFile, path: str) -> list[Row]:
    """Return the rows at a path of a document.

    Raises:
        ColumnError: there are no rows at this path.
    """
    document = read_document(file)
    value = document if path == TOP else value_at(document, path)
    rows = None if value is NOTHING else as_rows(value)
    if rows is None or not all(isinstance(row, dict) for row in rows):
        known = ", ".join(one.path for one in find_row_lists(document)[:6])
        raise ColumnError(
            f"there is no list of objects at {path!r}"
            + (f"; the lists are {known}" if known else ""),
            file=str(file.path),
            field="rows",
            hint=f"name the list with --columns rows={known.split(', ')[0] or 'PATH'}.",
        )
    return rows


def row_lines(file: TableFile, path: str) -> Iterator[int]:
    """Iterate over the lines in which the rows at a path begin."""
    with readable_file(file.path), file.open() as stream:
        text = stream.read().decode("utf-8-sig", "replace")
    at = next((offset for offset, char in enumerate(text) if char not in _BLANKS), 0)
    start = at if path == TOP else _located(text, at, path.split("."))
    if start is None:
        return
    line, before = 1, 0
    for offset in _row_starts(text, start):
        line += text.count("\n", before, offset)
        before = offset
        yield line


def _row_lists(value: Any, path: str, depth: int) -> Iterator[RowList]:
    rows = as_rows(value)
    if rows is not None and len(rows) > 1 - isinstance(value, list):
        looked_at = [row for row in islice(rows, ROWS_LOOKED_AT) if isinstance(row, dict)]
        names = dict.fromkeys(name for row in looked_at for name in row)
        yield RowList(path, len(rows), tuple(names), isinstance(value, list))
    if isinstance(value, dict) and depth:
        for name, part in value.items():
            if isinstance(part, dict | list):
                inner = name if path == TOP else f"{path}.{name}"
                yield from _row_lists(part, inner, depth - 1)


def _row_starts(text: str, at: int) -> Iterator[int]:
    """Iterate over the offsets of the rows of a list, or of lists by name."""
    for _, start in _parts(text, at):
        if text[at] == "{" and text[start] == "[":
            yield from (inner for _, inner in _parts(text, start))
        else:
            yield start


def _located(text: str, at: int, parts: list[str]) -> int | None:
    """Return the offset of the value at a path; None if there is no such path."""
    if not parts:
        return at
    for name, start in _parts(text, at):
        for count in range(len(parts), 0, -1):
            if name == ".".join(parts[:count]):
                inner = _located(text, start, parts[count:])
                if inner is not None:
                    return inner
    return None


def _parts(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Iterate over name or index and offset of each part of the object or list at an offset."""
    is_object = text[at : at + 1] == "{"
    if text[at : at + 1] not in {"{", "["}:
        return
    index, at = 0, _skip(text, at + 1, _BLANKS)
    while text[at : at + 1] not in {"", "]", "}"}:
        name = str(index)
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at, _BLANKS + ":")
        yield name, at
        _, at = _DECODER.raw_decode(text, at)
        index, at = index + 1, _skip(text, at, _BLANKS + ",")


def _skip(text: str, at: int, characters: str) -> int:
    while text[at : at + 1] and text[at] in characters:
        at += 1
    return at
