"""Blocks: lines and tables of a result, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from forgetmap.text.words import either

Look = Literal["plain", "strong", "faint", "warning", "simulated", "commands"]
"""Emphasis of a line; `commands` are lines of forgetmap with commands in backticks."""
Tone = Literal["bad", "minor", "good", "open"]
"""Colour of a badge."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence.

    Attributes:
        text: the sentence.
        look: emphasis.
        lead: separate text in front.
        tone: colour of the lead, which is then a badge.
        min_width: minimum width of a terminal that shows it.
    """

    text: str = ""
    look: Look = "plain"
    lead: str = ""
    tone: Tone | None = None
    min_width: int = 0


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: names on the left, numbers on the right.

    Attributes:
        heads: heads of the columns.
        rows: rows with a cell per column.
        strong: number of rows at the top that are emphasised.
        spare: columns to leave out if there is not enough room, in this order.
        shades: (row, column) -> -1 (loss) to 1 (gain), for cells with a coloured background.
        whole_heads: whether heads are never shortened: they are wrapped, and columns that do not
            fit go into a further table.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    strong: int = 0
    spare: tuple[str, ...] = ()
    shades: Mapping[tuple[int, int], float] = field(default_factory=dict)
    whole_heads: bool = False


Blocks = list[Line | Sheet]
"""Sentences and tables in reading order."""


def next_lines(steps: Sequence[str], *, as_list: bool) -> Blocks:
    """Return "What next": a sentence, or a list where long commands are to be copied."""
    if as_list and len(steps) > 1:
        return [Line("What next:"), *(Line(step, "commands", "-") for step in steps)]
    return [Line(f"What next: {either(steps)}.", "commands")]
