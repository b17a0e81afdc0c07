"""A Spark cluster of three processes, with executors that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Self

import psutil

from spark_events import SparkWork, log_settings, read_events, sum_work

SCRIPT = Path(__file__).parents[2] / "examples" / "spark" / "cluster.py"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java: plans of tiny tables take longer to compile than to interpret."""

# By default Spark starts the `python3` on the path, which may have no Arrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@dataclass(frozen=True)
class SparkCluster:
    """Address and first process of a cluster, and the folder of its events."""

    master: str
    process: subprocess.Popen[str]
    events: Path

    def session(self) -> Any:
        """Return a session of the cluster."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.master(self.master)
            for name, value in {**SETTINGS, **log_settings(self.events)}.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
        return session

    def executors(self) -> list[psutil.Process]:
        """Return the processes of executors."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [one for one in children if "CoarseGrainedExecutorBackend" in _command(one)]

    def work(self, call: Callable[[], Any]) -> SparkWork:
        """Return the work of Spark during a call."""
        before = len(self._settled())
        call()
        return sum_work(self._settled()[before:])

    def _settled(self) -> list[dict[str, Any]]:
        """Return all events, which are written with a delay."""
        events: list[dict[str, Any]] = []
        while len(later := read_events(self.events)) > len(events):
            events = later
            time.sleep(0.3)
        return events


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@contextmanager
def running_cluster(folder: Path, memory: str = "1g") -> Iterator[SparkCluster]:
    """Run a master and two workers."""
    command = [sys.executable, str(SCRIPT), "--workers", "2", "--memory", memory]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("spark://"), line
        yield SparkCluster(line.split()[0], process, folder / "events")
    finally:
        process.terminate()
        process.communicate()


@dataclass
class ExecutorKiller:
    """Suspends an executor when a join starts, and kills it after the others did part of it."""

    cluster: SparkCluster
    session: Any
    killed: list[int] = field(default_factory=list)
    is_over: bool = False

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_joining():
            if self.is_over:
                return
            time.sleep(0.02)
        victim = self.cluster.executors()[0]
        victim.suspend()
        time.sleep(0.5)  # it still holds its tasks
        if self._is_joining():
            self.killed.append(victim.pid)
        victim.kill()

    def _is_joining(self) -> bool:
        """Return whether a job with more stages than an aggregation is running."""
        status = self.session.sparkContext.statusTracker()
        jobs = [status.getJobInfo(job) for job in status.getActiveJobsIds()]
        return any(job is not None and len(job.stageIds) > 3 for job in jobs)
