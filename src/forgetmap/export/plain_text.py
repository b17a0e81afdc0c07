"""Normalised texts: without differences in case, punctuation, white space and Unicode form.

What is left are words: runs of letters and digits, in ASCII wherever Unicode says that a letter is
a form of one. Scripts that are written without blanks give a word per letter.
"""

from __future__ import annotations

import unicodedata

_BLANKS = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if chr(byte).isalnum() and byte < 128 else 32
    for byte in range(256)
)
"""ASCII letters in lower case, everything but letters and digits as a blank."""
_UNSPACED = (
    range(0x0E00, 0x0F00),  # Thai, Lao
    range(0x1000, 0x10A0),  # Burmese
    range(0x1780, 0x1800),  # Khmer
    range(0x3040, 0x3100),  # Kana
    range(0x3400, 0xA000),  # Han
    range(0xAC00, 0xD7B0),  # Hangul
    range(0x20000, 0x32000),  # more Han
)
"""Letters that are words of their own, as their scripts put no blanks between words."""
_QUOTES = "'`\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}"
"""Dropped without a blank: "don't" and "dont" are one word."""
_DROPPED = ("M", "Cf")
"""Accents and marks, and letters that nobody sees, such as a blank of no width."""


class _Folding(dict[int, str]):
    """What each letter is written as, found out when it first comes."""

    def __missing__(self, code: int) -> str:
        # Folding case may leave a form that decomposes further, so it is decomposed twice.
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        kept = (part for part in folded if not unicodedata.category(part).startswith(_DROPPED))
        whole = unicodedata.normalize("NFC", "".join(kept))
        written = "" if chr(code) in _QUOTES else "".join(map(_spaced, whole))
        self[code] = written
        return written


def _spaced(letter: str) -> str:
    """A letter of a word, or between blanks as a word of its own, or a blank where it is none."""
    if any(ord(letter) in block for block in _UNSPACED):
        return f" {letter} "
    return letter if letter.isalnum() else " "


_FOLDING = _Folding()


def plain_words(text: str) -> bytes:
    """The words of a text in UTF-8, with one blank between two of them."""
    if text.isascii():
        return b" ".join(text.encode().translate(_BLANKS, _QUOTES[:2].encode()).split())
    words = unicodedata.normalize("NFC", text).translate(_FOLDING).split()
    return " ".join(words).encode("utf-8", "surrogatepass")


def plain_letters(words: bytes) -> bytes:
    """The same without blanks, so that words may be split or joined."""
    return words.translate(None, b" ")
