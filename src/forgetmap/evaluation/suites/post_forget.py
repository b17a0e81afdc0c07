"""The benchmarks of Harmon et al., read from the hub; data/*.toml describes them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError, EmptyInputError, FieldError
from forgetmap.evaluation.items import Item, Suite, Task, order_by_hash
from forgetmap.evaluation.suites.hub import HubData, HubRow, load_rows
from forgetmap.evaluation.suites.lessons import format_lessons
from forgetmap.evaluation.suites.schemas import READERS, BenchmarkRow, Reader, fingerprint, named
from forgetmap.scoring import AnswerKind

MAX_LEFT_OUT = 0.02
"""Public benchmarks have a few broken rows; more of them indicate another split or schema."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One sub-benchmark of the table, which explains the settings."""

    name: str
    category: str
    dataset: str
    split: str
    reader: str
    instruction: str
    config: str | None = None
    exported: bool = False
    labels: tuple[str, ...] = ()
    options: int = 4
    shuffle: bool = False
    kind: AnswerKind = "option"

    @property
    def data(self) -> HubData:
        """The data set of its rows."""
        return HubData(self.dataset, self.split, self.config, self.exported)

    @property
    def read(self) -> Reader:
        """Function that converts a row into a question."""
        return named(*self.labels) if self.reader == "named" else READERS[self.reader]


def post_forget_suite(root: Path | None = None) -> Suite:
    """Return the suite; nothing is read from the hub before a task is loaded.

    Args:
        root: a folder whose `root/OWNER/NAME` replaces data sets on the hub.
    """
    examples = _examples()
    return Suite(
        "post-forget", tuple(_task(benchmark, examples, root) for benchmark in benchmarks())
    )


def benchmarks() -> tuple[Benchmark, ...]:
    """Return all sub-benchmarks of the table, in its order."""
    table = _toml("post_forget.toml")
    return tuple(
        benchmark for name, entry in table.items() for benchmark in _sub_benchmarks(name, entry)
    )


def read_items(benchmark: Benchmark, root: Path | None = None) -> tuple[Item, ...]:
    """Read the items of one sub-benchmark.

    Args:
        benchmark: the sub-benchmark.
        root: a folder with local copies.
    """
    rows = load_rows(benchmark.data, root=root)
    questions = [_benchmark_row(benchmark, number, row) for number, row in enumerate(rows, start=1)]
    usable = [question for question in questions if question is not None]
    if not rows:
        raise EmptyInputError(
            "the data set has no rows", file=str(benchmark.data), hint="download it again."
        )
    if len(usable) < len(rows) * (1 - MAX_LEFT_OUT):
        raise FieldError(
            f"{len(rows) - len(usable):,} of {len(rows):,} rows of {benchmark.name} have no "
            "usable right answer",
            file=str(benchmark.data),
            line=questions.index(None) + 1,
            hint="check that this is the labelled split of the right data set.",
        )
    return tuple(_items(usable, shuffle=benchmark.shuffle))


def _sub_benchmarks(name: str, entry: dict[str, Any]) -> Iterator[Benchmark]:
    common = {key: value for key, value in entry.items() if key not in {"categories", "task"}}
    for category, tasks in entry["categories"].items():
        for task in tasks:
            settings = common | entry.get("task", {}).get(task, {})
            yield _benchmark(f"{name}:{task}", category, task, settings)


def _benchmark(name: str, category: str, task: str, settings: dict[str, Any]) -> Benchmark:
    labels = tuple(settings.get("labels", ()))
    words = {"task": task, "topic": task.replace("_", " ")}
    texts = {
        key: settings[key].format(**words)
        for key in ("config", "split", "instruction")
        if key in settings
    }
    sized = {"options": len(labels)} if labels else {}
    return Benchmark(name, category, **(settings | texts | sized | {"labels": labels}))


def _task(benchmark: Benchmark, examples: Sequence[dict[str, Any]], root: Path | None) -> Task:
    return Task(
        name=benchmark.name,
        category=benchmark.category,
        kind=benchmark.kind,
        load=partial(read_items, benchmark, root),
        instruction=benchmark.instruction,
        lessons=format_lessons(benchmark.kind, options=benchmark.options),
        examples=tuple(_own_examples(benchmark.name, examples)),
    )


def _own_examples(name: str, examples: Iterable[dict[str, Any]]) -> Iterator[Item]:
    own = (example for example in examples if fnmatchcase(name, example["tasks"]))
    for number, example in enumerate(own, start=1):
        yield Item(
            id=f"example-{number}",
            question=example["question"],
            gold=example["gold"],
            options=tuple(example.get("options", ())),
            reasoning=example.get("reasoning", ""),
        )


def _benchmark_row(benchmark: Benchmark, number: int, row: HubRow) -> BenchmarkRow | None:
    try:
        return benchmark.read(row)
    except KeyError as error:
        raise ColumnError(
            f"missing column {error}; the columns are {', '.join(row)}",
            file=str(benchmark.data),
            line=number,
            field=str(error.args[0]),
            hint="check that this is the data set of the suite.",
        ) from None


def _items(rows: Iterable[BenchmarkRow], *, shuffle: bool) -> Iterator[Item]:
    """Yield items with ids from their content, so that neither order nor limit changes them."""
    counts: dict[str, int] = {}
    for row in rows:
        base = fingerprint(row.question, *sorted(row.gold), *sorted(row.options))
        counts[base] = counts.get(base, 0) + 1
        name = base if counts[base] == 1 else f"{base}-{counts[base]}"
        options = order_by_hash(name, row.options) if shuffle else row.options
        yield Item(name, row.question, row.gold[0], options, row.gold[1:], cluster=row.cluster)


def _examples() -> list[dict[str, Any]]:
    examples: list[dict[str, Any]] = _toml("post_forget_examples.toml")["example"]
    return examples


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads(
        (files("forgetmap.evaluation.suites") / "data" / name).read_text(encoding="utf-8")
    )
