"""`python killed_runner.py ADDRESS ITEMS OUT`: a run that may be killed at any moment."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import forgetmap as fm
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.settings import Settings

SETTINGS = Settings(max_new_tokens=8)
WORDS = ("cat", "dog", "bird", "mat", "tree", "house", "river")


def words_suite(items: int) -> Suite:
    asked = tuple(Item(str(i), f"Say {WORDS[i % 7]} {i}", WORDS[i % 7]) for i in range(items))
    return Suite("words", (Task("words", "open", "text", lambda: asked),))


def ask(address: str, items: int, out: Path) -> None:
    fm.evaluate(
        address,
        words_suite(items),
        out,
        settings=SETTINGS,
        traffic=Traffic(pause=0.02, concurrency=8),
        salt="",
    )


def run_and_kill(address: str, items: int, out: Path, kills: int, seed: int) -> list[int]:
    """Start the run again and again and kill it, then let it end.

    Some kills come while it starts and tries the server, most while answers come in.

    Returns:
        How many answers were kept when each kill hit.
    """
    draw, kept = random.Random(seed), []
    command = [sys.executable, __file__, address, str(items), str(out)]
    journal = out.parent / f".{out.name}.journal.jsonl"
    for _ in range(kills):
        early = draw.random() < 0.3
        lines = 0 if early else _lines(journal) + draw.randint(1, max(items // kills, 1))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            while process.poll() is None and _lines(journal) < lines:
                time.sleep(0.001)
            time.sleep(draw.uniform(0.0, 1.0 if early else 0.02))
            if process.poll() is None:
                process.kill()
                kept.append(_lines(journal) - 1)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return kept


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    ask(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
