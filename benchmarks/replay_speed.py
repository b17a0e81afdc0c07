"""How long does it take to choose a replay set from a million rows, and what is left out?

    .venv/bin/python benchmarks/replay_speed.py                     1,000,000 rows, 10,000 items
    .venv/bin/python benchmarks/replay_speed.py --rows 50000 --pairs 1

Texts are made of words of the documentation of Python's own language (`pydoc_data.topics`), half of
them (`--pairs`) in pairs from there, so that they have the words and the phrases of English. With
`--pairs 1` each word follows the previous one as in the documentation: as many words have only one
successor, such texts quote the documentation at length, and each other. One row in a hundred
contains an item: its question in capitals with other text around it. The time is that of
`write_replay` including reading the pool, without the comparison.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import forgetmap as fm
from forgetmap.export import write_replay

LEAK = 100
"""One row in this many contains an item."""


class Writer:
    """Generates texts from words of the documentation, some in pairs from there."""

    def __init__(self, seed: int, pairs: float) -> None:
        self.dice, self.pairs = random.Random(seed), pairs
        words = " ".join(topics.values()).split()
        self.next: dict[str, list[str]] = {}
        for word, after in zip(words, [*words[1:], words[0]], strict=True):
            self.next.setdefault(word, []).append(after)
        self.words = words

    def text(self, count: int) -> str:
        """Return this many words."""
        words = [self.dice.choice(self.words)]
        while len(words) < count:
            is_pair = self.dice.random() < self.pairs
            words.append(self.dice.choice(self.next[words[-1]] if is_pair else self.words))
        return " ".join(words)


def results(writer: Writer, count: int) -> Iterator[dict[str, object]]:
    """Yield items with a question of 8 to 60 words and four options."""
    for number in range(count):
        options = [f"{writer.text(4)} {place}" for place in range(4)]
        yield {
            "task": f"task-{number % 20}",
            "item": str(number),
            "question": f"{writer.text(writer.dice.randint(8, 60))}?",
            "options": options,
            "gold": options[0],
            "score": 1.0,
        }


def write_files(folder: Path, rows: int, items: int, pairs: float) -> tuple[Path, Path, Path]:
    """Write two runs, one of which forgot one item in ten, and a pool."""
    writer = Writer(0, pairs)
    asked = list(results(writer, items))
    before, after, pool = (folder / f"{name}.jsonl" for name in ("before", "after", "pool"))
    with before.open("w") as first, after.open("w") as second:
        for number, row in enumerate(asked):
            first.write(json.dumps(row) + "\n")
            second.write(json.dumps(row | {"score": float(number % 10 > 0)}) + "\n")
    with pool.open("w") as file:
        for number in range(rows):
            prompt = writer.text(writer.dice.randint(10, 90))
            if number % LEAK == 0:
                question = str(writer.dice.choice(asked)["question"]).upper()
                prompt = f"{prompt}\n\n{question}\n\n{writer.text(20)}"
            row = {"prompt": prompt, "completion": writer.text(writer.dice.randint(5, 90))}
            file.write(json.dumps(row) + "\n")
    return before, after, pool


def main() -> None:
    """Print the cost, and what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--pairs", type=float, default=0.5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before, after, pool = write_files(folder, args.rows, args.items, args.pairs)
        comparison = fm.compare(before, after)
        start, process = time.perf_counter(), time.process_time()
        summary = write_replay(
            comparison, folder / "replay.jsonl", pool=[pool], excluded=folder / "excluded.jsonl"
        )
        seconds, process = time.perf_counter() - start, time.process_time() - process
        size = pool.stat().st_size
        with (folder / "excluded.jsonl").open() as listing:
            lines = [json.loads(line)["line"] for line in listing]
    leaks = -(-args.rows // LEAK)
    found = sum((line - 1) % LEAK == 0 for line in lines)
    wrong = len(lines) - found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{args.rows:,} rows ({size / 1e6:,.0f} MB), {args.items:,} items, "
          f"{summary.forgotten:,} forgotten")  # fmt: skip
    print(f"{seconds:.1f} s ({process:.1f} s of CPU), peak {peak:.2f} GiB")
    print(f"left out {dict(summary.excluded)}: {found:,} of {leaks:,} that give an item away, and "
          f"{wrong:,} of the others ({wrong / (args.rows - leaks):.3%})")  # fmt: skip
    print(f"{summary.rows:,} rows for {summary.reached:,} items, {summary.similarity} alike")


if __name__ == "__main__":
    main()
