"""A model folder under construction: hidden until it is complete, and resumable.

    .NAME.merging/
        lock            held while a process writes
        merge.json      identifies the merge
        done.jsonl      a line per written piece, with its checksum
        model/          becomes NAME
        replaced/       the earlier NAME, between two renames

Pieces are verified by their checksums, because after a crash of the machine a line may be on disk
without its values.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import xxhash

from forgetmap._disk import exchange, only_writer, sync, sync_tree
from forgetmap.errors import ForgetmapError, OutputError
from forgetmap.merge.output.layout import Shard, WeightLayout

RECIPE_FILE = "merge.yaml"
"""Name of the recipe beside the weights, which marks a folder that forgetmap merged."""
SYNC_BYTES = 128 << 20
"""Bytes after which writing to disk is started, so that little is left to wait for at the end."""
SIDECAR_BYTES = 32 << 20
"""Bytes reserved for everything beside the weights."""
IO_BYTES = 1 << 20
"""Number of bytes read or written by one call."""

Piece = tuple[str, int, int]
"""Name of a tensor, first byte within it, number of bytes."""


class AtomicFolder:
    """Accepts pieces of tensors in any order from any thread; see `open_atomic_folder`."""

    def __init__(self, out: Path, workspace: Path, layout: WeightLayout) -> None:
        self.out = out
        self.workspace = workspace
        self.path = workspace / "model"
        self.layout = layout
        self.done: set[Piece] = set()
        self._shards = {name: shard for shard in layout.shards for name in shard.starts}
        self._files: dict[str, int] = {}
        self._journal = -1
        self._unsynced = 0
        self._lock = Lock()
        self._syncer = ThreadPoolExecutor(1, "sync")
        self._syncing: Future[None] | None = None

    def write(self, piece: Piece, values: memoryview) -> None:
        """Write a piece and record it."""
        name, start, count = piece
        shard = self._shards[name]
        file, at = self._files[shard.name], shard.starts[name] + start
        offset = 0
        while offset < count:
            offset += os.pwrite(file, values[offset : offset + IO_BYTES], at + offset)
        line = json.dumps([name, start, count, xxhash.xxh3_128_hexdigest(values)]) + "\n"
        with self._lock:
            os.write(self._journal, line.encode())
            self.done.add(piece)
            self._unsynced += count
            # In a separate thread: waiting for the disk here would block all others.
            if self._unsynced >= SYNC_BYTES and (not self._syncing or self._syncing.done()):
                self._unsynced = 0
                self._syncing = self._syncer.submit(os.fdatasync, file)

    def flush(self) -> None:
        """Wait until all weights are on the disk."""
        for file in self._files.values():
            os.fsync(file)

    def publish(self) -> None:
        """Rename the folder to its final name, in place of an earlier one."""
        # Content before names: after a crash, a name on the disk must belong to complete files.
        sync_tree(self.path)
        is_taken = self.out.exists() and any(self.out.iterdir())
        if not (is_taken and exchange(self.path, self.out)):
            if is_taken:
                self.out.rename(self.workspace / "replaced")
            self.path.rename(self.out)
        sync(self.out.parent)
        shutil.rmtree(self.workspace)

    def _begin(self) -> None:
        """Open all files, and verify what an earlier attempt wrote."""
        self.path.mkdir(exist_ok=True)
        # O_APPEND, so that lines of several threads never overlap.
        self._journal = os.open(
            self.workspace / "done.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666
        )
        for shard in self.layout.shards:
            self._files[shard.name] = _open_shard(self.path / shard.name, shard)
        for piece, checksum in self._read_journal():
            if self._checksum(piece) == checksum:
                self.done.add(piece)

    def _read_journal(self) -> Iterator[tuple[Piece, str]]:
        lines = (self.workspace / "done.jsonl").read_bytes().split(b"\n")
        for line in lines[:-1]:
            try:
                name, start, count, checksum = json.loads(line)
            except ValueError:  # truncated when the earlier attempt was killed
                continue
            if name in self._shards:
                yield (name, start, count), checksum
        if lines[-1]:
            # A truncated line must not merge with the next one.
            os.write(self._journal, b"\n")

    def _checksum(self, piece: Piece) -> str:
        name, start, count = piece
        shard = self._shards[name]
        digest, at = xxhash.xxh3_128(), shard.starts[name] + start
        end = at + count
        while at < end:
            values = os.pread(self._files[shard.name], min(IO_BYTES, end - at), at)
            if not values:
                break
            digest.update(values)
            at += len(values)
        return digest.hexdigest()

    def _end(self) -> None:
        self._syncer.shutdown()
        for file in [*self._files.values(), self._journal]:
            if file >= 0:
                os.close(file)


@contextmanager
def open_atomic_folder(
    out: Path, layout: WeightLayout, stamp: str, *, overwrite: bool
) -> Iterator[AtomicFolder]:
    """Open the folder `out` under construction, with the pieces of an earlier attempt.

    Args:
        out: path of the final folder.
        layout: layout of its weights.
        stamp: hash of everything the weights depend on; pieces with another stamp are deleted.
        overwrite: a merged model of this name may be replaced.

    Raises:
        OutputError: the path is taken, another process is writing it, or the disk is full.
    """
    out = out.absolute()
    workspace = out.parent / f".{out.name}.merging"
    with _explain_os_errors(out, workspace):
        _undo_rename(out, workspace)
        refuse_to_replace(out, overwrite=overwrite)
        workspace.mkdir(parents=True, exist_ok=True)
    with only_writer(workspace / "lock", of=out):
        folder = AtomicFolder(out, workspace, layout)
        try:
            with _explain_os_errors(out, workspace):
                _clear_other_merge(workspace, stamp)
                _check_room(workspace, layout)
                folder._begin()  # noqa: SLF001  # the other half of this module
                yield folder
        finally:
            folder._end()  # noqa: SLF001


def refuse_to_replace(out: Path, *, overwrite: bool) -> None:
    """Raise an error unless `out` is free, or a merged model that may be replaced."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise OutputError(
            f"{out} is not empty",
            hint="choose another --out, or add --overwrite to replace a merged model.",
        )
    if not (out / RECIPE_FILE).is_file():
        raise OutputError(
            f"{out} is not a model merged by forgetmap, so it is not replaced",
            hint="choose another folder for the result.",
        )


def discard_attempt(out: Path) -> None:
    """Delete an attempt that cannot succeed."""
    out = out.absolute()
    shutil.rmtree(out.parent / f".{out.name}.merging", ignore_errors=True)


def _undo_rename(out: Path, workspace: Path) -> None:
    """Undo the first of two renames if an earlier attempt was killed between them."""
    replaced = workspace / "replaced"
    if replaced.is_dir() and not out.exists():
        replaced.rename(out)


def _clear_other_merge(workspace: Path, stamp: str) -> None:
    """Delete the work of a different merge."""
    mark = workspace / "merge.json"
    try:
        same = json.loads(mark.read_text(encoding="utf-8")) == {"stamp": stamp}
    except (FileNotFoundError, ValueError):
        same = False
    if same:
        return
    # Keep the lock, which we hold.
    for path in workspace.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    mark.write_text(json.dumps({"stamp": stamp}), encoding="utf-8")


def _check_room(workspace: Path, layout: WeightLayout) -> None:
    # Blocks, not sizes: pieces are written in any order, so incomplete files have holes.
    present = sum(path.stat().st_blocks * 512 for path in workspace.rglob("*") if path.is_file())
    needed = layout.size + SIDECAR_BYTES - present
    free = shutil.disk_usage(workspace).free
    if needed > free:
        if not (workspace / "done.jsonl").exists():
            shutil.rmtree(workspace)
        raise OutputError(
            f"the merged model needs {needed / 1e9:,.1f} GB, and the disk of {workspace.parent} "
            f"has {free / 1e9:,.1f} GB left",
            hint="free some space, choose another --out, or a narrower --out-dtype.",
        )


def _open_shard(path: Path, shard: Shard) -> int:
    """Open a file with its header, whatever values it has so far."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    os.pwrite(file, shard.head, 0)
    return file


@contextmanager
def _explain_os_errors(out: Path, workspace: Path) -> Iterator[None]:
    """Convert system errors of writing to typed errors."""
    try:
        yield
    except ForgetmapError:
        raise
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise OutputError(
                f"the disk is full while writing {out}: {error.strerror}",
                hint="free some space and run the same command to resume; to give up, delete "
                f"{workspace}.",
            ) from error
        raise OutputError(
            f"cannot write {out}: {error.strerror or error}",
            hint="choose a writable folder.",
        ) from error
