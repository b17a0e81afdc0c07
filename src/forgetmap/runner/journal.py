"""Answers as they come, one line each, so that a run killed at any point goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar

from forgetmap.errors import OutputError
from forgetmap.records.folder import writable

Key = tuple[str, str, int]
"""Task, item and repeat."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer and what it counts as.

    Attributes:
        task: of the item.
        item: its id.
        repeat: which answer to it.
        score: 1 or 0; None where nobody can say.
        outcome: how it ended.
        answer: what was taken for the answer.
        choice: the chosen option by content.
        strict: it stood in the demanded form.
        response: all that was generated; None when options were weighed.
        tokens_in: of the prompt.
        tokens_out: of the response.
        finish_reason: why it ended.
        logprob_answer: of the option chosen.
        logprob_gold: of the right option.
        seed: of a sampled answer.
        error: what went wrong.
    """

    task: str
    item: str
    repeat: int
    score: float | None
    outcome: str
    answer: str | None = None
    choice: str | None = None
    strict: bool | None = None
    response: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str | None = None
    logprob_answer: float | None = None
    logprob_gold: float | None = None
    seed: int | None = None
    error: str | None = None

    @property
    def key(self) -> Key:
        """What tells it from every other answer of the run."""
        return self.task, self.item, self.repeat


class Entry(Protocol):
    """A dataclass of JSON values that knows what tells it from the others."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> Key:
        """What tells it from every other entry."""


Kept = TypeVar("Kept", bound=Entry)


class Journal(Generic[Kept]):
    """An append-only file beside the run folder to be; the first line says which run it is of."""

    def __init__(self, path: Path, fingerprint: str, kind: Callable[..., Kept]) -> None:
        self.path = path
        self._kind = kind
        self.done: dict[Key, Kept] = {}
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._resume(fingerprint)
            self._file: IO[str] = path.open("a", encoding="utf-8")
            if not self.path.stat().st_size:
                self._write({"fingerprint": fingerprint})

    def add(self, entry: Kept) -> None:
        """Keep an answer; it survives whatever happens to this process."""
        with writable(self.path):
            self._write(asdict(entry))
        self.done[entry.key] = entry

    def close(self) -> None:
        """End, with everything on the disk."""
        with writable(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def _resume(self, fingerprint: str) -> None:
        """Read what is there; a last line that was cut off is taken away."""
        whole = 0
        for place, (line, end) in enumerate(_whole_lines(self.path)):
            if place == 0:
                self._check(line, fingerprint)
            else:
                entry = self._kind(**line)
                self.done[entry.key] = entry
            whole = end
        with self.path.open("r+b") as file:
            file.truncate(whole)

    def _check(self, line: dict[str, Any], fingerprint: str) -> None:
        if line.get("fingerprint") != fingerprint:
            raise OutputError(
                f"{self.path} belongs to a run of another model, suite or setting",
                hint="use the same model, suite and options to go on with it, another --out, or "
                "--overwrite to start anew.",
            )


def _whole_lines(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Every line that was written to its end, and where it ends."""
    end = 0
    with path.open("rb") as file:
        for raw in file:
            if not raw.endswith(b"\n"):
                return
            try:
                line = json.loads(raw)
            except ValueError:
                return
            end += len(raw)
            yield line, end
