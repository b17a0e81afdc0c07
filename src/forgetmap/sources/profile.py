"""Profiles of the columns of a table: types, ranges, numbers of values, examples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from forgetmap.sources.decode import number
from forgetmap.sources.paths import EVERY, scalar_paths

ColumnType = Literal["truth value", "whole number", "number", "text", "list", "mixed", "empty"]
EXAMPLES = 3
EXAMPLE_LENGTH = 40
MAX_DEPTH = 4
_TRUTH = frozenset({"true", "false"})


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """A column, or the values at a path inside one.

    Attributes:
        path: name or path; `*` stands for every element of a list.
        kind: type of the values.
        filled: number of rows with a value.
        different: number of distinct values.
        low: the smallest number; None if the values are not numbers.
        high: the largest number.
        examples: the first distinct values, as text.
    """

    path: str
    kind: ColumnType
    filled: int
    different: int
    low: float | None
    high: float | None
    examples: tuple[str, ...]

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers or truth values."""
        return self.kind in {"truth value", "whole number", "number"}


def profile_columns(rows: Sequence[Mapping[str, Any]]) -> list[ColumnProfile]:
    """Profile the columns of these rows and the values nested in them, in order of appearance."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for path, value in scalar_paths(row, depth=MAX_DEPTH):
            cells = values.setdefault(path, [])
            if value not in (None, "", [], {}):
                cells.append(value)
    profiles = []
    for path, cells in values.items():
        profiles.append(_profile(path, cells))
        if profiles[-1].kind == "list":
            profiles += _elements(path, cells)
    return profiles


def _elements(path: str, lists: Sequence[list[Any]]) -> list[ColumnProfile]:
    """Profile the numbers in the elements of lists."""
    values: dict[str, list[Any]] = {}
    for element in (element for one in lists for element in one):
        for inner, value in scalar_paths(element, f"{path}.{EVERY}", MAX_DEPTH):
            values.setdefault(inner, []).append(value)
    profiles = [_profile(inner, cells) for inner, cells in values.items()]
    return [profile for profile in profiles if profile.is_number]


def _profile(path: str, cells: Sequence[Any]) -> ColumnProfile:
    kinds = {_kind(cell) for cell in cells}
    kind: ColumnType = "empty"
    if kinds:
        kind = next(iter(kinds)) if len(kinds) == 1 else "mixed"
        if kinds == {"whole number", "number"}:
            kind = "number"
    texts = dict.fromkeys(map(_as_text, cells))
    numbers = [value for cell in cells if (value := _number(cell)) is not None]
    is_number = kind in {"truth value", "whole number", "number"}
    return ColumnProfile(
        path,
        kind,
        len(cells),
        len(texts),
        min(numbers) if is_number and numbers else None,
        max(numbers) if is_number and numbers else None,
        tuple(_shortened(text) for text in list(texts)[:EXAMPLES]),
    )


def _kind(cell: Any) -> ColumnType:
    if isinstance(cell, list):
        return "list"
    if isinstance(cell, bool) or (isinstance(cell, str) and cell.strip().lower() in _TRUTH):
        return "truth value"
    value = _number(cell)
    if value is None:
        return "text"
    return "whole number" if value.is_integer() else "number"


def _number(cell: Any) -> float | None:
    return None if isinstance(cell, list | dict) else number(cell)


def _as_text(cell: Any) -> str:
    try:
        return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)
    except RecursionError:
        return "..."


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= EXAMPLE_LENGTH else f"{words[: EXAMPLE_LENGTH - 3]}..."
