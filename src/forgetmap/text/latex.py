"""Tables as LaTeX that compiles with any engine; they need the packages booktabs and graphicx."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forgetmap.text.blocks import Sheet
from forgetmap.text.words import printable

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": "$-$", "±": r"$\pm$", "\N{MULTIPLICATION SIGN}": r"$\times$",
    "→": r"$\to$", "…": r"\dots{}",
    "\N{EN DASH}": "--", "—": "---", "≥": r"$\geq$", "≤": r"$\leq$", "“": "``", "”": "''",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{NO-BREAK SPACE}": "~",
}  # fmt: skip
_LIGATURES = re.compile(r"(?<=[-,'])(?=[-,'])")
LAST_PLAIN = "\x7e"
FIRST_LETTER, LAST_LETTER = "À", "ÿ"
"""Letters of Western European languages, which every engine supports."""
MAX_ROWS = 40
"""Rows that fit on a page."""


def escape_latex(text: str) -> str:
    """Escape text for LaTeX; letters that some engines lack become their code point."""
    plain = printable(text.replace("\n", " "))
    return "".join(_SPECIAL.get(letter) or _letter(letter) for letter in _split_ligatures(plain))


def _split_ligatures(text: str) -> str:
    """Mark the gaps between characters that LaTeX would join; they become empty groups."""
    return _LIGATURES.sub("\x00", text)


def _letter(letter: str) -> str:
    if letter == "\x00":
        return "{}"
    is_letter = (
        FIRST_LETTER <= letter <= LAST_LETTER
        and letter not in "\N{MULTIPLICATION SIGN}\N{DIVISION SIGN}"
    )
    return letter if letter <= LAST_PLAIN or is_letter else rf"\texttt{{U+{ord(letter):04X}}}"


def sheet_to_latex(sheet: Sheet, *, caption: str, label: str) -> str:
    """Return a sheet as a LaTeX table.

    Args:
        sheet: the table; heads are written on one line.
        caption: caption of the table.
        label: label of the table.
    """
    heads = [escape_latex(" ".join(head.split())) for head in sheet.heads]
    rows = [[escape_latex(cell.strip()) for cell in row] for row in sheet.rows]
    return latex_table(heads, rows, caption=escape_latex(f"{caption}."), label=label)


def latex_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str,
    label: str,
    strong: int = 0,
) -> str:
    """Return a table, at most as wide as the page; a long one is split into several tables.

    Args:
        heads: escaped heads of the columns.
        rows: escaped cells.
        caption: escaped caption.
        label: label of letters, digits, colons and dashes.
        strong: number of columns after the first that are set apart by a gap.
    """
    every = list(rows)
    parts = [every[start : start + MAX_ROWS] for start in range(0, max(len(every), 1), MAX_ROWS)]
    return "\n".join(
        _table(
            heads,
            part,
            caption=caption + (f" (part {number} of {len(parts)})" if len(parts) > 1 else ""),
            label=label if number == 1 else f"{label}-{number}",
            strong=strong,
        )
        for number, part in enumerate(parts, start=1)
    )


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, label: str, strong: int
) -> str:
    columns = "l" + "r" * strong + ("@{\\hskip 2em}" if strong else "")
    columns += "r" * (len(heads) - 1 - strong)
    lines = [
        r"\begin{table}[p]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{{label}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line(heads),
        r"\midrule",
        *map(_line, rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    # A bracket at the beginning of a line would be read as an option of the line before.
    first, *rest = cells
    return " & ".join([f"{{}}{first}" if first.startswith(("[", "*")) else first, *rest]) + r" \\"
