"""Decoys: values similar to the expected one, so that an answer cannot guess it.

An object of an answer that is compared with a value sees the value, and could claim to be equal or
close to it. So it is also compared with other values of the same kind, in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from numbers import Number
from random import SystemRandom
from typing import Any

_chance = SystemRandom()  # the default generator may be seeded
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_MAX_STEP = 9
_LATE_YEAR = 5_000


def shuffle(values: list[Any]) -> list[Any]:
    """Return the values in random order."""
    return _chance.sample(values, len(values))


def with_decoys(value: Any, number: int, make: Callable[[Any], Any]) -> list[Any]:
    """Return the value and up to `number` decoys made from it; equal ones are skipped.

    Each is made from the one before, on a path with the value at a random position. If all were
    made from the value, it would be in their middle, and a value that occurs twice would be a
    decoy.
    """
    values = [value]
    before = _chance.randint(0, number)
    for steps in (before, number - before):
        made = value
        for _ in range(steps):
            made = make(made)
            with suppress(ValueError):  # arrays of numpy have no single truth value
                if made in values:
                    continue
            values.append(made)
    return values


def unlike(value: Any) -> Any:
    """Return another value of the same kind that differs by more than rounding, case or order."""
    make = _UNLIKE.get(type(value))
    if make is not None:
        return make(value)
    if isinstance(value, Number):
        return _unlike_number(value)
    return unknown()


def unknown(_: object = None) -> str:
    """Return a random text."""
    return f"{_chance.getrandbits(128):x}"


def far_above(_: object = None) -> int:
    """Return a random number above any real value."""
    return (1 << 128) + _chance.getrandbits(128)


def far_below(_: object = None) -> int:
    """Return a random number below any real value."""
    return -far_above()


def _unlike_number(value: Any) -> Any:
    step = _chance.randint(1, _MAX_STEP)
    moved = value + step if _chance.random() < 1 / 2 else value - step
    if isinstance(value, float):
        moved = round(moved, 9)  # rounding errors of the sum would identify a decoy
    return unknown() if moved == value else moved  # infinite, or too large for a step


def _unlike_text(value: str) -> str:
    if not value:
        return _chance.choice(_LETTERS)
    index = _chance.randrange(len(value))
    old = value[index]
    kind = _DIGITS if old.isdigit() else _LETTERS.upper() if old.isupper() else _LETTERS
    new = _chance.choice([letter for letter in kind if letter.casefold() != old.casefold()])
    return value[:index] + new + value[index + 1 :]


def _unlike_list(values: list[Any]) -> list[Any]:
    if not values:
        return [_chance.randint(1, _MAX_STEP)]
    index = _chance.randrange(len(values))
    return [*values[:index], unlike(values[index]), *values[index + 1 :]]


def _unlike_set(values: set[Any]) -> set[Any]:
    if not values:
        return {_chance.randint(1, _MAX_STEP)}
    old = _chance.choice(list(values))
    new = unlike(old)
    return (values - {old}) | {unknown() if new in values else new}


def _unlike_dict(values: dict[Any, Any]) -> dict[Any, Any]:
    if not values:
        return {unknown(): 0}
    key = _chance.choice(list(values))
    return {**values, key: unlike(values[key])}


def _unlike_date(value: date) -> date:
    days = timedelta(days=_chance.randint(1, _MAX_STEP))
    return value + days if value.year < _LATE_YEAR else value - days


_UNLIKE: Mapping[type, Callable[[Any], Any]] = {
    bool: lambda value: not value,
    str: _unlike_text,
    bytes: lambda value: _unlike_text(value.decode("latin-1")).encode("latin-1"),
    list: _unlike_list,
    tuple: lambda value: tuple(_unlike_list(list(value))),
    set: _unlike_set,
    frozenset: lambda value: frozenset(_unlike_set(set(value))),
    dict: _unlike_dict,
    date: _unlike_date,
    datetime: _unlike_date,
}
