"""Type of a table file, from its first bytes."""

from __future__ import annotations

import gc
import io
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from forgetmap._cache import temporary_path
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
MAX_RATIO = 500
"""Unpacked bytes per packed byte; a denser file cannot be answers of a model."""
MIN_DENSE_BYTES = 32 << 20
"""Unpacked bytes above which the ratio is checked."""
MAX_DIGITS = 4_000
"""Digits of an integer; Python refuses to parse more than 4,300."""
DELIMITERS = ",\t;|"
PARQUET_MAGIC = b"PAR1"
PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of a packed file -> its packing."""
BLANKS = b"\xef\xbb\xbf \t\r\n"
UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table file of a known format.

    Attributes:
        path: path of the file.
        kind: format of the file.
        packing: compression; None if there is none.
        marked: whether the file begins with a byte order mark.
        delimiter: delimiter of a CSV file.
        headerless: whether the first line has only numbers, so that there is no header.
        single: whether the file is one JSON object, on one line or several.
        unpacked: path of a temporary copy that is read instead, if there is one.
        encoding: encoding of the file, if it is not UTF-8.
        columns: columns of `unpacked`, if these are fields taken from the rows of the file.
        names: all columns of the file then.
        source: format of the file then.
        rows: reads these rows again, with their lines.
    """

    path: Path
    kind: Kind
    packing: Packing | None = None
    marked: bool = False
    delimiter: str = ""
    headerless: bool = False
    single: bool = False
    unpacked: Path | None = None
    encoding: str = ""
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    source: str = ""
    rows: Callable[[], Iterator[tuple[int, Mapping[str, Any]]]] | None = None

    @property
    def data(self) -> Path:
        """Path to read from; messages name `path`."""
        return self.unpacked or self.path

    def open(self) -> IO[bytes]:
        """Open the file for reading, unpacked."""
        return open_unpacked(self.data)


def sniff(path: Path) -> TableFile:
    """Recognise the format of a table file; raise a typed error if it has none."""
    with readable_file(path):
        packing = packing_of(path)
        with open_unpacked(path) as stream:
            head = stream.read(PEEK)
            single = head.lstrip(BLANKS)[:1] == b"{" and not _has_second_line(head, stream)
    if head.startswith(PARQUET_MAGIC):
        return TableFile(path, "parquet", unpacked=_unpacked(path) if packing else None)
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
    return TableFile(path, "csv", packing, marked, _delimiter(path, head))


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection of cycles; rows of logs have none.

    In a deeply nested value, finalizers of other objects would run at the limit of recursion.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def readable_file(path: Path) -> Iterator[None]:
    """Turn errors of the system for unreadable or truncated files into a typed error."""
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


def not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> UnreadableError:
    """Return the error for bytes that are not UTF-8."""
    return UnreadableError(
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}",
        file=str(path),
        line=line,
        hint="convert it first, such as: iconv -f latin1 -t utf-8 IN > OUT.",
    )


def in_utf8(file: TableFile) -> TableFile:
    """Return a CSV file in UTF-8; one in Windows-1252, as spreadsheets write, is written anew."""
    if file.kind != "csv":
        return file
    with readable_file(file.path), file.open() as stream:
        data = stream.read()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            return file  # reading the rows reports the line
        target = temporary_path()
        target.write_text(text, encoding="utf-8", newline="")
        return replace(file, unpacked=target, packing=None, encoding="Windows-1252")
    return file


def packing_of(path: Path) -> Packing | None:
    """Return the packing of a file, from its first bytes; None if it is not packed."""
    with readable_file(path), path.open("rb") as raw:
        first = raw.read(max(map(len, PACKINGS)))
    return next((name for magic, name in PACKINGS.items() if first.startswith(magic)), None)


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file, packed or not; reading fails if its compression ratio is implausible."""
    packing = packing_of(path)
    if packing is None:
        return path.open("rb", PEEK)
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(path, packing), PEEK))


class _Unpacked(io.RawIOBase):
    """Stream of a packed file; fails above the largest plausible size."""

    def __init__(self, path: Path, packing: Packing) -> None:
        import pyarrow as pa  # large, and only needed here

        self._path, self._errors = path, pa.ArrowException
        self._stream = pa.CompressedInputStream(pa.OSFile(str(path)), packing)
        self._most = self._left = max(MIN_DENSE_BYTES, MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = int(self._stream.readinto(buffer))
        except (self._errors, OSError) as error:
            raise EOFError(f"damaged or truncated: {str(error).splitlines()[0]:.100}") from None
        self._left -= count
        if self._left < 0:
            raise too_dense(str(self._path), f"it decompresses to more than {self._most:,} bytes")
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(path: Path) -> Path:
    target = temporary_path(".parquet")
    with readable_file(path), target.open("wb") as out, open_unpacked(path) as stream:
        shutil.copyfileobj(stream, out)
    return target


def too_dense(name: str, fact: str) -> UnreadableError:
    """Return the error for a file with an implausible compression ratio."""
    return UnreadableError(
        f"too large to be read safely: {fact}",
        file=name,
        hint="check that this is an evaluation log; if so, decompress or split it first.",
    )


def whole_number(digits: str) -> int | str:
    """Parse an integer of JSON; one with too many digits stays a text."""
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _refuse_binary(path: Path, head: bytes) -> None:
    if head.startswith(b"PK\x03\x04") and b"xl/" in head:
        raise UnknownFormatError(
            "this is an Excel workbook, which is not read",
            file=str(path),
            hint="save its sheet as CSV, and give that file.",
        )
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


@without_collection()
def _object_kind(head: bytes) -> Kind:
    """Return `jsonl` for one object per line, `json` for an object over several lines."""
    first = head.lstrip().split(b"\n", 1)[0]
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        # A first line that is truncated, or longer than the peek, is still a line.
        return "json" if first.strip() == b"{" else "jsonl"
    return "jsonl"


def _has_second_line(head: bytes, stream: IO[bytes]) -> bool:
    """Whether a second non-blank line follows the first one."""
    _, newline, rest = head.lstrip(BLANKS).partition(b"\n")
    while not (newline and rest.strip()):
        chunk = stream.read(PEEK)
        if not chunk:
            return False
        _, newline, rest = ("", newline, chunk) if newline else chunk.partition(b"\n")
    return True


def _separator_of_numbers(head: bytes) -> str | None:
    """Return the separator of a first line that has only numbers; else None."""
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
