"""Cache of judge replies by prompt.

A SQLite file with a journal of its own: whatever was written before a process was killed is there
when the next one starts, and several processes may use it at once.
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
    """What a judge said: the text, and all that came with it, as it came."""

    text: str
    raw: str


def key_of(ask: JudgeQuestion, server: str, model: str, parameters: Mapping[str, Any]) -> str:
    """The same only for the same question to the same model of the same server in the same way.

    Many servers call whatever they serve by the same name.
    """
    content = [ask.system, ask.user, server, model, dict(parameters)]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class ReplyCache:
    """Replies in a file, or in memory if there is none."""

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
        """The text of a reply, if there is one."""
        try:
            row = self._file.execute("SELECT text FROM replies WHERE key = ?", [key]).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return str(row[0]) if row else None

    def put(
        self, key: str, ask: JudgeQuestion, model: str, parameters: Mapping[str, Any], reply: Reply
    ) -> str:
        """Keep a reply; the text of the first one for this key, which may be another's."""
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
    """SQLite takes no half characters."""
    return text.encode("utf-8", "replace").decode("utf-8")
