"""Texts made comparable: what is left out of an answer, and when two wordings are the same."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_PLAIN = _FULL_WIDTH | {
    ord(odd): plain
    for odds, plain in (
        ("\u2018\u2019\u02bc", "'"),
        ("\u201c\u201d", '"'),
        ("\u00a0\u2007\u202f\u3000", " "),
        ("\u2212", "-"),
        ("\u2028\u2029\u0085", "\n"),
        ("\ufeff\u200b\u200e\u200f", ""),
    )
    for odd in odds
}
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,9}")
_SPECIAL_TOKEN = re.compile(r"<\|\w{1,40}\|>|</s>")
_DECORATION = " \t\n*_`\"'$.,;:!()[]{}<>。、"
_WRAPPED = re.compile(r"^\\(?:text|textbf|mathrm|mathbf|mathit|textrm)\s*\{(.*)\}$", re.DOTALL)
_DEEPEST = 3
_ARTICLE = re.compile(r"^(?:an?|the)\s+(?=\w)|\b(?:an?|the)\s+(?=\w\w)")
_DROPPED = re.compile(r"['`\u00b4]|(?<!\d)\.|\.(?!\d)|(?<=\d),(?=\d{3})")
_SEPARATING = re.compile(r"(?<!\d)[.]|[^\w\s.+#%$€£°/<>=^*-]|_|(?<=\w)-|-(?!\w)")


def plain(text: str) -> str:
    """Full-width letters, curly quotes, odd spaces and left-over special tokens made plain."""
    if not text.isascii():
        text = text.translate(_PLAIN)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "<" in text:
        text = _SPECIAL_TOKEN.sub("\n", text)
    return text


def trimmed(phrase: str) -> str:
    """Without the marks around it: emphasis, quotes, brackets, final punctuation."""
    phrase = phrase.strip(_DECORATION)
    for _ in range(_DEEPEST):
        if not (wrapped := _WRAPPED.match(phrase + "}")):
            break
        phrase = wrapped[1].strip(_DECORATION)
    return phrase


def with_powers(text: str) -> str:
    """Raised digits written with a caret."""
    if text.isascii():
        return text
    return _RAISED.sub(lambda raised: f"^{{{raised[0].translate(_SUPERSCRIPT)}}}", text)


@lru_cache(maxsize=4096)
def comparable(text: str) -> str:
    """Case, articles, punctuation, white space and Unicode form do not matter."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    folded = text.casefold().strip()
    words = _SEPARATING.sub(" ", _DROPPED.sub("", _ARTICLE.sub("", folded)))
    return " ".join(words.split()) or "".join(folded.split())
