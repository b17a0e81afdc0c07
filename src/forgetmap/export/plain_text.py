"""Normalised texts: without differences in case, punctuation, white space and Unicode form.

The result are words: runs of letters and digits, in ASCII if Unicode defines a letter as a form of
an ASCII one. In scripts without spaces every letter is a word.
"""

from __future__ import annotations

import unicodedata

_BLANKS = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if chr(byte).isalnum() and byte < 128 else 32
    for byte in range(256)
)
"""Maps ASCII letters to lower case, and everything except letters and digits to a space."""
_UNSPACED = (
    range(0x0E00, 0x0F00),  # Thai, Lao
    range(0x1000, 0x10A0),  # Burmese
    range(0x1780, 0x1800),  # Khmer
    range(0x3040, 0x3100),  # Kana
    range(0x3400, 0xA000),  # Han
    range(0xAC00, 0xD7B0),  # Hangul
    range(0x20000, 0x32000),  # more Han
)
"""Scripts without spaces, in which every letter is a word."""
_QUOTES = "'`\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}"
"""Removed without a space: "don't" and "dont" are one word."""
_DROPPED = ("M", "Cf")
"""Accents and marks, and invisible characters such as a zero-width space."""


class _Folding(dict[int, str]):
    """Mapping of each letter to its normalised form, filled on demand."""

    def __missing__(self, code: int) -> str:
        # Decomposed twice, because folding the case may leave a form that decomposes further.
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        kept = (part for part in folded if not unicodedata.category(part).startswith(_DROPPED))
        whole = unicodedata.normalize("NFC", "".join(kept))
        written = "" if chr(code) in _QUOTES else "".join(map(_spaced, whole))
        self[code] = written
        return written


def _spaced(letter: str) -> str:
    """Return a letter of a word, a letter between spaces as its own word, or a space."""
    if any(ord(letter) in block for block in _UNSPACED):
        return f" {letter} "
    return letter if letter.isalnum() else " "


_FOLDING = _Folding()


def plain_words(text: str) -> bytes:
    """Return the words of a text in UTF-8, separated by one space."""
    if text.isascii():
        return b" ".join(text.encode().translate(_BLANKS, _QUOTES[:2].encode()).split())
    words = unicodedata.normalize("NFC", text).translate(_FOLDING).split()
    return " ".join(words).encode("utf-8", "surrogatepass")


def plain_letters(words: bytes) -> bytes:
    """Return the words without spaces, so that words may be split or joined."""
    return words.translate(None, b" ")
