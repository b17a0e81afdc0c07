"""Slow row-by-row reading of a table file, to locate errors and to look inside columns."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

import pyarrow.parquet as pq

from forgetmap.errors import TRUNCATED_HINT, ColumnError, UnreadableError
from forgetmap.records import FileRow, parquet_columns, parquet_rows, readable, unquote_formula
from forgetmap.sources.cells import OF, cell_of, columns_of, counts_of, is_rule
from forgetmap.sources.decode import Malformed, decode
from forgetmap.sources.documents import document_rows, row_lines
from forgetmap.sources.paths import NOTHING, split_every, value_at
from forgetmap.sources.sniff import (
    MAX_LINE_BYTES,
    PEEK,
    UTF8_MARK,
    Flattening,
    TableFile,
    not_utf8,
    readable_file,
    whole_number,
    without_collection,
)

csv.field_size_limit(1 << 30)


def raw_rows(file: TableFile, chosen: Mapping[str, str]) -> Iterator[tuple[int, FileRow]]:
    """Iterate over rows with canonical names and their line, or their number in Parquet.

    Args:
        file: the table.
        chosen: canonical name -> column; other columns are omitted.
    """
    for line, row in _checked_rows(file, chosen.values()):
        cells = {field: row.get(column) for field, column in chosen.items()}
        # An empty text counts as missing.
        known = {name: None if cell == "" else cell for name, cell in cells.items()}
        yield line, FileRow(known, file=str(file.path))


def _checked_rows(
    file: TableFile, columns: Iterable[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if file.flattening is not None:
        return flat_rows(file.flattening, with_lines=True)
    reader = {"csv": _csv, "jsonl": _jsonl, "json": _json}.get(file.kind)
    if reader is not None:
        return reader(file)
    return parquet_rows(file.data, columns, origin=str(file.path))


def object_rows(
    file: TableFile, rows: str | None, *, columns: Sequence[str] = (), with_lines: bool = False
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Iterate over the rows of a file with all their columns.

    Args:
        file: the table.
        rows: path of the list of rows in a JSON document.
        columns: columns to read from a Parquet file; ignored for other formats.
        with_lines: whether to compute the lines of rows in a document, which is slower.
    """
    if rows is not None:
        lines = row_lines(file, rows) if with_lines else repeat(1)
        yield from zip(lines, document_rows(file, rows), strict=False)
    elif file.kind == "jsonl":
        yield from _quick_lines(file)
    else:
        yield from _checked_rows(file, columns)


def first_rows(file: TableFile, rows: str | None, count: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a file; of Parquet, only these are read."""
    if file.kind == "parquet":
        with readable(str(file.path)), pq.ParquetFile(file.data) as opened:
            batch = next(opened.iter_batches(count), None)
            return [] if batch is None else batch.to_pylist()
    return [row for _, row in islice(object_rows(file, rows), count)]


def flat_rows(
    flattening: Flattening, *, with_lines: bool
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Iterate over the rows of a flattening; a path with `*` gives several rows per row."""
    columns = flattening.columns
    starred = {column: split for column in columns if (split := split_every(column))}
    counted = [column for column in columns if is_rule(column) and OF in column]
    roots = [part.split(".")[0] for column in columns for part in (column, *columns_of(column))]
    source = flattening.source
    if source.kind == "parquet":
        roots = parquet_roots(source, columns)
    for line, row in object_rows(source, flattening.rows, columns=roots, with_lines=with_lines):
        plain = {column: cell_of(row, column) for column in columns if column not in starred}
        counts = next(filter(None, (counts_of(row, column) for column in counted)), None)
        if counts is not None:
            for repeat_number in range(counts[1]):
                score = float(repeat_number < counts[0])
                yield line, {**plain, "repeat": repeat_number, counted[0]: score}
            continue
        if not starred:
            yield line, plain
            continue
        for index, parts in enumerate(_every(row, starred)):
            yield line, {"repeat": index, **plain, **parts}


def all_columns(file: TableFile) -> list[str]:
    """Return the columns of a Parquet file; none for other formats, which are read whole."""
    return parquet_columns(file.data, origin=str(file.path)) if file.kind == "parquet" else []


def parquet_roots(file: TableFile, columns: Sequence[str]) -> list[str]:
    """Return the columns of a Parquet file at which these paths start."""
    present = parquet_columns(file.data, origin=str(file.path))
    return [
        name
        for name in present
        if any(
            part == name or part.startswith(f"{name}.")
            for column in columns
            for part in columns_of(column)
        )
    ]


def _every(
    row: Mapping[str, Any], starred: Mapping[str, tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Iterate over the cells of each element of the lists in a row; at least one, of nulls."""
    lists = {prefix: cell_of(row, prefix) for prefix, _ in starred.values()}
    count = max((len(one) for one in lists.values() if isinstance(one, list)), default=0)
    for index in range(max(count, 1)):
        cells = {
            column: value_at(lists[prefix], f"{index}.{rest}".removesuffix("."))
            for column, (prefix, rest) in starred.items()
        }
        yield {column: None if cell is NOTHING else cell for column, cell in cells.items()}


def csv_header(file: TableFile) -> list[str]:
    """Return the column names of a CSV file."""
    return next(_csv_rows(file), (1, []))[1]


def csv_cells(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the rows of a CSV file without header; cells between blanks are never empty."""
    for line, cells in _csv_rows(file):
        filled = [cell for cell in cells if cell] if file.delimiter == " " else cells
        if filled:
            yield line, filled


def require_text(file: TableFile) -> None:
    """Refuse a text file that is truncated, not UTF-8, or contains NUL bytes.

    DuckDB would not notice that in columns that are read later or never.
    """
    if not _is_text(file):
        for _ in _lines(file):
            pass


def _is_text(file: TableFile) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with readable_file(file.path), file.open() as stream:
            while chunk := stream.read(PEEK):
                if b"\0" in chunk:
                    return False
                # ASCII need not be decoded, except after the beginning of a longer character.
                if decoder.getstate()[0] or not chunk.isascii():
                    decoder.decode(chunk)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _lines(file: TableFile) -> Iterator[tuple[int, str]]:
    with readable_file(file.path), file.open() as stream:
        for number, line in enumerate(stream, start=1):
            if b"\0" in line or len(line) > MAX_LINE_BYTES:
                raise UnreadableError(
                    "this line contains a NUL byte"
                    if b"\0" in line
                    else f"this line is longer than {MAX_LINE_BYTES >> 20} MiB",
                    file=str(file.path),
                    line=number,
                    hint="copy the file again if it is damaged; otherwise shorten or clean this "
                    "line.",
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
                f"the row has {len(cells)} cells, but the header has {len(header)}",
                file=str(file.path),
                line=line,
                hint="quote cells that contain the delimiter or a line break.",
            )
        yield line, dict(zip(header, map(unquote_formula, cells), strict=True))


def _csv_rows(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the cells of non-empty rows, with the line each starts in."""
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
                    hint="use the same line ending in all lines, for example with dos2unix FILE.",
                )
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableError(
            f"not valid CSV: {error}",
            file=str(file.path),
            line=line,
            hint="close the open quote in this row, or copy the file again if it is truncated. "
            "Lines must end in a line feed.",
        ) from None


def _ending(line: str) -> str | None:
    if not line.endswith("\n"):
        return None
    return "\r\n" if line.endswith("\r\n") else "\n"


def _quick_lines(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Iterate over the objects of JSON lines; invalid lines are parsed again for the error."""
    with readable_file(file.path), file.open() as stream:
        for number, data in enumerate(stream, start=1):
            text = data.removeprefix(UTF8_MARK) if number == 1 else data
            if not text.isspace():
                yield number, _quick_object(text, file, number)


def _quick_object(data: bytes, file: TableFile, line: int) -> Mapping[str, Any]:
    try:
        value = decode(data)
    except Malformed:
        value = None
    if isinstance(value, dict):
        return value
    try:
        return _object(data.decode("utf-8"), file, line)
    except UnicodeDecodeError as error:
        raise not_utf8(file.path, line, error) from None


def _jsonl(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text in _lines(file):
        if text.strip():
            yield number, _object(text, file, number)


@without_collection()
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
            "invalid character: a surrogate escape (\\ud800 to \\udfff) without its pair",
            file=str(file.path),
            line=line,
            hint="replace it before writing, such as: text.encode('utf-8', 'replace').decode().",
        ) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise _not_json(text, file, line, error) from None
    if not isinstance(value, dict):
        raise UnreadableError(
            f"this line contains {_in_words(value)}, not an object",
            file=str(file.path),
            line=line,
            hint="each line must be one JSON object with task, item and score.",
        )
    _refuse_doubled([name for name, _ in objects[-1]], file, line)
    return value


def _not_json(text: str, file: TableFile, line: int, error: Exception) -> UnreadableError:
    if text.startswith("{") and not text.endswith("\n"):
        return UnreadableError(
            "the last line is truncated",
            file=str(file.path),
            line=line,
            hint="finish the copy or the run, or delete this line if you do not need it.",
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
    """Refuse a name that occurs twice: Python takes the last value, DuckDB neither."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ColumnError(
                f"{name!r} occurs {count} times in one object",
                file=str(file.path),
                line=line,
                field=name,
                hint="give each value its own name.",
            )


def _json(file: TableFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    text = "".join(line for _, line in _lines(file))
    try:
        with without_collection():
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
            f"this JSON contains {_in_words(rows)}, not a list of objects",
            file=str(file.path),
            hint="write one object per result, in a list or one per line.",
        )
    for line, element in _elements(text):
        yield line, _object(element, file, line)


def _elements(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over the elements of a valid JSON list as text, with the line each starts in."""
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
