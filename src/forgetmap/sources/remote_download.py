"""Download of remote files into the user's cache: concurrent, and atomic for each file.

An interrupted copy resumes: a journal lists the files that are complete, and these are not fetched
again unless they change.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from fsspec.callbacks import Callback, TqdmCallback

from forgetmap._disk import make_line, read_line, sync, take_turn, whole_file
from forgetmap.errors import NetworkError
from forgetmap.sources.remote_failures import KEPT, without_secrets
from forgetmap.sources.remote_listing import (
    PARALLEL,
    CopyLimits,
    RemoteEntry,
    RemoteListing,
    speaks,
    too_much,
)

DATA, JOURNAL, LOCK, PARTIAL = "data", "journal.jsonl", "lock", "partial"

OnProgress = Callable[[str, int, int], None]
"""Callback for progress: name of the file, bytes copied so far, bytes of all files."""
Version = tuple[str | None, int]
"""The version of a file that was copied, and the size of the copy."""


class Stopped(Exception):  # noqa: N818  # not an error of this file
    """The copy of a file is cancelled because that of another file failed."""


class Meter:
    """Count the bytes of a download, report progress, and stop it above the limit."""

    def __init__(
        self, address: str, listing: RemoteListing, limits: CopyLimits, show: OnProgress | None
    ) -> None:
        self.address, self._limits, self._show = address, limits, show
        self._lock, self._is_stopped = threading.Lock(), False
        self._done, self._total = 0, listing.total
        if listing.total > limits.total:
            raise too_much(address, f"{listing.total:,} bytes")

    def expect(self, entries: Sequence[RemoteEntry]) -> None:
        """Set the entries to fetch; the others are already in the cache."""
        self._total = sum(entry.size or 0 for entry in entries)

    def stop(self) -> None:
        """Cancel the download of all files."""
        self._is_stopped = True

    def add(self, name: str, count: int) -> None:
        """Add bytes of a file."""
        if self._is_stopped:
            raise Stopped
        with self._lock:
            self._done += count
            if self._done > self._limits.total:
                raise too_much(self.address, f"more than {self._limits.total:,} bytes")
            if self._show is not None and count:
                self._show(name, self._done, max(self._total, self._done))


class _FileCallback(Callback):  # type: ignore[misc]  # fsspec has no types
    """Callback of fsspec that reports the bytes of one file to the meter."""

    def __init__(self, add: Callable[[int], None]) -> None:
        super().__init__()
        self._add = add

    def relative_update(self, inc: int = 1) -> None:
        """Add bytes."""
        self._add(inc)


class _Bar:
    """Progress bar for the Hugging Face hub; with one, a file is fetched by a single request."""

    def __init__(self, add: Callable[[int], None], *, total: int | None = None) -> None:
        self._add, self.total, self.n = add, total, 0

    def update(self, count: int) -> None:
        """Add bytes."""
        self.n += count
        self._add(count)

    def close(self) -> None:
        """Do nothing, since no bar is shown."""


def copy_entries(system: Any, listing: RemoteListing, home: Path, name: str, meter: Meter) -> int:
    """Copy changed files into a folder of the cache, and remove files that no longer exist.

    Args:
        system: file system of the remote files.
        listing: the remote files.
        home: folder of the cache.
        name: name of the file or folder in it.
        meter: counts bytes.

    Returns:
        Number of files copied.
    """
    home.mkdir(parents=True, exist_ok=True)
    target = home / DATA / name
    with take_turn(home / LOCK):
        shutil.rmtree(home / PARTIAL, ignore_errors=True)
        _remove_others(target, listing)
        known = _read_journal(home)
        by_path = {
            target / entry.inside if entry.inside else target: entry for entry in listing.entries
        }
        pending = {path: one for path, one in by_path.items() if not _is_current(path, one, known)}
        meter.expect(list(pending.values()))
        old = {e.inside: known[e.inside] for p, e in by_path.items() if p not in pending}
        (home / PARTIAL).mkdir()
        try:
            with _journal(home, old) as note:
                _copy_all(system, pending, home / PARTIAL, note, meter)
        finally:
            shutil.rmtree(home / PARTIAL, ignore_errors=True)
    return len(pending)


def _remove_others(target: Path, listing: RemoteListing) -> None:
    """Remove local files that no longer exist remotely, or that block a file or folder."""
    if target.exists() and target.is_dir() != listing.is_folder:
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    if not target.is_dir():
        return
    expected = {target / entry.inside for entry in listing.entries}
    for folder, _, files in os.walk(target, topdown=False):
        for file in files:
            if Path(folder, file) not in expected:
                Path(folder, file).unlink()
        if not any(Path(folder).iterdir()):
            Path(folder).rmdir()


def _is_current(local: Path, entry: RemoteEntry, known: Mapping[str, Version]) -> bool:
    if entry.version is None or not local.is_file():
        return False
    size = local.stat().st_size
    return known.get(entry.inside) == (entry.version, size) and entry.size in (None, size)


def _copy_all(
    system: Any,
    entries: Mapping[Path, RemoteEntry],
    partial_folder: Path,
    note: Callable[[RemoteEntry, int], None],
    meter: Meter,
) -> None:
    """Copy files concurrently; the first error cancels the rest."""
    if not entries:
        return

    def copy(index: int, local: Path, entry: RemoteEntry) -> None:
        size = _copy_whole(system, entry, local, partial_folder / str(index), meter)
        note(entry, size)

    with ThreadPoolExecutor(min(PARALLEL, len(entries))) as pool:
        jobs = [
            pool.submit(copy, index, local, entry)
            for index, (local, entry) in enumerate(entries.items())
        ]
        try:
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            meter.stop()
            for job in jobs:
                job.cancel()
            raise


def _copy_whole(
    system: Any, entry: RemoteEntry, local: Path, partial_file: Path, meter: Meter
) -> int:
    """Copy to a partial file, then rename it, so that a truncated copy is never used."""
    name = PurePosixPath(entry.inside or unquote(without_secrets(entry.remote))).name
    _get(system, entry.remote, partial_file, partial(meter.add, name))
    size = partial_file.stat().st_size
    if entry.size not in (None, size):
        raise NetworkError(
            f"only {size:,} of {entry.size:,} bytes of {entry.inside or 'it'} were received",
            file=meter.address,
            hint=f"{KEPT} Check whether it is being written.",
        )
    meter.add(name, 0)
    sync(partial_file)
    local.parent.mkdir(parents=True, exist_ok=True)
    partial_file.replace(local)
    return size


def _get(system: Any, remote: str, local: Path, add: Callable[[int], None]) -> None:
    """Copy a file by a single request, with the options its service needs for that."""
    if speaks(system, "hf"):
        callback = TqdmCallback(tqdm_cls=partial(_Bar, add))
        system.get_file(remote, str(local), callback=callback)
    elif speaks(system, "s3"):
        # Parts fetched concurrently might be of two versions.
        system.get_file(remote, str(local), callback=_FileCallback(add), max_concurrency=1)
    else:
        system.get_file(remote, str(local), callback=_FileCallback(add))


def _read_journal(home: Path) -> dict[str, Version]:
    """Read the journal of complete files; truncated lines are ignored."""
    try:
        with (home / JOURNAL).open("rb") as stream:
            lines = [read_line(raw) for raw in stream]
    except FileNotFoundError:
        return {}
    return {line["file"]: (line["version"], line["size"]) for line in lines if line is not None}


@contextmanager
def _journal(
    home: Path, known: Mapping[str, Version]
) -> Iterator[Callable[[RemoteEntry, int], None]]:
    """Keep a journal with a line for each complete file, which survives a crash.

    It starts with the files that are up to date; those to be fetched are added once complete.
    """
    with whole_file(home / JOURNAL) as whole:
        whole.write_bytes(b"".join(_line(inside, *version) for inside, version in known.items()))
    with (home / JOURNAL).open("ab", buffering=0) as stream:
        yield lambda entry, size: _append(stream, entry, size)


def _append(stream: Any, entry: RemoteEntry, size: int) -> None:
    stream.write(_line(entry.inside, entry.version, size))


def _line(inside: str, version: str | None, size: int) -> bytes:
    return make_line({"file": inside, "version": version, "size": size})
