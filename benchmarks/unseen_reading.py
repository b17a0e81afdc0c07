"""Read pairs of public files that nobody prepared, and compare with independent counts.

    .venv/bin/python benchmarks/unseen_pairs.py --mirror MIRROR --out OUT
    .venv/bin/python benchmarks/unseen_reading.py --files OUT

The first script checks the files out and counts each pair without forgetmap. This one types
`forgetmap compare BEFORE AFTER`, with `#NAME` where one file has both models, and if that ends in
an error, the commands that its message gives.

as it is   the four cells are those of the independent count
after a hint   they are after typing a command of the message, or of the message after that, or
    the option that it names
graded here   the files have no score: the cells differ by the grading of at most 1 % of the items
dead end   no command of a message leads to a count
WRONG      a count without an error that differs from the independent one

Pairs that cannot be counted (no score and no right answer in the files) must end in an error.

`--list holdout_pairs.json` takes the pairs that somebody else chose and counted, who knew neither
the reader nor the first list, after the reader had learnt from two others. FILES has their files in
the same layout.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("unseen_pairs.json")
CELLS = ("n11", "n10", "n01", "n00")
MAX_HINTS = 2
MAX_COMMANDS = 3
"""Commands of one message that are typed."""
COMMAND = re.compile(r"forgetmap compare [^`\n]+")


def sources(files: Path, pair: dict[str, Any]) -> list[str]:
    """Return what a user types: two paths, or one file with two models."""
    folder = files / pair["name"]
    before = folder / "before" / pair["before"]
    if pair["after"] == pair["before"]:
        return [f"{before}#{model}" for model in pair["models"]]
    return [str(before), str(folder / "after" / pair["after"])]


def typed(words: list[str]) -> tuple[dict[str, Any] | None, str, list[str]]:
    """Run a command; return its total and notices, or None and its message."""
    program = [sys.executable, "-m", "forgetmap", *words, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        result = json.loads(done.stdout)
        notices = [one["message"] for one in result["pairing"]["warnings"]]
        return result["total"], done.stderr, notices
    return None, done.stderr, []


def commands(message: str) -> list[list[str]]:
    """Return the complete commands that a message gives."""
    found = (shlex.split(command.rstrip(" .,;")) for command in COMMAND.findall(message))
    return [words[1:] for words in found][:MAX_COMMANDS]


def next_words(words: list[str], message: str) -> list[list[str]]:
    """Return what a message says to type: commands, or the same one with an option."""
    option = re.search(r"--min-paired [0-9.]+[0-9]", message)
    return [*commands(message), *([[*words, *option[0].split()]] if option else [])]


def outcome(pair: dict[str, Any], total: dict[str, Any]) -> bool:
    """Return whether the cells are those of the independent count."""
    return [total[cell] for cell in CELLS] == [pair.get(cell) for cell in CELLS]


def judge(files: Path, pair: dict[str, Any]) -> tuple[str, str]:
    """Return how a pair ends, and the last message."""
    words = ["compare", *sources(files, pair)]
    total, message, notices = typed(words)
    if total is not None:
        if not pair["countable"]:
            return "WRONG", "counted what cannot be counted"
        found = [total[cell] for cell in CELLS]
        if outcome(pair, total):
            return "as it is", ""
        differ = sum(abs(total[cell] - pair[cell]) for cell in CELLS) / 2
        graded = any("graded here" in one for one in notices) and differ <= pair["items"] / 100
        return ("graded here" if graded else "WRONG"), f"{found} {message}"
    if not pair["countable"]:
        return "refused", message
    left, wrong = [(words, message, MAX_HINTS)], ""
    while left:
        last, text, hints = left.pop(0)
        for words in next_words(last, text):
            total, further, _ = typed(words)
            if total is not None and outcome(pair, total):
                return "after a hint", shlex.join(words)
            if total is None and hints > 1:
                left.append((words, further, hints - 1))
            elif total is not None:
                wrong = wrong or f"{[total[cell] for cell in CELLS]} by {shlex.join(words)}"
    return "dead end", message + (f"\n(other counts: {wrong})" if wrong else "")


def main() -> int:
    """Print how each pair ends, and how many end so; the exit code is 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, required=True, help="folder of unseen_pairs.py")
    parser.add_argument("--list", type=Path, default=LIST, help="list of pairs")
    parser.add_argument("--only", help="part of the name of a pair")
    parser.add_argument("--messages", action="store_true", help="print messages, too")
    options = parser.parse_args()
    ends: Counter[str] = Counter()
    for pair in json.loads(options.list.read_text("utf-8")):
        if options.only and options.only not in pair["name"]:
            continue
        end, message = judge(options.files, pair)
        ends[end] += 1
        print(f"{pair['name']:26} {end}", flush=True)
        if options.messages and message:
            expected = [pair.get(cell) for cell in CELLS]
            print(f"    expected {expected}\n    " + message.strip().replace("\n", "\n    "))
    print(dict(ends))
    return int(ends["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
