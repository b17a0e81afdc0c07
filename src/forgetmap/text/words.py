"""Numbers and names formatted for sentences."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAMES = 3


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people read it; a dash where there is none, and never a false 0% or 100%."""
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
    """A share of all items as it is shown: nothing below 0% or above 100%."""
    return percent(None if value is None else min(max(value, 0.0), 1.0))


def limit(value: float | None, margin: float) -> str:
    """A share with as many digits as tell it from the margin: 2.03% is not within 2%."""
    close = value is not None and value != margin and share(value) == percent(margin)
    return percent(value, digits=3) if close else share(value)


def signed(value: float, digits: int = 2) -> str:
    """A change with a true minus, and no sign where it rounds to 0."""
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text[1:]


def counted(count: int, noun: str) -> str:
    """`1 item`, `2,000 items`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str], noun: str = "") -> str:
    """The first few names and how many more there are."""
    first, more = ", ".join(names[:MAX_NAMES]), len(names) - MAX_NAMES
    return f"{first} and {more:,} more {noun}".rstrip() if more > 0 else first


def printable(text: str) -> str:
    """Text from outside without control characters, which could drive the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
