"""Rows of local files with their line numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from forgetmap.errors import TRUNCATED_HINT, MissingInputError, UnknownFormatError, UnreadableError
from forgetmap.evaluation.suites.hub import HubRow

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMATS = ".jsonl, .json, .csv, .tsv or .parquet"


def table_rows(path: Path) -> Iterator[tuple[int, HubRow]]:
    """Yield rows of a JSON-lines, JSON, CSV, TSV or Parquet file with their line or row number."""
    if not path.is_file():
        raise MissingInputError("the file does not exist", file=str(path), hint="check the path.")
    ending = path.suffix.lower()
    if ending == ".parquet":
        yield from _parquet(path)
        return
    readers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json} | dict.fromkeys(
        DELIMITERS, _csv
    )
    if ending not in readers:
        raise UnknownFormatError(
            f"unsupported file extension {ending!r}",
            file=str(path),
            hint=f"use a {FORMATS} file.",
        )
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from readers[ending](stream, path)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"not UTF-8: {error.reason}", file=str(path), hint="save the file as UTF-8."
        ) from None


def _parquet(path: Path) -> Iterator[tuple[int, HubRow]]:
    from forgetmap.records import (
        parquet_columns,
        parquet_rows,
    )

    names = parquet_columns(path, origin=str(path))
    yield from parquet_rows(path, names, origin=str(path))


def _json_lines(stream: IO[str], path: Path) -> Iterator[tuple[int, HubRow]]:
    for line, text in enumerate(stream, start=1):
        if text.strip():
            yield line, _object(_parsed(text, path, line), path, line)


def _json(stream: IO[str], path: Path) -> Iterator[tuple[int, HubRow]]:
    rows = _parsed(stream.read(), path, None)
    if not isinstance(rows, list):
        raise UnreadableError(
            "the JSON is not a list of objects",
            file=str(path),
            hint="use a list of objects, or one object per line in a .jsonl file.",
        )
    for number, row in enumerate(rows, start=1):
        yield number, _object(row, path, number)


def _csv(stream: IO[str], path: Path) -> Iterator[tuple[int, HubRow]]:
    reader = csv.reader(stream, delimiter=DELIMITERS[path.suffix.lower()], strict=True)
    try:
        yield from _csv_rows(reader, path)
    except csv.Error as error:
        raise UnreadableError(
            f"not valid CSV: {error}",
            file=str(path),
            line=reader.line_num,
            hint="close the open quote, or copy the file again if it is truncated.",
        ) from None


def _csv_rows(reader: Iterable[list[str]], path: Path) -> Iterator[tuple[int, HubRow]]:
    line, header = 1, None
    for cells in reader:
        start, line = line, reader.line_num + 1  # type: ignore[attr-defined]
        if not cells:
            continue
        if header is None:
            header = cells
            continue
        if len(cells) != len(header):
            raise UnreadableError(
                f"the row has {len(cells)} cells, but the header has {len(header)}",
                file=str(path),
                line=start,
                hint="quote cells that contain the delimiter or a line break.",
            )
        yield start, dict(zip(header, cells, strict=True))


def _parsed(text: str, path: Path, line: int | None) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else "a number has too many digits"
        )
        raise UnreadableError(
            f"not valid JSON: {reason}",
            file=str(path),
            line=line if line is not None else getattr(error, "lineno", None),
            hint=f"{TRUNCATED_HINT} Each item must be one JSON object.",
        ) from None


def _object(value: object, path: Path, line: int) -> HubRow:
    if isinstance(value, dict):
        return value
    raise UnreadableError(
        "the line is not an object",
        file=str(path),
        line=line,
        hint='write each item as an object such as {"question": ..., "gold": ...}.',
    )
