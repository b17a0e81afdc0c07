"""How fast is `compare` on Spark? Against a bare join and count of the same columns.

    .venv/bin/python benchmarks/spark_speed.py                     10 million rows a side, local[2]
    .venv/bin/python benchmarks/spark_speed.py --rows 200000 --rounds 3
    .venv/bin/python benchmarks/spark_speed.py --master spark://HOST:7077

All run in turn in one session, the bare join first, after one round of each on 200,000 rows that is
not counted. The bare join runs with the settings of Spark and with as many partitions as ours; the
faster of the two is the reference. Jobs, stages, rows read and bytes shuffled are from the event
log. The result must equal that of DuckDB exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compare_speed import RESULTS, make_data

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from spark_events import log_settings, read_events, sum_work

WARM_UP_ROWS = 200_000
MAX_JOBS, MAX_READS, MAX_RATIO = 5, 2, 1.4


def bare_join(before: Any, after: Any) -> dict[str, tuple[int, ...]]:
    """Run Spark as a user would write it by hand: four cells, no checks."""
    from pyspark.sql import functions as spark

    joined = before.alias("b").join(after.alias("a"), ["task", "item"])
    right_b, right_a = (spark.col(f"{side}.score") >= 0.5 for side in ("b", "a"))
    cells = {
        "n11": right_b & right_a,
        "n10": right_b & ~right_a,
        "n01": ~right_b & right_a,
        "n00": ~right_b & ~right_a,
    }
    sums = [spark.sum(cell.cast("long")).alias(name) for name, cell in cells.items()]
    rows = joined.groupBy("task").agg(*sums).collect()
    return {row["task"]: tuple(row)[1:] for row in rows}


def bare_join_spread(before: Any, after: Any) -> dict[str, tuple[int, ...]]:
    """Run the same with a partition per million rows, as ours: the choice of Spark may be slow."""
    settings = before.sparkSession.conf
    own = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "20"}
    usual = {name: settings.get(name) for name in own}
    for name, value in own.items():
        settings.set(name, value)
    try:
        return bare_join(before, after)
    finally:
        for name, value in usual.items():
            settings.set(name, value)


def forgetmap_compare(before: Any, after: Any) -> dict[str, tuple[int, ...]]:
    """Run forgetmap: the same cells, with validation, coverage, duplicates and estimates."""
    import forgetmap as fm

    tasks = fm.compare(before, after).result.tasks
    return {task.name: (task.n11, task.n10, task.n01, task.n00) for task in tasks}


CONTENDERS: dict[str, Callable[[Any, Any], dict[str, tuple[int, ...]]]] = {
    "bare Spark join": bare_join,
    "bare, 20 parts": bare_join_spread,
    "forgetmap": forgetmap_compare,
}
BARE = ("bare Spark join", "bare, 20 parts")
"""The faster one of these is the reference."""


def main() -> None:
    options = _options()
    events = Path(tempfile.mkdtemp(prefix="spark-events-"))
    session = _session(options.master, events)
    small, large = (
        [session.read.parquet(str(path)) for path in make_data(rows)]
        for rows in (WARM_UP_ROWS, options.rows)
    )
    for contender in CONTENDERS.values():
        contender(*small)
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    work: dict[str, Any] = {}
    cells = {}
    for number in range(options.rounds):
        for name, contender in CONTENDERS.items():
            before = len(_settled(events))
            start = time.perf_counter()
            cells[name] = contender(*large)
            seconds[name].append(time.perf_counter() - start)
            work[name] = sum_work(_settled(events)[before:]).as_dict()
            load = os.getloadavg()[0]
            print(f"{number} {name:<16} {seconds[name][-1]:7.1f} s  load {load:.1f}", flush=True)
    same = cells["forgetmap"] == cells["bare Spark join"]
    identical = _equals_duckdb(large, options.rows)
    session.stop()
    medians = {name: statistics.median(every) for name, every in seconds.items()}
    ours, bare = work["forgetmap"], min(BARE, key=medians.__getitem__)
    result = {
        "rows": options.rows,
        "master": options.master,
        "seconds": {name: round(value, 2) for name, value in medians.items()},
        "ratio": round(medians["forgetmap"] / medians[bare], 2),
        "cpu_ratio": round(ours["cpu_seconds"] / work[bare]["cpu_seconds"], 2),
        "reads": ours["rows_read"] / (2 * options.rows),
        "work": work,
        "cells_equal": same,
        "identical_to_duckdb": identical,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(result, indent=2))
    if options.write:
        (RESULTS / "spark_speed.json").write_text(json.dumps(result, indent=2) + "\n")
    assert same
    assert identical
    assert ours["jobs"] <= MAX_JOBS
    assert result["reads"] <= MAX_READS


def _settled(folder: Path) -> list[dict[str, Any]]:
    """Return the events once no more arrive: they are written with a delay."""
    events = read_events(folder)
    while True:
        time.sleep(0.5)
        later = read_events(folder)
        if len(later) == len(events):
            return later
        events = later


def _equals_duckdb(frames: list[Any], rows: int) -> bool:
    import forgetmap as fm

    def result(*sides: Any) -> dict[str, Any]:
        plain = fm.compare(*sides).result.to_dict()
        for side in ("before", "after"):
            plain[side] = None
        text = json.dumps(plain)
        # Frames are named by position, files by their name.
        for place, path in zip(("before", "after"), make_data(rows), strict=True):
            text = text.replace(path.stem, place)
        return dict(json.loads(text))

    return result(*frames) == result(*make_data(rows))


def _session(master: str, events: Path) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.driver.memory", "4g")
    for name, value in log_settings(events).items():
        builder = builder.config(name, value)
    builder = builder.config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help="keep it in benchmarks/results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
