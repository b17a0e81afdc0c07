"""Identity of items: a hash of the question, the options and the right answer.

Case matters; white space and Unicode form do not. The order of options does not matter, because
harnesses shuffle them; the right answer is compared by its text, never by its letter.
"""

from __future__ import annotations

import ast
import json
import unicodedata
from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

_PRINTABLE = bytes(range(32, 127))
MAX_OPTIONS_CACHED = 256


def normalise(text: str) -> str:
    """Return the text in NFKC, with white space collapsed and trimmed; case is kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    elif "  " not in text and not text.encode().translate(None, _PRINTABLE):
        return text.strip()  # only single blanks: the same result, faster
    return " ".join(text.split())


_KNOWN_OPTIONS: dict[str, str] = {}
"""Normalised options; not an `lru_cache`, which cannot be pickled by value for Spark's workers."""


def _normalised(option: str) -> str:
    """Normalise an option; cached, since options are compared with gold and choice, then hashed."""
    text = _KNOWN_OPTIONS.get(option)
    if text is None:
        if len(_KNOWN_OPTIONS) >= MAX_OPTIONS_CACHED:
            _KNOWN_OPTIONS.clear()
        text = _KNOWN_OPTIONS[option] = normalise(option)
    return text


def text_hash(text: str) -> int:
    """Return a signed 64-bit hash (XXH3) of the normalised text, the same on every machine."""
    return _digest(normalise(text))


def options_hash(options: Sequence[str]) -> int:
    """Return a hash of a set of options, independent of their order."""
    return _digest("\x1f".join(sorted([_normalised(option) for option in options])))


def option_text(value: str, options: Sequence[str]) -> str:
    """Return the option that `value` names: by its text, else by its letter.

    Anything else is returned as it is. Numbers are not read as positions, because some harnesses
    count from 0 and others from 1.
    """
    if len(value) == 1 and value.isascii() and value.isalpha() and "".join(options).isascii():
        text, plain = value, [option.strip() for option in options]  # the same result, faster
    else:
        text, plain = normalise(value), [_normalised(option) for option in options]
    if text in plain:
        return options[plain.index(text)]
    letter = text.strip("().:")
    if len(letter) == 1 and letter.isascii() and letter.isalpha():
        position = ord(letter.upper()) - ord("A")
        if position < len(options):
            return options[position]
    return value


def parse_options(value: object) -> list[str] | None:
    """Return options from a list, or from its text in JSON or Python; None if there are none.

    Raises:
        ValueError: the value is not a list.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    options = _literal_list(value) if isinstance(value, str) else value
    if not isinstance(options, list | tuple):
        raise ValueError(str(value))  # noqa: TRY004  # of a cell, not of an argument
    return [option if isinstance(option, str) else json.dumps(option) for option in options]


def _literal_list(text: str) -> list[object]:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list | tuple):
            return list(value)
    raise ValueError(text)


def _digest(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) - (1 << 63)
