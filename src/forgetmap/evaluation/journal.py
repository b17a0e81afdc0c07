"""The journal of a run: one line per answer, so that an interrupted run can resume."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, TypeVar

from forgetmap._disk import make_line, read_line, sync
from forgetmap.errors import OutputError
from forgetmap.records import writable

Key = tuple[str, str, int]
"""Task, item and repeat."""
SYNC_SECONDS = 0.025
"""Seconds between two flushes of the file; half of the documented maximum."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer with its grade.

    Attributes:
        task: task of the item.
        item: id of the item.
        repeat: number of the repeat.
        score: 1 or 0; None if unknown.
        outcome: outcome of the answer.
        answer: extracted answer.
        choice: text of the chosen option.
        strict: whether the answer had the requested format.
        response: generated text; None if options were compared by log-likelihood.
        tokens_in: tokens of the prompt.
        tokens_out: tokens of the response.
        finish_reason: why the response ended.
        logprob_answer: log-probability of the chosen option.
        logprob_gold: log-probability of the right option.
        logprob_next: log-probability of the most likely option other than the chosen one.
        seed: random seed of a sampled answer.
        error: error message.
        spent: usage of a server: requests, retries, tokens read and written.
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
        """Key of the answer: task, item and repeat."""
        return self.task, self.item, self.repeat


class Entry(Protocol):
    """A dataclass of JSON values with a key."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> Key:
        """Key that is unique in the journal."""


Kept = TypeVar("Kept", bound=Entry)


class Journal(Generic[Kept]):
    """An append-only file beside the future run folder; the first line identifies the run.

    An entry is passed to the system at once, so it survives a crash of the process, and flushed to
    the disk within `SYNC_SECONDS`, so it survives a crash of the machine. Every line ends with a
    checksum that is valid for this run only: damaged lines are ignored, and their answers are
    generated again. The damaged file is kept beside the journal.

    Attributes:
        path: the file.
        done: entries by key.
        damaged: number of damaged lines.
    """

    def __init__(self, path: Path, fingerprint: str, kind: Callable[..., Kept]) -> None:
        self.path = path
        self.done: dict[Key, Kept] = {}
        self.damaged = 0
        self._kind = kind
        self._fingerprint = fingerprint
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                self._resume()
            self._file: IO[bytes] = path.open("ab", buffering=0)
            self._syncer = _Syncer(self._file.fileno())
            if not self.path.stat().st_size:
                self._write(make_line({"fingerprint": fingerprint}))
                sync(path.parent)

    def add(self, entry: Kept) -> None:
        """Append an entry."""
        with writable(self.path):
            self._write(make_line(asdict(entry), self._fingerprint))
        self.done[entry.key] = entry

    def close(self) -> None:
        """Flush and close the file; remove it if it is empty."""
        with writable(self.path):
            self._syncer.end()
            self._file.close()
            if not self.done:
                self.path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        end = os.fstat(self._file.fileno()).st_size
        written = 0
        try:
            while written < len(line):  # an almost full disk accepts a part and then fails
                written += self._file.write(line[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), end)
            raise
        self._syncer.request()

    def _resume(self) -> None:
        """Read the entries; an incomplete last line is dropped without a warning."""
        end, has_head = 0, True
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                if number == 0:
                    has_head = self._is_of_this_run(line)
                else:
                    self._take(line)
        if not has_head and not self.done:
            raise self._unusable("no line is complete, or it has another version")
        self.damaged += not has_head
        if self.damaged:
            self._mend()
        else:
            os.truncate(self.path, end)

    def _is_of_this_run(self, line: bytes) -> bool:
        """Whether the first line matches this run; False if damaged: later lines show it too."""
        head = read_line(line)
        if head is not None and head.get("fingerprint") != self._fingerprint:
            raise OutputError(
                f"{self.path} belongs to a run with another model, suite or setting",
                hint="use the same model, suite and options to resume it, choose another --out, "
                "or start again with --overwrite.",
                occupied=self.path,
            )
        return head is not None

    def _take(self, line: bytes) -> None:
        content = read_line(line, self._fingerprint)
        if content is None:
            self.damaged += 1
            return
        try:
            entry = self._kind(**content)
            self.done[entry.key] = entry
        except TypeError:
            raise self._unusable("its lines have other fields, so it has another version") from None

    def _mend(self) -> None:
        """Keep only complete lines; the damaged file is kept beside the journal."""
        partial = self.path.with_name(f"{self.path.name}.partial")
        with self.path.open("rb") as old, partial.open("wb") as new:
            new.write(make_line({"fingerprint": self._fingerprint}))
            new.writelines(line for line in old if read_line(line, self._fingerprint))
        sync(partial)
        shutil.copyfile(self.path, self._damaged_path())
        partial.replace(self.path)
        sync(self.path.parent)

    def _damaged_path(self) -> Path:
        names = (f"{self.path.name}.damaged-{number}" for number in itertools.count(1))
        return next(path for name in names if not (path := self.path.with_name(name)).exists())

    def _unusable(self, why: str) -> OutputError:
        return OutputError(
            f"cannot resume from {self.path}: {why}",
            hint="move it away and start again, or use --overwrite.",
        )


class _Syncer:
    """Flushes a file to the disk in the background, for all lines of an interval at once."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._dirty = threading.Event()
        self._ended = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Request a flush.

        Raises:
            OSError: the previous flush failed.
        """
        if self._error is not None:
            raise self._error
        self._dirty.set()

    def end(self) -> None:
        """Flush for the last time."""
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
