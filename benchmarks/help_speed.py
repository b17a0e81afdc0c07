"""How fast is help shown? Each command's `--help` against the start of a bare interpreter.

    .venv/bin/python benchmarks/help_speed.py
    .venv/bin/python benchmarks/help_speed.py --rounds 3

Seconds from the start of a process to its end, median of the rounds. Every round starts the bare
interpreter (`python -c pass`) and all commands in turn, so that all have the same load. The limits
are 6 times the bare interpreter for `forgetmap --help`, and 10 times for every other command.
Modules are compiled, as in any installation after its first use: a first round that does not count
compiles them, even if the environment disables the cache of Python.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import click

from forgetmap.cli.main import cli

MAX_RATIO, MAX_RATIO_OF_COMMANDS = 6.0, 10.0
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
START = "from forgetmap.cli.main import main; main()"


def main() -> None:
    """Print a table of ratios; exit code 1 if one exceeds its limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    paths = list(command_paths(cli, ()))
    bare: list[float] = []
    seconds: dict[tuple[str, ...], list[float]] = {path: [] for path in paths}
    for path in paths:
        time_of(START, *path, "--help")
    for _ in range(rounds):
        bare.append(time_of("pass"))
        for path in paths:
            seconds[path].append(time_of(START, *path, "--help"))
    start = statistics.median(bare)
    print(f"bare interpreter: {start * 1000:.1f} ms, median of {rounds}")
    slow = 0
    for path in paths:
        ratio = statistics.median(seconds[path]) / start
        limit = MAX_RATIO_OF_COMMANDS if path else MAX_RATIO
        slow += ratio > limit
        mark = "" if ratio <= limit else f"  above {limit:g}"
        print(f"{ratio:6.1f}x  {' '.join(('forgetmap', *path))}{mark}")
    sys.exit(bool(slow))


def command_paths(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every command and group, including the root."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from command_paths(inner, (*path, name))


def time_of(code: str, *args: str) -> float:
    """Return the seconds of a new interpreter."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, *args],
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
        check=True,
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
