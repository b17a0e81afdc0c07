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
"""Bytes kept; what was not used for longest goes first."""
Kind = Literal["imports", "remote", "explorer", "scores", "lab", "scripts"]
_numbers = itertools.count()


def cache_root() -> Path:
    """Where it is: FORGETMAP_CACHE, or the cache folder of the user."""
    folder = os.environ.get("FORGETMAP_CACHE")
    return Path(folder) if folder else user_cache_path("forgetmap")


def cached_folder(key: str, kind: Kind = "imports") -> Path:
    """The place of a run, a remote folder or tables in the cache; asking for it counts as use."""
    root = _writable_root(kind)
    folder = root / key
    with suppress(OSError):  # another process makes room already, or it is of another user
        if folder.is_dir():
            os.utime(folder)
        else:
            _make_room(root)
    return folder


def _writable_root(kind: Kind) -> Path:
    """The cache, or a folder for this process where there is none to write to."""
    root = cache_root() / kind
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return temporary_folder()
    return root if os.access(root, os.W_OK) else temporary_folder()


def _make_room(root: Path) -> None:
    """Forget what was not used for longest, once there is too much."""
    kept = sorted(
        ((child.stat().st_mtime, child) for child in root.iterdir() if child.is_dir()),
        key=lambda pair: pair[0],
        reverse=True,
    )
    total = 0
    for used, folder in kept:
        total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if total > MAX_BYTES and time.time() - used > 3600:  # perhaps still in use
            shutil.rmtree(folder, ignore_errors=True)


def temporary_folder() -> Path:
    """A folder for large intermediate files, gone when the process ends."""
    folder = _made_folder()
    folder.mkdir(exist_ok=True)  # the engine removes it when it is closed
    return folder


def temporary_path(suffix: str = "") -> Path:
    """A place for an intermediate file or folder that nobody else uses."""
    return temporary_folder() / f"{next(_numbers)}{suffix}"


@cache
def _made_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="forgetmap-spill-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
