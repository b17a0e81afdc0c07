"""Typed access to the fields of a log; a wrong type is reported, not raised.

`Fields` reports a value of the wrong type; the functions `as_...` ignore it silently.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any, Self

from forgetmap.sources.adapter import Problems
from forgetmap.sources.decode import number
from forgetmap.sources.files import LogFile

MAX_COUNT = 2**31 - 1
_encode = json.JSONEncoder(ensure_ascii=False).encode


class Fields:
    """An object of a log, with its place; a field of the wrong type counts as absent."""

    def __init__(
        self, values: Mapping[str, Any], file: LogFile, line: int | None, problems: Problems
    ) -> None:
        self.values, self.file, self.line, self._problems = values, file, line, problems

    def report_problem(self, message: str, field: str | None = None) -> None:
        """Report a problem of this row."""
        self._problems.add(self.file.name, message, line=self.line, field=field)

    def _first(self, names: Sequence[str], types: Container[type], expected: str) -> Any:
        """Return the first of these fields that has one of the types; report others."""
        for name in names:
            value = self.values.get(name)
            if type(value) in types:
                return value
            if value is not None:
                self.report_problem(f"expected {expected}, not {value!r:.60}", name)
        return None

    def text(self, *names: str) -> str | None:
        """Return the first of these fields that is a text."""
        text: str | None = self._first(names, (str,), "a text")
        return text

    def name(self, *names: str) -> str | None:
        """Return the first of these fields that is an id or label: a text or a whole number."""
        name = self._first(names, (str, int), "an id")
        return None if name is None else str(name)

    def count(self, name: str) -> int | None:
        """Return a whole number, at least 0."""
        count = as_count(self.values.get(name))
        return self._first((name,), (), "a whole number") if count is None else count

    def number(self, name: str) -> float | None:
        """Return a finite number or truth value; NaN counts as absent and is not reported."""
        return number(self._first((name,), (bool, int, float), "a number"))

    def texts(self, name: str) -> list[str] | None:
        """Return a list of texts; numbers in it become text."""
        value = self.values.get(name)
        is_list = isinstance(value, list) and all(isinstance(v, str | int | float) for v in value)
        texts = self._first((name,), (list,) if is_list else (), "a list of texts")
        return None if texts is None else list(map(str, texts))

    def part(self, name: str) -> Self:
        """Return a field that is itself an object; empty if it is absent."""
        return self.within(self._first((name,), (dict,), "an object") or {})

    def parts(self, name: str) -> list[Self]:
        """Return the objects in a field that is a list; other elements are ignored."""
        return [self.within(part) for part in as_objects(self.values.get(name))]

    def within(self, values: Mapping[str, Any]) -> Self:
        """Return an object inside this one, with the same file and line."""
        part = object.__new__(type(self))
        vars(part).update(vars(self), values=values)
        return part

    def json_text(self, name: str) -> str | None:
        """Return a field of any type as text; values that are not texts are written as JSON."""
        return as_json_text(self.values.get(name))


def as_mapping(value: object) -> dict[str, Any]:
    """Return an object as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list for anything else."""
    return [element for element in as_list(value) if isinstance(element, dict)]


def as_text(value: object) -> str | None:
    """Return a text, or a finite number as text; else None."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and number(value) is not None else None


def as_count(value: object) -> int | None:
    """Return a whole number from 0 that fits a column of counts; else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def as_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a manifest can hold: plain values and lists of texts."""
    return {
        name: value
        for name, value in values.items()
        if (abs(value) < 1 << 63 if isinstance(value, int | float) else isinstance(value, str))
        or (isinstance(value, list) and all(isinstance(text, str) for text in value))
    }


def as_json_text(value: object) -> str | None:
    """Return any value as text; values that are not texts are written as JSON."""
    return value if value is None or isinstance(value, str) else _encode(value)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
