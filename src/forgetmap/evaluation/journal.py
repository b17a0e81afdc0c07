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
    on the disk within `SYNC_SECONDS`, so it survives the machine. Every line ends in a checksum
    that holds for this run only: a line that is damaged is not believed, and what it held is asked
    again. The damaged file is kept beside.

    Attributes:
        path: the file.
        done: what it holds, by key.
        damaged: lines that are not as they were written.
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
        """Keep an answer."""
        with writable(self.path):
            self._write(make_line(asdict(entry), self._fingerprint))
        self.done[entry.key] = entry

    def close(self) -> None:
        """End, with everything on the disk; a journal without an answer is none."""
        with writable(self.path):
            self._syncer.end()
            self._file.close()
            if not self.done:
                self.path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        end = os.fstat(self._file.fileno()).st_size
        written = 0
        try:
            while written < len(line):  # a disk with little room takes a part, and then fails
                written += self._file.write(line[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), end)
            raise
        self._syncer.request()

    def _resume(self) -> None:
        """Read what is there; only a last line without an end may go without a word."""
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
        """Whether the first line says so; False if it is damaged: those after it tell as well."""
        head = read_line(line)
        if head is not None and head.get("fingerprint") != self._fingerprint:
            raise OutputError(
                f"{self.path} belongs to a run with another model, suite or setting",
                hint="use the same model, suite and options to resume it, choose another --out, "
                "or start again with --overwrite.",
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
        """Leave only whole lines; the damaged file is kept beside."""
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
