"""The files of a log: found below a path, known by their first bytes, unpacked while they are read.

Files are recognised by content, never by name, so renaming or compressing them changes nothing.
All reading is bounded: lines, documents, members of archives, files of a folder.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._cache import temporary_path
from forgetmap.errors import TRUNCATED_HINT, UnknownFormatError, UnreadableError
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
    whole_number,
    without_collection,
)

HEAD_BYTES = 1 << 17
MAX_FILES = 20_000
MAX_DEPTH = 12
MAX_BLANK_LINES = 1 << 20
"""Upper limit on consecutive blank lines."""
MAX_DOCUMENT_BYTES = 2 << 30
ROWS_PER_BATCH = 500
"""Rows of a Parquet file that are converted to objects at a time."""

ZSTANDARD = 93
_DAMAGES = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, pa.ArrowException)
Kind = Literal["json", "parquet", "zip", "pickle", "other"]
MAGICS: dict[Kind, bytes | tuple[bytes, ...]] = {
    "parquet": PARQUET_MAGIC,
    "zip": b"PK\x03\x04",
    "pickle": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
}
_DECODER = json.JSONDecoder(parse_int=whole_number)
_BLANK = re.compile(r"\s*")
_NAME = re.compile(r'\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+")\s*:\s*')
_PEEK_DEPTH = 3
MAX_OBJECTS = 3

Shape = Literal["nothing", "object", "objects", "array"]
CUT = object()
"""Marks a value that continues beyond the first bytes."""


@dataclass(frozen=True, slots=True)
class Peek:
    """The first `objects` of a file, as far as they could be read, and all their field `names`.

    `first` is the one with most fields, since a single row may lack some.
    """

    shape: Shape
    first: Mapping[str, Any]
    names: frozenset[str]
    objects: Sequence[Mapping[str, Any]]

    @property
    def keys(self) -> frozenset[str]:
        """Field names of `first`."""
        return frozenset(self.first)

    def has(self, *names: str) -> bool:
        """Whether each of these names is in at least one of the first objects."""
        return self.names.issuperset(names)


@dataclass(frozen=True)
class LogFile:
    """One file of a log, an archive, or its `member`: `name` is for messages.

    `inside` is the path below the input folder or archive, with `/`.
    """

    path: Path
    name: str
    inside: str
    member: str | None = None
    archive: Archive | None = field(default=None, compare=False, repr=False)

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked, without byte order mark."""
        with _readable(self.path, self.name), self.open() as stream:
            return stream.read(HEAD_BYTES).removeprefix(UTF8_MARK)

    @cached_property
    def kind(self) -> Kind:
        """Kind of the file, from its first bytes."""
        known = next((kind for kind, magic in MAGICS.items() if self.head.startswith(magic)), None)
        return known or ("json" if self.head.lstrip()[:1] in (b"{", b"[") else "other")

    @cached_property
    def peek(self) -> Peek:
        """The first JSON objects or Parquet rows; empty if the file is neither or damaged."""
        if self.kind == "json":
            return _peek_json(self.head)
        try:
            few = islice(parquet_rows(self, MAX_OBJECTS), MAX_OBJECTS)
            rows = list(few) if self.kind == "parquet" else []
        except UnreadableError:  # which reading it reports later
            rows = []
        return _peek("objects" if rows else "nothing", rows)

    @property
    def size(self) -> int:
        """Size on disk, in bytes."""
        return self.path.stat().st_size

    @cached_property
    def local(self) -> Path:
        """Path of an unpacked file, for readers that need random access, such as Parquet's."""
        if self.member is None and packing_of(self.path) is None:
            return self.path
        target = temporary_path()
        with _readable(self.path, self.name), self.open() as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        return target

    def open(self) -> IO[bytes]:
        """Open the file for reading, unpacked; reading fails if its ratio is implausible."""
        if self.archive is not None and self.member is not None:
            return self.archive.open(self.member)
        return open_unpacked(self.path)

    def read(self) -> bytes:
        """Read the whole file, within limits of size."""
        if self.archive is not None and self.member is not None:
            return self.archive.read(self.member)
        with _readable(self.path, self.name), self.open() as stream:
            return _read(stream, self.size, self.name)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the lines that are not blank, with their numbers."""
        with _readable(self.path, self.name), self.open() as stream:
            number = last = 0
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES or number - last > MAX_BLANK_LINES:
                    limit = f"{MAX_LINE_BYTES >> 20} MiB, or has a million blanks"
                    message = f"this line is longer than {limit}"
                    hint = "copy the file again if it is damaged; otherwise shorten this line."
                    raise UnreadableError(message, file=self.name, line=last + 1, hint=hint)
                if number == 1:
                    line = line.removeprefix(UTF8_MARK)
                if not line.isspace():
                    last = number
                    yield number, line


class Archive:
    """A zip file; reads single members, deflated or Zstandard, within limits of size."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        self.path, self.name = path, name or str(path)
        with _readable(path, self.name):
            self._zip = zipfile.ZipFile(path)
        self.members = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        if len(self.members) > 50 * MAX_FILES:
            raise too_dense(self.name, f"it lists {len(self.members):,} members")

    def open(self, member: str) -> IO[bytes]:
        """Open a member for reading; fail if its compression ratio is implausible."""
        info = self.members[member]
        if info.file_size > max(MIN_DENSE_BYTES, MAX_RATIO * info.compress_size):
            raise too_dense(self.name, f"{member} decompresses to {info.file_size:,} bytes")
        with _readable(self.path, self.name):
            is_zstandard = info.compress_type == ZSTANDARD
            return self._open_zstandard(info) if is_zstandard else self._zip.open(info)

    def read(self, member: str) -> bytes:
        """Read a member, within limits of size."""
        name = f"{self.name}/{member}"
        with _readable(self.path, name), self.open(member) as stream:
            return _read(stream, self.members[member].file_size, name)

    def _open_zstandard(self, info: zipfile.ZipInfo) -> IO[bytes]:
        """Open a Zstandard member, which the standard library supports only from Python 3.14."""
        with self.path.open("rb") as raw:
            raw.seek(info.header_offset + 26)  # where the lengths of name and extra field are
            lengths = [int.from_bytes(raw.read(2), "little") for _ in range(2)]
            raw.seek(sum(lengths), os.SEEK_CUR)
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
    seen = {folder.resolve()}
    pending = [(folder, 0)]
    while pending:
        here, depth = pending.pop()
        for child in sorted(here.iterdir()):
            if child.name.startswith("."):
                continue
            if child.is_file():
                files.append(child)
            elif child.is_dir() and depth < MAX_DEPTH and child.resolve() not in seen:
                seen.add(child.resolve())
                pending.append((child, depth + 1))
        if len(files) > MAX_FILES:
            message = f"this folder contains more than {MAX_FILES:,} files"
            hint = "give the folder of one run."
            raise UnknownFormatError(message, file=str(folder), hint=hint)
    return sorted(files)


def _expanded(path: Path, base: Path) -> list[LogFile]:
    file = LogFile(path, str(path), path.relative_to(base).as_posix())
    if file.kind != "zip":
        return [file]
    archive = Archive(file.local, name=file.name)
    members = [
        LogFile(path, f"{path}/{member}", f"{file.inside}/{member}", member, archive)
        for member in archive.members
        if not member.rpartition("/")[2].startswith((".", "__MACOSX"))
    ]
    return [replace(file, archive=archive), *members]


def _read(stream: IO[bytes], stated: int, name: str) -> bytes:
    """Read a document to the end; fail if it is too large."""
    data = b"" if stated > MAX_DOCUMENT_BYTES else stream.read(MAX_DOCUMENT_BYTES + 1)
    if max(stated, len(data)) > MAX_DOCUMENT_BYTES:
        raise too_dense(name, f"it has more than {MAX_DOCUMENT_BYTES:,} bytes")
    return data.removeprefix(UTF8_MARK)


@contextmanager
def _readable(path: Path, name: str) -> Iterator[None]:
    """Turn errors of the system, and those of zipfile for a damaged archive, into typed ones."""
    with readable_file(path):
        try:
            yield
        except _DAMAGES as error:
            hint = f"{TRUNCATED_HINT} Archives with a password cannot be read."
            message = f"this archive cannot be read: {error}"
            raise UnreadableError(message, file=name, hint=hint) from None


@contextmanager
def open_parquet(file: LogFile) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; damage is a typed error."""
    try:
        with pq.ParquetFile(file.local) as opened:
            yield opened
    except UnreadableError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = f"{error!s:.200}".partition("\n")[0]
        message = f"this Parquet file cannot be read: {reason}"
        raise UnreadableError(message, file=file.name, hint=TRUNCATED_HINT) from None


def parquet_rows(file: LogFile, size: int = ROWS_PER_BATCH) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a Parquet file as objects, read in batches."""
    with open_parquet(file) as opened:
        for batch in opened.iter_batches(batch_size=size):
            yield from batch.to_pylist()


def nearest_files(file: LogFile, others: Sequence[LogFile], *, alone: bool) -> list[LogFile]:
    """Return the files in the folder of a file with samples, else in the nearest folder above it.

    Files elsewhere belong to another run, unless the file is the only one with samples (`alone`).
    """
    for folder in PurePosixPath(file.inside).parents:
        neighbours = [other for other in others if PurePosixPath(other.inside).parent == folder]
        if neighbours:
            return neighbours
    return list(others) if alone else []


def run_folder(file: LogFile) -> PurePosixPath:
    """Return the folder RUN of `RUN/KIND/MODEL/FILE`, common to results and predictions."""
    return PurePosixPath(file.name).parent.parent.parent


@without_collection()
def _peek_json(head: bytes) -> Peek:
    """Read the first objects of a text that may be truncated anywhere."""
    text = head.decode("utf-8", "replace")
    start = _skip(text, 0)
    if text.startswith("[", start):
        return _peek("array", list(_values(text, _skip(text, start + 1), ",")))
    objects = list(_values(text, start, "{"))
    return _peek("objects" if len(objects) > 1 else "object", objects)


def _peek(shape: Shape, elements: Sequence[Any]) -> Peek:
    """Summarise the first elements; several are read, since one of them may be damaged."""
    objects = [element for element in elements if isinstance(element, dict)]
    names = frozenset(name for element in objects for name in element)
    return Peek(shape, max(objects, key=len, default={}), names, objects)


def _values(text: str, at: int, before_next: str) -> Iterator[Any]:
    """Iterate over the first values; after a damaged object, continue at the next line."""
    for _ in range(MAX_OBJECTS):
        value, end = _value(text, at, _PEEK_DEPTH)
        yield value
        if end is not None:
            at = _skip(text, end)
        elif before_next == "{":
            at = text.find("\n", at) + 1 or len(text)
        if not text.startswith(before_next, at):
            return
        at = _skip(text, at + 1) if before_next == "," else at


def _skip(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]  # matches nothing, too


def _value(text: str, at: int, depth: int) -> tuple[Any, int | None]:
    """Return the value at an offset and its end; the end is None if the value is truncated."""
    try:
        return _DECODER.raw_decode(text, at)
    except (json.JSONDecodeError, RecursionError):
        pass
    if depth and text.startswith("{", at):
        return _cut_object(text, at + 1, depth), None
    if depth and text.startswith("[", at):
        return [_value(text, _skip(text, at + 1), depth - 1)[0]], None
    return CUT, None


def _cut_object(text: str, at: int, depth: int) -> dict[str, Any]:
    """Return the members of a truncated object."""
    fields: dict[str, Any] = {}
    while name := _NAME.match(text, at):
        value, end = _value(text, name.end(), depth - 1)
        fields[json.loads(name[1])] = value
        if end is None or not text.startswith(",", at := _skip(text, end)):
            break
        at += 1
    return fields
