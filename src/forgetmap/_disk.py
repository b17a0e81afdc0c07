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
"""Name of the last field of a line or a manifest."""
READ_BYTES = 4 << 20
"""Bytes per read."""
TURN_SECONDS = 0.05
"""Seconds between two attempts to take a lock that another process holds."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_HAS_FOLDER_HANDLES = hasattr(os, "O_DIRECTORY")
"""Windows cannot open folders, and flushes only files that are open for writing."""
_OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2


def checksum_of(path: Path) -> str:
    """Return the XXH3 checksum of a file; it detects damage, not manipulation."""
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while part := file.read(READ_BYTES):
            digest.update(part)
    return digest.hexdigest()


def stamp_of(path: Path) -> str:
    """Return a text that changes whenever the file is changed or replaced.

    The modification time alone is not enough: the clock may be set back, and programs copy times.
    The change time of the inode (ctime) cannot be set by programs.
    """
    stat = path.stat()
    return f"{stat.st_dev}|{stat.st_ino}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ctime_ns}"


def make_line(content: Mapping[str, Any], fingerprint: str = "") -> bytes:
    """Return a line of JSON that ends with a checksum; the fingerprint ties it to one run."""
    body = (
        json.dumps(dict(content), ensure_ascii=False)
        .removesuffix("}")
        .encode("utf-8", "surrogatepass")
    )
    return body + b', "%s": "%s"}\n' % (CHECKSUM.encode(), _line_checksum(body, fingerprint))


def read_line(raw: bytes, fingerprint: str = "") -> dict[str, Any] | None:
    """Return the content of a line; None if it is damaged or belongs to another run."""
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
    """Flush a file, or the entries of a folder, to the disk."""
    if not _HAS_FOLDER_HANDLES and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if _HAS_FOLDER_HANDLES else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Flush a folder and everything in it to the disk; files before their folders."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file that is flushed and renamed to `path` if no error is raised."""
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
    """Exchange two names atomically; return False if the system does not support it."""
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
    """Hold a lock file during a write; it is removed at the end, also after an error.

    The system releases the lock when a process dies, so a leftover file locks nothing. On file
    systems without locks, nothing is locked.

    Args:
        path: the lock file.
        of: the path that is written, for error messages.

    Raises:
        OutputError: another process is writing it, or the folder is not writable.
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
    """Wait for a lock file and hold it; on systems without locks, hold nothing."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _OWN, 0o644)
    try:
        while _is_locked(handle) is False:
            time.sleep(TURN_SECONDS)
        yield
    finally:
        os.close(handle)


def _lock(path: Path, of: Path) -> int | None:
    while True:
        # Do not follow a link: its target would be overwritten.
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
        # The previous holder removed the file before we got the lock, so this lock protects
        # nothing.
        os.close(handle)


def _busy(handle: int, of: Path) -> OutputError:
    try:
        owner = json.loads(os.pread(handle, 1_000, 0))
        who = f" (process {int(owner['process'])}, since {owner['since']})"
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):  # not written yet
        who = ""
    finally:
        os.close(handle)
    return OutputError(
        f"{of} is already being written{who}",
        hint="wait for it to finish, stop it, or choose another folder.",
    )


def is_there(handle: int, path: Path) -> bool:
    """Whether an open file or folder still exists under this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def in_use(folder: Path) -> Iterator[bool]:
    """Mark a folder as used by this process; False if another process has removed or locked it."""
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
    """Remove a leftover folder, unless a process uses it."""
    handle = _open_folder(folder)
    if handle is None:
        return
    try:
        if _is_locked(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _open_folder(folder: Path) -> int | None:
    """Open a folder; None if it does not exist or belongs to another user."""
    if not _HAS_FOLDER_HANDLES:
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _OWN)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _is_locked(handle: int) -> bool | None:
    """Try to take the lock: whether we hold it now; None if the file system has no locks."""
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
