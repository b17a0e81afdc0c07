"""Processes that score by rule, fed through pipes.

Each is a program of its own (`python -m forgetmap.capabilities.crewman`), so that scripts need no
guard around their main part. If one dies its batch is scored here, where an error has a trace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast

import pyarrow as pa

from forgetmap.capabilities.crewman import read_message, write_message
from forgetmap.capabilities.scoring_batches import score_rows
from forgetmap.scoring import RuleScorer, find_scorer

AHEAD = 3
"""Batches per process that wait for it."""


class Crew:
    """Several processes that score; a context manager.

    Args:
        size: how many; with one or none all is done in this process.
    """

    def __init__(self, size: int | None = None) -> None:
        self.size = os.cpu_count() or 1 if size is None else size
        self._free: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
        self._mates: list[subprocess.Popen[bytes]] = []
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for mate in self._mates:
            if kind is not None:
                mate.kill()
            mate.communicate()
        if self._threads is not None:
            self._threads.shutdown()

    def score(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Score batches by the rule of this name; they come back in order, and as they are done."""
        if self.size <= 1:
            rule = cast("RuleScorer", find_scorer(name))
            yield from (score_rows(rule, batch) for batch in batches)
        else:
            yield from self._share_out(name, batches)

    def _share_out(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Score several batches at a time, in threads that wait for the processes."""
        self._gather()
        threads = self._threads = self._threads or ThreadPoolExecutor(self.size)
        waiting: deque[Future[pa.RecordBatch]] = deque()
        for batch in batches:
            waiting.append(threads.submit(self._score, name, batch))
            if len(waiting) >= AHEAD * self.size:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _score(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Score one batch in a process that is free, or here if that is no more."""
        mate, reply = self._free.get(), None
        try:
            reply = _reply(mate, name, batch) if mate is not None else None
        finally:
            self._free.put(mate if reply is not None else None)
        return score_rows(cast("RuleScorer", find_scorer(name)), batch) if reply is None else reply

    def _gather(self) -> None:
        """Start the processes when they are first needed."""
        while len(self._mates) < self.size:
            self._mates.append(_started())
            self._free.put(self._mates[-1])


def _reply(
    mate: subprocess.Popen[bytes], name: str, batch: pa.RecordBatch
) -> pa.RecordBatch | None:
    """What a process makes of a batch; None if it has died."""
    try:
        write_message(mate.stdin, name, batch)
    except BrokenPipeError:
        return None
    reply = read_message(mate.stdout)
    return None if reply is None else reply[1]


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "forgetmap.capabilities.crewman"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe)  # noqa: S603  # ourselves
