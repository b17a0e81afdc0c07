"""Table cells of the site, sorted by value and linked to their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forgetmap.report.html.parts import escaped
from forgetmap.results import Estimate
from forgetmap.text import percent, share, signed

DASH = "\N{EN DASH}"
LONG = 44
"""Length from which a text is wrapped."""
MISSING = '<span class="drift drift-none">{}</span>'


class SiteCell(NamedTuple):
    """A table cell.

    Attributes:
        text: displayed text.
        href: link relative to the folder of the site; empty for none.
        value: number for sorting and saving; None if unknown.
        note: small text below.
        look: `words`, `number`, `forgotten`, `gained` or `gap`.
        full: saved text, if the displayed one is shortened.
    """

    text: str
    href: str = ""
    value: float | None = None
    note: str = ""
    look: str = "number"
    full: str = ""


class SiteTable(NamedTuple):
    """A table that can be sorted, searched and saved.

    Attributes:
        name: name of the saved file.
        caption: description of the table.
        heads: headings of the columns.
        rows: cells.
    """

    name: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[SiteCell]]


def words(text: str, href: str = "", note: str = "") -> SiteCell:
    """Return a cell with a name or a sentence."""
    return SiteCell(text, href, note=note, look="words")


def count(number: int | None, href: str = "") -> SiteCell:
    """Return a cell with a count; 0 has no link."""
    if number is None:
        return SiteCell(DASH)
    return SiteCell(f"{number:,}", href if number else "", float(number))


def part(value: float | None) -> SiteCell:
    """Return a cell with a share of all items."""
    return SiteCell(DASH if value is None else share(value), value=value)


def change(before: float | None, after: float | None) -> SiteCell:
    """Return a cell with an accuracy change in points."""
    if before is None or after is None:
        return SiteCell(DASH)
    return SiteCell(f"{signed(100 * (after - before), 1)}", value=after - before)


def estimate(value: Estimate, look: str, href: str = "") -> SiteCell:
    """Return a cell with a share, and its interval below."""
    if value.value is None:
        return SiteCell(DASH)
    limits = "" if value.low is None else f"{share(value.low)} to {share(value.high)}"
    return SiteCell(share(value.value), href, value.value, limits, look)


def gap(text: str) -> SiteCell:
    """Return a cell for a missing value."""
    return SiteCell(text, look="gap")


def without_empty(
    name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[SiteCell]]
) -> SiteTable:
    """Return a table without columns that are empty in all rows."""
    shown = [
        place
        for place in range(len(heads))
        if any(row[place].value is not None or row[place].look == "words" for row in rows)
    ]
    return SiteTable(
        name, caption, [heads[n] for n in shown], [[row[n] for n in shown] for row in rows]
    )


def site_table(table: SiteTable, root: str) -> str:
    """Return HTML of a table; `root` leads from the page to the folder of the site."""
    heads = "".join(
        f'<th scope="col"{_class(table, place)}>{escaped(head)}</th>'
        for place, head in enumerate(table.heads)
    )
    rows = "".join(f"<tr>{_row(row, root)}</tr>" for row in table.rows)
    caption = escaped(table.caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {caption}">'
        f'<table class="sheet" data-name="{escaped(table.name)}">'
        f'<caption class="aside">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _class(table: SiteTable, place: int) -> str:
    is_text = all(row[place].look in ("words", "gap") for row in table.rows)
    return ' class="words"' if is_text else ' class="number"'


def _row(row: Sequence[SiteCell], root: str) -> str:
    first, *rest = row
    look = ' class="long"' if len(first.text) > LONG else ""
    return f'<th scope="row"{look}{_value(first)}>{_content(first, root)}</th>' + "".join(
        f'<td class="{_look(cell)}"{_value(cell)}>{_content(cell, root)}</td>' for cell in rest
    )


def _look(cell: SiteCell) -> str:
    if cell.look not in ("words", "gap"):
        return "number"
    return "words long" if len(cell.text) > LONG else "words"


def _value(cell: SiteCell) -> str:
    if cell.value is not None:
        return f' data-value="{cell.value:.10g}"'
    if cell.look == "words":
        full = cell.full or (cell.text if cell.note else "")
        return f' data-text="{escaped(full)}"'
    return ' data-value=""'


def _content(cell: SiteCell, root: str) -> str:
    text = escaped(cell.text)
    if cell.look == "gap":
        return MISSING.format(text)
    if cell.look in ("forgotten", "gained"):
        text = f'<b class="ink-{cell.look}">{text}</b>'
    if cell.href:
        text = page_link(cell.href, text, root)
    return text + (f'<span class="limits">{escaped(cell.note)}</span>' if cell.note else "")


def page_link(href: str, html: str, root: str) -> str:
    """Return a link to another page of the site, or within one; `html` is already escaped."""
    if href.startswith("#"):
        return f'<a href="{escaped(href)}">{html}</a>'
    return f'<a href="{escaped(root + href)}" data-page>{html}</a>'


def facts_list(facts: dict[str, str], root: str, links: dict[str, str] | None = None) -> str:
    """Return names with values, some of them linked."""
    lines = []
    for name, text in facts.items():
        href = (links or {}).get(name)
        value = page_link(href, escaped(text), root) if href else escaped(text)
        lines.append(f"<dt>{escaped(name)}</dt><dd>{value}</dd>")
    return f'<dl class="counts">{"".join(lines)}</dl>'


def limits_of(value: Estimate) -> str:
    """Return a share with its interval for a sentence."""
    if value.value is None:
        return "unknown"
    if value.low is None:
        return percent(value.value)
    return f"{share(value.value)} ({share(value.low)} to {share(value.high)})"
