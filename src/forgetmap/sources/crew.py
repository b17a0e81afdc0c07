"""Large logs are read by two processes: what is in different tasks is independent.

Each takes the next task as soon as it is through with one, so nobody waits for the other for long.

The other one is a program of its own (`python -m forgetmap.sources.crewman`), so that scripts need
no guard around their main part. Whatever goes wrong with it, its part is read here instead.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forgetmap.records import Problem
from forgetmap.sources.adapter import Log, Problems
from forgetmap.sources.crewman import ORDER, TOLD, take
from forgetmap.sources.gather import RunWriter
from forgetmap.sources.registry import adapter

LARGE = 256 << 20
"""Bytes from which on a second process is worth its start."""
PART = "part"
ROW = 14 << 10
"""Bytes that take as long to pass over as the work on one row."""


Share = Sequence[Log]
"""Logs that must be read by one process, because they are about the same task."""


@dataclass(slots=True)
class Mate:
    """The other process; each takes the next share as soon as it is through with one."""

    process: subprocess.Popen[bytes]
    folder: Path

    def leaves(self, number: int) -> bool:
        """Whether a share is still to be read; if so it is now taken."""
        return take(self.folder, number)

    def hand_over(self, writer: RunWriter, problems: Problems) -> bool:
        """Wait for it and take over what it wrote; False if it failed."""
        done = self.process.wait() == 0
        if done:
            told = json.loads((self.folder / TOLD).read_text(encoding="utf-8"))
            writer.take(self.folder, told)
            problems.count += told["problem_count"]
            problems.kept += [Problem(**each) for each in told["problems"]]
        shutil.rmtree(self.folder)
        return done


def shares(logs: Sequence[Log]) -> list[Share]:
    """Large logs by what can be read apart, what takes longest first; else all in one share."""
    files = [file for log in logs for file in log.files]
    if any(file.archive is not None for file in files) or sum(f.size for f in files) < LARGE:
        return [logs]
    by_tasks: dict[tuple[str, ...], list[Log]] = defaultdict(list)
    for log in logs:
        by_tasks[log.tasks].append(log)
    together = {task for tasks in by_tasks for task in tasks}
    if () in by_tasks or len(together) < sum(map(len, by_tasks)):
        return [logs]
    return sorted(by_tasks.values(), key=lambda share: -sum(map(_work, share)))


def _work(log: Log) -> float:
    """How long a log takes, in bytes passed over: short rows take longer than long ones."""
    return sum(
        file.size * (1 + ROW * (file.head.count(b"\n") or 1) / max(len(file.head), 1))
        for file in log.files
    )


def call_mate(given: Sequence[Share], folder: Path, *, texts: bool) -> Mate | None:
    """Start the other process where that is worth it.

    Args:
        given: all that is to be read.
        folder: where the run is written; the other process writes into a folder in it.
        texts: whether texts are read.
    """
    if len(given) == 1 or (os.cpu_count() or 1) < 2:  # processes
        return None
    part = folder / PART
    part.mkdir()
    # With each log its adapter, so that the other process imports no more than it needs.
    order = [[(adapter(log.adapter), log) for log in share] for share in given]
    (part / ORDER).write_bytes(pickle.dumps((order, texts)))
    command = [sys.executable, "-m", "forgetmap.sources.crewman", str(part)]
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603  # ourselves
    except OSError:
        shutil.rmtree(part)
        return None
    return Mate(process, part)
