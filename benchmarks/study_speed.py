"""How long does a study take, beside reading its logs once?

Run: .venv/bin/python benchmarks/study_speed.py [--models 101]

One model before and the others after, 94 tasks with 20,000 items a model in all, as run folders.
Named peer: opening and checking each run and collecting its rows, which any comparison must do.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from forgetmap.pairing import prepare
from forgetmap.records import run_from_frame, write_run
from forgetmap.sources import open_run
from forgetmap.study import compare_study, read_study

TASKS, ITEMS, CATEGORIES = 94, 20_000, 9
RESULTS = Path(__file__).parent / "results" / "study_speed.json"


def write_runs(folder: Path, models: int) -> Path:
    """A study with so many models, and their runs."""
    random = np.random.default_rng(0)
    number = np.arange(ITEMS)
    task = number % TASKS
    tasks = pa.array([f"task {n}" for n in task])
    items = pa.array([f"i{n}" for n in number])
    category = pa.array([f"category {n % CATEGORIES}" for n in task])
    known = random.random(ITEMS) < 0.7
    parts = ['name = "large"']
    for model in range(models):
        flips = random.random(ITEMS) < 0.1
        scores = pa.array((known ^ flips).astype(float))
        table = pa.table({"task": tasks, "item": items, "category": category, "score": scores})
        write_run(run_from_frame(table), folder / "runs" / f"m{model}")
        parent = 'parent = "m0"\nstage = "tuning"\n' if model else ""
        parts.append(f'[[model]]\nid = "m{model}"\nhub = "o/m{model}"\n{parent}')
    (folder / "study.toml").write_text("\n".join(parts), encoding="utf-8")
    return folder / "study.toml"


def read_once(folder: Path) -> float:
    """Seconds to read all runs."""
    start = time.perf_counter()
    for path in sorted((folder / "runs").glob("m*")):
        rows = prepare(open_run(path)).measured.scores.collect()
        assert len(rows) == ITEMS
    return time.perf_counter() - start


def main(models: int) -> None:
    """Time both, print and keep the figures."""
    with tempfile.TemporaryDirectory() as name:
        file = write_runs(Path(name), models)
        reading = read_once(Path(name))
        start = time.perf_counter()
        result = compare_study(read_study(file), folder=Path(name) / "runs")
        seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures = {
        "pairs": len(result.pairs),
        "items": ITEMS,
        "reading_seconds": round(reading, 2),
        "study_seconds": round(seconds, 2),
        "ratio": round(seconds / reading, 2),
        "peak_gib": round(memory, 2),
    }
    print(json.dumps(figures, indent=2))
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How long does a study take?")
    parser.add_argument("--models", type=int, default=101)
    main(parser.parse_args().models)
