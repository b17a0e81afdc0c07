"""What kind of table a file is, by its first bytes."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from forgetmap.errors import EmptyInputError, UnknownFormatError, UnreadableError

Kind = Literal["parquet", "csv", "jsonl", "json"]

PEEK = 1 << 20
MOST_COLUMNS = 10_000
DELIMITERS = ",\t;|"
GZIP_MAGIC, PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that was recognised.

    Attributes:
        path: where it is.
        kind: what it holds.
        gzipped: whether it must be unpacked first.
        delimiter: between the cells of a CSV.
    """

    path: Path
    kind: Kind
    gzipped: bool = False
    delimiter: str = ","

    def open(self) -> IO[bytes]:
        """Its bytes, unpacked."""
        return open_unpacked(self.path)


def sniff(path: Path) -> TableFile:
    """Recognise a table file, or say what is wrong with it."""
    head = _peek(path)
    gzipped = path.open("rb").read(2) == GZIP_MAGIC
    if not head.strip():
        raise EmptyInputError(
            "the file is empty",
            file=str(path),
            hint="was the evaluation finished and copied whole?",
        )
    if head.startswith(PARQUET_MAGIC):
        return TableFile(path, "parquet", gzipped)
    if b"\0" in head:
        raise UnknownFormatError(
            "this is a binary file, but not Parquet", file=str(path), hint=_KINDS_HINT
        )
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"{":
        return TableFile(path, _object_kind(head), gzipped)
    if start == b"[":
        return TableFile(path, "json", gzipped)
    return TableFile(path, "csv", gzipped, _delimiter(path, head))


def open_unpacked(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if it is gzipped."""
    with path.open("rb") as raw:
        gzipped = raw.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path, "rb")) if gzipped else path.open("rb")


_KINDS_HINT = (
    "give a CSV, JSON lines, JSON or Parquet table (gzipped or not), or the folder of a run."
)


def _peek(path: Path) -> bytes:
    try:
        with open_unpacked(path) as stream:
            return stream.read(PEEK)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError(
            f"cannot be read: {error}",
            file=str(path),
            hint="is the file whole, and may you read it?",
        ) from None


def _object_kind(head: bytes) -> Kind:
    """One object per line, or a single object over several lines."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    try:
        json.loads(first)
    except ValueError:
        # A first line longer than the peek, or cut off, is still a line.
        return "json" if first.strip() == b"{" else "jsonl"
    return "jsonl"


def _delimiter(path: Path, head: bytes) -> str:
    header, newline, _ = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    counts = {mark: header.count(mark.encode()) for mark in DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best] >= MOST_COLUMNS or (not newline and len(head) == PEEK):
        raise UnknownFormatError(
            f"the header has {max(counts[best] + 1, 1):,} columns or more",
            file=str(path),
            line=1,
            hint=f"a table has at most {MOST_COLUMNS:,}; is this file turned on its side?",
        )
    return best


def csv_header(file: TableFile) -> list[str]:
    """The column names of a CSV."""
    with file.open() as stream:
        first = stream.readline(PEEK)
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(str(file.path), 1, error) from None
    return next(csv.reader([text], delimiter=file.delimiter), [])


def not_utf8(path: str, line: int, error: UnicodeDecodeError) -> UnreadableError:
    """The error for bytes that are not UTF-8."""
    return UnreadableError(
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}",
        file=path,
        line=line,
        hint="convert it first, such as: iconv -f latin1 -t utf-8 IN > OUT.",
    )
