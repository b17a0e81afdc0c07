"""A Spark cluster for a try-out: a master and some workers as processes of this machine.

    python examples/spark/cluster.py --workers 2 --cores 1 --memory 2g
    forgetmap compare base.parquet tuned.parquet --engine spark --master spark://127.0.0.1:PORT

The package of PySpark has no start scripts, but its `spark-class` starts the same two programs. On
several machines, run `master` on one and `worker` on each of the others:

    python examples/spark/cluster.py master --host 10.0.0.1 --port 7077
    python examples/spark/cluster.py worker spark://10.0.0.1:7077 --cores 16 --memory 60g

It prints the address of the master, and ends with Ctrl-C or with its standard input.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pyspark

HOME = Path(pyspark.__file__).parent
START_SECONDS = 120


def start(program: str, *options: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a program of Spark that writes what it has to say into a file."""
    defaults = {
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        # A short life: what is compiled thoroughly pays off later than that.
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *options]
    with log.open("wb") as file:
        return subprocess.Popen(  # noqa: S603  # our own command
            command, env={**defaults, **os.environ}, stdout=file, stderr=subprocess.STDOUT
        )


def start_master(host: str, port: int, ui: int, folder: Path) -> subprocess.Popen[bytes]:
    """The process that knows the workers."""
    options = ("--host", host, "--port", str(port), "--webui-port", str(ui))
    return start("master.Master", *options, log=folder / "master.log")


def start_worker(
    master: str, cores: int, memory: str, folder: Path, name: str
) -> subprocess.Popen[bytes]:
    """A process that starts executors."""
    options = ("--cores", str(cores), "--memory", memory, "--webui-port", "0")
    work = folder / name
    return start(
        "worker.Worker", *options, "--work-dir", str(work), master, log=folder / f"{name}.log"
    )


def count_workers(host: str, ui: int) -> int:
    """How many workers the master knows; none while it starts."""
    try:
        with urlopen(f"http://{host}:{ui}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (URLError, OSError, ValueError):
        return 0


def free_port(host: str) -> int:
    """A port that nobody uses."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def wait_for_workers(processes: list[subprocess.Popen[bytes]], host: str, ui: int) -> bool:
    """Whether the master knows all workers before one of them ends or time is up."""
    end = time.monotonic() + START_SECONDS
    while count_workers(host, ui) < len(processes) - 1:
        if time.monotonic() > end or any(process.poll() is not None for process in processes):
            return False
        time.sleep(0.2)
    return True


def wait_for_end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Until somebody ends it; then no process is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if sys.stdin.isatty():
            signal.pause()
        sys.stdin.read()
    except KeyboardInterrupt:
        pass
    finally:
        end_all(processes)


def end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes and wait until they are gone."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def main() -> None:
    """Start what was asked for, say where it is, and wait."""
    options = read_options()
    folder = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
    if options.part == "worker":
        worker = start_worker(options.master, options.cores, options.memory, folder, "worker")
        wait_for_end([worker])
        return
    port = options.port or free_port(options.host)
    ui = free_port(options.host)
    address = f"spark://{options.host}:{port}"
    count = 0 if options.part == "master" else options.workers
    processes = [start_master(options.host, port, ui, folder)]
    processes += [
        start_worker(address, options.cores, options.memory, folder, f"worker-{number}")
        for number in range(count)
    ]
    if wait_for_workers(processes, options.host, ui):
        print(f"{address} with {count} workers; logs are in {folder}", flush=True)
        wait_for_end(processes)
    else:
        end_all(processes)
        sys.exit(f"the cluster did not start; see {folder}")


def read_options() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description="A Spark cluster for a try-out.")
    parser.add_argument("part", nargs="?", default="all", choices=["all", "master", "worker"])
    parser.add_argument("master", nargs="?", help="of a worker: spark://HOST:PORT")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, help="of the master [default: a free one]")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="1g", help="of each worker")
    return parser.parse_args()


if __name__ == "__main__":
    main()
