"""Cache of judge replies by prompt.

A SQLite file with a write-ahead log: replies survive a process that is killed, and several
processes may use the file at once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from forgetmap.errors import OutputError
from forgetmap.scoring.scorer import JudgeQuestion

_BUSY_SECONDS = 60.0
_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
  key TEXT PRIMARY KEY, model TEXT NOT NULL, parameters TEXT NOT NULL,
  system TEXT NOT NULL, user TEXT NOT NULL, text TEXT NOT NULL, raw TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a judge: its text, and the unchanged response of the server."""

    text: str
    raw: str


def key_of(ask: JudgeQuestion, server: str, model: str, parameters: Mapping[str, Any]) -> str:
    """Return a key of question, server, model and parameters.

    The server is part of it, since many servers use the same name for different models.
    """
    content = [ask.system, ask.user, server, model, dict(parameters)]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class ReplyCache:
    """Replies in a file, or in memory if no file is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(
                path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None
            )
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, key: str) -> str | None:
        """Return the text of a reply; None if there is none."""
        try:
            row = self._file.execute("SELECT text FROM replies WHERE key = ?", [key]).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return str(row[0]) if row else None

    def put(
        self, key: str, ask: JudgeQuestion, model: str, parameters: Mapping[str, Any], reply: Reply
    ) -> str:
        """Store a reply; return the first one for this key, maybe stored by another process."""
        texts = (model, json.dumps(parameters, sort_keys=True), ask.system, ask.user)
        row = [key, *map(_storable, (*texts, reply.text, reply.raw))]
        try:
            self._file.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return self.get(key) or reply.text

    def _unusable(self, error: Exception) -> OutputError:
        return OutputError(
            f"the judge's replies cannot be stored in {self._path}: {error}",
            hint="choose another file, or remove this one if it is broken.",
        )


def _storable(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")
