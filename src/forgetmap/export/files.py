"""Files that are written atomically."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from forgetmap._disk import whole_file
from forgetmap.errors import OutputError
from forgetmap.records import writable


@contextmanager
def complete_file(path: Path, *, overwrite: bool) -> Iterator[IO[str]]:
    """Open a text file that is renamed to `path` only if nothing failed.

    Raises:
        OutputError: something already exists at this path, or it cannot be written to.
    """
    refuse_existing_file(path, overwrite=overwrite)
    with (
        writable(path),
        whole_file(path) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        yield file


def refuse_existing_file(path: Path, *, overwrite: bool) -> None:
    """Raise an error unless `path` is free, or a file that may be replaced."""
    if path.is_dir():
        raise OutputError(f"{path} is a folder", hint="give a file as --out.")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists", hint="choose another --out, or add --overwrite to replace it."
        )
