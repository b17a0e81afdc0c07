"""Typed access to the fields of a log; a wrong type is reported, not raised.

`Fields` reports what it finds instead; the functions `as_...` only pass over it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forgetmap.sources.adapter import Problems
from forgetmap.sources.decode import number
from forgetmap.sources.files import LogFile

MAX_COUNT = 2**31 - 1
_encode = json.JSONEncoder(ensure_ascii=False).encode


class Fields:
    """One object of a log and its place; a field of another type is a problem and counts as absent.

    Args:
        values: the object.
        file: where it stands.
        line: the line it begins in.
        problems: where fields of the wrong type are reported.
    """

    def __init__(
        self, values: Mapping[str, Any], file: LogFile, line: int | None, problems: Problems
    ) -> None:
        self.values, self.file, self.line, self._problems = values, file, line, problems

    def report_problem(self, message: str, field: str | None = None) -> None:
        """Report a problem of this row."""
        self._problems.add(self.file.name, message, line=self.line, field=field)

    def text(self, *names: str) -> str | None:
        """The text of the first of these fields that is there."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str):
                return replace_surrogates(value)
            if value is not None:
                self.report_problem(f"expected a text, not {value!r:.60}", name)
        return None

    def name(self, *names: str) -> str | None:
        """An id or label: a text or a whole number."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return replace_surrogates(str(value))
            if value is not None:
                self.report_problem(f"expected an id, not {value!r:.60}", name)
        return None

    def count(self, name: str) -> int | None:
        """A whole number from 0 on."""
        value = self.values.get(name)
        count = as_count(value)
        if count is None and value is not None:
            self.report_problem(f"expected a whole number, not {value!r:.60}", name)
        return count

    def number(self, name: str) -> float | None:
        """A finite number or truth value; NaN counts as absent without being a problem."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool | int | float):
            self.report_problem(f"expected a number, not {value!r:.60}", name)
            return None
        return number(value)

    def texts(self, name: str) -> list[str] | None:
        """A list of texts; numbers in it become text."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, list) and all(
            isinstance(element, str | int | float) for element in value
        ):
            return [replace_surrogates(str(element)) for element in value]
        self.report_problem(f"expected a list of texts, not {value!r:.60}", name)
        return None

    def part(self, name: str) -> Fields:
        """A field that is itself an object; empty if it is not there."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            self.report_problem(f"expected an object, not {value!r:.60}", name)
        return self.within(as_mapping(value))

    def parts(self, name: str) -> list[Fields]:
        """The objects in a field that is a list of them; whatever else is in it is passed over."""
        return [self.within(part) for part in as_objects(self.values.get(name))]

    def within(self, values: Mapping[str, Any]) -> Fields:
        """An object inside of this one, at the same place."""
        return Fields(values, self.file, self.line, self._problems)

    def json_text(self, name: str) -> str | None:
        """A field of any type, as text: what is none is written as JSON."""
        return as_json_text(self.values.get(name))


def as_mapping(value: object) -> dict[str, Any]:
    """An object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, list) else []


def as_objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none of what is no list."""
    return [element for element in as_list(value) if isinstance(element, dict)]


def as_text(value: object) -> str | None:
    """A text, or a finite number as text; else None."""
    if isinstance(value, str):
        return replace_surrogates(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and number(value) is not None else None


def as_count(value: object) -> int | None:
    """A whole number from 0 that fits a column of counts; else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def as_json_text(value: object) -> str | None:
    """Any value as text: what is none is written as JSON."""
    if value is None or isinstance(value, str):
        return replace_surrogates(value) if value is not None else None
    return replace_surrogates(_encode(value))


def replace_surrogates(text: str) -> str:
    """The text without halves of characters, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
