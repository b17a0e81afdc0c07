"""Static parts of pages: tables, sections, notices, "How we know"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from forgetmap.report.payloads.lab import KeyNumber
from forgetmap.text import Sheet, printable


def table_of(
    sheet: Sheet, *, best: int | None = None, caption: str = "", texts: bool = False
) -> str:
    """Return a table that scrolls horizontally if it is too wide.

    Args:
        sheet: contents of the table.
        best: row to emphasise.
        caption: description for screen readers.
        texts: whether cells are texts, not numbers.
    """
    heads = "".join(
        f'<th scope="col"{_look(index, texts=texts)}>{escaped(head)}</th>'
        for index, head in enumerate(sheet.heads)
    )
    rows = "".join(
        _row(cells, texts=texts, best=index == best) for index, cells in enumerate(sheet.rows)
    )
    words = f'<caption class="aside">{escaped(caption)}</caption>' if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="sheet">{words}<thead><tr>{heads}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _row(cells: Sequence[str], *, texts: bool, best: bool) -> str:
    first, *rest = (escaped(cell.strip().removeprefix("> ")) for cell in cells)
    numbers = "".join(f"<td{_look(1, texts=texts)}>{cell}</td>" for cell in rest)
    return f'<tr{" class=best" if best else ""}><th scope="row">{first}</th>{numbers}</tr>'


def _look(index: int, *, texts: bool) -> str:
    if not index:
        return ""
    return ' class="words"' if texts else ' class="number"'


def section(title: str, content: str, *, name: str = "") -> str:
    """Return a section with its title; with a name it can be linked to."""
    place = f' id="{escaped(name)}" tabindex="-1"' if name else ""
    words = escaped(title)
    return f'<section{place} aria-label="{words}"><h2>{words}</h2>{content}</section>'


def folded(title: str, content: str) -> str:
    """Return a collapsed section."""
    return f'<details class="every"><summary>{escaped(title)}</summary>{content}</details>'


def notices_card(notices: Sequence[str]) -> str:
    """Return a card of notices; empty if there are none."""
    if not notices:
        return ""
    lines = "".join(f"<li>{escaped(notice)}</li>" for notice in notices)
    return f'<div class="card warned"><ul class="warnings">{lines}</ul></div>'


def key_number(number: KeyNumber | None) -> str:
    """Return the key number of a page."""
    if number is None:
        return ""
    return (
        f'<p class="number"><b class="figure">{escaped(number.figure)}</b> '
        f"<span>{escaped(number.words)}</span></p>"
    )


def definitions(words: Mapping[str, str], look: str = "counts faint") -> str:
    """Return a list of names with descriptions."""
    lines = "".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in words.items()
    )
    return f'<dl class="{look}">{lines}</dl>'


def how_we_know(facts: Mapping[str, str]) -> str:
    """Return the section on how the numbers were checked."""
    return section("How we know", definitions(facts, "counts facts"))


def paragraphs(sentences: Sequence[str], look: str = "words") -> str:
    """Return each sentence as a paragraph."""
    return "".join(f'<p class="{look}">{escaped(sentence)}</p>' for sentence in sentences)


def escaped(text: str) -> str:
    """Escape text for HTML."""
    return escape(printable(text.replace("\n", " ")))
