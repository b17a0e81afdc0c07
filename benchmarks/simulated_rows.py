"""Tables of error rates over simulated data sets, many at a time, for the benchmarks with worlds.

A script has rows, and a function of a job that calls `simulate`, which other processes can import.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

CHUNK = 50
AGAIN = 4
"""How many times more data sets a row gets that misses a target."""
TINY = 1e-9
OWN = "_own"
"""Ending of rates that are about the drawn items; the larger rate counts."""
NAMES = {"low_above": "L above", "high_below": "U below", "drop_below": "Ud below"}

Rates = dict[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes:
        world: what is simulated.
        measure: draws one data set and returns its rates.
        shown: rates of the table, and the most that each may be.
        least: the least that a rate may be.
        others: further rates, and the most that each may be.
        is_control: whether it shows what goes wrong, without targets.
    """

    world: str
    measure: Callable[[np.random.Generator], Rates]
    shown: Mapping[str, float]
    least: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    is_control: bool = False

    def missed(self, rates: Rates) -> list[str]:
        """Return the targets that rates miss."""
        if self.is_control:
            return []
        most = {**self.shown, **self.others}
        above = [name for name in most if rates.get(name, 0.0) > most[name] + TINY]
        return above + [name for name, least in self.least.items() if rates[name] < least - TINY]


class Job(NamedTuple):
    """Data sets to draw: the row, the number of the first one, how many, and the seed."""

    row: int
    first: int
    sets: int
    seed: int


class Tally(NamedTuple):
    """The row, the number of data sets, and the sums of their rates."""

    row: int
    sets: int
    sums: Rates


def simulate(row: Row, job: Job) -> Tally:
    """Draw data sets of a row. Random numbers depend on its name, not on its place."""
    rng = np.random.default_rng([job.seed, zlib.crc32(row.world.encode()), job.first])
    sums: Rates = {}
    for _ in range(job.sets):
        for name, rate in row.measure(rng).items():
            sums[name] = sums.get(name, 0.0) + rate
    return Tally(job.row, job.sets, sums)


@dataclass(slots=True)
class Line:
    """What was found in a row."""

    row: Row
    sets: int = 0
    sums: Rates = field(default_factory=dict)

    def add(self, tally: Tally) -> None:
        """Add the results of a job."""
        self.sets += tally.sets
        for name, total in tally.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + total

    @property
    def rates(self) -> Rates:
        """Mean rates; where there are two truths, the larger one."""
        means = {name: total / self.sets for name, total in self.sums.items()}
        plain = {name: mean for name, mean in means.items() if not name.endswith(OWN)}
        return {name: max(mean, means.get(name + OWN, 0.0)) for name, mean in plain.items()}

    @property
    def missed(self) -> list[str]:
        """Names of the targets that it misses."""
        return self.row.missed(self.rates)


def run_rows(
    lines: Mapping[int, Line],
    run_job: Callable[[Job], Tally],
    sets: int,
    *,
    seed: int = 0,
    processes: int | None = None,
) -> None:
    """Run rows; those that miss a target are simulated several more times, and all counts."""
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # on small data, processes are better than threads
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for title, first, last in (("all rows", 0, sets), ("again", sets, (1 + AGAIN) * sets)):
            jobs = [
                Job(index, start, min(CHUNK, last - start), seed)
                for index, line in lines.items()
                if first == 0 or line.missed
                for start in range(first, last, CHUNK)
            ]
            tallies = pool.imap_unordered(run_job, jobs)
            for tally in track(tallies, title, len(jobs), console=Console(stderr=True)):
                lines[tally.row].add(tally)


def make_tables(lines: Sequence[Line]) -> str:
    """Return the tables in Markdown, with a sentence on the result."""
    parts = []
    for columns in dict.fromkeys(tuple(line.row.shown) for line in lines):
        heads = [NAMES.get(name, name.replace("_", " ")) for name in columns]
        parts += [_join(["world", *heads, "data sets", ""]), "|---" * (len(columns) + 3) + "|"]
        parts += [_join(_cells(line)) for line in lines if tuple(line.row.shown) == columns]
        parts.append("")
    missed = sum(bool(line.missed) for line in lines)
    return "\n".join([*parts, f"{len(lines)} rows, {missed} not within their targets."])


def _join(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(line: Line) -> list[str]:
    rates, row = line.rates, line.row
    shown = [f"{rates[name]:.3f}" if name in rates else "" for name in row.shown]
    others = [
        f"{name.replace('_', ' ')} {rates[name]:.3f}"
        for name in (*row.others, *row.least)
        if name not in row.shown
    ]
    missed = ", ".join(NAMES.get(name, name.replace("_", " ")) for name in line.missed)
    verdict = "" if row.is_control else f"MISSED: {missed}" if missed else "ok"
    return [row.world, *shown, f"{line.sets:,}", ", ".join([*others, verdict])]


def write_section(page: Path, section: str, body: str) -> None:
    """Put a section into a page, replacing an earlier one; other sections are kept."""
    before, _, rest = page.read_text(encoding="utf-8").partition(section)
    _, title, after = rest.partition("\n## ")
    text = before.rstrip("\n") + f"\n{section}{body}\n{title}{after}"
    page.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def main(
    rows: Sequence[Row],
    run_job: Callable[[Job], Tally],
    about: str | None,
    section: str,
    text: str,
    *,
    sets: int = 2_000,
) -> int:
    """Run a script: print the tables, and return 1 if a target is missed.

    Args:
        rows: all rows.
        run_job: simulates a job.
        about: description of the script.
        section: heading of the tables on a page.
        text: text under it; `{sets}` is the number of data sets.
        sets: number of data sets of a row, unless another one is given.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="", help="words in their names, separated by commas")
    parser.add_argument("--sets", type=int, default=sets, help=f"of a row [default: {sets}]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument("--processes", type=int, help="[default: one a core]")
    parser.add_argument("--write", type=Path, help="put the tables into this page: docs/truth.md")
    options = parser.parse_args()
    words = [word.strip() for word in options.rows.split(",")]
    lines = {
        index: Line(row)
        for index, row in enumerate(rows)
        if any(word in row.world for word in words)
    }
    if not lines:
        parser.error(f"no row has {options.rows!r} in its name")
    run_rows(lines, run_job, options.sets, seed=options.seed, processes=options.processes)
    tables = make_tables([*lines.values()])
    print(tables)
    if options.write:
        write_section(options.write, section, f"{text.format(sets=options.sets)}\n{tables}")
    return int(any(line.missed for line in lines.values()))
