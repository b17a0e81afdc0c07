"""JSON as harnesses write it: fast, with bare NaN, line by line or as elements of one array."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from forgetmap.errors import TRUNCATED_HINT, UnreadableError
from forgetmap.sources.adapter import Problems
from forgetmap.sources.files import LogFile, parquet_rows
from forgetmap.sources.sniff import whole_number, without_collection

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for a text that is not JSON, or not of the expected type."""
_TYPES = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
_TRUTH = {"true": 1.0, "false": 0.0}
_NUMBERS = (int, float)
_BETWEEN = re.compile(r"[\s,]*")
_decode = msgspec.json.Decoder().decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Malformed(ValueError):  # noqa: N818  # becomes a problem or a typed error, with its place
    """A text is not JSON; the message says why."""


def decode(data: bytes | msgspec.Raw) -> Any:
    """Return the value of a JSON text, which may contain bare NaN and Infinity.

    Raises:
        Malformed: the text is not JSON.
    """
    try:
        return _decode(data)
    except UNDECODABLE:
        return _decode_slowly(bytes(data))


@without_collection()
def _decode_slowly(data: bytes) -> Any:
    """Decode with the standard library, which accepts NaN and locates errors."""
    try:
        value = json.loads(data, parse_int=whole_number)
        return encodable(value) if b"\\u" in data or b"\xed" in data else value
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} at column {error.colno}"
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{error.object[error.start]:02x}"
    except RecursionError:
        message = "nested too deeply to be read"
    except ValueError as error:
        message = str(error)
    raise Malformed(message)


def encodable(value: Any) -> Any:
    """Replace lone surrogates, which are valid in JSON, but not in UTF-8."""
    if isinstance(value, dict):
        return {encodable(name): encodable(element) for name, element in value.items()}
    if isinstance(value, list):
        return list(map(encodable, value))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def raw_rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Iterate over the objects of a file as unparsed JSON, with the line each begins in.

    They are one per line, the elements of an array, a single object, or the rows of a Parquet file.
    """
    if file.kind == "parquet":
        for row, values in enumerate(parquet_rows(file), 1):
            yield row, msgspec.json.encode(values)
    elif file.peek.shape == "array":
        data = file.read()
        try:
            elements: list[Any] = _decode_elements(data)
        except (msgspec.DecodeError, RecursionError):
            yield from _salvaged(data, file, problems)
        else:
            yield from with_lines(data, elements)
    elif is_lines(file):
        yield from file.lines()
    else:
        yield 1, file.read()


def rows(file: LogFile, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the objects of a file with the line each begins in; others are problems."""
    if file.kind == "parquet":
        yield from enumerate(parquet_rows(file), 1)
        return
    for line, raw in raw_rows(file, problems):
        yield from as_rows(raw, file, line, problems)


def as_rows(
    raw: bytes, file: LogFile, line: int, problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object in a text with its line; anything else is a problem."""
    try:
        value = decode(raw)
    except Malformed as error:
        problems.add(file.name, str(error), line=line)
        return
    if isinstance(value, dict):
        yield line, value
    else:
        kind = _TYPES.get(type(value), "a number")
        problems.add(file.name, f"expected an object, not {kind}", line=line)


def document(file: LogFile) -> Any:
    """Return the JSON value of a file.

    Raises:
        UnreadableError: the file is not JSON.
    """
    try:
        return decode(file.read())
    except Malformed as error:
        raise UnreadableError(str(error), file=file.name, hint=TRUNCATED_HINT) from None


def is_lines(file: LogFile) -> bool:
    """Whether a file that begins with an object has one per line, even if the first is damaged."""
    if file.kind != "json" or file.peek.shape == "array":
        return False
    first, newline, rest = file.head.lstrip().partition(b"\n")
    if file.peek.shape == "objects" or not newline:
        return True
    if first.strip() != b"{" and rest.startswith(b"{"):
        return True
    try:
        decode(first)
    except Malformed:
        return False
    return True


def with_lines(data: bytes, elements: Iterable[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    """Iterate over parts of a document, in order, with the line each begins in."""
    at, line = 0, 1
    for element in map(bytes, elements):
        start = data.find(element, at)
        line += data.count(b"\n", at, start)
        yield line, element
        at = start + len(element)
        line += data.count(b"\n", start, at)


def _salvaged(data: bytes, file: LogFile, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Iterate over the elements of an array with NaN, or of one that is damaged or truncated."""
    text = data.decode("utf-8", "replace")
    decoder, at, line = json.JSONDecoder(parse_int=whole_number), text.index("[") + 1, 1
    while True:
        start = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # matches nothing, too
        line += text.count("\n", at, start)
        if text[start : start + 1] == "]":
            return
        try:
            _, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            problems.add(file.name, "the array is damaged or truncated here", line=line)
            return
        yield line, text[start:at].encode()
        line += text.count("\n", start, at)


def number(value: object) -> float | None:
    """Return a number, truth value or numeric text as a finite number; else None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    try:
        if isinstance(value, str):
            text = value.strip().lower()
            real = _TRUTH[text] if text in _TRUTH else float(text)
        else:
            real = float(value) if isinstance(value, _NUMBERS) else math.nan
    except (ValueError, OverflowError):
        return None
    return real if math.isfinite(real) else None


def small_document(file: LogFile | None) -> dict[str, Any]:
    """Return the object in a file; empty if it is missing, damaged or not an object."""
    try:
        content = document(file) if file else None
    except UnreadableError:
        return {}
    return content if isinstance(content, dict) else {}
