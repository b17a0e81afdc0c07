"""What a report says of an item in words: cut to a size, blackened, or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from forgetmap.errors import UsageError
from forgetmap.report.payload import Cell

SIDES = ("before", "after")
OF_ITEMS = (
    "question", "options", "gold",
    *(f"{name}_{side}" for name in ("answer", "choice", "prompt", "response", "error")
      for side in SIDES),
)  # fmt: skip
"""Columns with what was asked or said. `--no-text` leaves them out, `--redact` blackens them."""
MOST_CHARACTERS = 24_000_000
"""Of all texts of a report, so that one file can be mailed; the longest are cut first."""
LEAST_CHARACTERS = 200
BLOCK = "█"

Columns = dict[str, list[Cell]]
Secret = re.Pattern[str]


def without_texts(columns: Columns) -> Columns:
    """Only what is no text: names, scores, outcomes."""
    return {name: cells for name, cells in columns.items() if name not in OF_ITEMS}


def patterns_of(given: Iterable[str]) -> tuple[Secret, ...]:
    """What is to be blackened, as compiled patterns.

    Raises:
        UsageError: one of them is no regular expression.
    """
    patterns = []
    for pattern in given:
        try:
            patterns.append(re.compile(pattern))
        except re.error as error:
            raise UsageError(
                f"--redact {pattern!r} is no regular expression: {error}",
                hint=r"such as --redact '[\w.]+@[\w.]+' for addresses, --redact '\S' for all.",
            ) from None
    return tuple(patterns)


def blackened(text: str, secrets: Iterable[Secret]) -> str:
    """The text with every match under blocks, as long as it was."""
    for secret in secrets:
        text = secret.sub(lambda found: BLOCK * len(found[0]), text)
    return text


def blacken(columns: Columns, secrets: Sequence[Secret]) -> Columns:
    """Every text of these items with what matches under blocks."""
    return _changed(columns, lambda text: blackened(text, secrets))


def cut(columns: Columns, longest: int) -> Columns:
    """No text longer than this: the middle goes, because answers stand at the end."""
    return _changed(columns, lambda text: shortened(text, longest))


def shortened(text: str, longest: int) -> str:
    """Beginning and end of a text, and how much there was between them."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def lengths(columns: Columns) -> list[int]:
    """How long each text of these items is."""
    texts = (text for name in columns if name in OF_ITEMS for text in columns[name])
    each = (text if isinstance(text, list) else [text] for text in texts)
    return [len(part) for parts in each for part in parts if isinstance(part, str)]


def fair_cap(amounts: Sequence[int], most: int) -> int:
    """The largest cap under which these amounts sum up to no more than `most`."""
    left, ordered = most, sorted(amounts)
    for place, amount in enumerate(ordered):
        others = len(ordered) - place
        if amount * others > left:
            return left // others
        left -= amount
    return max(ordered, default=most)


def _changed(columns: Columns, change: Callable[[str], str]) -> Columns:
    return {
        name: [_applied(change, cell) for cell in cells] if name in OF_ITEMS else cells
        for name, cells in columns.items()
    }


def _applied(change: Callable[[str], str], cell: Cell) -> Cell:
    if isinstance(cell, list):
        return [change(part) for part in cell]
    return change(cell) if isinstance(cell, str) else cell
