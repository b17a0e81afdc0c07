"""Texts of items in a report: shortened, redacted, or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from forgetmap.errors import UsageError
from forgetmap.report.payloads.schema import Cell

SIDES = ("before", "after")
OF_ITEMS = (
    "question", "options", "gold",
    *(f"{name}_{side}" for name in ("answer", "choice", "prompt", "response", "error")
      for side in SIDES),
)  # fmt: skip
"""Columns with texts of items. `--no-text` leaves them out, `--redact` redacts them."""
MIN_BYTES = 200
"""No text is shortened below this."""
BLOCK = "█"

Columns = dict[str, list[Cell]]
Secret = re.Pattern[str]


def without_texts(columns: Columns) -> Columns:
    """Return only columns without texts: names, scores, outcomes."""
    return {name: cells for name, cells in columns.items() if name not in OF_ITEMS}


def parse_patterns(expressions: Iterable[str]) -> tuple[Secret, ...]:
    """Compile the patterns to redact.

    Raises:
        UsageError: one of them is not a regular expression.
    """
    patterns = []
    for pattern in expressions:
        try:
            patterns.append(re.compile(pattern))
        except re.error as error:
            raise UsageError(
                f"--redact {pattern!r} is not a valid regular expression: {error}",
                hint=r"use --redact '[\w.]+@[\w.]+' for addresses, or --redact '\S' for all.",
            ) from None
    return tuple(patterns)


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """Replace every match by blocks of the same length."""
    for secret in secrets:
        text = secret.sub(lambda match: BLOCK * len(match[0]), text)
    return text


def redact_columns(columns: Columns, secrets: Sequence[Secret]) -> Columns:
    """Redact every text of these items."""
    return _changed(columns, lambda text: redact(text, secrets))


def cut(columns: Columns, longest: int) -> tuple[Columns, int]:
    """Shorten texts to this many bytes; also return the number of shortened texts."""
    shorter = 0

    def change(text: str) -> str:
        nonlocal shorter
        short = shortened(text, longest)
        shorter += short is not text
        return short

    return _changed(columns, change), shorter


def shortened(text: str, longest: int) -> str:
    """Keep beginning and end of a text, where answers are, and state how much is missing."""
    if len(text) <= longest // 4 or len(content := text.encode()) <= longest:
        return text
    half = longest // 2
    head, tail = (part.decode(errors="ignore") for part in (content[:half], content[-half:]))
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"


def sizes(columns: Columns) -> list[int]:
    """Return the size of each text of these items; repetitions within an item are stored once."""
    texts = [columns[name] for name in columns if name in OF_ITEMS]
    return [len(text.encode()) for cells in zip(*texts, strict=True) for text in _distinct(cells)]


def _distinct(cells: Iterable[Cell]) -> set[str]:
    parts = (part for cell in cells for part in (cell if isinstance(cell, list) else [cell]))
    return {part for part in parts if isinstance(part, str)}


def _changed(columns: Columns, change: Callable[[str], str]) -> Columns:
    return {
        name: [_applied(change, cell) for cell in cells] if name in OF_ITEMS else cells
        for name, cells in columns.items()
    }


def _applied(change: Callable[[str], str], cell: Cell) -> Cell:
    if isinstance(cell, list):
        return [change(part) for part in cell]
    return change(cell) if isinstance(cell, str) else cell
