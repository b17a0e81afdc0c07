"""Lists of results inside a JSON document: `{"performances": [...]}`.

Rows are a list of objects; objects by name, or lists of objects by name, whose names are the items;
or numbers or truth values by name, which are the scores of the items with these names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
    """Return the rows in a value; None if it has none."""
    if isinstance(value, list):
        return value if value and isinstance(value[0], dict) else None
    if not isinstance(value, dict) or not value:
        return None
    members = value.values()
    if all(isinstance(member, dict) for member in members):
        return [{"item": name, **member} for name, member in value.items()]
    if all(isinstance(member, list) and as_rows(member) is not None for member in members):
        return [{"item": name, **row} for name, rows in value.items() for row in rows]
    if all(isinstance(member, bool | int | float) for member in members):
        return [{"item": name, "score": member} for name, member in value.items()]
    return None


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
