"""Reads a table file row by row, slowly, with line numbers: only to point at a fault."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from forgetmap.errors import UnreadableError
from forgetmap.sources.sniff import TableFile, not_utf8

Row = tuple[int, Mapping[str, Any]]

csv.field_size_limit(1 << 30)


def raw_rows(file: TableFile, chosen: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Rows with their line (CSV, JSON lines) or row number (JSON, Parquet).

    With `chosen` (canonical name -> column), under canonical names and without other columns.
    """
    reader = {"csv": _csv, "jsonl": _jsonl, "json": _json, "parquet": _parquet}[file.kind]
    for line, row in reader(file):
        yield line, row if chosen is None else _renamed(row, chosen)


def _renamed(row: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    return {ours: row[theirs] for ours, theirs in chosen.items() if theirs in row}


def _lines(file: TableFile) -> Iterator[tuple[int, str]]:
    try:
        with file.open() as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise not_utf8(str(file.path), number, error) from None
    except (EOFError, OSError) as error:
        raise UnreadableError(
            f"the file ends too early: {error}",
            file=str(file.path),
            hint="it was not copied or written whole; get it again.",
        ) from None


def _csv(file: TableFile) -> Iterator[Row]:
    reader = csv.reader((text for _, text in _lines(file)), delimiter=file.delimiter, strict=True)
    try:
        header = next(reader)
        while True:
            line = reader.line_num + 1
            cells = next(reader, None)
            if cells is None:
                return
            if cells and len(cells) != len(header):
                raise UnreadableError(
                    f"{len(cells)} cells where the header has {len(header)}",
                    file=str(file.path),
                    line=line,
                    hint="a cell with the delimiter or a line break in it must be quoted.",
                )
            if cells:
                yield line, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UnreadableError(
            f"not valid CSV: {error}",
            file=str(file.path),
            line=reader.line_num,
            hint="is a quote left open, or the file cut off?",
        ) from None


def _jsonl(file: TableFile) -> Iterator[Row]:
    for number, text in _lines(file):
        if text.strip():
            yield number, _object(text, file, number)


def _object(text: str, file: TableFile, line: int) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        cut = not text.endswith("\n")
        raise UnreadableError(
            "the last line is cut off" if cut else f"not valid JSON: {error}",
            file=str(file.path),
            line=line,
            hint="finish the copy or the run, or delete this line if you can do without it."
            if cut
            else "each line must be one JSON object.",
        ) from None
    if not isinstance(value, dict):
        raise UnreadableError(
            f"the line holds a {type(value).__name__}, not an object",
            file=str(file.path),
            line=line,
            hint="each line must be one JSON object with task, item and score.",
        )
    return value


def _json(file: TableFile) -> Iterator[Row]:
    text = "".join(line for _, line in _lines(file))
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableError(
            f"not valid JSON: {error}",
            file=str(file.path),
            line=getattr(error, "lineno", None),
            hint="is the file whole? It must be a list of objects.",
        ) from None
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise UnreadableError(
            "this JSON is no list of objects",
            file=str(file.path),
            hint="give one object per item, in a list or one per line.",
        )
    yield from enumerate(value, start=1)


def _parquet(file: TableFile) -> Iterator[Row]:
    number = 0
    with file.open() as stream:
        for batch in pq.ParquetFile(stream).iter_batches(100_000):
            for row in batch.to_pylist():
                number += 1
                yield number, row
