"""Numbers and names formatted for sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

MAX_NAMES = 3


def percent(value: float | None, digits: int = 1) -> str:
    """Format a share; a dash for None, and `<0.1%` or `>99.9%` instead of a rounded 0% or 100%."""
    if value is None:
        return "-"
    if value < 0:
        opposite = percent(-value, digits)
        return f">-{opposite[1:]}" if opposite.startswith("<") else f"-{opposite}"
    number, step = f"{100 * value:.{digits}f}", 10.0**-digits
    if value > 0 and not float(number):
        return f"<{step:g}%"
    if value < 1 and float(number) == 100:
        return f">{100 - step:g}%"
    return f"{number}%"


def share(value: float | None) -> str:
    """Format a share of all items, clipped to 0% and 100%."""
    return percent(None if value is None else min(max(value, 0.0), 1.0))


def limit(value: float | None, margin: float) -> str:
    """Format a share so that it differs from the margin, with two digits at most: 2.03%, not 2%."""
    if value is None or value == margin or share(value) != percent(margin):
        return share(value)
    if (text := percent(value, 2)) != percent(margin, 2):
        return text
    return percent(margin + math.copysign(1e-4, value - margin), 2)


def signed(value: float, digits: int = 2) -> str:
    """Format a change with a minus sign (U+2212), and no sign if it rounds to 0."""
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text[1:]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 item`, `2,000 items`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str], noun: str = "") -> str:
    """Return the first few names and the number of further ones."""
    first, more = ", ".join(names[:MAX_NAMES]), len(names) - MAX_NAMES
    return f"{first} and {more:,} more {noun}".rstrip() if more > 0 else first


def either(steps: Sequence[str]) -> str:
    """Join alternatives: "a, b, or c"."""
    *others, last = steps
    return f"{', '.join(others)}, or {last}" if others else last


def printable(text: str) -> str:
    """Replace control characters, with which text from outside could control the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
