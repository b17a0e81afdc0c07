"""Database files that are created once and reused.

A file gets its name only when it is complete, and is never changed, so that several servers can
share it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import duckdb

from forgetmap._cache import cached_folder, temporary_path
from forgetmap.records import fresh_name, literal, writable

FORMAT = 3
"""Increased when the tables in the files change."""


class DiskCache:
    """Database files by cache key.

    Args:
        engine: engine that opens them.
        persistent: use the cache of the user; otherwise files are removed when the process ends.
    """

    def __init__(self, engine: duckdb.DuckDBPyConnection, *, persistent: bool) -> None:
        self._engine = engine
        self._persistent = persistent
        self._opened: dict[Path, str] = {}

    def open(self, cache_key: object, make: Callable[[str], None]) -> str:
        """Attach a database for reading, and return its name.

        Args:
            cache_key: determines the content; None is never reused.
            make: writes the tables into the database of this name.
        """
        file = self._file(cache_key)
        if file not in self._opened:
            self._opened[file] = self._attached(file) or self._make(file, make)
        return self._opened[file]

    def text(self, cache_key: object, make: Callable[[], str]) -> str:
        """Return a short text that is computed once and stored in the cache of the user.

        Args:
            cache_key: determines the text; None is never reused.
            make: returns the text.
        """
        if cache_key is None or not self._persistent:
            return make()
        file = self._file(cache_key).with_name("text.json")
        if file.is_file():
            return file.read_text(encoding="utf-8")
        text = make()
        partial = file.with_name(f".{os.getpid()}-{fresh_name()}")
        with writable(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        return text

    def close(self, name: str) -> None:
        """Detach a database; its file is kept."""
        self._opened = {file: other for file, other in self._opened.items() if other != name}
        self._engine.execute(f"DETACH {name}")

    def _file(self, cache_key: object) -> Path:
        if cache_key is None or not self._persistent:
            return temporary_path(".duckdb")
        parts = (version("forgetmap"), duckdb.__version__, FORMAT, cache_key)
        key = blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return cached_folder(key, "explorer") / "tables.duckdb"

    def _attached(self, file: Path) -> str | None:
        """Attach an existing file; None if it is missing or unreadable."""
        if not file.is_file():
            return None
        name = fresh_name()
        try:
            self._engine.execute(f"ATTACH {literal(str(file))} AS {name} (READ_ONLY)")
        except duckdb.Error:
            return None
        return name

    def _make(self, file: Path, make: Callable[[str], None]) -> str:
        partial = file.with_name(f".{os.getpid()}-{fresh_name()}")
        name = fresh_name()
        with writable(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._engine.execute(f"ATTACH {literal(str(partial))} AS {name}")
                try:
                    make(name)
                    self._engine.execute(f"CHECKPOINT {name}")
                finally:
                    self._engine.execute(f"DETACH {name}")
                partial.replace(file)
            finally:
                for path in (partial, partial.with_name(f"{partial.name}.wal")):
                    path.unlink(missing_ok=True)
        self._engine.execute(f"ATTACH {literal(str(file))} AS {name} (READ_ONLY)")
        return name
