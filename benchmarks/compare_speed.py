"""How fast is `compare`? Against bare DuckDB SQL that only counts the four cells, and pandas.

    make bench                                        10 million rows a side, median of 5
    .venv/bin/python benchmarks/compare_speed.py --rows 1000000 --rounds 3
    .venv/bin/python benchmarks/compare_speed.py --growth --huge    also 100 thousand to 100 million
    .venv/bin/python benchmarks/compare_speed.py --estimators       what all estimators cost
    .venv/bin/python benchmarks/compare_speed.py --repeats 3         what limits of repeats cost

Every contender runs in a separate process, in turn, on the same two Parquet files with string ids
and 100 tasks. Seconds are from the call to the result, imports excluded on all sides; the time of
the whole process is printed too. Memory is the peak resident size of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results"
TASKS = 100

BARE_SQL = """
SELECT task,
       count(*) FILTER (b.score >= 0.5 AND a.score >= 0.5) AS n11,
       count(*) FILTER (b.score >= 0.5 AND a.score <  0.5) AS n10,
       count(*) FILTER (b.score <  0.5 AND a.score >= 0.5) AS n01,
       count(*) FILTER (b.score <  0.5 AND a.score <  0.5) AS n00
FROM read_parquet('{before}') b JOIN read_parquet('{after}') a USING (task, item)
GROUP BY task
"""

Cells = dict[str, tuple[int, ...]]


def run_bare_sql(before: Path, after: Path) -> Callable[[], Cells]:
    """Run DuckDB as a user would write it by hand: four cells, no checks."""
    import duckdb

    sql = BARE_SQL.format(before=before, after=after)
    return lambda: {row[0]: tuple(row[1:]) for row in duckdb.connect().execute(sql).fetchall()}


def run_forgetmap(before: Path, after: Path) -> Callable[[], Cells]:
    """Run forgetmap: the same cells, with validation, coverage and duplicate detection."""
    import forgetmap as fm

    compare = fm.compare

    def call() -> Cells:
        tasks = compare(before, after).result.tasks
        return {task.name: (task.n11, task.n10, task.n01, task.n00) for task in tasks}

    return call


def run_counts(before: Path, after: Path) -> Callable[[], Cells]:
    """Run forgetmap up to its counts: the same opening, checks and query, no limits or verdicts."""
    import forgetmap as fm
    from forgetmap.comparison.pipeline import pair_and_count_rows
    from forgetmap.comparison.result import Rule
    from forgetmap.comparison.side_counts import side_facts
    from forgetmap.pairing import align, prepare_all

    def call() -> Cells:
        runs = [fm.open_run(path) for path in (before, after)]
        rule = Rule()
        sides = align(prepare_all(runs, rule.metric, side_facts(rule.correct_at)))
        _, counts = pair_and_count_rows(sides[0], sides[1], rule)
        # One label a task: these tables have no categories.
        return {
            label.task: (one.n11, one.n10, one.n01, one.n00) for label, one in counts[0].items()
        }

    return call


def run_pandas(before: Path, after: Path) -> Callable[[], Cells]:
    """Run the usual merge in pandas, on Arrow strings, which are faster here."""
    import pandas as pd

    def call() -> Cells:
        frames = [pd.read_parquet(path, dtype_backend="pyarrow") for path in (before, after)]
        merged = frames[0].merge(frames[1], on=["task", "item"], suffixes=("_b", "_a"))
        right_b, right_a = merged["score_b"] >= 0.5, merged["score_a"] >= 0.5
        cells = pd.DataFrame(
            {
                "task": merged["task"],
                "n11": right_b & right_a,
                "n10": right_b & ~right_a,
                "n01": ~right_b & right_a,
                "n00": ~right_b & ~right_a,
            }
        )
        summed = cells.groupby("task").sum()
        return {str(name): tuple(map(int, row)) for name, row in summed.iterrows()}

    return call


CONTENDERS = {
    "bare SQL": run_bare_sql, "counts alone": run_counts, "forgetmap": run_forgetmap,
    "pandas": run_pandas,
}  # fmt: skip
COUNTS, ALL = "counts", "estimators"
"""The same results without and with the columns for `matched`: k, choices, gold positions."""


def make_data(rows: int, repeats: int = 1) -> tuple[Path, Path]:
    """Write two shuffled tables of the same items with string ids, once."""
    import duckdb

    DATA.mkdir(exist_ok=True)
    name = f"{rows}" if repeats == 1 else f"{rows}-of-{repeats}"
    item, repeat = (f"i // {repeats}", f", i % {repeats} AS repeat") if repeats > 1 else ("i", "")
    paths = (DATA / f"{name}-before.parquet", DATA / f"{name}-after.parquet")
    for seed, path in enumerate(paths, start=1):
        if not path.exists():
            print(f"making {path.name} ...", flush=True)
            partial = path.with_suffix(".partial")
            duckdb.connect().execute(
                f"COPY (SELECT 'task_' || lpad(({item} % {TASKS})::VARCHAR, 3, '0') AS task, "
                f"'item-' || (hash({item}) % 1000000000000)::VARCHAR || '-' || {item} AS item, "
                f"(hash(i * 7 + {seed}) % 100 < 60)::INT::DOUBLE AS score{repeat} "
                f"FROM range({rows}) t(i) ORDER BY hash(i + {seed})) "
                f"TO '{partial}' (FORMAT parquet)"
            )
            partial.rename(path)
    return paths


def make_answers(rows: int) -> dict[str, tuple[Path, Path]]:
    """Write two shuffled tables of four-option items with chosen options, and the same without."""
    import duckdb

    DATA.mkdir(exist_ok=True)
    paths = {
        kind: (DATA / f"{rows}-{kind}-before.parquet", DATA / f"{rows}-{kind}-after.parquet")
        for kind in (COUNTS, ALL)
    }
    for place, known in enumerate((55, 50)):
        full, plain = paths[ALL][place], paths[COUNTS][place]
        if full.exists() and plain.exists():
            continue
        print(f"making {full.name} ...", flush=True)
        duckdb.connect().execute(
            "COPY (WITH answers AS (SELECT i, hash(i) % 4 AS gold, "
            f"CASE WHEN hash(i * 3 + 5) % 100 < {known} THEN hash(i) % 4 "
            f"ELSE hash(i * 7 + {place}) % 4 END AS choice FROM range({rows}) t(i)) "
            f"SELECT 'task_' || lpad((i % {TASKS})::VARCHAR, 3, '0') AS task, "
            "'item-' || (hash(i) % 1000000000000)::VARCHAR || '-' || i AS item, "
            "(choice = gold)::INT::DOUBLE AS score, 4::INT AS k, "
            "'option ' || choice || ' of question ' || i % 1000 AS choice, "
            f"gold::INT AS gold_index FROM answers ORDER BY hash(i + {place})) "
            f"TO '{full}' (FORMAT parquet)"
        )
        duckdb.connect().execute(
            f"COPY (SELECT task, item, score FROM '{full}') TO '{plain}' (FORMAT parquet)"
        )
    return paths


def compare_estimators(rows: int, rounds: int) -> None:
    """Measure what k, choices and their estimators add to the counts alone."""
    paths = make_answers(rows)
    measured: dict[str, list[dict[str, Any]]] = {kind: [] for kind in paths}
    for place in range(rounds):
        for kind, (before, after) in paths.items():
            measured[kind].append(measure("forgetmap", before, after))
            print(
                f"  round {place + 1} {kind:<10} {measured[kind][-1]['seconds']:.2f} s", flush=True
            )
    keys = ("seconds", "process_seconds", "peak_gib")
    medians = {
        kind: {key: statistics.median(each[key] for each in runs) for key in keys}
        for kind, runs in measured.items()
    }
    report(rows, medians, base=COUNTS)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "estimators.json").write_text(json.dumps(medians, indent=2) + "\n")


def measure_child(name: str, before: Path, after: Path) -> None:
    """Run once in this process, and print the cost."""
    call = CONTENDERS[name](before, after)
    start = time.perf_counter()
    cells = call()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    total = [sum(column) for column in zip(*cells.values(), strict=True)]
    print(json.dumps({"seconds": seconds, "peak_gib": peak, "cells": total, "tasks": len(cells)}))


def measure(name: str, before: Path, after: Path) -> dict[str, Any]:
    """Run a contender in a separate process."""
    command = [sys.executable, __file__, "--child", name, str(before), str(after)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured | {"process_seconds": time.perf_counter() - start}


def compare_all(
    rows: int, rounds: int, names: list[str], repeats: int = 1
) -> dict[str, dict[str, float]]:
    """Return the medians of several rounds in which the contenders take turns."""
    before, after = make_data(rows, repeats)
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for place in range(rounds):
        for name in names:
            measured[name].append(measure(name, before, after))
            latest = measured[name][-1]["seconds"]
            print(f"  round {place + 1} {name:<10} {latest:.2f} s", flush=True)
    cells = {tuple(each["cells"]) for runs in measured.values() for each in runs}
    if len(cells) != 1:
        raise SystemExit(f"the contenders disagree: {cells}")
    keys = ("seconds", "process_seconds", "peak_gib")
    return {
        name: {key: statistics.median(each[key] for each in runs) for key in keys}
        for name, runs in measured.items()
    }


def report(rows: int, medians: dict[str, dict[str, float]], base: str = "bare SQL") -> None:
    """Print a table of medians and ratios to the first contender."""
    least = medians[base]
    heads = ("seconds", "ratio", "peak GiB", "ratio", "process s", "ratio")
    print(f"\n{rows:,} rows a side, {TASKS} tasks, string ids, Parquet; median")
    print(f"{'':<14}" + "".join(f"{head:>10}" for head in heads))
    for name, each in medians.items():
        line = f"{name:<14}"
        for key in ("seconds", "peak_gib", "process_seconds"):
            line += f"{each[key]:>10.2f}{each[key] / least[key]:>9.2f}x"
        print(line)


def plot_growth(growth: dict[int, dict[str, dict[str, float]]], path: Path) -> None:
    """Draw seconds and memory against the number of rows."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, key, label in zip(
        axes, ("seconds", "peak_gib"), ("seconds", "peak GiB"), strict=True
    ):
        for name, mark in zip(CONTENDERS, "o*s^", strict=True):
            points = [(rows, each[name][key]) for rows, each in growth.items() if name in each]
            axis.plot(*zip(*points, strict=True), marker=mark, label=name)
        axis.set(xscale="log", yscale="log", xlabel="rows a side", ylabel=label)
        axis.grid(visible=True, alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)
    print(f"wrote {path.relative_to(HERE.parent)}")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="also 100 thousand and 1 million")
    parser.add_argument(
        "--huge", action="store_true", help="also 100 million, once, without pandas"
    )
    parser.add_argument(
        "--estimators", action="store_true", help="all estimators against the counts alone"
    )
    parser.add_argument("--repeats", type=int, help="answers per item: limits against the counts")
    parser.add_argument("--child", nargs=3, metavar=("NAME", "BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.child:
        name, before, after = options.child
        measure_child(name, Path(before), Path(after))
        return
    if options.estimators:
        compare_estimators(options.rows, options.rounds)
        return
    if options.repeats:
        names = ["counts alone", "forgetmap"]
        medians = compare_all(options.rows, options.rounds, names, options.repeats)
        report(options.rows, medians, base="counts alone")
        return
    print(f"bare SQL:{BARE_SQL}")
    sizes = sorted({options.rows, *((100_000, 1_000_000) if options.growth else ())})
    growth = {rows: compare_all(rows, options.rounds, list(CONTENDERS)) for rows in sizes}
    if options.huge:
        growth[100_000_000] = compare_all(100_000_000, 1, ["bare SQL", "forgetmap"])
    for rows, medians in growth.items():
        report(rows, medians)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "compare_speed.json").write_text(json.dumps(growth, indent=2) + "\n")
    if len(growth) > 1:
        plot_growth(growth, HERE.parent / "docs" / "images" / "growth.png")


if __name__ == "__main__":
    main()
