"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from forgetmap._disk import sync
from forgetmap.errors import OutputError
from forgetmap.records import writable


@contextmanager
def complete_file(path: Path, *, overwrite: bool) -> Iterator[IO[str]]:
    """A text file to write into that takes the name `path` only if nothing failed.

    Raises:
        OutputError: there is something at this path already, or it cannot be written to.
    """
    refuse_existing_file(path, overwrite=overwrite)
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(partial).chmod(0o644)
            Path(partial).replace(path)
            sync(path.parent)
        finally:
            Path(partial).unlink(missing_ok=True)


def refuse_existing_file(path: Path, *, overwrite: bool) -> None:
    """Raise unless `path` is free, or a file that may be replaced."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder", hint="name a file for --out.")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists already", hint="choose another --out, or replace it with --overwrite."
        )
