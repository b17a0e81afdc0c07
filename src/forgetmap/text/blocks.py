"""Blocks: lines and tables of a result, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Look = Literal["plain", "strong", "faint", "warning", "simulated", "commands"]
"""How much a line is stressed; in our own `commands`, what stands in backticks is to be typed."""
Tone = Literal["bad", "minor", "good", "open"]
"""What colour a badge has."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence.

    Attributes:
        text: what it says.
        look: how much it is stressed.
        lead: stands before it, apart.
        tone: its lead is a badge of this colour.
        min_width: it is left out of narrower terminals.
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
        heads: of the columns.
        rows: as many cells each as there are heads.
        strong: how many rows on top are stressed.
        spare: columns to leave out, one after the other, where there is no room.
        shades: (row, column) -> -1 (loss) to 1 (gain), for cells with a colour behind them.
        whole_heads: whether heads are never shortened: they are wrapped, and columns for which
            there is no room stand in a further table.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    strong: int = 0
    spare: tuple[str, ...] = ()
    shades: Mapping[tuple[int, int], float] = field(default_factory=dict)
    whole_heads: bool = False


Blocks = list[Line | Sheet]
"""Sentences and tables in reading order."""
