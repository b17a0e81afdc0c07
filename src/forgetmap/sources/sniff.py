"""Type of a table file, from its first bytes."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from forgetmap.errors import (
    TRUNCATED_HINT,
    EmptyInputError,
    ForgetmapError,
    UnknownFormatError,
    UnreadableError,
)

Kind = Literal["parquet", "csv", "jsonl", "json"]
Packing = Literal["gzip", "zstd"]

PEEK = 1 << 20
MAX_LINE_BYTES = 64 << 20
MAX_COLUMNS = 10_000
"""Columns that the engine is asked to read; of wider tables only those that are needed."""
MAX_WIDTH = 500_000
"""Columns of a table with a header."""
MAX_RATIO = 500
"""Unpacked bytes per packed byte; what is denser holds no answers of a model."""
MIN_DENSE_BYTES = 32 << 20
"""Unpacked bytes from which on the ratio is looked at."""
MAX_DIGITS = 4_000
"""Of a whole number; Python itself refuses to read those of more than 4,300."""
DELIMITERS = ",\t;|"
PARQUET_MAGIC = b"PAR1"
PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of a packed file -> how it is packed."""
BLANKS = b"\xef\xbb\xbf \t\r\n"
UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Flattening:
    """What was taken out of the rows of a file, to be read as a flat table.

    Attributes:
        source: the file.
        rows: path of the list that holds its rows; None if they are those of the file.
        columns: names of columns, and paths into them.
    """

    source: TableFile
    rows: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that was recognised.

    Attributes:
        path: where it is.
        kind: what it holds.
        packing: how it is packed; None if it is not.
        marked: whether it begins with a byte order mark.
        delimiter: between the cells of a CSV.
        headerless: whether its first line is already results: nothing but numbers.
        single: whether it holds one JSON object, over one line or several.
        unpacked: where its bytes were unpacked to, if they were.
        flattening: what `unpacked` was made of, if not of all its bytes.
    """

    path: Path
    kind: Kind
    packing: Packing | None = None
    marked: bool = False
    delimiter: str = ","
    headerless: bool = False
    single: bool = False
    unpacked: Path | None = None
    flattening: Flattening | None = None

    @property
    def data(self) -> Path:
        """The file to read; `path` is the one to tell people about."""
        return self.unpacked or self.path

    def open(self) -> IO[bytes]:
        """Its bytes, unpacked."""
        return open_unpacked(self.data)


def sniff(path: Path) -> TableFile:
    """Recognise a table file, or say what is wrong with it."""
    with readable_file(path):
        packing = packing_of(path)
        with open_unpacked(path) as stream:
            head = stream.read(PEEK)
            single = head.lstrip(BLANKS)[:1] == b"{" and not _has_second_line(head, stream)
    if head.startswith(PARQUET_MAGIC):
        return TableFile(path, "parquet", packing)
    marked = head.startswith(UTF8_MARK)
    head = head.removeprefix(UTF8_MARK)
    start = head.lstrip()[:1]
    if not start:
        raise EmptyInputError(
            "the file is empty",
            file=str(path),
            hint="finish the evaluation, or copy the file again.",
        )
    _refuse_binary(path, head)
    if start == b"{":
        kind = _object_kind(head)
        return TableFile(path, kind, packing, marked, single=single or kind == "json")
    if start == b"[":
        return TableFile(path, "json", packing, marked)
    numbers = _separator_of_numbers(head)
    if numbers is not None:
        return TableFile(path, "csv", packing, marked, numbers, headerless=True)
    from forgetmap.sources.r_tables import (
        rewrite_r_table,
    )  # brings the engine, which logs do without

    rewritten = rewrite_r_table(head, is_whole=len(head) < PEEK, open_text=lambda: _text(path))
    if rewritten is not None:
        return TableFile(path, "csv", unpacked=rewritten)
    return TableFile(path, "csv", packing, marked, _delimiter(path, head))


def _text(path: Path) -> IO[str]:
    return io.TextIOWrapper(open_unpacked(path), "utf-8-sig", newline="")


@contextmanager
def readable_file(path: Path) -> Iterator[None]:
    """Turn what the system says about unreadable or cut off files into a typed error."""
    try:
        yield
    except ForgetmapError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError(
            f"cannot be read: {getattr(error, 'strerror', None) or error}",
            file=str(path),
            hint=f"{TRUNCATED_HINT} Or check its read permission.",
        ) from None


def require_few_columns(path: Path, count: int) -> None:
    """Refuse a table of more columns than any evaluation has items."""
    if count > MAX_WIDTH:
        raise UnknownFormatError(
            f"the header has {count:,} columns or more",
            file=str(path),
            line=1,
            hint=f"check that this is a table; at most {MAX_WIDTH:,} columns are allowed.",
        )


def not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> UnreadableError:
    """The error for bytes that are not UTF-8."""
    return UnreadableError(
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}",
        file=str(path),
        line=line,
        hint="convert it first, such as: iconv -f latin1 -t utf-8 IN > OUT.",
    )


def packing_of(path: Path) -> Packing | None:
    """How a file is packed, by its first bytes; None if it is not."""
    with readable_file(path), path.open("rb") as raw:
        first = raw.read(max(map(len, PACKINGS)))
    return next((name for magic, name in PACKINGS.items() if first.startswith(magic)), None)


def open_unpacked(path: Path) -> IO[bytes]:
    """The bytes of a file, packed or not; what unpacks to more than anything real is refused."""
    packing = packing_of(path)
    if packing is None:
        return path.open("rb", PEEK)
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(path, packing), PEEK))


class _Unpacked(io.RawIOBase):
    """The bytes of a packed file, no more of them than a file of its size has."""

    def __init__(self, path: Path, packing: Packing) -> None:
        self._path = path
        self._stream: Any = gzip.GzipFile(path) if packing == "gzip" else _Zstandard(path)
        self._most = self._left = max(MIN_DENSE_BYTES, MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise too_dense(str(self._path), f"it decompresses to more than {self._most:,} bytes")
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Zstandard:
    """The bytes of a file packed by zstandard, some at a time."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa  # large, and only needed here

        self._errors = pa.ArrowException
        self._file = pa.OSFile(str(path))
        self._stream = pa.CompressedInputStream(self._file, "zstd")

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._stream.readinto(buffer))
        except self._errors as error:
            raise EOFError(f"damaged or truncated: {str(error).splitlines()[0]:.100}") from None

    def close(self) -> None:
        self._stream.close()
        self._file.close()


def too_dense(name: str, fact: str) -> UnreadableError:
    """The error for a file that holds far more than it seems to."""
    return UnreadableError(
        f"too large to be read safely: {fact}",
        file=name,
        hint="check that this is an evaluation log; if so, decompress or split it first.",
    )


def whole_number(digits: str) -> int | str:
    """A whole number as JSON has it; one that no field can hold stays the text that it was."""
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _refuse_binary(path: Path, head: bytes) -> None:
    if head.startswith(UTF16_MARKS):
        raise UnreadableError(
            "this is UTF-16, not UTF-8",
            file=str(path),
            line=1,
            hint="convert it first, such as: iconv -f utf-16 -t utf-8 IN > OUT.",
        )
    first = head.split(b"\n", 1)[0]
    if b"\0" in first or (b"\0" in head and not _is_utf8(first)):
        raise UnknownFormatError(
            "this is a binary file, but not Parquet",
            file=str(path),
            hint="give a CSV, JSON lines, JSON or Parquet table (gzipped or not), or the folder "
            "of a run.",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _object_kind(head: bytes) -> Kind:
    """One object per line, or a single object over several lines."""
    first = head.lstrip().split(b"\n", 1)[0]
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        # A first line longer than the peek, or cut off, is still a line.
        return "json" if first.strip() == b"{" else "jsonl"
    return "jsonl"


def _has_second_line(head: bytes, stream: IO[bytes]) -> bool:
    """Whether anything but blanks stands after the first line that holds anything."""
    _, newline, rest = head.lstrip(BLANKS).partition(b"\n")
    while not (newline and rest.strip()):
        chunk = stream.read(PEEK)
        if not chunk:
            return False
        _, newline, rest = ("", newline, chunk) if newline else chunk.partition(b"\n")
    return True


def _separator_of_numbers(head: bytes) -> str | None:
    """What stands between the cells of a first line that holds nothing but numbers."""
    first, newline, _ = head.partition(b"\n")
    is_cut = not newline and len(head) >= PEEK
    line = first.decode("utf-8", "replace").strip(" \r")
    for mark in f"{DELIMITERS} ":
        cells = line.split() if mark == " " else line.split(mark)
        if all(map(_is_number, cells[:-1] if is_cut and len(cells) > 1 else cells)):
            return mark
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in {"true", "false", "na"}
    return True


def _delimiter(path: Path, head: bytes) -> str:
    header = head.partition(b"\n")[0]
    bare = re.sub(rb'"[^"]*"', b"", header)
    counts = {mark: bare.count(mark.encode()) for mark in DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if not counts[best]:
        raise UnknownFormatError(
            "this is not a table: its first line has no delimiter",
            file=str(path),
            line=1,
            hint="put the column names into the first line of a CSV, such as: task,item,score.",
        )
    return best
