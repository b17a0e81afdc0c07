"""Texts without what differs between copies: case, punctuation, white space, Unicode form.

What is left are words: runs of letters and digits, in ASCII wherever Unicode says that a letter is
a form of one. Scripts that are written without blanks give a word per letter.
"""

from __future__ import annotations

import re
import unicodedata

_BLANKS = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if chr(byte).isalnum() and byte < 128 else 32
    for byte in range(256)
)
"""ASCII letters in lower case, everything but letters and digits as a blank."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_QUOTES = "'`\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}"
"""Dropped without a blank: "don't" and "dont" are one word."""
_DROPPED = ("M", "Cf")
"""Accents and marks, and letters that nobody sees, such as a blank of no width."""


def plain_words(text: str) -> bytes:
    """The words of a text in UTF-8, with one blank between two of them."""
    if text.isascii():
        return b" ".join(text.encode().translate(_BLANKS, _QUOTES[:2].encode()).split())
    text = text.translate(dict.fromkeys(map(ord, _QUOTES)))
    return " ".join(_WORD.findall(_folded(text))).encode("utf-8", "surrogatepass")


def plain_letters(words: bytes) -> bytes:
    """The same without blanks, so that words may be split or joined."""
    return words.translate(None, b" ")


def _folded(text: str) -> str:
    """Compatible letters are one letter, and case, accents and invisible letters are nothing."""
    # Folding case may leave a form that decomposes further, so it is decomposed twice.
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (letter for letter in text if not unicodedata.category(letter).startswith(_DROPPED))
    return unicodedata.normalize("NFC", "".join(kept))
