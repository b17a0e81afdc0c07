"""How long does a study take, with its report, beside reading its logs once?

Run: .venv/bin/python benchmarks/study_speed.py [--models 101] [--logs]

One model before and the others after, 94 tasks with 20,000 items per model in all: as run folders,
or with --logs as samples of lm-eval. Peer: opening and checking each run and collecting its rows,
which any comparison must do; both import logs into an empty cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forgetmap.pairing import prepare
from forgetmap.records import run_from_frame, write_run
from forgetmap.report import write_study
from forgetmap.sources import open_run
from forgetmap.study import StudyDetail, compare_study, examine_study, read_study

TASKS, ITEMS, CATEGORIES = 94, 20_000, 9
STAMP = "2026-01-01T00-00-00.000000"
RESULTS = Path(__file__).parent / "results"
WORDS = "the quick model answers every question of this task as well as it can "


def write_study_file(folder: Path, models: int) -> Path:
    """Write a study with this many models, whose runs are in `runs`."""
    parts = ['name = "large"']
    for model in range(models):
        parent = 'parent = "m0"\nstage = "tuning"\n' if model else ""
        parts.append(f'[[model]]\nid = "m{model}"\nhub = "o/m{model}"\n{parent}')
    (folder / "study.toml").write_text("\n".join(parts), encoding="utf-8")
    return folder / "study.toml"


def answers(models: int) -> Iterator[NDArray[np.bool_]]:
    """Yield what each model knows: every one flips a tenth of the items of the first."""
    random = np.random.default_rng(0)
    known = random.random(ITEMS) < 0.7
    for _ in range(models):
        yield known ^ (random.random(ITEMS) < 0.1)


def write_runs(folder: Path, models: int) -> None:
    """Write run folders."""
    number = np.arange(ITEMS)
    task = number % TASKS
    columns: dict[str, Any] = {
        "task": pa.array([f"task {n}" for n in task]),
        "item": pa.array([f"i{n}" for n in number]),
        "category": pa.array([f"category {n % CATEGORIES}" for n in task]),
    }
    for model, right in enumerate(answers(models)):
        table = pa.table(columns | {"score": pa.array(right.astype(float))})
        write_run(run_from_frame(table), folder / "runs" / f"m{model}")


def write_logs(folder: Path, models: int) -> None:
    """Write samples in the format of lm-eval, a file per task."""
    parts = [_sample_parts(number) for number in range(ITEMS)]
    for model, right in enumerate(answers(models)):
        target = folder / "runs" / f"m{model}" / "model"
        target.mkdir(parents=True)
        response = f"m{model} says: {WORDS * 4}"
        for task in range(TASKS):
            lines = []
            for number in range(task, ITEMS, TASKS):
                said = f"{response}{'yes' if right[number] else 'no'}"
                first, last = parts[number]
                text = json.dumps(said)
                score = "1.0" if right[number] else "0.0"
                lines.append(
                    f'{first}"resps":[[{text}]],"filtered_resps":[{text}],{last}{score}}}\n'
                )
            path = target / f"samples_task_{task}_{STAMP}.jsonl"
            path.write_text("".join(lines), encoding="utf-8")


def _sample_parts(number: int) -> tuple[str, str]:
    """Return the parts of a line before and after the answer of a model."""
    question = f"Question {number}: {WORDS * 3}?"
    doc = {"question": question, "answer": f"answer {number}"}
    prompt = f"{question}\nAnswer:"
    head = {
        "doc_id": number // TASKS, "doc": doc, "target": doc["answer"],
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"]}}},
    }  # fmt: skip
    tail = {
        "filter": "none", "metrics": ["exact_match"],
        "doc_hash": _digest(json.dumps(doc)), "prompt_hash": _digest(prompt),
        "target_hash": _digest(doc["answer"]),
    }  # fmt: skip
    return json.dumps(head)[:-1] + ",", json.dumps(tail)[1:-1] + ',"exact_match":'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_once(folder: Path) -> None:
    """Read all runs."""
    for path in sorted((folder / "runs").glob("m*")):
        rows = prepare(open_run(path)).measured.scores.collect()
        assert len(rows) == ITEMS


class Meter:
    """Wall-clock and processor seconds, and how often each log was opened."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self._opens: Counter[str] = Counter()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).endswith(".jsonl") and "samples_" in str(args[0]):
            self._opens[str(args[0])] += 1

    def measure(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a function, and record its cost."""
        self._opens.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.figures[f"{name}_seconds"] = round(time.perf_counter() - wall, 2)
        self.figures[f"{name}_cpu_seconds"] = round(time.process_time() - cpu, 2)
        if self._opens:
            self.figures[f"{name}_opens_per_log"] = max(self._opens.values())
        return result


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache, so that logs are imported again."""
    before = os.environ.get("FORGETMAP_CACHE")
    with tempfile.TemporaryDirectory() as name:
        os.environ["FORGETMAP_CACHE"] = name
        try:
            yield
        finally:
            if before is None:
                del os.environ["FORGETMAP_CACHE"]
            else:
                os.environ["FORGETMAP_CACHE"] = before


def main(models: int, *, logs: bool) -> None:
    """Time all three, print and save the results."""
    meter = Meter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write_study_file(folder, models)
        (write_logs if logs else write_runs)(folder, models)
        runs = folder / "runs"
        with empty_cache():
            meter.measure("reading", lambda: read_once(folder))
        with empty_cache():
            meter.measure("compare", lambda: compare_study(read_study(file), folder=runs))
        with empty_cache():

            def report() -> StudyDetail:
                detail = examine_study(read_study(file), folder=runs)
                write_study(detail, folder / "site")
                return detail

            detail = meter.measure("report", report)
        size = sum(path.stat().st_size for path in (folder / "site").rglob("*") if path.is_file())
    figures = {
        "models": models, "pairs": len(detail.pairs), "items": ITEMS, "logs": logs,
        **meter.figures,
        "compare_ratio": _ratio(meter, "compare"), "report_ratio": _ratio(meter, "report"),
        "report_cpu_ratio": _ratio(meter, "report", "cpu_seconds"),
        "site_mb": round(size / 1e6, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }  # fmt: skip
    print(json.dumps(figures, indent=2))
    path = RESULTS / f"study_speed{'_logs' if logs else ''}.json"
    path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _ratio(meter: Meter, name: str, unit: str = "seconds") -> float:
    return round(meter.figures[f"{name}_{unit}"] / meter.figures[f"reading_{unit}"], 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How long does a study take?")
    parser.add_argument("--models", type=int, default=101)
    parser.add_argument("--logs", action="store_true", help="Logs of lm-eval, not run folders.")
    options = parser.parse_args()
    main(options.models, logs=options.logs)
