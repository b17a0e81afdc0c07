"""Values of a log in the shape they should have, or nothing: a wrong type is never an exception."""

from __future__ import annotations

from typing import Any

from forgetmap.sources.datasets import Item, item_of
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


def as_item(row: object) -> Item:
    """What was asked in a row of a data set, in texts that any file can hold."""
    item = item_of(row)
    item.question = sound(item.question)
    item.options = [sound(option) for option in item.options] if item.options else None
    item.gold = sound(item.gold) if item.gold is not None else None
    return item
