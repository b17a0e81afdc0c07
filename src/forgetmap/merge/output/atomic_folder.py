"""A model folder under construction: hidden until it is complete, and resumable.

    .NAME.merging/
        lock            held while somebody writes
        merge.json      what is being made
        done.jsonl      a line per piece that was written, with its checksum
        model/          becomes NAME
        replaced/       what was called NAME before, for the moment between two renamings

Pieces are verified by their checksum, not because a line says so: after a crash of the whole
machine lines may have reached the disk before the values did.
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
"""The recipe beside the weights, and the mark of a folder that forgetmap merged."""
SYNC_BYTES = 128 << 20
"""Bytes after which the disk is asked to begin writing: at the end little is left to wait for."""
SIDECAR_BYTES = 32 << 20
"""Room for everything beside the weights."""
IO_BYTES = 1 << 20
"""Bytes read or written by one call."""

Piece = tuple[str, int, int]
"""Name of a tensor, first byte within it, number of bytes."""


class AtomicFolder:
    """Takes pieces of tensors in any order from any thread; see `open_atomic_folder`."""

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
        """Write a piece and remember that it is there."""
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
            # In a thread of its own: waiting for the disk here would hold up all others.
            if self._unsynced >= SYNC_BYTES and (not self._syncing or self._syncing.done()):
                self._unsynced = 0
                self._syncing = self._syncer.submit(os.fdatasync, file)

    def flush(self) -> None:
        """Wait until all weights are on the disk."""
        for file in self._files.values():
            os.fsync(file)

    def publish(self) -> None:
        """Give the folder its name, in place of whatever had it."""
        # Content before names: after a crash, a name on the disk must stand for whole files.
        sync_tree(self.path)
        is_taken = self.out.exists() and any(self.out.iterdir())
        if not (is_taken and exchange(self.path, self.out)):
            if is_taken:
                self.out.rename(self.workspace / "replaced")
            self.path.rename(self.out)
        sync(self.out.parent)
        shutil.rmtree(self.workspace)

    def _begin(self) -> None:
        """Open all files, and look what an earlier attempt has left."""
        self.path.mkdir(exist_ok=True)
        # O_APPEND, so that lines of several threads never lie over each other.
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
            except ValueError:  # cut off when the earlier attempt was killed
                continue
            if name in self._shards:
                yield (name, start, count), checksum
        if lines[-1]:
            # A line that was cut off must not swallow the next one.
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
    """The folder `out` in the making, with whatever an earlier attempt has written.

    Args:
        out: the folder to be.
        layout: of its weights.
        stamp: of everything the weights depend on; what another one left is thrown away.
        overwrite: a merged model that has this name may be replaced.

    Raises:
        OutputError: the place is taken, another process is at it, or the disk is full.
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
    """Raise unless `out` is free, or a merged model that may be replaced."""
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
    """Forget an attempt that cannot succeed."""
    out = out.absolute()
    shutil.rmtree(out.parent / f".{out.name}.merging", ignore_errors=True)


def _undo_rename(out: Path, workspace: Path) -> None:
    """If an earlier attempt was killed between two renamings, undo the first."""
    replaced = workspace / "replaced"
    if replaced.is_dir() and not out.exists():
        replaced.rename(out)


def _clear_other_merge(workspace: Path, stamp: str) -> None:
    """Keep what is there only if it belongs to the same merge."""
    mark = workspace / "merge.json"
    try:
        same = json.loads(mark.read_text(encoding="utf-8")) == {"stamp": stamp}
    except (FileNotFoundError, ValueError):
        same = False
    if same:
        return
    # The lock stays: we hold it.
    for path in workspace.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    mark.write_text(json.dumps({"stamp": stamp}), encoding="utf-8")


def _check_room(workspace: Path, layout: WeightLayout) -> None:
    # Blocks, not sizes: pieces come in any order, so files that are not whole have holes.
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
    """A file with its header, whatever values it has so far."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    os.pwrite(file, shard.head, 0)
    return file


@contextmanager
def _explain_os_errors(out: Path, workspace: Path) -> Iterator[None]:
    """Turn what the system says about writing into a typed error."""
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
