"""Texts made comparable: what is left out of an answer, and when two wordings are the same."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ZEROS = "٠۰०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_DIGITS = {ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)} | {
    0x066B: ".",
    0x066C: ",",
}
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_JOINERS = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_PLAIN = (
    _FULL_WIDTH
    | _DIGITS
    | {
        ord(odd): plain
        for odds, plain in (
            ("\u2018\u2019\u02bc", "'"),
            ("\u201c\u201d", '"'),
            ("\u00a0\u2007\u2009\u202f\u3000", " "),
            ("\u2212", "-"),
            ("\u2028\u2029\u0085", "\n"),
            (_JOINERS, ""),
        )
        for odd in odds
    }
)
_UNIFIED = _DIGITS | dict.fromkeys(map(ord, _JOINERS), "")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,9}")
_SPECIAL_TOKEN = re.compile(r"<\|\w{1,40}\|>|</s>")
_DECORATION = " \t\n*_`\"'$.,;:!()[]{}<>。、।\u06d4،「」«»“”"
_WRAPPED = re.compile(r"^\\(?:text|textbf|mathrm|mathbf|mathit|textrm)\s*\{(.*)\}$", re.DOTALL)
_DEEPEST = 3
_JOINED = frozenset({"Mn", "Mc"})
_ARTICLE = re.compile(r"^(?:an?|the)\s+(?=\w)|\b(?:an?|the)\s+(?=\w\w)")
_DROPPED = re.compile(r"['`\u00b4]|(?<!\d)\.|\.(?!\d)|(?<=\d),(?=\d{3})")
_SEPARATING = re.compile(r"(?<!\d)[.]|[^\w\s.+#%$€£°/<>=^*-]|_|(?<=\w)-|-(?!\w)")


def plain(text: str) -> str:
    """Digits of any script, full-width letters, curly quotes and odd spaces made plain.

    Left-over special tokens go, accented letters are composed.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_PLAIN))
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
    """Case, articles, punctuation, white space, digits' script and Unicode form do not matter."""
    folded = unified(text).casefold().strip()
    words = _SEPARATING.sub(_gap, _DROPPED.sub("", _ARTICLE.sub("", folded)))
    return " ".join(words.split()) or "".join(folded.split())


def unified(text: str) -> str:
    """In one Unicode form (NFKC), digits of any script as 0 to 9, without invisible characters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_UNIFIED))


@lru_cache(maxsize=1)
def marks() -> str:
    """All vowel signs and accents, which belong to the letter before them."""
    signs = map(chr, range(0x300, 0x10000))
    return "".join(sign for sign in signs if unicodedata.category(sign) in _JOINED)


def _gap(separating: re.Match[str]) -> str:
    """Vowel signs and accents belong to their letter; anything else parts words."""
    mark = separating[0]
    return mark if unicodedata.category(mark[0]) in _JOINED else " "
