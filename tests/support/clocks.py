"""Clocks that were set back."""

from __future__ import annotations

import os
from pathlib import Path


def change_at_the_same_time(path: Path, content: bytes) -> None:
    """Other bytes in the same file, changed at the same time as before if one believes the file."""
    old = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    while path.stat().st_ctime_ns == old.st_ctime_ns or path.stat().st_mtime_ns != old.st_mtime_ns:
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
