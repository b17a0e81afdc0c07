"""What Spark did, from its event log: jobs, stages, rows read, bytes shuffled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SparkWork:
    """Sums over the tasks of some jobs.

    Attributes:
        jobs: started jobs.
        stages: finished stages.
        tasks: finished tasks.
        rows_read: rows read from files, not from shuffles or caches.
        shuffle_bytes: bytes written for other tasks.
        shuffle_rows: rows written for other tasks.
        spilled_bytes: bytes spilled to disk for lack of memory.
        cpu_seconds: processor time of executors.
        largest_share: largest share of shuffled rows that one task read.
    """

    jobs: int
    stages: int
    tasks: int
    rows_read: int
    shuffle_bytes: int
    shuffle_rows: int
    spilled_bytes: int
    cpu_seconds: float
    largest_share: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def log_settings(folder: Path) -> dict[str, str]:
    """Return settings of a session that writes its events into a folder immediately."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Return all events so far of the only session that writes into a folder."""
    return [event for path in sorted(folder.iterdir()) for event in _events(path)]


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):  # the last one may be incomplete
                yield json.loads(line)


def sum_work(events: list[dict[str, Any]]) -> SparkWork:
    """Return the sums over these events."""
    kinds = Counter(event["Event"] for event in events)
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    tasks = [event["Task Metrics"] for event in ends if event.get("Task Metrics")]
    written = [task["Shuffle Write Metrics"] for task in tasks]
    fetched = [task["Shuffle Read Metrics"]["Total Records Read"] for task in tasks]
    return SparkWork(
        jobs=kinds["SparkListenerJobStart"],
        stages=kinds["SparkListenerStageCompleted"],
        tasks=len(tasks),
        rows_read=sum(task["Input Metrics"]["Records Read"] for task in tasks),
        shuffle_bytes=sum(part["Shuffle Bytes Written"] for part in written),
        shuffle_rows=sum(part["Shuffle Records Written"] for part in written),
        spilled_bytes=sum(task["Disk Bytes Spilled"] for task in tasks),
        cpu_seconds=sum(task["Executor CPU Time"] for task in tasks) / 1e9,
        largest_share=max(fetched, default=0) / max(1, sum(fetched)),
    )
