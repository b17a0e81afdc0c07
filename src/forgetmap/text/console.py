"""Blocks printed to a terminal; Rich is imported late, because it takes 50 ms to load."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from forgetmap.text.blocks import Blocks, Line, Sheet
from forgetmap.text.words import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

MAX_WIDTH = 100
LONG_HEAD, SHORT_HEAD = 40, 10
"""Maximum characters on a line of a wrapped head: with enough room, and with little room."""
MIN_NAME, SHORT_NAME, LONG_NAME = 8, 18, 60
"""Spare columns are left out before names become shorter than `SHORT_NAME`."""
_STYLES = {"strong": "bold", "faint": "dim", "simulated": "bold yellow"}
_COLOURS = {"forgotten": "red", "forgot": "red", "lost": "red", "gained": "green"}
_BADGES = {
    "bad": "bold rgb(255,255,255) on rgb(176,0,32)",
    "minor": "bold black on rgb(240,180,40)",
    "good": "bold rgb(255,255,255) on rgb(0,105,76)",
    "open": "bold rgb(255,255,255) on rgb(87,96,106)",
}


def blocks_to_text(blocks: Blocks, width: int | None = None) -> str:
    """Return blocks as plain text, as wide as the terminal, up to a maximum."""
    from rich.console import Console

    stream = StringIO()
    # In a notebook, rich would display the output instead of writing it to the stream.
    console = Console(
        file=stream, color_system=None, legacy_windows=False, width=width, force_jupyter=False
    )
    console.width = min(console.width, width or MAX_WIDTH)
    print_blocks(console, blocks)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip()


def print_blocks(console: Console, blocks: Blocks) -> None:
    """Print lines and tables."""
    for block in blocks:
        if isinstance(block, Sheet):
            print_sheet(console, block)
        elif block.look == "commands" and not block.tone:
            # Longer lines are left to the terminal, so that a command is copied as one line.
            console.print(_wrap_commands(block, console.width), soft_wrap=True)
        elif block.min_width <= console.width:
            console.print(_rich_line(block))


def print_sheet(console: Console, sheet: Sheet) -> None:
    """Print a table so that it fits the terminal, in parts if its heads must not be shortened."""
    for part in split(sheet, console.width) if sheet.whole_heads else [sheet]:
        console.print(_rich_table(fit(part, console.width)))


def split(sheet: Sheet, width: int) -> list[Sheet]:
    """Wrap the heads of a sheet, and split its columns over as many sheets as needed."""
    from rich.cells import cell_len

    cells = [max((cell_len(printable(row[at])) for row in sheet.rows), default=0)
             for at in range(len(sheet.heads))]  # fmt: skip
    heads = [wrap_head(printable(head), LONG_HEAD) for head in sheet.heads]
    columns = range(1, len(heads))
    for longest in range(LONG_HEAD, SHORT_HEAD - 1, -1):
        heads = [wrap_head(printable(head), longest) for head in sheet.heads]
        if cells[0] + sum(_width(heads[at], cells[at]) + 2 for at in columns) <= width:
            break
    room = width - min(cells[0], max(SHORT_NAME, width // 3))
    parts: list[list[int]] = [[]]
    for at in columns:
        used_width = sum(_width(heads[other], cells[other]) + 2 for other in parts[-1])
        if parts[-1] and used_width + _width(heads[at], cells[at]) + 2 > room:
            parts.append([])
        parts[-1].append(at)
    return [_columns(sheet, heads, [0, *part]) for part in parts]


def wrap_head(head: str, longest: int) -> str:
    """Wrap a name to lines of a maximum length, after punctuation if possible."""
    lines = [""]
    for piece in re.findall(r"[^-_/. ]*[-_/. ]?", head):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > longest:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > longest:
            lines[-1:] = [lines[-1][:longest], lines[-1][longest:]]
    return "\n".join(line.strip() for line in lines)


def _width(head: str, cell: int) -> int:
    from rich.cells import cell_len

    return max(cell, *map(cell_len, head.split("\n")))


def _columns(sheet: Sheet, heads: list[str], columns: list[int]) -> Sheet:
    """Return some columns of a sheet."""
    return Sheet(
        tuple(heads[at] for at in columns),
        [tuple(row[at] for at in columns) for row in sheet.rows],
        sheet.strong,
        shades={
            (row, columns.index(column)): shade
            for (row, column), shade in sheet.shades.items()
            if column in columns
        },
    )


def fit(sheet: Sheet, width: int) -> Sheet:
    """Fit a sheet to a width: first leave out columns, then shorten names."""
    from rich.cells import cell_len

    def width_of(index: int) -> int:
        cells = [*sheet.heads[index].split("\n"), *(printable(row[index]) for row in sheet.rows)]
        return max(map(cell_len, cells))

    columns = list(range(len(sheet.heads)))
    spare = [sheet.heads.index(head) for head in sheet.spare]

    def room() -> int:
        return width - sum(width_of(index) + 2 for index in columns[1:])

    while spare and room() < min(SHORT_NAME, width_of(0)):
        columns.remove(spare.pop(0))
    longest = min(max(room(), MIN_NAME), LONG_NAME)
    rows = [
        (shorten(printable(row[0]), longest), *(printable(row[index]) for index in columns[1:]))
        for row in sheet.rows
    ]
    shades = {
        (row, columns.index(column)): shade
        for (row, column), shade in sheet.shades.items()
        if column in columns
    }
    heads = tuple(sheet.heads[index] for index in columns)
    return Sheet(heads, rows, sheet.strong, shades=shades)


def shorten(name: str, width: int) -> str:
    """Shorten a name in the middle, since tasks of a family differ at the end."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{set_cell_size(name, width - 1 - tail)}…{set_cell_size(name[::-1], tail)[::-1]}"


_WORD = re.compile(r"\S*`[^`]*`\S*|\S+")
"""A word, or a whole command in backticks."""


def _wrap_commands(line: Line, width: int) -> Text:
    """Wrap a line between words, but never within a command in backticks."""
    from rich.cells import cell_len
    from rich.text import Text

    lead = f"{line.lead} " if line.lead else ""
    rows = [""]
    for word in _WORD.findall(printable(line.text)):
        if rows[-1] and cell_len(f"{lead}{rows[-1]} {word}") > width:
            rows.append("")
        rows[-1] += f" {word}" if rows[-1] else word
    text = f"\n{' ' * cell_len(lead)}".join(rows)
    return Text.assemble((lead, "dim"), text)


def _rich_line(line: Line) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    text = Text(printable(line.text), style=_STYLES.get(line.look, ""))
    if line.tone:
        badge = f" {line.lead} "
        return Text.assemble((badge, _BADGES[line.tone]), " " if line.text else "", text)
    if not line.lead:
        return text
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")  # a long path is typed as a whole
    grid.add_row(Text(line.lead, style="yellow" if line.look == "warning" else "dim"), text)
    return grid


def _rich_table(sheet: Sheet) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, head in enumerate(sheet.heads):
        table.add_column(
            Text(head, style="bold"),
            justify="right" if index else "left",
            vertical="bottom",
            no_wrap=True,
            style=_COLOURS.get(head.rpartition("\n")[2]),
        )
    for index, row in enumerate(sheet.rows):
        cells = [
            Text(cell, style=_background(sheet.shades.get((index, column), 0.0)))
            for column, cell in enumerate(row)
        ]
        table.add_row(*cells, style="bold" if index < sheet.strong else None)
    return table


def _background(shade: float) -> str:
    """Return a background: red for losses, blue for gains, darker for larger; none for 0."""
    if not shade:
        return ""
    light = round(235 - 150 * min(abs(shade), 1.0))
    r, g, b = (235, light, light) if shade < 0 else (light, light, 235)
    return f"black on rgb({r},{g},{b})"
