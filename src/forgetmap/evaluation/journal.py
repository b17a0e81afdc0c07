"""Answers as they come, one line each, so that a run killed at any point goes on where it was."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar

from forgetmap.errors import OutputError
from forgetmap.records import writable

Key = tuple[str, str, int]
"""Task, item and repeat."""
SYNC_SECONDS = 0.025
"""Seconds between two times that the file is brought to the disk; half of what is promised."""


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
        logprob_next: of the most likely option besides the chosen one.
        seed: of a sampled answer.
        error: what went wrong.
        spent: on it by a server: requests, retries, tokens read and written.
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
    logprob_next: float | None = None
    seed: int | None = None
    error: str | None = None
    spent: list[int] | None = None

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
    """An append-only file beside the run folder to be; the first line says which run it is of.

    What is added is with the system at once, so it survives whatever happens to this process; and
    on the disk within `SYNC_SECONDS`, so it survives the machine.
    """

    def __init__(self, path: Path, fingerprint: str, kind: Callable[..., Kept]) -> None:
        self.path = path
        self._kind = kind
        self.done: dict[Key, Kept] = {}
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._resume(fingerprint)
            self._file: IO[str] = path.open("a", encoding="utf-8")
            self._syncer = _Syncer(self._file.fileno())
            if not self.path.stat().st_size:
                self._write({"fingerprint": fingerprint})

    def add(self, entry: Kept) -> None:
        """Keep an answer."""
        with writable(self.path):
            self._write(asdict(entry))
        self.done[entry.key] = entry

    def close(self) -> None:
        """End, with everything on the disk; a journal without an answer is none."""
        with writable(self.path):
            self._file.flush()
            self._syncer.end()
            self._file.close()
            if not self.done:
                self.path.unlink(missing_ok=True)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        self._syncer.request()

    def _resume(self, fingerprint: str) -> None:
        """Read what is there; a last line that was cut off is taken away."""
        complete = 0
        for index, (line, end) in enumerate(_whole_lines(self.path)):
            if index == 0:
                self._check(line, fingerprint)
            else:
                entry = self._kind(**line)
                self.done[entry.key] = entry
            complete = end
        with self.path.open("r+b") as file:
            file.truncate(complete)

    def _check(self, line: dict[str, Any], fingerprint: str) -> None:
        if line.get("fingerprint") != fingerprint:
            raise OutputError(
                f"{self.path} belongs to a run of another model, suite or setting",
                hint="use the same model, suite and options to go on with it, another --out, or "
                "--overwrite to start anew.",
            )


class _Syncer:
    """Brings a file to the disk some time after it was written to, for all lines of that time."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._dirty = threading.Event()
        self._ended = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Ask for what was written to be brought to the disk.

        Raises:
            OSError: the last time it could not be done.
        """
        if self._error is not None:
            raise self._error
        self._dirty.set()

    def end(self) -> None:
        """Bring the last of it to the disk."""
        self._ended.set()
        self._dirty.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        os.fsync(self._handle)

    def _run(self) -> None:
        while self._dirty.wait() and not self._ended.is_set():
            self._dirty.clear()
            try:
                os.fsync(self._handle)
            except OSError as error:
                self._error = error
                return
            self._ended.wait(SYNC_SECONDS)


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
