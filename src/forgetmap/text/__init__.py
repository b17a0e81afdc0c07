"""Sentences and tables as plain structures, with text, HTML, Markdown and LaTeX writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.text.blocks import Blocks, Line, Look, Sheet, Tone, next_lines
    from forgetmap.text.console import blocks_to_text, fit, print_blocks, print_sheet, shorten
    from forgetmap.text.latex import escape_latex, latex_table, sheet_to_latex
    from forgetmap.text.markup import (
        blocks_to_html,
        blocks_to_markdown,
        escape_markdown,
        markdown_table,
        quote_markdown,
    )
    from forgetmap.text.words import (
        counted,
        either,
        limit,
        listed,
        percent,
        printable,
        share,
        signed,
    )

__all__ = [
    "Blocks",
    "Line",
    "Look",
    "Sheet",
    "Tone",
    "blocks_to_html",
    "blocks_to_markdown",
    "blocks_to_text",
    "counted",
    "either",
    "escape_latex",
    "escape_markdown",
    "fit",
    "latex_table",
    "limit",
    "listed",
    "markdown_table",
    "next_lines",
    "percent",
    "print_blocks",
    "print_sheet",
    "printable",
    "quote_markdown",
    "share",
    "sheet_to_latex",
    "shorten",
    "signed",
]

__getattr__ = load_on_use(__name__, __file__)
