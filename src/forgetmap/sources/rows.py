"""The rows of a table file with the lines they begin in, and their fields as a Parquet file.

Every file but plain Parquet is read here, row by row, once for its fields and again only to say in
which line a value is wrong.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._cache import temporary_path
from forgetmap.errors import ColumnError, EmptyInputError, UnknownFormatError, UnreadableError
from forgetmap.records import BY_NAME, FileRow, parquet_columns, parquet_rows, readable
from forgetmap.sources.cells import (
    OF,
    cell_of,
    columns_of,
    counts_of,
    every_cell,
    parse_rule,
    split_every,
)
from forgetmap.sources.decode import Malformed, decode
from forgetmap.sources.documents import (
    ROWS_READ,
    TOP,
    Collection,
    collections_of,
    document_rows,
    read_document,
    row_lines,
    rows_at,
)
from forgetmap.sources.fields import replace_surrogates
from forgetmap.sources.sniff import (
    MAX_LINE_BYTES,
    UTF8_MARK,
    TableFile,
    not_utf8,
    readable_file,
    whole_number,
    without_collection,
)

csv.field_size_limit(1 << 30)
MAX_WIDTH = 500_000
"""Upper limit on columns of a table."""
ROWS_PER_BATCH = 20_000
Row = Mapping[str, Any]
LINE_HINT = "each line must be one JSON object with task, item and score."


def rows_of(
    file: TableFile, path: str | None = None, *, columns: Sequence[str] = (), lines: bool = False
) -> Iterator[tuple[int, Row]]:
    """Iterate over the rows of a file with their lines, or their numbers in Parquet.

    Args:
        file: the table.
        path: path of the rows in a JSON document.
        columns: the columns to read of a Parquet file; by default, and of other files, all.
        lines: whether to compute the lines of rows in a document, which is slower.
    """
    if file.kind == "parquet":
        origin = str(file.path)
        return parquet_rows(file.data, columns or parquet_columns(file.data, origin=origin),
                            origin=origin)  # fmt: skip
    if file.kind == "csv":
        return _csv_rows(file)
    if file.kind == "jsonl" and (path is None or not file.single):
        objects = _json_lines(file)
        if path is None:
            return objects
        return ((line, one) for line, row in objects for one in rows_at([row], path) or ())
    rows = document_rows(file, path or TOP)
    return zip(row_lines(file, path or TOP) if lines else repeat(1), rows, strict=False)


def first_rows(file: TableFile, path: str | None, count: int) -> list[Row]:
    """Return the first rows of a file; of Parquet, only these are read."""
    if file.kind == "parquet":
        with readable(str(file.path)), pq.ParquetFile(file.data) as opened:
            batch = next(opened.iter_batches(count), None)
            return [] if batch is None else batch.to_pylist()
    return [row for _, row in islice(rows_of(file, path), count)]


def collections(file: TableFile, rows: str | None) -> list[Collection]:
    """Return the collections of rows in a file, largest first, or only that at a path."""
    if file.single or file.kind == "json":
        return collections_of(read_document(file), rows)
    table = Collection(None, first_rows(file, rows, ROWS_READ))
    is_flat = rows is not None or file.kind != "jsonl"
    inner = [] if is_flat else collections_of([*table.rows], None)
    return [table, *(one for one in inner if one.path is not None)]


def as_parquet(file: TableFile, asked: Sequence[str], path: str | None = None) -> TableFile:
    """Write the fields of a table, and the columns asked for, to a Parquet file, all as texts.

    Args:
        file: any table, or a JSON document.
        asked: columns, and paths and rules about them, besides those named like our fields.
        path: path of the rows in a JSON document.
    """
    asked = tuple(dict.fromkeys(asked))
    fields = _Fields(file, asked, path)
    schema = pa.schema([(name, pa.string()) for name in dict.fromkeys((*asked, *BY_NAME))])
    target, rows = temporary_path(".parquet"), (row for _, row in fields.rows())
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=1) as writer:
        while batch := list(islice(rows, ROWS_PER_BATCH)):
            present = fields.present
            columns = [
                _texts(batch, name) if name in present else pa.nulls(len(batch), pa.string())
                for name in schema.names
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    if not fields.names:
        raise EmptyInputError(
            "there are no results",
            file=str(file.path),
            hint="write one object per result, with task, item and score.",
        )
    return replace(
        file,
        kind="parquet",
        packing=None,
        unpacked=target,
        columns=tuple(name for name in schema.names if name in fields.present),
        names=tuple(fields.names),
        source=file.kind,
        rows=lambda: fields.rows(lines=True),
    )


class _Fields:
    """The fields in the rows of a file; which ones there are is known after reading them."""

    def __init__(self, file: TableFile, asked: Sequence[str], path: str | None) -> None:
        self._file, self._asked, self._path = file, asked, path
        self._starred = {name: split for name in asked if (split := split_every(name))}
        self._counted = [name for name in asked if (parse_rule(name) or ("", "", ""))[1] == OF]
        self.names: dict[str, None] = {}
        """All columns of the file, in order of appearance."""

    @property
    def present(self) -> set[str]:
        repeats = {"repeat"} if self._starred or self._counted else set()
        return {*self._asked, *(self.names.keys() & BY_NAME.keys()), *repeats}

    def rows(self, *, lines: bool = False) -> Iterator[tuple[int, Row]]:
        """Iterate over the fields of each result; a path with `*` gives several per row."""
        plain = [name for name in self._asked if name not in self._starred]
        for line, row in rows_of(self._file, self._path, columns=self._roots(), lines=lines):
            if not self.names.keys() >= row.keys():
                self.names.update(dict.fromkeys(row))
                require_few_columns(self._file, len(self.names))
            cells = {name: row[name] for name in BY_NAME.keys() & row.keys()}
            cells.update((name, cell_of(row, name)) for name in plain)
            counts = next(filter(None, (counts_of(row, name) for name in self._counted)), None)
            if counts is not None:
                for number in range(counts[1]):
                    right = float(number < counts[0])
                    yield line, {**cells, "repeat": number, self._counted[0]: right}
            elif self._starred:
                for index, parts in enumerate(every_cell(row, self._starred)):
                    yield line, {"repeat": index, **cells, **parts}
            else:
                yield line, cells

    def _roots(self) -> list[str]:
        """Return the columns to read of a Parquet file."""
        if self._file.kind != "parquet":
            return []
        parts = [part for name in self._asked for part in (name, *columns_of(name))]
        present = parquet_columns(self._file.data, origin=str(self._file.path))
        require_few_columns(self._file, len(present))
        return [
            name for name in present
            if name in BY_NAME or any(one == name or one.startswith(f"{name}.") for one in parts)
        ] or present[:1]  # fmt: skip


def require_few_columns(file: TableFile, count: int) -> None:
    """Refuse a table with more columns than an evaluation could have items."""
    if count > MAX_WIDTH:
        raise UnknownFormatError(
            f"the header has {count:,} columns or more",
            file=str(file.path),
            line=1,
            hint=f"check that this is a table; at most {MAX_WIDTH:,} columns are allowed.",
        )


def _texts(rows: Sequence[Row], name: str) -> pa.Array:
    cells = [row.get(name) for row in rows]
    try:
        return pa.array(cells, pa.string())
    except (pa.ArrowException, UnicodeEncodeError):
        return pa.array(map(_as_text, cells), pa.string())


def _as_text(value: Any) -> str | None:
    """Return a value as text: a text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value if value is None else replace_surrogates(value)
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return None  # nested too deeply to be a field of a result


def raw_rows(file: TableFile, chosen: Mapping[str, str]) -> Iterator[tuple[int, FileRow]]:
    """Iterate over rows with canonical names and their lines, to locate an error.

    Args:
        file: the table.
        chosen: canonical name -> column; other columns are omitted.
    """
    rows: Callable[[], Iterator[tuple[int, Row]]] | None = file.rows
    for line, row in rows() if rows else rows_of(file, columns=[*chosen.values()], lines=True):
        cells = {field: row.get(column) for field, column in chosen.items()}
        # An empty text counts as missing.
        known = {name: None if cell == "" else cell for name, cell in cells.items()}
        yield line, FileRow(known, file=str(file.path))


def csv_cells(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the non-empty rows of a CSV file, with the line each starts in."""
    line = 1
    with readable_file(file.path), file.open() as stream:
        texts = (_text(file, number, data) for number, data in enumerate(stream, start=1))
        reader = csv.reader(texts, delimiter=file.delimiter, strict=True)
        try:
            for cells in reader:
                # Between blanks, no cell is empty.
                filled = [cell for cell in cells if cell] if file.delimiter == " " else cells
                if filled:
                    yield line, filled
                line = reader.line_num + 1
        except csv.Error as error:
            raise UnreadableError(
                f"not valid CSV: {error}",
                file=str(file.path),
                line=line,
                hint="close the open quote in this row, or copy the file again if it is "
                "truncated. Lines must end in a line feed.",
            ) from None


def _text(file: TableFile, number: int, line: bytes) -> str:
    """Return the text of a line.

    Raises:
        UnreadableError: it is not UTF-8, contains a NUL byte, or is too long.
    """
    if b"\0" in line or len(line) > MAX_LINE_BYTES:
        raise UnreadableError(
            "this line contains a NUL byte"
            if b"\0" in line
            else f"this line is longer than {MAX_LINE_BYTES >> 20} MiB",
            file=str(file.path),
            line=number,
            hint="copy the file again if it is damaged; otherwise shorten or clean this line.",
        )
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(file.path, number, error) from None


def _csv_rows(file: TableFile) -> Iterator[tuple[int, Row]]:
    rows = csv_cells(file)
    _, header = next(rows, (1, []))
    require_few_columns(file, len(header))
    _refuse_doubled(list(filter(None, header)), file, 1, "in the header")
    for line, cells in rows:
        if len(cells) != len(header):
            raise UnreadableError(
                f"the row has {len(cells)} cells, but the header has {len(header)}",
                file=str(file.path),
                line=line,
                hint="quote cells that contain the delimiter or a line break.",
            )
        yield line, dict(zip(header, cells, strict=True))


def _refuse_doubled(names: list[str], file: TableFile, line: int, where: str) -> None:
    """Refuse a name that occurs twice, of which only one value could be read."""
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise ColumnError(
                f"{name!r} occurs {count} times {where}",
                file=str(file.path),
                line=line,
                field=name,
                hint="give each value its own name.",
            )


def _json_lines(file: TableFile) -> Iterator[tuple[int, Row]]:
    """Iterate over the objects of JSON lines; invalid lines are parsed again for the error."""
    with readable_file(file.path), file.open() as stream:
        for number, line in enumerate(stream, start=1):
            data = line.removeprefix(UTF8_MARK) if number == 1 else line
            if data.isspace():
                continue
            try:
                value = decode(data)
            except Malformed:
                value = None
            # msgspec takes the last of several values of one name.
            if not isinstance(value, dict) or any(data.count(name) > 1 for name in _ONCE):
                value = _object(_text(file, number, data), file, number)
            yield number, value


_ONCE = (b'"score"', b'"item"', b'"task"')


@without_collection()
def _object(text: str, file: TableFile, line: int) -> Row:
    objects: list[list[tuple[str, Any]]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(pairs)
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=keep, parse_int=whole_number)
    except (json.JSONDecodeError, RecursionError) as error:
        fact, hint = "nested too deeply to be read", LINE_HINT
        if isinstance(error, json.JSONDecodeError):
            fact = f"not valid JSON: {error.msg} at column {error.colno}"
        if text.startswith("{") and not text.endswith("\n"):
            fact = "the last line is truncated"
            hint = "finish the copy or the run, or delete this line if you do not need it."
        raise UnreadableError(fact, file=str(file.path), line=line, hint=hint) from None
    if not isinstance(value, dict):
        names = {list: "a list", str: "a text", type(None): "null"}
        raise UnreadableError(
            f"this line contains {names.get(type(value), 'a single value')}, not an object",
            file=str(file.path),
            line=line,
            hint=LINE_HINT,
        )
    _refuse_doubled([name for name, _ in objects[-1]], file, line, "in one object")
    return value
