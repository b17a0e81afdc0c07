"""Dotted paths into JSON values: `scores.pass@1`, `trials.0.reward`, `trials.*.reward`.

A part of a path is the name of a member or an index of a list, from 0; -1 is the last element.
Names may contain dots: if a path can be read in several ways, the longest first name wins. `*`
stands for every element of a list, each of them one result. Texts that contain JSON, as in a cell
of a CSV file, are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from forgetmap.sources.decode import Malformed, decode

NOTHING: Final = object()
"""Marks a path that does not exist, unlike a null."""
EVERY = "*"
MAX_DEPTH = 6
_INDEX = re.compile(r"-?\d{1,9}")


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path; `NOTHING` if there is no such path."""
    return _at(value, path.split("."))


def split_every(path: str) -> tuple[str, str] | None:
    """Split a path at its `*` into the parts before and after; None if it has no `*`."""
    parts = path.split(".")
    if EVERY not in parts:
        return None
    index = parts.index(EVERY)
    return ".".join(parts[:index]), ".".join(parts[index + 1 :])


def scalar_paths(value: Any, prefix: str = "", depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:
    """Iterate over path and value of every leaf of an object; a list is one leaf."""
    if not isinstance(value, Mapping) or not depth:
        yield prefix, value
        return
    for name, part in value.items():
        yield from scalar_paths(part, f"{prefix}.{name}" if prefix else str(name), depth - 1)


def _at(value: Any, parts: Sequence[str]) -> Any:
    if not parts or parts == [""]:
        return value
    if isinstance(value, str) and value[:1] in {"{", "["}:
        value = _parsed(value)
    if isinstance(value, Mapping):
        return _member(value, parts)
    if isinstance(value, list) and _INDEX.fullmatch(parts[0]):
        index = int(parts[0])
        return _at(value[index], parts[1:]) if -len(value) <= index < len(value) else NOTHING
    return NOTHING


def _member(value: Mapping[str, Any], parts: Sequence[str]) -> Any:
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in value:
            part = _at(value[name], parts[count:])
            if part is not NOTHING:
                return part
    return NOTHING


def _parsed(text: str) -> Any:
    try:
        return decode(text.encode("utf-8", "replace"))
    except Malformed:
        return None
