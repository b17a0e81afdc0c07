"""Durable files: flushed, replaced atomically, locked by one process, verified."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xxhash

from forgetmap.errors import OutputError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

CHECKSUM = "checksum"
"""The last field of a line or a manifest."""
READ_BYTES = 4 << 20
"""Bytes that are read at once."""
TURN_SECONDS = 0.05
"""Between two looks at a lock that another process holds."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_HAS_FOLDER_HANDLES = hasattr(os, "O_DIRECTORY")
"""Windows opens no folders, and brings only files to the disk that are open for writing."""
_OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2


def checksum_of(path: Path) -> str:
    """XXH3 of all bytes of a file: finds damage, not malice."""
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while part := file.read(READ_BYTES):
            digest.update(part)
    return digest.hexdigest()


def stamp_of(path: Path) -> str:
    """The same only for the same file, unchanged.

    A clock that was set back, or a program that copies times, can give a changed file its old time
    of change; the time at which the system last touched its entry is nobody's to set.
    """
    stat = path.stat()
    return f"{stat.st_dev}|{stat.st_ino}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ctime_ns}"


def make_line(content: Mapping[str, Any], fingerprint: str = "") -> bytes:
    """A line of JSON whose last field is its checksum, which holds for this run only."""
    body = (
        json.dumps(dict(content), ensure_ascii=False)
        .removesuffix("}")
        .encode("utf-8", "surrogatepass")
    )
    return body + b', "%s": "%s"}\n' % (CHECKSUM.encode(), _line_checksum(body, fingerprint))


def read_line(raw: bytes, fingerprint: str = "") -> dict[str, Any] | None:
    """What a line holds; None if it is not as it was written, or of another run."""
    body, mark, end = raw.rpartition(b', "%s": "' % CHECKSUM.encode())
    if not mark or end != _line_checksum(body, fingerprint) + b'"}\n':
        return None
    try:
        content = json.loads(body + b"}")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _line_checksum(body: bytes, fingerprint: str) -> bytes:
    return xxhash.xxh3_64_hexdigest(
        body, seed=xxhash.xxh3_64_intdigest(fingerprint.encode())
    ).encode()


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if not _HAS_FOLDER_HANDLES and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if _HAS_FOLDER_HANDLES else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Bring a folder with all that is in it to the disk; content before names."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write that takes the name `path` only if nothing failed; on the disk before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names at once, so that neither is ever missing; False where systems cannot."""
    if not _HAS_FOLDER_HANDLES:
        return False
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _RENAME_SWAP)
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    else:
        return False
    return not failed


@contextmanager
def only_writer(path: Path, *, of: Path) -> Iterator[None]:
    """Hold a lock file while something is written; it goes when this ends, however it ends.

    The system gives the lock back when a process dies, so a file that is left behind locks nothing.
    Where a file system knows no locks, nothing is held.

    Args:
        path: the lock file.
        of: what is written, as users know it.

    Raises:
        OutputError: another process writes it, or nobody may write there.
    """
    try:
        handle = _lock(path, of)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write {of}: {error.strerror or error}",
            hint="choose a writable folder on a disk with enough space.",
        ) from None
    try:
        yield
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)
            os.close(handle)


@contextmanager
def take_turn(path: Path) -> Iterator[None]:
    """Hold a lock file once nobody else does; where a system knows no locks, hold nothing."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _OWN, 0o644)
    try:
        while _is_locked(handle) is False:
            time.sleep(TURN_SECONDS)
        yield
    finally:
        os.close(handle)


def _lock(path: Path, of: Path) -> int | None:
    while True:
        # Not through a link: what it leads to would be written over.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _OWN, 0o644)
        is_locked = _is_locked(handle)
        if is_locked is False:
            raise _busy(handle, of)
        if is_locked is None:
            os.close(handle)
            return None
        if is_there(handle, path):
            owner = {"process": os.getpid(), "since": datetime.now(UTC).isoformat(" ", "seconds")}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(owner).encode(), 0)
            return handle
        # Whoever held it removed the file before the lock was ours: it locks nobody out.
        os.close(handle)


def _busy(handle: int, of: Path) -> OutputError:
    try:
        owner = json.loads(os.pread(handle, 1_000, 0))
        who = f" (process {int(owner['process'])}, since {owner['since']})"
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):  # it has just begun
        who = ""
    finally:
        os.close(handle)
    return OutputError(
        f"{of} is already being written{who}",
        hint="wait for it to finish, stop it, or choose another folder.",
    )


def is_there(handle: int, path: Path) -> bool:
    """Whether an open file or folder still has this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def in_use(folder: Path) -> Iterator[bool]:
    """Mark a folder as used by this process; False where another took it for left over."""
    if not _HAS_FOLDER_HANDLES:
        yield folder.is_dir()
        return
    handle = _open_folder(folder)
    if handle is None:
        yield False
        return
    try:
        yield _is_locked(handle) is not False and is_there(handle, folder)
    finally:
        os.close(handle)


def remove_unused(folder: Path) -> None:
    """Remove a folder that a process left behind, unless one uses it."""
    handle = _open_folder(folder)
    if handle is None:
        return
    try:
        if _is_locked(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _open_folder(folder: Path) -> int | None:
    """None where there is none, or one of another user: it is not for us to use or remove."""
    if not _HAS_FOLDER_HANDLES:
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _OWN)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _is_locked(handle: int) -> bool | None:
    """Whether the lock is ours now; None where the file system knows no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True
