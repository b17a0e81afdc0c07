"""Collects from git what earlier versions of benchmarks/results said, into history.json there.

    python tools/benchmark_history.py

Run it after new benchmark results are committed; `make docs` then writes docs/benchmarks.md from
it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
HISTORY = RESULTS / "history.json"
SIZE = "10000000"


def _ratio(key: str) -> Callable[[Any], float]:
    return lambda result: result[SIZE]["forgetmap"][key] / result[SIZE]["bare SQL"][key]


FIGURES: dict[str, dict[str, tuple[str, Callable[[Any], float]]]] = {
    "compare_speed": {
        "compare 10 million results a side, time": ("times bare SQL", _ratio("seconds")),
        "compare 10 million results a side, peak memory": ("times bare SQL", _ratio("peak_gib")),
    },
    "import_speed": {
        "read 1 GiB of lm-eval samples, scores": (
            "times a bare json loop",
            lambda result: result["scores"]["cpu"] / result["loop"]["cpu"],
        ),
        "read 1 GiB of lm-eval samples, all texts": (
            "times a bare json loop",
            lambda result: result["texts"]["cpu"] / result["loop"]["cpu"],
        ),
    },
    "report_speed": {
        "report with 10,000 flips, usable after": (
            "s",
            lambda result: result["usable_s"]["median"],
        ),
        "report with 10,000 flips, size": ("MB", lambda result: result["file_mb"]),
    },
    "explorer_speed": {
        "explorer on 5 million items, filter, 95th percentile": (
            "ms",
            lambda result: result["filter_p95_ms"],
        ),
    },
    "study_speed": {
        "study of 100 pairs, compare": (
            "times reading the runs",
            lambda result: result["compare_ratio"],
        ),
    },
    "theory_speed": {
        "phase diagram, SFT with replay": (
            "times as fast as solve_ivp",
            lambda result: result["replay"]["times"],
        ),
    },
}
"""Benchmark -> figure -> its unit, and the value in a result."""


def main() -> None:
    """Write every value that was ever committed."""
    rows = [row for name in FIGURES for row in _rows(name)]
    HISTORY.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {HISTORY.relative_to(ROOT)}: {len(rows)} values")


def _rows(name: str) -> list[dict[str, Any]]:
    path = f"benchmarks/results/{name}.json"
    log = _git(
        "log", "--reverse", "--diff-filter=AM", "--format=%h %ad", "--date=short", "--", path
    )
    rows: list[dict[str, Any]] = []
    for commit, date in (line.split() for line in log.splitlines()):
        result = json.loads(_git("show", f"{commit}:{path}"))
        for figure, (unit, value_of) in FIGURES[name].items():
            try:
                value = round(value_of(result), 2)
            except (KeyError, TypeError):  # an older format of results
                continue
            rows.append(
                {"script": f"benchmarks/{name}.py", "figure": figure, "unit": unit,
                 "date": date, "commit": commit, "value": value}
            )  # fmt: skip
    return rows


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
