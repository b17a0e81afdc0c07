"""Blocks as HTML for notebooks, and as Markdown for pull requests and model cards.

Names and texts are escaped: they cannot become a link, a mention, HTML or a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from forgetmap.text.blocks import Blocks, Line, Sheet
from forgetmap.text.words import printable

MAX_LETTERS = 120
_SPECIAL = re.compile(r"[\\`*_{}\[\]|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;"}
_LINE_STARTS = re.compile(r"^(\d*)([#>+=.)-])")
_BADGES = {
    "bad": "#ffffff; background: #b00020",
    "minor": "#000000; background: #f0b428",
    "good": "#ffffff; background: #00694c",
    "open": "#ffffff; background: #57606a",
}
_NO_BREAK = "\N{ZERO WIDTH SPACE}"


def blocks_to_html(blocks: Blocks) -> str:
    """Return blocks as HTML for a notebook."""
    return "".join(
        _html_table(block) if isinstance(block, Sheet) else _html_line(block) for block in blocks
    )


def _html_line(line: Line) -> str:
    if line.tone:
        look = f"color: {_BADGES[line.tone]}; padding: 2px 10px; border-radius: 6px"
        return f'<div><b style="{look}">{escape(line.lead)}</b> <b>{escape(line.text)}</b></div>'
    lead = line.lead.strip()
    if lead and line.look == "faint":
        return f"<div><b>{escape(lead)}</b>: {escape(line.text)}</div>"
    if line.look == "commands":
        return f"<div>{_with_code(line.text, escape, '<code>{}</code>')}</div>"
    text = " ".join(escape(part) for part in (lead, line.text) if part)
    tag = "b" if line.look in ("strong", "simulated") else "span"
    return f"<div><{tag}>{text}</{tag}></div>" if text else "<br>"


def _html_table(sheet: Sheet) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        name, *numbers = map(escape, cells)
        first = f'<{tag} style="text-align: left">{name}</{tag}>'
        return f"<tr>{first}{''.join(f'<{tag}>{number}</{tag}>' for number in numbers)}</tr>"

    body = "".join(row(cells, "td") for cells in sheet.rows)
    return f"<table><thead>{row(sheet.heads, 'th')}</thead><tbody>{body}</tbody></table>"


def blocks_to_markdown(blocks: Blocks) -> list[str]:
    """Return paragraphs and tables; consecutive lines with a lead are one list."""
    parts: list[str] = []
    in_list = False
    for block in blocks:
        is_item = isinstance(block, Line) and bool(block.lead) and not block.tone
        if isinstance(block, Sheet):
            rows = [[escape_markdown(cell.strip()) for cell in row] for row in block.rows]
            parts.append(markdown_table(block.heads, rows, align="---:"))
        elif is_item and in_list:
            parts[-1] += f"\n{_markdown_line(block)}"
        elif block.text or block.tone:
            parts.append(_markdown_line(block))
        in_list = is_item
    return parts


def _with_code(text: str, escaped: Callable[[str], str], code: str) -> str:
    """Escape text, but format the commands in backticks as code."""
    parts = text.split("`")
    return "".join(code.format(part) if i % 2 else escaped(part) for i, part in enumerate(parts))


def _markdown_line(line: Line) -> str:
    if line.look == "commands":
        return _with_code(line.text, escape_markdown, "`{}`")
    text = escape_markdown(line.text)
    if line.tone:
        return f"**{escape_markdown(line.lead)}** {text}".rstrip()
    if line.look == "warning":
        return f"- ⚠ {text}"
    if line.lead:
        return f"- **{escape_markdown(line.lead.strip())}**: {text}"
    if line.look in ("strong", "simulated"):
        return f"**{text}**"
    # A name at the beginning must not start a list, quotation or heading.
    return _LINE_STARTS.sub(r"\1\\\2", text)


def markdown_table(
    heads: Sequence[str], rows: Iterable[Iterable[str]], *, align: str = "---"
) -> str:
    """Return a table of escaped cells; `align` is for all columns but the first."""
    lines = [
        " | ".join(head.replace("\n", " ") for head in heads),
        " | ".join(["---", *[align] * (len(heads) - 1)]),
        *(" | ".join(row) for row in rows),
    ]
    return "\n".join(f"| {line} |" for line in lines)


def escape_markdown(text: str) -> str:
    """Escape text for Markdown."""
    text = "".join(_ENTITIES.get(letter, letter) for letter in printable(text))
    text = _SPECIAL.sub(r"\\\g<0>", text)
    # Viewers turn plain text into links and mentions.
    text = re.sub(r"(?<=[@#])(?=\w)|(?i:(?<=\bGH-)(?=\d))", _NO_BREAK, text)
    text = re.sub(r":(?=//)", r"\:", text)
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", text)


def quote_markdown(text: str, most: int = MAX_LETTERS) -> str:
    """Return the text of an item as inline code, at most `most` characters long."""
    words = " ".join(printable(" ".join(text.split())).split())
    if len(words) > most:
        words = f"{words[: most - 1]}…"
    if not words:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    pad = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{pad}{words}{pad}{fence}".replace("|", r"\|")
