"""The files of a log: found below a path, known by their first bytes, unpacked while they are read.

Names say nothing. What a file holds is peeked at, so that renaming or gzipping changes nothing.
Everything read is bounded: lines, documents, members of archives, files of a folder.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, cast

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
BLOCK_BYTES = 1 << 19
"""Bytes of whole lines that are read at a time; few enough to stay in the cache of a core."""
MAX_FILES = 20_000
MAX_DEPTH = 12
MAX_BLANK_LINES = 1 << 20
"""Blank lines in a row."""
MAX_DOCUMENT_BYTES = 2 << 30
ROWS_PER_BATCH = 500
"""Rows of a Parquet file that are held as objects at a time."""

ZIP_MAGIC, PICKLE_MAGIC = b"PK\x03\x04", (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
ZSTANDARD = 93
Kind = Literal["json", "parquet", "zip", "pickle", "other"]


@dataclass(frozen=True)
class LogFile:
    """One file of a log, or one member of an archive.

    Attributes:
        path: the file on this machine.
        name: what to call it in front of people.
        inside: path below the folder or archive that was given, with `/`.
        member: its name in the archive `path`, if it is a member.
        start: byte from which on lines are read: those that begin there or later.
        end: byte before which they begin; None is the end of the file.
    """

    path: Path
    name: str
    inside: str
    member: str | None = None
    archive: Archive | None = field(default=None, compare=False, repr=False)
    start: int = 0
    end: int | None = None

    @cached_property
    def head(self) -> bytes:
        """Its first bytes, unpacked, without byte order mark."""
        with readable_file(self.path), _sound(self.name), self.open() as stream:
            return stream.read(HEAD_BYTES).removeprefix(UTF8_MARK)

    @cached_property
    def kind(self) -> Kind:
        """What its first bytes say."""
        if self.head.startswith(PARQUET_MAGIC):
            return "parquet"
        if self.head.startswith(ZIP_MAGIC):
            return "zip"
        if self.head.startswith(PICKLE_MAGIC):
            return "pickle"
        return "json" if self.head.lstrip()[:1] in (b"{", b"[") else "other"

    @cached_property
    def peek(self) -> Peek:
        """The beginning of its first JSON value, or its first rows; empty if it holds none."""
        if self.kind == "parquet":
            return peek_rows(_first_rows(self))
        return peek(self.head) if self.kind == "json" else Peek("nothing", {})

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    @cached_property
    def local(self) -> Path:
        """A file with its bytes, unpacked, for readers that jump about in it, such as Parquet's."""
        if self.member is None and packing_of(self.path) is None:
            return self.path
        return _unpacked(self.path, self.open, self.name)

    def open(self) -> IO[bytes]:
        """Its bytes, unpacked."""
        if self.archive is not None and self.member is not None:
            return self.archive.open(self.member)
        return open_unpacked(self.path)

    def read(self, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """All of it, as long as it is no longer than `limit`."""
        with readable_file(self.path), _sound(self.name), self.open() as stream:
            if self._stated_size > limit:
                raise too_dense(self.name, f"it has {self._stated_size:,} bytes")
            data = _bounded(stream, limit, self.size, self.name)
        return data.removeprefix(UTF8_MARK)

    @property
    def _stated_size(self) -> int:
        """Bytes before they are read, as far as anything says."""
        if self.archive is not None and self.member is not None:
            return self.archive.size(self.member)
        return self.size

    @property
    def is_range(self) -> bool:
        """Whether only some of its lines are read."""
        return self.start > 0 or self.end is not None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Its lines that are not blank, counted from 1; of a range from its first one."""
        if self.is_range:
            return self._lines_of_range()
        return self._all_lines()

    def blocks(self) -> Iterator[LineBlock]:
        """Its lines, many of them at a time; none is longer than `lines` allows."""
        in_place = self.is_seekable
        with readable_file(self.path), _sound(self.name):
            try:
                yield from self._blocks_in_place() if in_place else self._blocks_of_stream()
            except _LongLineError:
                self.require_lines()

    @property
    def is_seekable(self) -> bool:
        """Whether its bytes can be read from anywhere on."""
        return self.member is None and self.archive is None and packing_of(self.path) is None

    def range(self, start: int, end: int | None) -> LogFile:
        """The same file, of which only the lines are read that begin between two bytes."""
        part = copy(self)  # with what is known of its first bytes
        object.__setattr__(part, "start", start)
        object.__setattr__(part, "end", end)
        return part

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Some of its bytes."""
        with readable_file(self.path), self.path.open("rb", buffering=0) as raw:
            raw.seek(offset)
            return raw.read(size)

    def lines_before(self) -> int:
        """How many lines begin before a range of a file."""
        if not self.start:
            return 0
        count, left = 1, self.start - 1
        with readable_file(self.path), self.path.open("rb", buffering=0) as raw:
            while left and (data := raw.read(min(left, BLOCK_BYTES))):
                count += data.count(b"\n")
                left -= len(data)
        return count

    def require_lines(self) -> None:
        """Refuse lines that `lines` refuses, with the number of the first; of a range any."""
        if self.is_range:
            raise _too_long(self.name, None)
        for _ in self.lines():
            pass

    def _lines_of_range(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        for block in self.blocks():
            for start, end in block.lines():
                number += 1
                line = block.data[start:end]
                if not line.isspace():
                    yield number, line

    def _blocks_in_place(self) -> Iterator[LineBlock]:
        with self.path.open("rb", buffering=0) as raw:
            size = os.fstat(raw.fileno()).st_size
            at, stop = self.start, size if self.end is None else min(self.end, size)
            if at:  # of the line that this byte stands in the range before has the beginning
                at += _block_from(raw, at - 1, at).end - 1
            while at < stop:
                block = _block_from(raw, at, stop)
                yield block
                at += block.end

    def _blocks_of_stream(self) -> Iterator[LineBlock]:
        with self.open() as stream:
            most = max(MIN_DENSE_BYTES, MAX_RATIO * self.size)
            total, rest, is_first = 0, b"", True
            while chunk := stream.read(BLOCK_BYTES):
                total += len(chunk)
                if total > most:
                    raise too_dense(self.name, f"it decompresses to more than {most:,} bytes")
                data = rest + chunk
                end = data.rfind(b"\n") + 1
                if end:
                    yield LineBlock(data, _mark_length(data) if is_first else 0, end)
                    is_first = False
                rest = data[end:]
                if len(rest) > MAX_LINE_BYTES:
                    raise _LongLineError
            if rest:
                yield LineBlock(rest, _mark_length(rest) if is_first else 0, len(rest))

    def _all_lines(self) -> Iterator[tuple[int, bytes]]:
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


class _LongLineError(Exception):
    """A line is longer than any of a log."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Some lines of a file, one after the other.

    Attributes:
        data: bytes of the file.
        start: where the first line begins in them.
        end: where the last one ends; what stands behind belongs to the next block.
        offset: where the bytes stand in the file; None if it must be unpacked.
    """

    data: bytes
    start: int
    end: int
    offset: int | None = None

    def lines(self) -> Iterator[tuple[int, int]]:
        """Where each line begins and ends, its line feed included."""
        find, at, last = self.data.find, self.start, self.end
        while at < last:
            end = find(b"\n", at, last) + 1 or last
            yield at, end
            at = end


def _block_from(raw: IO[bytes], at: int, stop: int) -> LineBlock:
    """Whole lines from a byte on: as many as a block holds of those that begin before `stop`."""
    size = BLOCK_BYTES
    while True:
        raw.seek(at)
        data = raw.read(size)
        is_last = at + len(data) >= stop
        end = data.find(b"\n", stop - 1 - at) + 1 if is_last else data.rfind(b"\n") + 1
        if not end and len(data) < size:
            end = len(data)
        if end:
            return LineBlock(data, 0 if at else _mark_length(data), end, at)
        if size > MAX_LINE_BYTES:
            raise _LongLineError
        size *= 2


def _mark_length(data: bytes) -> int:
    return len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0


class Archive:
    """A zip file whose members are read one by one, deflated or zstandard, within bounds."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path, self.name = path, name or str(path)
        with readable_file(path), _sound(self.name):
            self._zip = zipfile.ZipFile(path)
        self._members = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        if len(self._members) > 50 * MAX_FILES:
            raise too_dense(self.name, f"it lists {len(self._members):,} members")

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens it anew."""
        return partial(Archive, name=self.name), (self.path,)

    @property
    def members(self) -> Sequence[str]:
        """Names of its files."""
        return list(self._members)

    def size(self, member: str) -> int:
        """Unpacked bytes of a member, as the directory says."""
        return self._members[member].file_size

    def open(self, member: str) -> IO[bytes]:
        """The bytes of a member; reading stops where it unpacks to more than anything real."""
        info = self._members[member]
        if info.file_size > max(MIN_DENSE_BYTES, MAX_RATIO * info.compress_size):
            raise too_dense(self.name, f"{member} decompresses to {info.file_size:,} bytes")
        with readable_file(self.path), _sound(self.name):
            if info.compress_type == ZSTANDARD:
                return self._open_zstandard(info)
            return self._zip.open(info)

    def read(self, member: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """All of a member, as long as it is no longer than `limit`."""
        info = self._members[member]
        with readable_file(self.path), _sound(self.name), self.open(member) as stream:
            return _bounded(stream, limit, info.compress_size, f"{self.name}/{member}")

    def _open_zstandard(self, info: zipfile.ZipInfo) -> IO[bytes]:
        """The standard library reads these members only from Python 3.14 on."""
        with self.path.open("rb") as raw:
            raw.seek(info.header_offset)
            header = raw.read(30)
            if len(header) < 30 or not header.startswith(ZIP_MAGIC):  # fixed part
                raise zipfile.BadZipFile("a member is not at the position given in the directory")
            skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
            raw.seek(skip, os.SEEK_CUR)
            packed = raw.read(info.compress_size)
        stream = pa.CompressedInputStream(pa.BufferReader(packed), "zstd")
        return cast("IO[bytes]", io.BufferedReader(_StatedLength(stream, info.file_size)))


class _StatedLength(io.RawIOBase):
    """The bytes of a member, no more of them than the directory of its archive says."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise zipfile.BadZipFile("a member is longer than stated in the directory")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def find_files(path: Path) -> list[LogFile]:
    """Every visible file below a folder, the members of an archive, or the file itself."""
    if path.is_dir():
        return [file for child in _walk(path) for file in _expanded(child, path)]
    # A pipe would wait for its other end.
    return _expanded(path, path.parent) if path.is_file() else []


def _walk(folder: Path) -> list[Path]:
    """Files in order of their names; each folder once, so that links in a circle end."""
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
    """The file, or the members of an archive beside the archive itself."""
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
    """A copy in the folder for temporary files, no larger than anything real."""
    limit = max(MIN_DENSE_BYTES, MAX_RATIO * path.stat().st_size)

    target = temporary_path()
    with readable_file(path), open_stream() as stream, target.open("wb") as out:
        while chunk := stream.read(1 << 20):
            limit -= out.write(chunk)
            if limit < 0:
                raise too_dense(name, "its compression ratio is too high")
    return target


def _bounded(stream: IO[bytes], limit: int, packed: int, name: str) -> bytes:
    """Read to the end unless that is further than anything real."""
    limit = min(limit, max(MIN_DENSE_BYTES, MAX_RATIO * packed))
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise too_dense(name, f"it decompresses to more than {limit:,} bytes")
    return data


def _too_long(name: str, line: int | None) -> UnreadableError:
    return UnreadableError(
        f"this line is longer than {MAX_LINE_BYTES >> 20} MiB, or has a million blanks",
        file=name,
        line=line,
        hint="copy the file again if it is damaged; otherwise shorten this line.",
    )


class _sound:  # noqa: N801  # used like a function
    """Turn what zipfile says about a broken archive into a typed error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        broken = (
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            EOFError,
            pa.ArrowException,
        )
        if isinstance(error, broken):
            raise UnreadableError(
                f"this archive cannot be read: {error}",
                file=self._name,
                hint=f"{TRUNCATED_HINT} Archives with a password cannot be read.",
            ) from None


@contextmanager
def open_parquet(file: LogFile) -> Iterator[pq.ParquetFile]:
    """The file, open; what is broken in it is a typed error."""
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
    """Its rows as objects, a batch of them at a time.

    Raises:
        UnreadableError: it is broken, or holds what no log does.
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
    """A broken file has none: whoever reads it will say so."""
    try:
        return list(islice(parquet_rows(file, MAX_OBJECTS), MAX_OBJECTS))
    except UnreadableError:
        return []


def nearest_files(file: LogFile, others: Sequence[LogFile], *, alone: bool) -> list[LogFile]:
    """Those of the nearest folder: that of the file, else one that holds it.

    What lies elsewhere belongs to another run, unless there is only one.

    Args:
        file: holds the samples.
        others: what may belong to it.
        alone: whether no other file holds samples.
    """
    for folder in PurePosixPath(file.inside).parents:
        neighbours = [other for other in others if PurePosixPath(other.inside).parent == folder]
        if neighbours:
            return neighbours
    return list(others) if alone else []


def nearest_file(
    file: LogFile, others: Sequence[LogFile], holding_samples: Sequence[LogFile]
) -> LogFile | None:
    """The one that belongs to a file with samples; None if several might."""
    neighbours = nearest_files(file, others, alone=len(holding_samples) == 1)
    return neighbours[0] if len(neighbours) == 1 else None


def run_folder(file: LogFile) -> PurePosixPath:
    """Where results and predictions of one run meet: `RUN/KIND/MODEL/FILE`."""
    return PurePosixPath(file.name).parent.parent.parent
