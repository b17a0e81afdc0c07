"""The first bytes of a JSON file, parsed as far as possible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from forgetmap.sources.sniff import whole_number, without_collection

_DECODER = json.JSONDecoder(parse_int=whole_number)
_BLANK = re.compile(r"\s*")
_MAX_DEPTH = 3
MAX_OBJECTS = 3

Shape = Literal["nothing", "object", "objects", "array"]
CUT = object()
"""Marks a value that continues beyond the first bytes."""


@dataclass(frozen=True, slots=True)
class Peek:
    """The first objects of a JSON file.

    Attributes:
        shape: one object, one object per line, an array, or none of these.
        first: the one of the first objects with most fields, as far as it could be read.
        names: all field names of the first objects, since a single row may lack some.
        objects: the first objects, as far as they could be read.
    """

    shape: Shape
    first: Mapping[str, Any]
    names: frozenset[str] = frozenset()
    objects: Sequence[Mapping[str, Any]] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Field names of `first`."""
        return frozenset(self.first)

    def has(self, *names: str) -> bool:
        """Whether each of these names is in at least one of the first objects."""
        return self.names.issuperset(names)


@without_collection()
def peek(head: bytes) -> Peek:
    """Read the first objects of a text that may be truncated anywhere."""
    text = head.decode("utf-8", "replace")
    start = _skip(text, 0)
    mark = text[start : start + 1]
    if mark == "[":
        return _peek("array", list(_elements(text, start + 1)))
    if mark != "{":
        return Peek("nothing", {})
    objects = list(_objects(text, start))
    return _peek("objects" if len(objects) > 1 else "object", objects)


def peek_rows(rows: Sequence[Mapping[str, Any]]) -> Peek:
    """Return the peek of the first rows of a table."""
    return _peek("objects", rows) if rows else Peek("nothing", {})


def _peek(shape: Shape, elements: Sequence[Any]) -> Peek:
    """Summarise the first elements; several are read, since one of them may be damaged."""
    objects = [element for element in elements if isinstance(element, dict)]
    fullest: Mapping[str, Any] = max(objects, key=len, default={})
    names = frozenset(name for element in objects for name in element)
    return Peek(shape, fullest, names, objects)


def _elements(text: str, at: int) -> Iterator[Any]:
    """Iterate over the first elements of an array."""
    for _ in range(MAX_OBJECTS):
        at = _skip(text, at)
        if text[at : at + 1] in {"", "]"}:
            return
        value, end = _whole_or_cut(text, at)
        yield value
        if end is None or text[_skip(text, end) : _skip(text, end) + 1] != ",":
            return
        at = _skip(text, end) + 1


def _objects(text: str, at: int) -> Iterator[Any]:
    """Iterate over the first objects; after a damaged one, continue at the next line."""
    for _ in range(MAX_OBJECTS):
        value, end = _whole_or_cut(text, at)
        yield value
        if end is None:
            end = text.find("\n", at)
            if end < 0 or text[end + 1 : end + 2] != "{":
                return
        at = _skip(text, end)
        if text[at : at + 1] != "{":
            return


def _whole_or_cut(text: str, at: int) -> tuple[Any, int | None]:
    try:
        return _value(text, at, _MAX_DEPTH)
    except (ValueError, RecursionError, IndexError):
        return {}, None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int | None]:
    """Return the value at an offset and its end; the end is None if the value is truncated."""
    try:
        return _DECODER.raw_decode(text, at)
    except (json.JSONDecodeError, RecursionError):
        pass
    if depth and text[at : at + 1] == "{":
        return _cut_object(text, at + 1, depth), None
    if depth and text[at : at + 1] == "[":
        first = _value(text, _skip(text, at + 1), depth - 1)[0]
        return [first], None
    return CUT, None


def _cut_object(text: str, at: int, depth: int) -> dict[str, Any]:
    """Return the members of a truncated object."""
    fields: dict[str, Any] = {}
    while text[(at := _skip(text, at)) : at + 1] == '"':
        try:
            name, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            break
        fields[name], end = _value(text, _skip(text, at + 1), depth - 1)
        if end is None:
            break
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            break
        at += 1
    return fields
