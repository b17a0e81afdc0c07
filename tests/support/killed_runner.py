"""A run that is killed at random times: `python killed_runner.py ADDRESS ITEMS OUT KILLS SEED`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
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
    """Start and kill the run several times, then let it finish.

    Returns:
        Number of answers in the journal at each kill.
    """
    command = [sys.executable, __file__, address, str(items), str(out), str(kills), str(seed)]
    kept = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert isinstance(kept, list)
    return kept


def _kill_forks(address: str, items: int, out: Path, kills: int, seed: int) -> list[int]:
    """Kill some runs while they start and probe the server, most while answers arrive.

    Forks avoid imports, which take longer than the run itself.
    """
    draw, kept = random.Random(seed), []
    journal = out.parent / f".{out.name}.journal.jsonl"
    for _ in range(kills):
        early = draw.random() < 0.3
        lines = 0 if early else _lines(journal) + draw.randint(1, max(items // kills, 1))
        run = _fork(address, items, out)
        while run.is_alive() and _lines(journal) < lines:
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 1.0 if early else 0.02))
        if run.is_alive():
            run.kill()
            kept.append(_lines(journal) - 1)
        run.join()
    last = _fork(address, items, out)
    last.join()
    assert last.exitcode == 0
    return kept


def _fork(address: str, items: int, out: Path) -> ForkProcess:
    run = get_context("fork").Process(target=ask, args=(address, items, out))
    run.start()
    return run


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    address, items, out, kills, seed = sys.argv[1:]
    kept = _kill_forks(address, int(items), Path(out), int(kills), int(seed))
    print(json.dumps(kept))  # noqa: T201
