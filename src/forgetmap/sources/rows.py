"""Reads a table file row by row, slowly, with line numbers: only to point at a fault."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from forgetmap.errors import TRUNCATED_HINT, ColumnError, UnreadableError
from forgetmap.records import FileRow, parquet_rows, unquote_formula
from forgetmap.sources.sniff import (
    MAX_LINE_BYTES,
    PEEK,
    TableFile,
    not_utf8,
    readable_file,
    whole_number,
)

csv.field_size_limit(1 << 30)


def raw_rows(file: TableFile, chosen: Mapping[str, str]) -> Iterator[tuple[int, FileRow]]:
    """Rows with their line, or in Parquet their number, under canonical names.

    Args:
        file: the table.
        chosen: canonical name -> column; other columns are left out.
    """
    reader = {"csv": _csv, "jsonl": _jsonl, "json": _json}.get(file.kind)
    rows = (
        reader(file) if reader else parquet_rows(file.data, chosen.values(), origin=str(file.path))
    )
    for line, row in rows:
        cells = {field: row.get(column) for field, column in chosen.items()}
        # An empty text is nothing.
        known = {name: None if cell == "" else cell for name, cell in cells.items()}
        yield line, FileRow(known, file=str(file.path))


def csv_header(file: TableFile) -> list[str]:
    """The column names of a CSV."""
    return next(_csv_rows(file), (1, []))[1]


def csv_cells(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row of a CSV without header; between blanks none are empty."""
    for line, cells in _csv_rows(file):
        filled = [cell for cell in cells if cell] if file.delimiter == " " else cells
        if filled:
            yield line, filled


def require_text(file: TableFile) -> None:
    """Refuse a text file that is cut off, not UTF-8 or holds NUL bytes.

    The engine would not notice it in columns that are read later or never.
    """
    if not _is_text(file):
        for _ in _lines(file):
            pass


def _is_text(file: TableFile) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with readable_file(file.path), file.open() as stream:
            while chunk := stream.read(PEEK):
                if "\0" in decoder.decode(chunk):
                    return False
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _lines(file: TableFile) -> Iterator[tuple[int, str]]:
    with readable_file(file.path), file.open() as stream:
        for number, line in enumerate(stream, start=1):
            if b"\0" in line or len(line) > MAX_LINE_BYTES:
                raise UnreadableError(
                    "a NUL byte stands in this line"
                    if b"\0" in line
                    else f"this line is longer than {MAX_LINE_BYTES >> 20} MiB",
                    file=str(file.path),
                    line=number,
                    hint="copy the file again if it is damaged; else shorten or clean this line.",
                )
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise not_utf8(file.path, number, error) from None


def _csv(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = _csv_rows(file)
    _, header = next(rows, (1, []))
    for line, cells in rows:
        if len(cells) != len(header):
            raise UnreadableError(
                f"{len(cells)} cells where the header has {len(header)}",
                file=str(file.path),
                line=line,
                hint="a cell with the delimiter or a line break in it must be quoted.",
            )
        yield line, dict(zip(header, map(unquote_formula, cells), strict=True))


def _csv_rows(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row that has any, with the line it starts in."""
    last = ""

    def texts() -> Iterator[str]:
        nonlocal last
        for _, last in _lines(file):
            yield last

    reader = csv.reader(texts(), delimiter=file.delimiter, strict=True)
    line, ending = 1, None
    try:
        for cells in reader:
            ending = ending or _ending(last)
            if cells and _ending(last) not in (None, ending):
                raise UnreadableError(
                    f"this line ends in {_ending(last)!r}, the first in {ending!r}",
                    file=str(file.path),
                    line=reader.line_num,
                    hint="make all lines end alike, such as: dos2unix FILE.",
                )
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableError(
            f"not valid CSV: {error}",
            file=str(file.path),
            line=line,
            hint="close the quote that is left open in this row, or copy the file again if it is "
            "truncated. Lines must end in a line feed.",
        ) from None


def _ending(line: str) -> str | None:
    if not line.endswith("\n"):
        return None
    return "\r\n" if line.endswith("\r\n") else "\n"


def _jsonl(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text in _lines(file):
        if text.strip():
            yield number, _object(text, file, number)


def _object(text: str, file: TableFile, line: int) -> Mapping[str, Any]:
    objects: list[list[tuple[str, Any]]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(pairs)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=keep, parse_int=whole_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise UnreadableError(
            "half a character: a lone escape of \\ud800 to \\udfff",
            file=str(file.path),
            line=line,
            hint="replace it before writing, such as: text.encode('utf-8', 'replace').decode().",
        ) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise _not_json(text, file, line, error) from None
    if not isinstance(value, dict):
        raise UnreadableError(
            f"this line holds {_in_words(value)}, not an object",
            file=str(file.path),
            line=line,
            hint="each line must be one JSON object with task, item and score.",
        )
    _refuse_doubled([name for name, _ in objects[-1]], file, line)
    return value


def _not_json(text: str, file: TableFile, line: int, error: Exception) -> UnreadableError:
    if text.startswith("{") and not text.endswith("\n"):
        return UnreadableError(
            "the last line is cut off",
            file=str(file.path),
            line=line,
            hint="finish the copy or the run, or delete this line if you can do without it.",
        )
    return UnreadableError(
        _why_not_json(error),
        file=str(file.path),
        line=line,
        hint="each line must be one JSON object with task, item and score.",
    )


def _why_not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} at column {error.colno}"
    return "nested too deeply to be read"


def _refuse_doubled(names: list[str], file: TableFile, line: int) -> None:
    """Python takes the last of two values of one name, the engine neither."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ColumnError(
                f"{name!r} stands {count} times in one object",
                file=str(file.path),
                line=line,
                field=name,
                hint="give each value its own name.",
            )


def _json(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    text = "".join(line for _, line in _lines(file))
    try:
        rows = json.loads(text, parse_int=whole_number)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableError(
            _why_not_json(error),
            file=str(file.path),
            line=getattr(error, "lineno", None),
            hint=f"{TRUNCATED_HINT} It must be a list of objects.",
        ) from None
    if not isinstance(rows, list):
        raise UnreadableError(
            f"this JSON holds {_in_words(rows)}, not a list of objects",
            file=str(file.path),
            hint="give one object per result, in a list or one per line.",
        )
    for line, element in _elements(text):
        yield line, _object(element, file, line)


def _elements(text: str) -> Iterator[tuple[int, str]]:
    """The elements of a valid JSON list as text, with the line each starts in."""
    decoder = json.JSONDecoder(parse_int=whole_number)
    line, seen, index = 1, 0, text.index("[") + 1
    while True:
        while text[index] in ", \t\r\n":
            index += 1
        if text[index] == "]":
            return
        line, seen = line + text.count("\n", seen, index), index
        _, index = decoder.raw_decode(text, index)
        yield line, text[seen:index] + "\n"


def _in_words(value: object) -> str:
    names = {list: "a list", dict: "an object", str: "a text", type(None): "null"}
    return names.get(type(value), "a single value")
