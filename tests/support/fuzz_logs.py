"""Fuzz every adapter with damaged copies of the fixtures: `make fuzz`, or

    python tests/support/fuzz_logs.py --mutations 10000 [--only HARNESS] [--seed 0]

Only typed errors may be raised, nothing may take long, and damage to one row must not change the
results of items of other rows unless a problem is reported.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pyarrow.parquet as pq

from forgetmap.errors import ForgetmapError
from forgetmap.records.schema import SCORES, TEXTS
from forgetmap.sources.adapter import Problems
from forgetmap.sources.gather import RunWriter
from forgetmap.sources.logs import choose, recognise
from forgetmap.sources.registry import adapter
from log_mutations import (
    Files,
    Named,
    Row,
    Table,
    mutate_bytes,
    mutate_cells,
    mutate_value,
    packed,
    table_of,
    unpacked,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
LONGEST_SECONDS = 60
Key = tuple[Any, ...]
Records = dict[Key, dict[str, Any]]


class TooSlow(BaseException):
    """Reading took too long; a BaseException, so that no error handler catches it."""


@dataclass(frozen=True)
class Outcome:
    """Result of reading a log; records are None after a typed error."""

    records: Records | None
    problems: int = 0


@dataclass(frozen=True)
class Failure:
    """A failure, with what is needed to reproduce it."""

    log: str
    number: int
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.log} (seed {self.seed}, mutation {self.number}): {self.what}"


def logs_of(harness: str) -> list[Path]:
    """Return the fixtures of a harness."""
    return sorted(path.parent for path in FIXTURES.glob(f"{harness}/*/log"))


def harnesses() -> list[str]:
    """Return the harnesses with fixtures."""
    return sorted(path.name for path in FIXTURES.iterdir() if logs_of(path.name))


def read(folder: Path, work: Path) -> Outcome:
    """Read the records of a log, as commands do."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    problems = Problems()
    try:
        logs, _ = choose(folder, recognise(folder), None)
        with RunWriter(out, texts=True, problems=problems) as writer:
            for log in logs:
                writer.add(list(adapter(log.adapter).read(log, problems, texts=True)))
    except ForgetmapError:
        return Outcome(None)
    rows = pq.read_table(out / SCORES).to_pylist()
    texts = {
        (row["task"], row["item"], row["repeat"]): row
        for row in pq.read_table(out / TEXTS).to_pylist()
    }
    keys = ("task", "item", "repeat", "metric", "scorer")
    return Outcome(
        {
            tuple(row[name] for name in keys): {
                **row,
                **texts[row["task"], row["item"], row["repeat"]],
            }
            for row in rows
        },
        problems.count,
    )


@contextmanager
def soon() -> Iterator[None]:
    """Raise TooSlow in a block that takes longer than the limit."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow

    # Processor time, which does not depend on the load of the machine.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Fuzzer:
    """Damages one log repeatedly."""

    fixture: Path
    work: Path
    seed: int
    known: dict[Row, set[Key]] = field(default_factory=dict)

    @cached_property
    def files(self) -> Files:
        log = self.fixture / "log"
        paths = [path for path in sorted(log.rglob("*")) if path.is_file()]
        return unpacked({path.relative_to(log).as_posix(): path.read_bytes() for path in paths})

    @cached_property
    def tables(self) -> dict[str, Table]:
        found = {name: table_of(content) for name, content in self.files.items()}
        return {name: table for name, table in found.items() if table is not None}

    @cached_property
    def original(self) -> Records:
        found = self.read({}).records
        assert found, f"{self.fixture} cannot be read"
        return found

    def read(self, changed: dict[str, bytes]) -> Outcome:
        """Read the log with some files changed."""
        folder = self.work / "log"
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in packed({**self.files, **changed}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with soon():
            return read(folder, self.work)

    def run(self, count: int) -> list[Failure]:
        """Apply this number of mutations and return the failures."""
        found: list[Failure] = []
        assert self.original
        for number in range(count):
            random = Random(f"{self.seed}/{self.fixture.name}/{number}")
            try:
                what = self.mutate(random)
            except TooSlow:
                what = f"took more than {LONGEST_SECONDS} seconds of the processor"
            except Exception as error:  # noqa: BLE001  # the fuzzer searches for these
                what = f"{error!r} at {_place(error)}"
            if what:
                log = f"{self.fixture.parent.name}/{self.fixture.name}"
                found.append(Failure(log, number, self.seed, what))
        return found

    def mutate(self, random: Random) -> str | None:
        """Apply one mutation, to the bytes of a file or to a row."""
        if random.random() < 0.4 or not self.tables:
            name = random.choice(list(self.files))
            self.read({name: mutate_bytes(self.files[name], random)})
            return None
        name = random.choice(list(self.tables))
        row = Row(name, random.randrange(len(self.tables[name].rows)))
        changed, what = self.damaged(row, random)
        if not self.holds_samples(name):
            self.read({name: changed})
            return None
        owned = self.owned_by(row)
        wrong = set(self.changed(self.read({name: changed}))) - owned
        if not owned and len({key[:2] for key in wrong}) == 1:
            return None  # so the row is about this item
        if not wrong and not self.tears(row):
            return None
        others = sorted({str(key[:2]) for key in wrong} or map(str, self.touched(row)))
        return f"{what} of row {row.place} of {name} changed {', '.join(others[:4])}"

    def damaged(self, row: Row, random: Random) -> tuple[bytes, str]:
        """Return the file with one row deleted, doubled or changed, and the kind of damage."""
        table = self.tables[row.file]
        rows = list(table.rows)
        kind = random.randrange(10)
        if kind == 0:
            del rows[row.place]
            return self.written(table, rows), "deletion"
        if kind == 1:
            rows.insert(row.place, rows[row.place])
            return self.written(table, rows), "doubling"
        old = rows[row.place]
        if self.files[row.file].startswith(b"PAR1"):
            rows[row.place] = mutate_cells(old, random)
        elif isinstance(old, str):
            damaged = mutate_bytes(old.encode(), random).decode("utf-8", "replace")
            rows[row.place] = damaged.replace("\n", " ")
        elif isinstance(old, Named):
            rows[row.place] = Named(old.name, mutate_value(old.value, random))
        else:
            rows[row.place] = mutate_value(old, random)
        return self.written(table, rows), "change"

    def written(self, table: Table, rows: list[Any]) -> bytes:
        """Return the file with these rows, without changing the table."""
        content = table.write(rows)
        table.write(list(table.rows))
        return content

    def owned_by(self, row: Row) -> set[Key]:
        """Return the results of the items of a row, which may change if the row is damaged."""
        touched = self.touched(row)
        named = set(ids(self.tables[row.file].rows[row.place]))
        return {key for key in self.original if key[:2] in touched or key[1] in named}

    def touched(self, row: Row) -> set[Key]:
        """Return task and item of results that change silently if a row is deleted or emptied."""
        if row not in self.known:
            table = self.tables[row.file]
            before, old, after = _around(table.rows, row.place)
            variants = [[*before, *after]]
            if not self.files[row.file].startswith(b"PAR1"):
                variants.append([*before, _emptied(old), *after])
            outcomes = [self.read({row.file: self.written(table, rows)}) for rows in variants]
            self.known[row] = {key[:2] for outcome in outcomes for key in self.changed(outcome)}
        return self.known[row]

    def changed(self, outcome: Outcome) -> list[Key]:
        """Return the results that changed although no problem was reported."""
        if outcome.records is None or outcome.problems:
            return []
        found = set(map(_with_first_id, outcome.records.values()))
        return [
            key
            for key, record in self.original.items()
            if not _same(outcome.records.get(key), record)
            and not (record["score"] is None and key not in outcome.records)
            and repr(record) not in found
        ]

    def holds_samples(self, name: str) -> bool:
        """Return whether some row is about a single item, rather than about tasks or settings."""
        items = {key[1] for key in self.original}
        rows = self.tables[name].rows
        return any(
            len(self.touched(Row(name, place))) == 1 or not items.isdisjoint(ids(row))
            for place, row in enumerate(rows)
        )

    def tears(self, row: Row) -> bool:
        """Return whether a row also affects an item that belongs to another row alone."""
        mine = self.touched(row)
        others = (Row(row.file, place) for place in range(len(self.tables[row.file].rows)))
        return any(len(theirs) == 1 and theirs < mine for theirs in map(self.touched, others))


def _around(rows: list[Any], place: int) -> tuple[list[Any], Any, list[Any]]:
    return rows[:place], rows[place], rows[place + 1 :]


def _emptied(row: Any) -> Any:
    if isinstance(row, Named):
        return Named(row.name, {})
    return {} if isinstance(row, dict) else ""


def ids(value: Any) -> Iterator[str]:
    """Yield the values in a row whose name contains `id`."""
    value = value.value if isinstance(value, Named) else value
    for name, part in value.items() if isinstance(value, dict) else ():
        if "id" in str(name).lower() and isinstance(part, str | int):
            yield str(part)
        yield from ids(part)


def _with_first_id(record: dict[str, Any]) -> str:
    """Return a record with its id before deduplication; it is still paired by its content."""
    if record["question_hash"] is None:
        return repr(record)
    return repr({**record, "item": re.split("[~#]", record["item"])[0]})


def _same(left: Any, right: Any) -> bool:
    """Return whether values are equal, with NaN equal to NaN."""
    return repr(left) == repr(right)


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "forgetmap" in frame.filename] or list(frames)
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"


def fuzz(harness: str, mutations: int, seed: int, work: Path) -> list[Failure]:
    """Fuzz the logs of a harness, with mutations divided among them."""
    logs = logs_of(harness)
    found = []
    for place, fixture in enumerate(logs):
        count = mutations // len(logs) + (place < mutations % len(logs))
        found += Fuzzer(fixture, work, seed).run(count)
    return found


def main() -> int:
    """Fuzz all harnesses and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000, help="per harness")
    parser.add_argument("--only", action="append", help="name of a harness; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failures: list[Failure] = []
    for harness in options.only or harnesses():
        with tempfile.TemporaryDirectory() as work:
            found = fuzz(harness, options.mutations, options.seed, Path(work))
        sys.stdout.write(f"{harness}: {options.mutations:,} mutations, {len(found)} failures\n")
        seen: dict[str, Failure] = {}
        for failure in found:
            seen.setdefault(failure.what.split(" of row ")[0][-120:], failure)
        sys.stdout.writelines(f"  {failure}\n" for failure in list(seen.values())[:20])
        sys.stdout.flush()
        failures += found
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
