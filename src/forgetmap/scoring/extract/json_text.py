"""JSON in a response: only JSON, or JSON inside other text.

JSON is read strictly: no NaN, no number beyond the range of a float, at most 64 levels deep. The
search takes time proportional to the length of the text, for any text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 64
_FENCE = "```"
_OPENING = re.compile(r"\{(?=\s*+[\"}])|\[(?=\s*+[\[{\"\-0-9tfn\]])")
_WORK_PER_CHARACTER = 50
_MIN_WORK = 100_000
_RECURSION_WORK = 10_000
_ERROR_WORK = 50  # computing the line of an error counts all lines before it


class NotJson(ValueError):  # noqa: N818
    """The text is not JSON."""


def read_json(text: str) -> Any:
    """Return the value of a text that is only JSON.

    Raises:
        NotJson: the text is not JSON.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    if _too_deep(value):
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels")
    return value


def strip_fence(text: str) -> str:
    """Return the content of the code fence, if the text is only a code fence."""
    text = text.strip()
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inside = text.removeprefix(_FENCE).removesuffix(_FENCE)
    if _FENCE in inside:
        return text
    language, newline, rest = inside.partition("\n")
    has_language_line = newline and (not language.strip() or language.strip().isalnum())
    return rest if has_language_line else re.sub(r"\A(?i:json)\b", "", inside)


def json_within(text: str) -> Iterator[tuple[str, Any]]:
    """Iterate over the outermost objects and arrays in a text, as written and as values."""
    position, work = 0, _MIN_WORK + _WORK_PER_CHARACTER * len(text)
    while work > 0 and (opening := _OPENING.search(text, position)):
        start = position = opening.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            work -= error.pos - start + 1 + error.pos // _ERROR_WORK
            position = start + 1
        except (ValueError, RecursionError):
            work -= _RECURSION_WORK
            position = start + 1
        else:
            if not _too_deep(value):
                yield text[start:position], value


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over all leaf values, each with the nearest key above it."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, key)
    else:
        yield key, value


def _too_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        containers = [
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        ]
        level = [value for values in containers for value in values]
        if containers and depth > MAX_DEPTH:
            return True
    return False


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise NotJson("a number too large")
    return value


def _refused(name: str) -> float:
    raise NotJson(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refused)
