"""Cells of CapTrack's tables as plain values, the same from JSON, CSV and Parquet.

Parquet gives numbers and truth values where JSON has texts, and fills the objects of a column up
with nulls until all have the same keys; CSV gives everything as text, written as JSON or as Python
prints it. Nothing here ever looks into a response: that is text, whatever it looks like.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable
from typing import Any

from forgetmap.sources.fields import replace_surrogates

_ARRAY = re.compile(r"\barray\((?=[\[(])")
_DTYPE = re.compile(r",\s*dtype=[\w'<>|]+\s*\)")
_TRUTH = {"true": "true", "false": "false"}


def tidy(value: Any) -> Any:
    """A value as JSON holds it, without the nulls that only fill up an object."""
    if isinstance(value, dict):
        # Parquet stores a mapping of changing keys as pairs or fills it up; both end here.
        return {str(key): tidy(element) for key, element in value.items() if element is not None}
    if isinstance(value, list | tuple):
        return [tidy(element) for element in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return replace_surrogates(value) if isinstance(value, str) else replace_surrogates(str(value))


def structured(value: Any) -> Any:
    """A list or object, also where it is written as text; any other text stays as it is.

    A text counts as one only if it holds an object, or a list of texts, lists or objects: the
    interval [0, 1] is an answer.
    """
    value = tidy(value)
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    for parse in _PARSERS:
        try:
            parsed = tidy(parse(value))
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
        if isinstance(parsed, dict) or (isinstance(parsed, list) and not _is_of_numbers(parsed)):
            return parsed
    return value


def as_text(value: Any) -> str | None:
    """A plain value as text: numbers and truth values as JSON writes them."""
    value = tidy(value)
    if value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower(), value)
    return json.dumps(value)


def _is_of_numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(element, int | float) for element in values)


def _python(text: str) -> Any:
    """What Python printed, arrays of numpy included: these have no commas between their values."""
    text = _DTYPE.sub("", _ARRAY.sub("", text))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    parts: list[str] = []
    last: tokenize.TokenInfo | None = None
    for token in tokens:
        if last and _ends_value(last) and _starts_value(token):
            parts.append(",")
        if token.type not in _LAYOUT:
            parts.append(token.string + " ")
            last = token
    return ast.literal_eval("".join(parts).strip())


def _ends_value(token: tokenize.TokenInfo) -> bool:
    return token.type in _PLAIN or token.string in {"]", "}", ")"}


def _starts_value(token: tokenize.TokenInfo) -> bool:
    return token.type in _PLAIN or token.string in {"[", "{", "("}


_PLAIN = {tokenize.STRING, tokenize.NUMBER}
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_PARSERS: tuple[Callable[[str], Any], ...] = (json.loads, _python)
