"""Answers of all models of a study to all items; each run is read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forgetmap.comparison import CORRECT_AT, load_table, without_copies
from forgetmap.errors import DuplicateKeyError
from forgetmap.pairing import Side, prepare
from forgetmap.records import CONTENT_HASHES, Frame, Run, count_repeats
from forgetmap.sources import open_run
from forgetmap.stats import Reals

NO_CATEGORY = "no category"
IGNORED = "ignored"
_FACTS = ("item", "repeat", "score", "k", "category", *CONTENT_HASHES)
SAID = ("answer", "choice", "outcome", "gold")
"""Columns of an answer beside its score, for lists of items."""
_PAIRED = (
    "task", "item", "repeat", "score", "outcome", "k", "category", "tags", "cluster", "gold",
    "gold_index", "answer", "choice", *CONTENT_HASHES, "prompt_hash",
)  # fmt: skip
"""Columns that `compare` counts."""
OnRun = Callable[[str], None]
"""Callback that receives the id of the model being read."""


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The rows of one model, for looking up its answers; its runs stay open for texts.

    Attributes:
        runs: runs with the texts.
        tasks: task of each row.
        items: id of each row, as recorded in its run.
        repeats: repeat of each row, as recorded in its run.
        places: (repeat, item) -> row; -1 without an answer.
        said: the columns of `SAID` that a run recorded.
    """

    runs: tuple[Run, ...]
    tasks: list[str]
    items: list[str]
    repeats: list[int | None]
    places: NDArray[np.intp]
    said: pa.Table


@dataclass(frozen=True, slots=True)
class StudyAnswers:
    """Answers of all models on one axis of items.

    Attributes:
        right: model -> 1 for right, 0 for wrong, NaN for no answer (repeat, item).
        task: index of the task of each item in `tasks`.
        tasks: names of tasks.
        categories: category of each task.
        luck: 1 / (k - 1) of each item, 0 for open-ended ones.
        rows: model -> its rows, with `keep_rows`.
        sides: model -> its results, for verdicts.
    """

    right: Mapping[str, Reals]
    task: NDArray[np.intp]
    tasks: tuple[str, ...]
    categories: tuple[str, ...]
    luck: Reals
    rows: Mapping[str, AnswerRows] = field(default_factory=dict)
    sides: Mapping[str, Side] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns of the runs of one model; missing columns are lists of None."""

    tasks: list[str]
    columns: Mapping[str, list[Any]]
    content: Mapping[str, frozenset[str]]
    runs: tuple[Run, ...] = ()
    said: pa.Table | None = None


def read_answers(
    runs: Mapping[str, Sequence[Any]],
    *,
    task_table: str | None = None,
    metric: str | None = None,
    correct_at: float = CORRECT_AT,
    on_run: OnRun | None = None,
    keep_rows: bool = False,
) -> StudyAnswers:
    """Read every run once and put all answers on one axis.

    Items are the same if question, right answer and options are, as far as all models recorded them
    for a task; otherwise if ids are. Duplicates within a task are distinguished by the order of
    their ids.

    Args:
        runs: model -> its run folders or logs.
        task_table: number of options and category of tasks that have none in the data.
        metric: metric, as for `compare`.
        correct_at: minimum score of a right answer.
        on_run: called with the id of each model that is read.
        keep_rows: also keep the answers, for lists of items.
    """
    rows, joined = {}, {}
    for model, sources in runs.items():
        if on_run is not None:
            on_run(model)
        sides = [prepare(open_run(source), metric) for source in sources]
        tables = [_collect(side) for side in sides]
        rows[model] = _read_rows(sides, tables, SAID if keep_rows else ())
        joined[model] = _join(model, sides, tables)
    keys = _key_columns(rows.values())
    axis: dict[tuple[Any, ...], int] = {}
    placed = _place_all(rows, keys, axis)
    facts = _item_facts(rows.values(), placed.values(), len(axis))
    tasks = list(dict.fromkeys(key[0] for key in axis))
    numbers = {name: number for number, name in enumerate(tasks)}
    task = np.asarray([numbers[key[0]] for key in axis], np.intp)
    options, categories = _with_table(facts, task, tasks, task_table)
    return StudyAnswers(
        right={
            model: _matrix(model, each, placed[model], len(axis), correct_at)
            for model, each in rows.items()
        },
        task=task,
        tasks=tuple(tasks),
        categories=tuple(categories),
        luck=np.where(options > 1, 1 / np.maximum(options - 1, 1), 0.0),
        rows={
            model: _kept(each, placed[model], len(axis))
            for model, each in (rows.items() if keep_rows else ())
        },
        sides=joined,
    )


def _collect(side: Side) -> pa.Table:
    scores = side.measured.scores
    names = set(scores.collect_schema().names())
    return scores.select(*(name for name in _PAIRED if name in names)).collect().to_arrow()


def _join(model: str, sides: Sequence[Side], tables: Sequence[pa.Table]) -> Side:
    """Return all runs of a model as one side in memory."""
    scores = _in_memory(tables)
    recorded: dict[str, dict[str, int]] = {}
    for side in sides:
        for task, counts in side.measured.recorded.items():
            own = recorded.setdefault(task, {})
            for name, count in counts.items():
                own[name] = own.get(name, 0) + count
    first, several = sides[0], len(sides) > 1
    info = first.run.info.model_copy(
        update={"tasks": {t: one for side in sides for t, one in side.run.info.tasks.items()}}
    )
    run = replace(
        first.run,
        info=info,
        scores=scores,
        texts=None,
        rows=None,
        name=model,
        positions_of=None if several else first.run.positions_of,
        contradictions=tuple(one for side in sides for one in side.run.contradictions),
    )
    measures = {task: one for side in sides for task, one in side.measured.measures.items()}
    measured = replace(first.measured, scores=scores, measures=measures, recorded=recorded)
    whole = Side(run, measured, count_repeats(run))
    distinct = without_copies(replace(whole, run=_with_texts(whole, sides)))
    return replace(distinct, run=replace(distinct.run, texts=None))


def _with_texts(whole: Side, sides: Sequence[Side]) -> Run:
    """Return the run with the texts of all runs, if there are repeats that may be copies."""
    texts = [side.run.texts for side in sides]
    if whole.repeats < 2 or any(one is None for one in texts):
        return whole.run
    return replace(whole.run, texts=texts[0] if len(texts) == 1 else _concat(texts))


def _concat(frames: Sequence[Frame | None]) -> Frame | None:
    names = ("task", "item", "repeat", "response")
    known = [frame for frame in frames if frame is not None]
    if any(set(names) - set(frame.collect_schema().names()) for frame in known):
        return None
    tables = [frame.select(*names).collect().to_arrow() for frame in known]
    return _in_memory(tables)


def _in_memory(tables: Sequence[pa.Table]) -> Frame:
    whole: Frame = nw.from_native(pa.concat_tables(tables, promote_options="permissive")).lazy()
    return whole


def _read_rows(sides: Sequence[Side], collected: Sequence[pa.Table], said: Sequence[str]) -> _Rows:
    tasks: list[str] = []
    tables: list[pa.Table] = []
    columns: dict[str, list[Any]] = {name: [] for name in _FACTS}
    content: dict[str, frozenset[str]] = {}
    for side, table in zip(sides, collected, strict=True):
        if said:
            tables.append(_said_table(table, said))
        tasks += table["task"].to_pylist()
        for name in _FACTS:
            known = name in table.column_names
            columns[name] += table[name].to_pylist() if known else [None] * len(table)
        for task, counts in side.measured.recorded.items():
            full = {name for name in CONTENT_HASHES if counts.get(name) == counts["rows"]}
            content[task] = content.get(task, frozenset(full)) & full
    runs = tuple(side.run for side in sides)
    return _Rows(tasks, columns, content, runs, pa.concat_tables(tables) if said else None)


def _said_table(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return text columns; columns that are not recorded are empty."""
    empty = pa.nulls(len(rows), pa.string())
    columns = [
        rows[name].cast(pa.string()) if name in rows.column_names else empty for name in names
    ]
    return pa.table(columns, names=list(names))


def _kept(rows: _Rows, places: NDArray[np.intp], size: int) -> AnswerRows:
    repeats = _repeat_ranks(rows)
    lookup = np.full((int(repeats.max(initial=0)) + 1, size), -1, np.intp)
    lookup[repeats, places] = np.arange(len(places))
    return AnswerRows(
        runs=rows.runs,
        tasks=rows.tasks,
        items=rows.columns["item"],
        repeats=rows.columns["repeat"],
        places=lookup,
        said=rows.said,
    )


def _repeat_ranks(rows: _Rows) -> NDArray[np.intp]:
    """Return the repeats of the rows, counted from 0."""
    repeats = np.asarray([repeat or 0 for repeat in rows.columns["repeat"]], np.intp)
    ranks: NDArray[np.intp] = np.unique(repeats, return_inverse=True)[1]
    return ranks


def _key_columns(rows: Iterable[_Rows]) -> dict[str, tuple[str, ...]]:
    """Return the content columns that all models of a task recorded; the id without questions."""
    shared: dict[str, frozenset[str]] = {}
    for each in rows:
        for task, names in each.content.items():
            shared[task] = shared.get(task, names) & names
    return {
        task: tuple(name for name in CONTENT_HASHES if name in names)
        if "question_hash" in names
        else ("item",)
        for task, names in shared.items()
    }


def _place_all(
    rows: Mapping[str, _Rows],
    keys: Mapping[str, tuple[str, ...]],
    axis: dict[tuple[Any, ...], int],
) -> dict[str, NDArray[np.intp]]:
    """Return the item of each row, by model; runs of one suite mostly have the same order."""
    names = ("item", "repeat", *CONTENT_HASHES)
    placed: dict[str, NDArray[np.intp]] = {}
    last: tuple[_Rows, NDArray[np.intp]] | None = None
    for model, each in rows.items():
        if last is None or not _is_alike(each, last[0], names):
            last = each, _place(each, keys, axis)
        placed[model] = last[1]
    return placed


def _is_alike(one: _Rows, other: _Rows, names: Iterable[str]) -> bool:
    same = all(one.columns[name] == other.columns[name] for name in names)
    return one.tasks == other.tasks and same


def _place(
    rows: _Rows, keys: Mapping[str, tuple[str, ...]], axis: dict[tuple[Any, ...], int]
) -> NDArray[np.intp]:
    """Return the index of each row on the axis, which is extended as needed."""
    items, repeats = rows.columns["item"], rows.columns["repeat"]
    twins: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
    places = np.empty(len(rows.tasks), np.intp)
    for row in sorted(range(len(rows.tasks)), key=lambda row: (items[row], repeats[row] or 0)):
        task = rows.tasks[row]
        key = (task, *(rows.columns[name][row] for name in keys[task]))
        numbers = twins[key]
        twin = numbers.setdefault(items[row], len(numbers))
        places[row] = axis.setdefault((*key, twin), len(axis))
    return places


def _item_facts(
    rows: Iterable[_Rows], placed: Iterable[NDArray[np.intp]], size: int
) -> dict[str, list[Any]]:
    """Return number of options and category of each item, from the first model that has them."""
    facts: dict[str, list[Any]] = {"k": [None] * size, "category": [None] * size}
    for each, places in zip(rows, placed, strict=True):
        for name, values in facts.items():
            # Skip what earlier models recorded for all items.
            if None not in values or not any(value is not None for value in each.columns[name]):
                continue
            for place, value in zip(places.tolist(), each.columns[name], strict=True):
                if values[place] is None:
                    values[place] = value
    return facts


def _with_table(
    facts: Mapping[str, list[Any]], task: NDArray[np.intp], tasks: list[str], name: str | None
) -> tuple[Reals, list[str]]:
    """Return options of items and categories of tasks, from the table if missing in the data."""
    table = load_table(name) if name is not None else None
    entries = [table.find(one) if table is not None else None for one in tasks]
    default = [entry.k if entry is not None and entry.k is not None else 0.0 for entry in entries]
    options = [
        float(k) if k is not None else default[number]
        for k, number in zip(facts["k"], task, strict=True)
    ]
    categories = [entry.category if entry is not None else NO_CATEGORY for entry in entries]
    for category, number in zip(facts["category"], task, strict=True):
        if category is not None and categories[number] == NO_CATEGORY:
            categories[number] = category
    finite = np.asarray(options, float)
    return np.where(np.isfinite(finite), finite, 0.0), categories


def _matrix(
    model: str, rows: _Rows, places: NDArray[np.intp], size: int, correct_at: float
) -> Reals:
    repeats = _repeat_ranks(rows)
    scores = np.asarray(
        [np.nan if score is None else score for score in rows.columns["score"]], float
    )
    _, first, counts = np.unique(repeats * size + places, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[counts > 1][0])
        raise DuplicateKeyError(
            f"{model} has two results for item {rows.columns['item'][row]!r} of {rows.tasks[row]}",
            hint="remove one of the overlapping logs, or give repeats different numbers.",
        )
    right = np.full((int(repeats.max(initial=0)) + 1, size), np.nan)
    right[repeats, places] = np.where(np.isnan(scores), np.nan, scores >= correct_at)
    return right
