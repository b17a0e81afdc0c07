"""`python killed_runner.py ADDRESS ITEMS OUT`: a run that may be killed at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import forgetmap as fm
from forgetmap.runner.items import Item, Suite, Task
from forgetmap.runner.servers.traffic import Traffic
from forgetmap.runner.settings import Settings

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


def run_and_kill(address: str, items: int, out: Path, kills: int, seed: int) -> int:
    """Start the run again and again and kill it; how many kills hit it while it ran."""
    draw, hits = random.Random(seed), 0
    command = [sys.executable, __file__, address, str(items), str(out)]
    for _ in range(kills):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                process.wait(draw.uniform(0.0, 1.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                hits += 1
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return hits


if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    ask(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
