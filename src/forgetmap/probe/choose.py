"""Selection of the items of a probe: few, stably known, and enough of every group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import PROBE_COLUMN, Item, Suite
from forgetmap.probe.stable import (
    DEFAULT_LEAD,
    AnsweredItem,
    Evidence,
    Key,
    Known,
    join_repeats,
    known_stably,
)
from forgetmap.records import Frame, Run, reading, writable
from forgetmap.sources import open_run
from forgetmap.stats import allocate, detectable_loss, items_to_detect

By = Literal["category", "task", "total"]
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Group:
    """The chosen items of one group.

    Attributes:
        name: name of the category or task, or `total`.
        items: number of items in the full run.
        right: share of right answers to them.
        stable: number of stably known items.
        chosen: number of chosen items among them.
        noise: share of the chosen items that an unchanged model gets wrong, estimated from repeats.
        detectable: smallest loss among the stable items that the chosen ones show with 80 %
            probability; None if there is none.
    """

    name: str
    items: int
    right: float
    stable: int
    chosen: int
    noise: float
    detectable: float | None


@dataclass(frozen=True, slots=True)
class Probe:
    """The chosen items, and the losses they can detect.

    Attributes:
        rows: rows of the file, ready to evaluate.
        groups: chosen items of each group.
        evidence: why items count as stably known.
        detect: the loss to detect in each group.
    """

    rows: tuple[Mapping[str, Any], ...]
    groups: tuple[Group, ...]
    evidence: Evidence
    detect: float

    def to_json(self) -> str:
        """Return a summary as JSON, without the items."""
        summary = {"evidence": self.evidence, "detect": self.detect, "chosen": len(self.rows)}
        return json.dumps(summary | {"groups": [asdict(group) for group in self.groups]}, indent=2)


def choose_probe(
    runs: Sequence[Any],
    *,
    detect: float = 0.05,
    by: By = "category",
    suite: tuple[str, Suite] | None = None,
    lead: float = DEFAULT_LEAD,
    seed: int = 0,
    metric: str | None = None,
) -> Probe:
    """Choose items from full runs of the model before.

    Args:
        runs: a run with repeats, or several runs of one model.
        detect: forgetting to detect in each group, as a share of what is known stably.
        by: kind of the groups.
        suite: name and suite; then items are evaluated with its settings, else as recorded in the
            run.
        lead: minimum lead in log-likelihood of a single answer that counts as stable.
        seed: seed of the selection.
        metric: metric to use, if a run has several.
    """
    if not 0 < detect < 1:
        raise UsageError(
            f"--detect {detect:g} is out of range", hint="give a share such as --detect 0.05."
        )
    opened = [open_run(source) for source in runs]
    names = [run.info.run_id for run in opened]
    run = join_repeats(opened)
    known = known_stably(run, lead=lead, metric=metric)
    members: dict[str, list[AnsweredItem]] = {}
    for item in known.answered:
        members.setdefault(group_of(item, by), []).append(item)
    stable = {item.key for item in known.stable}
    chosen: dict[Key, Mapping[str, Any]] = {}
    groups = []
    for name, items in sorted(members.items()):
        sure = [item for item in items if item.key in stable]
        selection, group = _from_group(name, items, sure, known, detect, seed)
        groups.append(group)
        for item, size in selection:
            chosen[item.key] = {"group": name, "known": size, "by": by, "chosen_by": names} | (
                {"margin": lead} if known.evidence == "margin" else {}
            )
    if not chosen:
        raise UsageError(
            f"{run.name} has no reliably known item",
            hint="give a run of a model that knows more, a lower --lead, or more items.",
        )
    rows = _rows_of_suite(chosen, suite) if suite else _rows_of_run(chosen, run)
    return Probe(tuple(rows), tuple(groups), known.evidence, detect)


def group_of(item: AnsweredItem, by: By) -> str:
    """Return the group of an item."""
    return {"category": item.category or item.task, "task": item.task, "total": TOTAL}[by]


def _from_group(
    name: str,
    items: Sequence[AnsweredItem],
    sure: Sequence[AnsweredItem],
    known: Known,
    detect: float,
    seed: int,
) -> tuple[list[tuple[AnsweredItem, int]], Group]:
    """Choose items of one group, each with the number of items in its task that it represents."""
    noise = known.noise(items)
    number = items_to_detect(detect, noise)
    tasks: dict[str, list[AnsweredItem]] = {}
    for item in sure:
        tasks.setdefault(item.task, []).append(item)
    counts = allocate([len(of_task) for of_task in tasks.values()], number)
    selection = [
        (item, len(of_task))
        for of_task, count in zip(tasks.values(), counts, strict=True)
        for item in sorted(of_task, key=lambda candidate: _draw(seed, candidate.key))[:count]
    ]
    right = sum(item.share for item in items) / len(items)
    detectable = detectable_loss(len(selection), noise)
    return selection, Group(name, len(items), right, len(sure), len(selection), noise, detectable)


def _draw(seed: int, key: Key) -> bytes:
    """Return a sort key that depends only on the item: larger probes contain smaller ones."""
    return sha256("\n".join((str(seed), *key)).encode()).digest()


def _rows_of_suite(
    chosen: Mapping[Key, Mapping[str, Any]], suite: tuple[str, Suite]
) -> list[dict[str, Any]]:
    name, full = suite
    there = {(task.name, item.id): (task, item) for task in full.tasks for item in task.load()}
    missing = [key for key in chosen if key not in there]
    if missing:
        raise UsageError(
            f"the suite {name!r} does not contain {len(missing):,} of the chosen items, such as "
            f"item {missing[0][1]!r} of task {missing[0][0]!r}",
            hint="give the suite of the run, or remove --suite.",
        )
    rows = []
    for key, mark in chosen.items():
        task, item = there[key]
        rows.append(_row(item, task.name, task.category, {"suite": name, **mark}))
    return rows


def _row(item: Item, task: str, category: str | None, mark: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task, "id": item.id, "category": category}
    row |= {"question": item.question, "gold": item.gold}
    row |= {"options": list(item.options)} if item.options else {}
    row |= {"also_right": list(item.also_right)} if item.also_right else {}
    row |= {"cluster": item.cluster} if item.cluster else {}
    return row | {PROBE_COLUMN: dict(mark)}


def _rows_of_run(chosen: Mapping[Key, Mapping[str, Any]], run: Run) -> list[dict[str, Any]]:
    """Return items as recorded in the run."""
    with reading(run):
        texts = {} if run.texts is None else _by_item(run.texts, ("question", "options"))
        golds = _by_item(run.scores, ("gold", "category"))
    categories: dict[str, set[str | None]] = {}
    for (task, _), gold in golds.items():
        categories.setdefault(task, set()).add(gold.get("category"))
    rows = []
    for key, mark in chosen.items():
        text, gold = texts.get(key, {}), golds.get(key, {})
        if not text.get("question") or not gold.get("gold"):
            raise UsageError(
                f"{run.name} does not record question and right answer of item {key[1]!r} of "
                f"task {key[0]!r}",
                hint="add --suite.",
            )
        item = Item(
            key[1], text["question"], gold["gold"], options=tuple(text.get("options") or ())
        )
        # A file of items has one category per task; the mark always has the group.
        only = gold.get("category") if len(categories[key[0]]) == 1 else None
        rows.append(_row(item, key[0], only, mark))
    return rows


def _by_item(frame: Frame, columns: Sequence[str]) -> dict[Key, dict[str, Any]]:
    """Return the recorded columns of each item."""
    present = [name for name in columns if name in frame.collect_schema().names()]
    rows = frame.select("task", "item", *present).collect().rows(named=True)
    return {(row["task"], str(row["item"])): row for row in rows}


def write_probe(probe: Probe, path: Path, *, overwrite: bool = False) -> Path:
    """Write the items, one per line, as a file for `--suite`."""
    if path.suffix != ".jsonl":
        raise UsageError(
            f"{path} is not a name of a JSON Lines file", hint="use the extension .jsonl."
        )
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} already exists", hint="choose another name, or add --overwrite to replace it."
        )
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(row, ensure_ascii=False) for row in probe.rows)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
