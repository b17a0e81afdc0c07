"""Large logs are read by two processes: what is in different tasks is independent.

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

from forgetmap.records.problem import Problem
from forgetmap.sources.adapter import Log, Problems
from forgetmap.sources.crewman import ORDER, TOLD
from forgetmap.sources.gather import RunWriter
from forgetmap.sources.registry import adapter

LARGE = 256 << 20
"""Bytes from which on a second process is worth its start."""
PART = "part"


@dataclass(slots=True)
class Mate:
    """The other process, and which logs it reads."""

    process: subprocess.Popen[bytes]
    places: list[int]
    folder: Path

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


def call_mate(logs: Sequence[Log], folder: Path, *, texts: bool) -> Mate | None:
    """Start the other process where that is worth it.

    Args:
        logs: all that are to be read.
        folder: where the run is written; the other process writes into a folder in it.
        texts: whether texts are read.
    """
    places = _share(logs)
    if not places or (os.cpu_count() or 1) < 2:  # noqa: PLR2004  # processes
        return None
    part = folder / PART
    part.mkdir()
    # With each log its adapter, so that the other process imports no more than it needs.
    given = [(adapter(logs[place].adapter), logs[place]) for place in places]
    (part / ORDER).write_bytes(pickle.dumps((given, texts)))
    command = [sys.executable, "-m", "forgetmap.sources.crewman", str(part)]
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603  # ourselves
    except OSError:
        shutil.rmtree(part)
        return None
    return Mate(process, places, part)


def _share(logs: Sequence[Log]) -> list[int]:
    """The places of the logs that the other process reads: about half of the bytes, whole tasks."""
    sizes: dict[tuple[str, ...], int] = defaultdict(int)
    for log in logs:
        if not log.tasks or any(file.archive is not None for file in log.files):
            return []
        sizes[log.tasks] += sum(file.size for file in log.files)
    together = {task for tasks in sizes for task in tasks}
    if sum(sizes.values()) < LARGE or len(together) < sum(map(len, sizes)) or len(sizes) == 1:
        return []
    mine = other = 0
    given = set()
    for tasks in sorted(sizes, key=lambda tasks: -sizes[tasks]):
        if other < mine:
            other += sizes[tasks]
            given.add(tasks)
        else:
            mine += sizes[tasks]
    return [place for place, log in enumerate(logs) if log.tasks in given]
