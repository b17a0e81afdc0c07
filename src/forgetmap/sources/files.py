"""The files of a log: found below a path, known by their first bytes, unpacked while they are read.

Files are recognised by content, never by name, so renaming or compressing them changes nothing.
All reading is bounded: lines, documents, members of archives, files of a folder.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._cache import temporary_path
from forgetmap.errors import TRUNCATED_HINT, UnknownFormatError, UnreadableError
from forgetmap.sources.peek import MAX_OBJECTS, Peek, peek, peek_rows
from forgetmap.sources.sniff import (
    MAX_LINE_BYTES,
    MAX_RATIO,
    MIN_DENSE_BYTES,
    PARQUET_MAGIC,
    UTF8_MARK,
    open_unpacked,
    packing_of,
    readable_file,
    too_dense,
)

HEAD_BYTES = 1 << 17
MAX_FILES = 20_000
MAX_DEPTH = 12
MAX_BLANK_LINES = 1 << 20
"""Upper limit on consecutive blank lines."""
MAX_DOCUMENT_BYTES = 2 << 30
ROWS_PER_BATCH = 500
"""Rows of a Parquet file that are converted to objects at a time."""

ZIP_MAGIC, PICKLE_MAGIC = b"PK\x03\x04", (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
ZSTANDARD = 93
Kind = Literal["json", "parquet", "zip", "pickle", "other"]


@dataclass(frozen=True)
class LogFile:
    """One file of a log, or one member of an archive.

    Attributes:
        path: local file.
        name: name for messages.
        inside: path below the input folder or archive, with `/`.
        member: name in the archive `path`, if the file is a member of one.
        archive: the open archive, if the file is an archive or a member of one.
    """

    path: Path
    name: str
    inside: str
    member: str | None = None
    archive: Archive | None = field(default=None, compare=False, repr=False)

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked, without byte order mark."""
        with readable_file(self.path), _sound(self.name), self.open() as stream:
            return stream.read(HEAD_BYTES).removeprefix(UTF8_MARK)

    @cached_property
    def kind(self) -> Kind:
        """Kind of the file, from its first bytes."""
        if self.head.startswith(PARQUET_MAGIC):
            return "parquet"
        if self.head.startswith(ZIP_MAGIC):
            return "zip"
        if self.head.startswith(PICKLE_MAGIC):
            return "pickle"
        return "json" if self.head.lstrip()[:1] in (b"{", b"[") else "other"

    @cached_property
    def peek(self) -> Peek:
        """The first JSON objects or Parquet rows; empty if the file is neither."""
        if self.kind == "parquet":
            return peek_rows(_first_rows(self))
        return peek(self.head) if self.kind == "json" else Peek("nothing", {})

    @property
    def size(self) -> int:
        """Size on disk, in bytes."""
        return self.path.stat().st_size

    @cached_property
    def local(self) -> Path:
        """Path of an unpacked file, for readers that need random access, such as Parquet's."""
        if self.member is None and packing_of(self.path) is None:
            return self.path
        return _unpacked(self.path, self.open, self.name)

    def open(self) -> IO[bytes]:
        """Open the file for reading, unpacked."""
        if self.archive is not None and self.member is not None:
            return self.archive.open(self.member)
        return open_unpacked(self.path)

    def read(self, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """Read the whole file; fail if it has more than `limit` bytes."""
        with readable_file(self.path), _sound(self.name), self.open() as stream:
            if self._stated_size > limit:
                raise too_dense(self.name, f"it has {self._stated_size:,} bytes")
            data = _bounded(stream, limit, self.size, self.name)
        return data.removeprefix(UTF8_MARK)

    @property
    def _stated_size(self) -> int:
        """Size before reading: from the directory of the archive, else the size on disk."""
        if self.archive is not None and self.member is not None:
            return self.archive.size(self.member)
        return self.size

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the lines that are not blank, with their numbers."""
        with readable_file(self.path), _sound(self.name), self.open() as stream:
            number = total = last = 0
            most = max(MIN_DENSE_BYTES, MAX_RATIO * self.size)
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                total += len(line)
                if len(line) > MAX_LINE_BYTES or number - last > MAX_BLANK_LINES:
                    raise _too_long(self.name, last + 1)
                if total > most:
                    raise too_dense(self.name, f"it decompresses to more than {most:,} bytes")
                if number == 1:
                    line = line.removeprefix(UTF8_MARK)
                if not line.isspace():
                    last = number
                    yield number, line


class Archive:
    """A zip file; reads single members, deflated or Zstandard, within limits of size."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path, self.name = path, name or str(path)
        with readable_file(path), _sound(self.name):
            self._zip = zipfile.ZipFile(path)
        self._members = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        if len(self._members) > 50 * MAX_FILES:
            raise too_dense(self.name, f"it lists {len(self._members):,} members")

    @property
    def members(self) -> Sequence[str]:
        """Names of the files in the archive."""
        return list(self._members)

    def size(self, member: str) -> int:
        """Return the unpacked size of a member, as stated in the directory."""
        return self._members[member].file_size

    def open(self, member: str) -> IO[bytes]:
        """Open a member for reading; fail if its compression ratio is implausible."""
        info = self._members[member]
        if info.file_size > max(MIN_DENSE_BYTES, MAX_RATIO * info.compress_size):
            raise too_dense(self.name, f"{member} decompresses to {info.file_size:,} bytes")
        with readable_file(self.path), _sound(self.name):
            if info.compress_type == ZSTANDARD:
                return self._open_zstandard(info)
            return self._zip.open(info)

    def read(self, member: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """Read a member; fail if it has more than `limit` bytes."""
        info = self._members[member]
        with readable_file(self.path), _sound(self.name), self.open(member) as stream:
            return _bounded(stream, limit, info.compress_size, f"{self.name}/{member}")

    def _open_zstandard(self, info: zipfile.ZipInfo) -> IO[bytes]:
        """Open a Zstandard member, which the standard library supports only from Python 3.14."""
        with self.path.open("rb") as raw:
            raw.seek(info.header_offset)
            header = raw.read(30)
            if len(header) < 30 or not header.startswith(ZIP_MAGIC):  # fixed part
                raise zipfile.BadZipFile("a member is not at the position given in the directory")
            skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            raw.seek(skip, os.SEEK_CUR)
            packed = raw.read(info.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            data = stream.read(info.file_size + 1)
        if len(data) > info.file_size:
            raise zipfile.BadZipFile("a member is longer than stated in the directory")
        return io.BytesIO(data)


def find_files(path: Path) -> list[LogFile]:
    """Find all visible files below a folder, with the members of archives; or a single file."""
    if path.is_dir():
        return [file for child in _walk(path) for file in _expanded(child, path)]
    # Reading a pipe would block.
    return _expanded(path, path.parent) if path.is_file() else []


def _walk(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted; each folder once, in case of circular links."""
    files: list[Path] = []
    seen = {_identity(folder)}
    pending = [(folder, 0)]
    while pending:
        here, depth = pending.pop()
        for child in sorted(here.iterdir()):
            if child.name.startswith("."):
                continue
            if child.is_file():
                files.append(child)
            elif child.is_dir() and depth < MAX_DEPTH and _identity(child) not in seen:
                seen.add(_identity(child))
                pending.append((child, depth + 1))
        if len(files) > MAX_FILES:
            raise UnknownFormatError(
                f"this folder contains more than {MAX_FILES:,} files",
                file=str(folder),
                hint="give the folder of one run.",
            )
    return sorted(files)


def _identity(folder: Path) -> tuple[int, int]:
    stat = folder.stat()
    return stat.st_dev, stat.st_ino


def _expanded(path: Path, base: Path) -> list[LogFile]:
    """Return the file; for an archive also its members."""
    inside = path.relative_to(base).as_posix()
    with readable_file(path), open_unpacked(path) as stream:
        is_zip = stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    if not is_zip:
        return [LogFile(path, str(path), inside)]
    archive = Archive(LogFile(path, str(path), inside).local, name=str(path))
    members = [
        LogFile(path, f"{path}/{member}", f"{inside}/{member}", member, archive)
        for member in archive.members
        if not member.rpartition("/")[2].startswith((".", "__MACOSX"))
    ]
    return [LogFile(path, str(path), inside, archive=archive), *members]


def _unpacked(path: Path, open_stream: Callable[[], IO[bytes]], name: str) -> Path:
    """Unpack into a temporary file; fail if the compression ratio is implausible."""
    limit = max(MIN_DENSE_BYTES, MAX_RATIO * path.stat().st_size)
    target = temporary_path()
    with readable_file(path), open_stream() as stream, target.open("wb") as out:
        while chunk := stream.read(1 << 20):
            limit -= out.write(chunk)
            if limit < 0:
                raise too_dense(name, "its compression ratio is too high")
    return target


def _bounded(stream: IO[bytes], limit: int, packed: int, name: str) -> bytes:
    """Read to the end; fail above `limit` bytes or an implausible compression ratio."""
    limit = min(limit, max(MIN_DENSE_BYTES, MAX_RATIO * packed))
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise too_dense(name, f"it decompresses to more than {limit:,} bytes")
    return data


def _too_long(name: str, line: int) -> UnreadableError:
    return UnreadableError(
        f"this line is longer than {MAX_LINE_BYTES >> 20} MiB, or has a million blanks",
        file=name,
        line=line,
        hint="copy the file again if it is damaged; otherwise shorten this line.",
    )


@contextmanager
def _sound(name: str) -> Iterator[None]:
    """Turn the errors of zipfile for a damaged archive into a typed error."""
    try:
        yield
    except (
        zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, pa.ArrowException,
    ) as error:  # fmt: skip
        raise UnreadableError(
            f"this archive cannot be read: {error}",
            file=name,
            hint=f"{TRUNCATED_HINT} Archives with a password cannot be read.",
        ) from None


@contextmanager
def open_parquet(file: LogFile) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; damage is a typed error."""
    try:
        with pq.ParquetFile(file.local) as opened:
            yield opened
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"this Parquet file cannot be read: {str(error).splitlines()[0]:.200}",
            file=file.name,
            hint=TRUNCATED_HINT,
        ) from None


def parquet_rows(file: LogFile, size: int = ROWS_PER_BATCH) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a Parquet file as objects, read in batches.

    Raises:
        UnreadableError: the file is damaged, or has values of an unsupported type.
    """
    with open_parquet(file) as opened:
        for batch in opened.iter_batches(batch_size=size):
            try:
                yield from batch.to_pylist()
            except (ValueError, OverflowError) as error:
                raise UnreadableError(
                    f"a value of this Parquet file cannot be read: {error!s:.200}",
                    file=file.name,
                    hint="use columns of texts, numbers and booleans.",
                ) from None


def _first_rows(file: LogFile) -> list[dict[str, Any]]:
    """Return the first rows; none if the file is damaged, which reading it reports later."""
    try:
        return list(islice(parquet_rows(file, MAX_OBJECTS), MAX_OBJECTS))
    except UnreadableError:
        return []


def nearest_files(file: LogFile, others: Sequence[LogFile], *, alone: bool) -> list[LogFile]:
    """Return the files in the folder of a file, else in the nearest folder above it.

    Files elsewhere belong to another run, unless there is only one.

    Args:
        file: file with samples.
        others: files that may belong to it.
        alone: whether no other file has samples.
    """
    for folder in PurePosixPath(file.inside).parents:
        neighbours = [other for other in others if PurePosixPath(other.inside).parent == folder]
        if neighbours:
            return neighbours
    return list(others) if alone else []


def nearest_file(
    file: LogFile, others: Sequence[LogFile], holding_samples: Sequence[LogFile]
) -> LogFile | None:
    """Return the file that belongs to a file with samples; None if there are several or none."""
    neighbours = nearest_files(file, others, alone=len(holding_samples) == 1)
    return neighbours[0] if len(neighbours) == 1 else None


def run_folder(file: LogFile) -> PurePosixPath:
    """Return the folder RUN of `RUN/KIND/MODEL/FILE`, common to results and predictions."""
    return PurePosixPath(file.name).parent.parent.parent
