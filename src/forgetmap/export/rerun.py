"""Lists of items in the format of a harness, to evaluate only these again.

Ids are those in the logs of the harness:

- lm-evaluation-harness: `--samples FILE`, a JSON object of task -> positions in its data set, in
  increasing order: answers are numbered by the list, but evaluated in the order of the data set.
- Inspect: `--sample-id a,b,c`, patterns in which `*`, `?` and `[` must be escaped; `task:id` for
  several tasks.
- forgetmap: a file of items for `forgetmap run --suite FILE`.
- lighteval has no such option: it takes the first `--max-samples` after shuffling.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from typing import Any

from forgetmap.comparison import Comparison
from forgetmap.errors import FieldError, HarnessError, UsageError
from forgetmap.evaluation import PROBE_COLUMN
from forgetmap.export.choices import RerunHarness, RerunKind
from forgetmap.export.files import complete_file
from forgetmap.export.measured import Key, MeasuredItem, items_of
from forgetmap.records import Run, reading

UNPAIRED = ("only before", "only after", "unscored")
"""Reasons that another evaluation can fix, unlike different content with the same id."""
MAX_ARGUMENT = 131_072
"""Maximum size in bytes of one command-line argument on Linux."""


@dataclass(frozen=True, slots=True)
class RerunSummary:
    """The items to evaluate again, and the command.

    Attributes:
        out: path of the file.
        harness: the harness that evaluates them.
        show: kind of the items.
        items: number of items.
        tasks: number of items of each task.
        command: the command to type; replace words in capitals.
        notices: limitations.
    """

    out: str
    harness: str
    show: str
    items: int
    tasks: Mapping[str, int]
    command: str
    notices: tuple[str, ...]

    def to_json(self) -> str:
        """Return the output of `--json`."""
        return json.dumps(asdict(self), indent=2)


@dataclass(frozen=True, slots=True)
class _Selection:
    """Items to evaluate again, with the ids of the run before.

    Attributes:
        comparison: the comparison of the items.
        items: ids of each task, in order.
    """

    comparison: Comparison
    items: Mapping[str, Sequence[str]]

    @property
    def run(self) -> Run:
        """The run whose ids are used."""
        return self.comparison.before

    def known(self) -> dict[Key, MeasuredItem]:
        """Return all items of both runs, as recorded before if both have them."""
        return items_of(self.comparison.after) | items_of(self.comparison.before)


@dataclass(frozen=True, slots=True)
class _Listing:
    """Content of the file, and the command."""

    content: str
    command: str
    notices: tuple[str, ...] = ()


def write_rerun(
    comparison: Comparison,
    out: str | Path,
    *,
    harness: RerunHarness,
    show: RerunKind = "forgotten",
    suite: str | None = None,
    overwrite: bool = False,
) -> RerunSummary:
    """Write the items to evaluate again, in the format of a harness.

    Args:
        comparison: result of `compare`.
        out: the file to write.
        harness: the harness that evaluates them; one of the runs must be its own.
        show: `forgotten`, `gained`, `unpaired` (missing or unscored on one side), or `undecided`
            (all items of tasks without a verdict).
        suite: for forgetmap, the suite of the run; items are then evaluated with its settings.
        overwrite: replace an earlier file.

    Raises:
        UsageError: there are no such items, or they have no ids of this harness.
        HarnessError: the harness cannot evaluate single items.
    """
    _require_own_ids(comparison, harness)
    selection = _select(comparison, show)
    listing = _WRITERS[harness](selection, Path(out), suite)
    with complete_file(Path(out), overwrite=overwrite) as file:
        file.write(listing.content)
    tasks = {task: len(items) for task, items in selection.items.items()}
    return RerunSummary(
        out=str(out),
        harness=harness,
        show=show,
        items=sum(tasks.values()),
        tasks=tasks,
        command=listing.command,
        notices=listing.notices,
    )


def _require_own_ids(comparison: Comparison, harness: RerunHarness) -> None:
    """Refuse ids of another harness: tasks and items are named by the run before."""
    before, after = (run.info.harness.name for run in (comparison.before, comparison.after))
    if harness == "forgetmap" or before in (harness, None):
        return
    if after == harness:
        raise UsageError(
            f"{comparison.before.name} was evaluated with {before}, and its item ids are used",
            hint=f"give the run of {harness} first; the forgotten items are then `--show gained`.",
        )
    raise UsageError(
        f"{comparison.before.name} was evaluated with {before}, whose ids are unknown to {harness}",
        hint=f"use --harness {before}, or --harness forgetmap to match items by content.",
    )


def _select(comparison: Comparison, show: RerunKind) -> _Selection:
    with reading(comparison.before, comparison.after):
        keys = _KINDS[show](comparison)
    tasks: dict[str, dict[str, None]] = {}
    for task, item in keys:
        tasks.setdefault(task, {})[item] = None
    if not tasks:
        raise UsageError(
            f"no item is {show}",
            hint=f"choose other items with --show: {', '.join(k for k in _KINDS if k != show)}.",
        )
    return _Selection(comparison, {task: list(items) for task, items in sorted(tasks.items())})


def _flipped(kind: Any) -> Callable[[Comparison], Iterable[Key]]:
    def keys(comparison: Comparison) -> Iterable[Key]:
        rows = comparison.flip_frame(kind).collect().rows(named=True)
        return [(row["task"], str(row["item"])) for row in rows]

    return keys


def _unpaired(comparison: Comparison) -> Iterable[Key]:
    import narwhals as nw

    unpaired = nw.from_native(comparison.unpaired())
    frame = unpaired.collect() if isinstance(unpaired, nw.LazyFrame) else unpaired
    rows = frame.select("task", "item", "why").rows(named=True)
    return [(row["task"], str(row["item"])) for row in rows if row["why"] in UNPAIRED]


def _undecided(comparison: Comparison) -> Iterable[Key]:
    tasks = {task.name for task in comparison.result.tasks if task.verdict == "cannot_tell"}
    return sorted(key for key in items_of(comparison.before) if key[0] in tasks)


_KINDS: Mapping[str, Callable[[Comparison], Iterable[Key]]] = {
    "forgotten": _flipped("forgotten"),
    "gained": _flipped("gained"),
    "unpaired": _unpaired,
    "undecided": _undecided,
}


def _for_lm_eval(selection: _Selection, out: Path, _: str | None) -> _Listing:
    samples = {
        task: sorted({_position(item, task, selection.run) for item in items})
        for task, items in selection.items.items()
    }
    # Tasks that are not in the file would be evaluated as a whole, so --tasks names the others.
    command = (
        f"lm_eval --model MODEL --model_args ARGS --tasks {_quoted(','.join(samples))} "
        f"--samples {_quoted(str(out))} --log_samples --output_path LOGS"
    )
    return _Listing(json.dumps(samples, indent=1) + "\n", command)


def _position(item: str, task: str, run: Run) -> int:
    if item.isdecimal() and item.isascii():
        return int(item)
    raise FieldError(
        f"item {item!r} of task {task!r} is not a position in a data set, which lm-eval needs",
        file=run.origin,
        field="item",
        hint="compare logs of lm-eval (--log_samples), or match items by content with --harness "
        "forgetmap.",
    )


def _for_inspect(selection: _Selection, out: Path, _: str | None) -> _Listing:
    tasks = selection.items
    ids = selection.known()
    several = len(tasks) > 1
    patterns = []
    for task, items in tasks.items():
        others = [item for name, item in ids if name == task]
        for item in items:
            pattern = _pattern(item, task, others, selection.run)
            # An id such as "mmlu:3" in the task mmlu would be read as its sample 3.
            is_scoped = several or item.lower().startswith(f"{task.lower()}:")
            patterns.append(f"{task}:{pattern}" if is_scoped else pattern)
    content = ",".join(patterns)
    notices: list[str] = []
    if len(content.encode()) >= MAX_ARGUMENT:
        notices.append(
            "the list is too long for a command; in Python, use eval(..., "
            f"sample_id=open({str(out)!r}).read().strip().split(','))."
        )
    command = (
        f'inspect eval {" ".join(map(_quoted, tasks))} --sample-id "$(cat {_quoted(str(out))})"'
    )
    return _Listing(content + "\n", f"{command} --model MODEL", tuple(notices))


def _pattern(item: str, task: str, others: Sequence[str], run: Run) -> str:
    """Return a pattern that matches only this id; commas and outer spaces separate ids."""
    pattern = re.sub(r"^\s|,|\s$", "?", escape(item))
    if pattern != item and any(other != item and fnmatch(other, pattern) for other in others):
        raise FieldError(
            f"Inspect cannot select {item!r} of task {task!r} alone: other ids match {pattern}",
            file=run.origin,
            field="item",
            hint="use sample ids without commas, or match items by content with --harness "
            "forgetmap.",
        )
    return pattern


def _for_lighteval(selection: _Selection, out: Path, _: str | None) -> _Listing:
    tasks = ",".join(selection.items)
    items = out.with_suffix(".jsonl")
    raise HarnessError(
        "lighteval cannot evaluate single items; its only option is --max-samples, which takes "
        "the first items after shuffling",
        hint=f"evaluate the whole tasks ({tasks}), or match items by content: `forgetmap export "
        f"rerun ... --harness forgetmap --out {items}`, then `forgetmap run MODEL --suite "
        f"{items}`.",
    )


def _for_forgetmap(selection: _Selection, out: Path, suite: str | None) -> _Listing:
    """Return a file of items; texts are required unless a suite has them."""
    if out.suffix != ".jsonl":
        raise UsageError(
            f"{out} is not a name of a JSON Lines file", hint="use the extension .jsonl."
        )
    known = selection.known()
    categories = _categories(selection.run)
    rows = []
    for task, items in selection.items.items():
        for item in items:
            recorded = known[task, item]
            if suite is None:
                _require_texts(recorded, selection.run)
            mark = {} if suite is None else {PROBE_COLUMN: {"suite": suite}}
            rows.append(_row(recorded, categories.get(task)) | mark)
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return _Listing(content, f"forgetmap run MODEL --suite {_quoted(str(out))} --out RUN")


def _require_texts(item: MeasuredItem, run: Run) -> None:
    if not item.question or not item.is_bare or not item.gold:
        raise UsageError(
            f"{run.name} does not record question and right answer of item {item.item!r} of task "
            f"{item.task!r}",
            hint="add --suite with the suite of the run, or compare logs with texts.",
        )


def _row(item: MeasuredItem, category: str | None) -> dict[str, Any]:
    row = {
        "task": item.task,
        "id": item.item,
        "category": category,
        "question": item.question,
        "options": list(item.options),
        "gold": item.gold,
    }
    return {name: value for name, value in row.items() if value}


def _categories(run: Run) -> dict[str, str]:
    """Return the category of tasks with exactly one, which a file of items can hold."""
    if "category" not in run.columns:
        return {}
    rows = run.scores.select("task", "category").unique().collect().rows(named=True)
    categories: dict[str, set[str | None]] = {}
    for row in rows:
        categories.setdefault(row["task"], set()).add(row["category"])
    only = {task: next(iter(names)) for task, names in categories.items() if len(names) == 1}
    return {task: name for task, name in only.items() if isinstance(name, str)}


def _quoted(text: str) -> str:
    return shlex.quote(text)


_WRITERS: Mapping[str, Callable[[_Selection, Path, str | None], _Listing]] = {
    "lm-eval": _for_lm_eval,
    "inspect": _for_inspect,
    "lighteval": _for_lighteval,
    "forgetmap": _for_forgetmap,
}
