r"""Counts of words and sentences in any script.

A word is a run of letters, digits and underscores (`\w+`), vowel signs and accents included. In
scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) every letter counts as
one word, as word processors count them; Korean has spaces.

A sentence ends at `.`, `!`, `?` or an ellipsis, closing quotes and brackets included, if white
space follows; not after an abbreviation, an initial or the number of a list item, nor at a dot
before a small letter. The marks of other scripts (Chinese, Japanese, Hindi, Urdu, Arabic) always
end a sentence. So do a blank line, a heading and a list item; table rows and lines of marks are not
sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from forgetmap.scoring.extract.wording import marks

_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6"
    "\u1780-\u17b3\u1000-\u102a\u103f\U00020000-\U0003ffff"
)
_STOPS = "\u3002\uff01\uff1f\uff61\u0964\u0965\u06d4\u061f"
_CLOSING = "\"'\u201d\u2019\u00bb\u300d\u300f\uff09)\\]*_`"
_BREAK = re.compile(
    r"\n[ \t]*+(?:\n\s*+|(?=(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6})[ \t]))"
    rf"|(?<=[{_STOPS}])(?![{_CLOSING}{_STOPS}])"
)
_END = re.compile(rf"(?:\.{{1,9}}|[!?\u2026]{{1,9}})[{_CLOSING}]{{0,4}}(?=\s)")
_LAST_WORD = re.compile(r"[^\s(\"'\u201c\u2018*_]{1,20}$")
_TITLES = frozenset({
    "mr", "mrs", "ms", "dr", "prof", "st", "rev", "gen", "col", "capt", "lt", "sgt", "hon", "gov",
    "sen", "rep", "e.g", "i.e", "cf", "vs",
})  # fmt: skip
_ABBREVIATIONS = _TITLES | {
    "sr", "jr", "pres", "mt", "ft", "inc", "ltd", "co", "corp", "etc", "al", "approx", "dept",
    "est", "fig", "eq", "no", "nos", "vol", "vols", "pp", "ch", "sec", "ed", "eds", "p.s", "p.p.s",
    "u.s", "u.k", "a.m", "p.m", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept",
    "oct", "nov", "dec",
}  # fmt: skip
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")


def count_words(text: str) -> int:
    """Return the number of words in a text."""
    pattern = _ASCII_WORD if text.isascii() else _any_word()
    return len(pattern.findall(text))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order."""
    parts: list[str] = []
    for block in _BREAK.split("\n".join(map(_plain_line, text.split("\n")))):
        parts += _within(block)
    return [part for part in parts if any(map(str.isalnum, part))]


def _plain_line(line: str) -> str:
    """Make a heading a block of its own, and remove a table row."""
    if _TABLE_ROW.fullmatch(line):
        return ""
    return line + "\n" if _HEADING.match(line) else line


def _within(block: str) -> list[str]:
    """Return the sentences of a block, whose end is the end of a sentence."""
    parts, start = [], 0
    for end in _END.finditer(block):
        if not _goes_on(block, start, end):
            parts.append(block[start : end.end()].strip())
            start = end.end()
    return [*parts, block[start:].strip()]


def _goes_on(block: str, start: int, end: re.Match[str]) -> bool:
    """Whether the sentence continues after this mark."""
    following = block[end.end() : end.end() + 40].lstrip()[:1]
    if block[end.start()] != ".":
        return False
    if following.islower():
        return True
    last = _LAST_WORD.search(block, max(start, end.start() - 20), end.start())
    word = last[0] if last else ""
    initial = len(word) == 1 and word.isupper() and word != "I"
    numbering = word.isdigit() and not block[start : end.start() - len(word)].strip()
    if word.lower() in _TITLES or initial or numbering:
        return True
    return word.lower() in _ABBREVIATIONS and not following.isupper()


@lru_cache(maxsize=1)
def _any_word() -> re.Pattern[str]:
    """Return the pattern of a word: a letter of a script without spaces, or a run of others."""
    joined = marks()
    return re.compile(rf"[{_UNSPACED}][{joined}]*+|(?:(?![{_UNSPACED}])[\w{joined}])++")


_LINE_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Mr|Ms|Dr|St|vs|No))(?<!\b(?:Mrs|Jr.|i\.e|e\.g|etc))"
    "(?<![.!?])[.!?]++[\"')\\]*_]*+(?=[\\s\u3040-\u9fff])(?!\\s+[a-z])|[。।\u06d4؟]|\n+"
)


def line_sentences(text: str) -> list[str]:
    """Return the sentences in order, stripped; a line break also ends a sentence."""
    ends = [0, *(end.end() for end in _LINE_SENTENCE_END.finditer(text)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(ends))
    return [sentence for sentence in parts if any(map(str.isalnum, sentence))]
