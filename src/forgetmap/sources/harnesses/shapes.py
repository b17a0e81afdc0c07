"""Values of a log in the shape they should have, or nothing: a wrong type is never an exception."""

from __future__ import annotations

from typing import Any

from forgetmap.sources.fields import sound


def as_mapping(value: object) -> dict[str, Any]:
    """An object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str | None:
    """A text, or a number as text; else None."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def as_count(value: object) -> int | None:
    """A whole number from 0 that fits a column of counts; else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 31 else None
