"""Folders for files of forgetmap: the cache of the user, and a temporary one per process."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path

MAX_BYTES = 20 << 30
"""Size of the cache in bytes; beyond it, the least recently used entries are removed."""
Kind = Literal["imports", "remote", "explorer", "scores", "lab", "scripts"]
_numbers = itertools.count()


def cache_root() -> Path:
    """Return the cache folder: FORGETMAP_CACHE, or the cache folder of the user."""
    folder = os.environ.get("FORGETMAP_CACHE")
    return Path(folder) if folder else user_cache_path("forgetmap")


def cached_folder(key: str, kind: Kind = "imports") -> Path:
    """Return the folder of a run, a remote folder or tables in the cache, and mark it as used."""
    root = _writable_root(kind)
    folder = root / key
    with suppress(OSError):  # being removed by another process, or not ours
        if folder.is_dir():
            os.utime(folder)
        else:
            _make_room(root)
    return folder


def _writable_root(kind: Kind) -> Path:
    """Return the cache folder, or a temporary one of this process if it is not writable."""
    root = cache_root() / kind
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return temporary_folder()
    return root if os.access(root, os.W_OK) else temporary_folder()


def _make_room(root: Path) -> None:
    """Remove the least recently used entries if the cache is too large."""
    kept = sorted(
        ((child.stat().st_mtime, child) for child in root.iterdir() if child.is_dir()),
        key=lambda pair: pair[0],
        reverse=True,
    )
    total = 0
    for used, folder in kept:
        files = (path.stat() for path in folder.rglob("*") if path.is_file())
        total += sum(file.st_size // file.st_nlink for file in files)  # links share their bytes
        if total > MAX_BYTES and time.time() - used > 3600:  # perhaps still in use
            shutil.rmtree(folder, ignore_errors=True)


def temporary_folder() -> Path:
    """Return a folder for large intermediate files, removed when the process ends."""
    folder = _made_folder()
    folder.mkdir(exist_ok=True)  # the engine removes it when it is closed
    return folder


def temporary_path(suffix: str = "") -> Path:
    """Return a new path for an intermediate file or folder."""
    return temporary_folder() / f"{next(_numbers)}{suffix}"


@cache
def _made_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="forgetmap-spill-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
