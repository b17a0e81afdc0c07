"""Refuses phrases that docs/language.md replaces, in docs and in the texts of the package.

.venv/bin/python tools/check_language.py

Checked are the Markdown pages that users read, string literals and docstrings of src, and the
scripts of the pages. Prints file, line and phrase; the exit code is 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY = ROOT / "docs" / "language.md"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
SOURCES = ("src/**/*.py", "src/**/*.js")
ALLOWED = {
    "docs/language.md": "lists the phrases",
}
"""Files that may use any phrase, and why."""
QUOTATIONS = (
    "Judge how well the reasoning hangs together",  # a prompt, which must not change
    "as everybody knows",  # text of a simulated model
    "surely: certified",  # the value of a field
)
"""Texts that are quoted, not ours."""


def main() -> int:
    """Print every refused phrase; exit code 1 if there is one."""
    phrases = read_phrases(VOCABULARY.read_text(encoding="utf-8"))
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r} (see docs/language.md)"
        for path in checked_files(ROOT)
        for line, phrase in find_phrases(path, phrases)
    ]
    print("\n".join(faults) or "language: no refused phrase")
    return int(bool(faults))


@dataclass(frozen=True)
class Phrases:
    """Refused phrases as patterns.

    Attributes:
        anywhere: also in docstrings.
        shown: in texts that users read: docs, messages and pages.
    """

    anywhere: re.Pattern[str]
    shown: re.Pattern[str]


def read_phrases(vocabulary: str) -> Phrases:
    """Read the phrases in backticks: last column of the terms, first column of the sentences."""
    terms: list[str] = []
    sentences: list[str] = []
    for row in vocabulary.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and len(cells) == 3:
            terms += re.findall(r"`([^`]+)`", cells[2])
        elif row.startswith("|") and len(cells) == 2:
            sentences += re.findall(r"`([^`]+)`", cells[0])
    return Phrases(_pattern(terms), _pattern(terms + sentences))


def _pattern(phrases: list[str]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    spaced = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in longest_first)
    return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", re.IGNORECASE)


def checked_files(root: Path) -> Iterator[Path]:
    """Yield the files whose texts users read."""
    for glob in (*PAGES, *SOURCES):
        for path in sorted(root.glob(glob)):
            if path.relative_to(root).as_posix() not in ALLOWED:
                yield path


def find_phrases(path: Path, phrases: Phrases) -> Iterator[tuple[int, str]]:
    """Yield line and phrase of every refused phrase in a file."""
    text = path.read_text(encoding="utf-8")
    if phrases.shown.search(text) is None:  # parsing all of them would take seconds
        return
    for line, part, is_docstring in _texts(path, text):
        pattern = phrases.anywhere if is_docstring else phrases.shown
        if not any(quotation in part for quotation in QUOTATIONS):
            for match in pattern.finditer(part):
                yield line + part.count("\n", 0, match.start()), " ".join(match[0].split())


def _texts(path: Path, text: str) -> Iterable[tuple[int, str, bool]]:
    if path.suffix == ".md":
        return [(1, text, False)]
    if path.suffix == ".js":
        lines = enumerate(text.splitlines(), 1)
        return [
            (at, line, False)
            for at, line in lines
            if not line.lstrip().startswith(("//", "/*", "*"))
        ]
    return _literals(ast.parse(text))


def _literals(module: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield texts of several words; f-strings without their values; bare strings are docstrings."""
    nodes = list(ast.walk(module))
    bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in joined for part in node.values}
    for text in joined:
        parts = (str(part.value) for part in text.values if isinstance(part, ast.Constant))
        yield text.lineno, "\0".join(parts), False
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in inner:
            value = node.value
            if isinstance(value, str) and " " in value:
                yield node.lineno, value, id(node) in bare


if __name__ == "__main__":
    sys.exit(main())
