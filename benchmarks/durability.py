"""What checksums and syncs cost a run and a comparison; and whether a bit that flips is noticed.

    .venv/bin/python benchmarks/durability.py                     cost, in the same process by turns
    .venv/bin/python benchmarks/durability.py --flips 1000        1,000 seeded bit flips

Cost: a run of a tiny model, and a comparison of run folders with 1 million rows and texts a side,
each with checksums and syncs and without, in turn; the ratio of the medians. Flips: one bit of a
file of a run folder or of a journal, each file equally often; reading must then give an error, a
warning, or the same result as before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from runner_speed import make_model, questions

import forgetmap as fm
from forgetmap.errors import ForgetmapError
from forgetmap.evaluation import Item, Settings, Suite, Task
from forgetmap.evaluation.journal import Answer, Journal
from forgetmap.records import folder, write_run

ROUNDS = 7


@contextmanager
def without() -> Iterator[None]:
    """Disable checksums and syncs."""

    def read_plain(raw: bytes, fingerprint: str = "") -> dict[str, object]:
        del fingerprint
        return dict(json.loads(raw))

    def make_plain(content: dict[str, object], fingerprint: str = "") -> bytes:
        del fingerprint
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()

    with (
        patch.object(folder, "checksum_of", lambda _: ""),
        patch.object(folder, "_require_unchanged", lambda *_: None),
        patch.object(folder, "sync_tree", lambda _: None),
        patch.object(folder, "sync", lambda _: None),
        patch("forgetmap.evaluation.journal.make_line", make_plain),
        patch("forgetmap.evaluation.journal.read_line", read_plain),
        patch.object(os, "fsync", lambda _: None),
    ):
        yield


def compare_cost(name: str, work: Callable[[], object]) -> None:
    """Time a function with and without, in turn."""
    work()
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(ROUNDS):
        for kind, times in seconds.items():
            folder._checksum.cache_clear()  # noqa: SLF001  # a new process has no cache
            start = time.perf_counter()
            if kind == "with":
                work()
            else:
                with without():
                    work()
            times.append(time.perf_counter() - start)
    ours, bare = map(statistics.median, seconds.values())
    print(f"{name}: {ours:.3f} s with, {bare:.3f} s without, {ours / bare:.3f}x")


def run_cost(place: Path) -> None:
    """Measure a run of a tiny model on 400 questions."""
    make_model(place / "model")
    items = [
        Item(str(number), question, options[0], tuple(options))
        for number, (question, options) in enumerate(questions(400, common=True))
    ]
    suite = Suite("suite", (Task("task", None, "option", lambda: items),))

    def work() -> None:
        fm.evaluate(str(place / "model"), suite, place / "run", settings=Settings(), overwrite=True)

    compare_cost("run of 400 questions", work)


def comparison_cost(place: Path, rows: int) -> None:
    """Measure a comparison of two run folders with texts."""
    draw = random.Random(3)
    for side in ("before", "after"):
        columns = {
            "task": [f"task {number % 50}" for number in range(rows)],
            "item": [str(number) for number in range(rows)],
            "score": [float(draw.random() < 0.6) for _ in range(rows)],
            "k": [4] * rows,
            "question": [f"What is {number} times {number % 97}?" for number in range(rows)],
            "response": [f"It is {draw.random()} or thereabouts." for _ in range(rows)],
        }
        write_run(fm.open_run(pa.table(columns)), place / side, overwrite=True)
    size = sum(file.stat().st_size for file in (place / "before").iterdir()) / 1e6
    compare_cost(
        f"comparison of {rows:,} rows a side, {size:.0f} MB each",
        lambda: fm.compare(place / "before", place / "after").to_json(),
    )


def count_flips(place: Path, flips: int, seed: int) -> bool:
    """Flip single bits; return whether any changed the result without an error."""
    rows = 500
    columns = {
        "task": ["task"] * rows,
        "item": [str(number) for number in range(rows)],
        "score": [float(number % 3 > 0) for number in range(rows)],
        "k": [4] * rows,
        "response": [f"answer {number**3}" for number in range(rows)],
    }
    run = write_run(fm.open_run(pa.table(columns)), place / "run")
    journal = Journal(place / "journal", "run", Answer)
    for number in range(rows):
        journal.add(Answer("task", str(number), 0, float(number % 3 > 0), "correct", response="x"))
    journal.close()
    files = [*sorted(run.iterdir()), journal.path]
    draw, counts = random.Random(seed), Counter[str]()
    for _ in range(flips):
        file = draw.choice(files)
        whole = file.read_bytes()
        content = bytearray(whole)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        file.write_bytes(content)
        kind = _journal_kind(file, journal.done) if file == journal.path else _run_kind(run)
        counts[f"{file.name}: {kind}"] += 1
        for other in place.glob("journal.damaged-*"):
            other.unlink()
        file.write_bytes(whole)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count:,}")
    silent = sum(count for name, count in counts.items() if name.endswith("SILENT"))
    print(f"{flips:,} flips, {silent} silent")
    return bool(silent)


def _run_kind(run: Path) -> str:
    try:
        read = fm.open_run(run)
    except ForgetmapError as error:
        return type(error).__name__
    return "warning" if read.notices else "SILENT"


def _journal_kind(path: Path, whole: dict[tuple[str, str, int], Answer]) -> str:
    try:
        journal = Journal(path, "run", Answer)
    except ForgetmapError as error:
        return type(error).__name__
    journal.close()
    if any(whole[key] != answer for key, answer in journal.done.items()):
        return "SILENT"
    lost = len(whole) - len(journal.done)
    if journal.damaged:
        return "counted, asked again"
    return "end of the last line: asked again" if lost == 1 else "SILENT"


def main() -> None:
    """Print the cost, or the effects of flips; exit with 1 if one was silent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flips", type=int, help="flip so many bits [default: measure the cost]")
    parser.add_argument("--seed", type=int, default=0, help="of the flips [default: 0]")
    parser.add_argument("--rows", type=int, default=1_000_000, help="a side [default: 1000000]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.flips:
            sys.exit(count_flips(Path(place), options.flips, options.seed))
        comparison_cost(Path(place), options.rows)
        run_cost(Path(place))


if __name__ == "__main__":
    main()
