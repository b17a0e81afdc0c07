"""What was asked, taken out of the row of a data set that a harness logged."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from forgetmap.sources.datasets import Item, item_of
from forgetmap.sources.fields import sound


def as_item(row: object) -> Item:
    """What was asked in a row of a data set, in texts that any file can hold."""
    item = item_of(row)
    item.question = sound(item.question)
    item.options = [sound(option) for option in item.options] if item.options else None
    item.gold = sound(item.gold) if item.gold is not None else None
    return item


def place_of_letter(letter: str | None, options: Sequence[str] | None) -> int | None:
    """Where the option of this letter stands. An option may itself read like a letter."""
    place = ascii_uppercase.find(letter) if letter and len(letter) == 1 else -1
    return place if options and 0 <= place < len(options) else None
