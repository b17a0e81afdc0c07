"""What was read from logs is kept in the user's cache, and read again only when it changed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path

from forgetmap.records import spill_folder
from forgetmap.sources import Log

LARGEST = 20 << 30
"""Bytes kept; what was not used for longest goes first."""
Kind = Literal["imports", "remote", "explorer", "scores"]
FORMAT = 5
"""Rises when the same log is to be read otherwise than before."""


def cache_root() -> Path:
    """Where it is: FORGETMAP_CACHE, or the cache folder of the user."""
    given = os.environ.get("FORGETMAP_CACHE")
    return Path(given) if given else user_cache_path("forgetmap")


def key_of(files: Sequence[Path], logs: Sequence[Log], *options: object) -> str:
    """The same only for the same files, unchanged, read in the same way."""
    parts = [version("forgetmap"), str(FORMAT), repr(options)]
    for path in files:
        stat = path.stat()
        parts.append(f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}")
    parts += [f"{log.adapter}|{log.format}|{[file.inside for file in log.files]}" for log in logs]
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def cached_folder(key: str, kind: Kind = "imports") -> Path:
    """The place of a run, a remote folder or tables in the cache; asking for it counts as use."""
    root = _writable_root(kind)
    folder = root / key
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
        return spill_folder()
    return root if os.access(root, os.W_OK) else spill_folder()


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
        if total > LARGEST and time.time() - used > 3600:  # perhaps still in use
            shutil.rmtree(folder, ignore_errors=True)
