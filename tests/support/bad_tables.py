"""Bad inputs in every format, with the error and the line that each must lead to."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from command_line import call
from forgetmap.errors import ForgetmapError, InputError

Row = dict[str, Any]
Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
HEADER = b"task,item,score\n"
GOOD_LINE = b'{"task": "t", "item": "i0", "score": 1}\n'
FIRST_LINE = {"csv": 2, "jsonl": 1, "parquet": 1}
"""Line number of the first row."""


@dataclass(frozen=True)
class Bad:
    """An input that must be refused, with the expected error.

    Attributes:
        name: name of the case.
        content: the bytes of a file, or a function that writes to a path.
        error: expected type of the error.
        line: line number in the error.
        field: field in the error.
        file: file in the error, relative to the path of the input.
        says: texts that the message must contain.
    """

    name: str
    content: bytes | Callable[[Path], object]
    error: type[ForgetmapError]
    line: int | None = None
    field: str | None = None
    file: str = ""
    says: Sequence[str] = ()

    def write(self, folder: Path) -> Path:
        """Write the input and return its path."""
        path = folder / "bad"
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            self.content(path)
        return path


def good_rows(count: int = 6) -> list[Row]:
    """Return results without a fault."""
    return [{"task": "t", "item": f"i{n}", "score": n % 2} for n in range(count)]


def nothing(path: Path) -> None:
    """Write nothing, so that the path does not exist."""


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return a CSV table with the columns of the first row."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def as_jsonl(rows: Sequence[Row]) -> bytes:
    """Return JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(rows: Sequence[Row], **options: Any) -> bytes:
    """Return a Parquet file; columns with numbers and texts become texts, as types must match."""
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({name: _alike(cells) for name, cells in columns.items()}), sink, **options
    )
    return bytes(sink.getvalue())


def in_format(rows: Sequence[Row], kind: Format) -> bytes:
    """Return rows in one of the formats."""
    return {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}[kind](rows)


def _alike(cells: list[Any]) -> list[Any]:
    kinds = {type(cell) for cell in cells if cell is not None}
    return [None if cell is None else str(cell) for cell in cells] if str in kinds else cells


def many_columns(count: int) -> list[str]:
    """Return names of columns."""
    return [f"c{n}" for n in range(count)]


def gzipped(content: bytes, *, without: int) -> bytes:
    """Return a gzip file without its last bytes."""
    return gzip.compress(content)[:-without]


def folder_of(**files: bytes) -> Callable[[Path], None]:
    """Return a function that writes a folder of files; `__` in a name stands for a dot."""

    def write(path: Path) -> None:
        path.mkdir()
        for name, content in files.items():
            (path / name.replace("__", ".")).write_bytes(content)

    return write


def damaged(column: str, rows: Sequence[Row] | None = None) -> bytes:
    """Return a Parquet file with damage in one column of the second of three row groups."""
    rows = rows or [
        {"task": f"task {n % 7}", "item": f"item {n * 7919 % 10007}", "score": (n * 31 % 97) / 97}
        for n in range(5000)
    ]
    content = bytearray(as_parquet(rows, compression="zstd", row_group_size=2000))
    group = pq.ParquetFile(pa.BufferReader(bytes(content))).metadata.row_group(1)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    for at in range(chunks[column].data_page_offset + 40, chunks[column].data_page_offset + 70):
        content[at] ^= 0xFF
    return bytes(content)


def refuse(case: Bad, folder: Path) -> None:
    """Check that Python and every command refuse the input and write nothing."""
    path = case.write(folder)
    good = folder / "good.csv"
    good.write_bytes(as_csv(good_rows()))
    file = str(path / case.file) if case.file else str(path)
    with pytest.raises(case.error) as caught:
        fm.compare(str(good), str(path))
    assert isinstance(caught.value, InputError)
    assert (caught.value.file, caught.value.line, caught.value.field) == (
        file,
        case.line,
        case.field,
    )
    before = tree(folder)
    out = ("--out", folder / "out")
    refuse_command(case, file, "compare", good, path, *out)
    refuse_command(case, file, "records", "check", path)
    refuse_command(case, file, "records", "convert", path, *out)
    assert tree(folder) == before


def refuse_command(case: Bad, file: str, *args: object) -> None:
    done = call(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {file}")
    assert (f", line {case.line}" in done.err) == (case.line is not None)
    assert (f", field '{case.field}'" in done.err) == (case.field is not None)
    assert "\nHint: " in done.err
    assert "Traceback" not in done.err
    for word in case.says:
        assert word in done.err


def tree(folder: Path) -> set[Path]:
    """Return all paths below a folder, hidden files included."""
    return set(folder.rglob("*"))
