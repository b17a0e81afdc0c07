"""Items behind the numbers of a study: forgotten and gained ones of each pair, with answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forgetmap.comparison import reason_of
from forgetmap.records import Run, parse_options, reading
from forgetmap.stats import fair_cap
from forgetmap.study.answers import SAID, AnswerRows, StudyAnswers
from forgetmap.study.detail import PairDetail
from forgetmap.study.pair_table import Flags

MOST_RESPONSE = 2_000
"""Maximum number of characters of a response: its beginning and its end."""
MOST_QUESTION = 4_000
MOST = 0.5
"""Minimum share of repeats for an item to count as forgotten by a pair."""
SIDES = ("before", "after")
SEPARATOR = "\x1f"
KEYS_AT_ONCE = 2_000
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Flips:
    """Changed answers of one pair, forgotten ones first, sorted by task.

    Attributes:
        repeats: repeat of each change.
        places: index of its item on the axis of the study.
        forgotten: whether it was forgotten; otherwise it was gained.
    """

    repeats: Places
    places: Places
    forgotten: Flags

    def take(self, rows: Places | Flags) -> Flips:
        """Return some of them."""
        return Flips(self.repeats[rows], self.places[rows], self.forgotten[rows])


@dataclass(frozen=True, slots=True)
class LostItem:
    """An item, and how many pairs forgot it.

    Attributes:
        place: index on the axis of the study.
        task: name of its task.
        category: category of the task.
        item: id of the item.
        question: text of the question, if recorded.
        known: number of pairs whose model before was right.
        lost: number of pairs that forgot it.
        gained: number of pairs that gained it.
        losers: indices of the pairs that forgot it.
    """

    place: int
    task: str
    category: str
    item: str
    question: str | None
    known: int
    lost: int
    gained: int
    losers: tuple[int, ...]

    def with_question(self, question: str) -> LostItem:
        """Return a copy with another question."""
        return replace(self, question=question)


def find_flips(answers: StudyAnswers, before: str, after: str) -> Flips:
    """Find the changed answers of a pair."""
    first, second = answers.right[before], answers.right[after]
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    lost = np.nonzero((first == 1) & (second == 0))
    gained = np.nonzero((first == 0) & (second == 1))
    repeats, places = (np.concatenate(parts) for parts in zip(lost, gained, strict=True))
    forgotten = np.arange(len(places)) < len(lost[0])
    order = np.lexsort((places, repeats, answers.task[places], ~forgotten))
    return Flips(repeats, places, forgotten).take(order)


def choose_flips(answers: StudyAnswers, flips: Flips, most: int) -> Places:
    """Choose at most this many, half of each kind, spread over categories and tasks."""
    lost = np.flatnonzero(flips.forgotten)
    gained = np.flatnonzero(~flips.forgotten)
    room = min(len(lost), max(most - len(gained), (most + 1) // 2))
    chosen = [_fair(answers, flips, lost, room), _fair(answers, flips, gained, most - room)]
    return np.concatenate(chosen)


def _fair(answers: StudyAnswers, flips: Flips, rows: Places, most: int) -> Places:
    """Choose equally from each category, and within it from each task."""
    if len(rows) <= most:
        return rows
    tasks = answers.task[flips.places[rows]]
    names = list(dict.fromkeys(answers.categories))
    category = np.asarray([names.index(name) for name in answers.categories], np.intp)[tasks]
    rank = _ranks(tasks)
    # The first of every task in a category comes before the second of any.
    order = np.lexsort((tasks, rank, category))
    within = np.empty(len(rows), np.intp)
    within[order] = _ranks(category[order])
    counts = np.bincount(category)
    cap = max(fair_cap(counts[counts > 0].tolist(), most), 1)
    return rows[within < cap][:most]


def _ranks(labels: Places) -> Places:
    """Return how many equal labels are before each."""
    order = np.argsort(labels, kind="stable")
    starts = np.r_[0, np.flatnonzero(np.diff(labels[order])) + 1]
    sizes = np.diff(np.r_[starts, len(labels)])
    ranks = np.empty(len(labels), np.intp)
    ranks[order] = np.arange(len(labels)) - np.repeat(starts, sizes)
    return ranks


class ItemReader:
    """Reads the texts of items for lists; the texts of every run are read once.

    Args:
        answers: answers with the rows of all models.
        pairs: pairs whose items are listed.
        most: number of items per pair whose responses are read.
        texts: whether to read questions, answers and responses.
    """

    def __init__(
        self, answers: StudyAnswers, pairs: Sequence[PairDetail], most: int, *, texts: bool = True
    ) -> None:
        self._answers = answers
        self._texts = texts
        self.flips = [find_flips(answers, pair.before, pair.after) for pair in pairs]
        self.chosen = [choose_flips(answers, flips, most) for flips in self.flips]
        self._pairs = list(pairs)
        self._ids = _item_ids(answers)
        self._responses = self._read_responses() if texts else {}
        self._questions = _read_questions(answers) if texts else pa.nulls(0, pa.string())

    def table(self, pair: int) -> pa.Table:
        """Return every change of a pair in order, without responses."""
        flips, detail = self.flips[pair], self._pairs[pair]
        answers = self._answers
        columns: dict[str, Any] = {
            "transition": np.where(flips.forgotten, "forgotten", "gained"),
            "category": pa.array(answers.categories).take(answers.task[flips.places]),
            "task": pa.array(answers.tasks).take(answers.task[flips.places]),
            "item": self._ids.take(flips.places),
            "repeat": flips.repeats,
        }
        columns |= self._said(flips, detail)
        return pa.table({name: cells for name, cells in columns.items() if _has_any(cells)})

    def columns(self, pair: int) -> dict[str, list[Any]]:
        """Return the chosen changes of a pair with responses and options: column -> values."""
        chosen, detail = self.chosen[pair], self._pairs[pair]
        table = self.table(pair).take(chosen)
        columns: dict[str, list[Any]] = {
            name: table[name].to_pylist() for name in table.schema.names
        }
        if "outcome_after" in columns:
            columns["reason"] = [
                reason_of(how) if kind == "forgotten" else None
                for kind, how in zip(columns["transition"], columns["outcome_after"], strict=True)
            ]
        if not self._texts:
            return columns
        flips = self.flips[pair].take(chosen)
        for side, model in zip(SIDES, (detail.before, detail.after), strict=True):
            responses = self._responses[model]
            rows = self._answers.rows[model].places[flips.repeats, flips.places].tolist()
            for name in ("response", "options"):
                cells = [responses.get(row, {}).get(name) for row in rows]
                key = name if name == "options" else f"{name}_{side}"
                if any(cell is not None for cell in cells):
                    columns.setdefault(key, cells)
        return columns

    def lost_items(
        self, most: int, pairs: int | None = None
    ) -> tuple[list[LostItem], NDArray[np.intp]]:
        """Return the items that most pairs forgot, and how many items 0, 1, ... pairs forgot.

        The counts cover items that any model before knew.

        Args:
            most: number of items to list.
            pairs: use only this many pairs.
        """
        answers = self._answers
        chosen = self._pairs[:pairs]
        size, count = len(answers.task), len(chosen)
        known, lost, gained = (np.zeros(size, np.intp) for _ in range(3))
        losses = np.zeros((count, size), bool)
        for number, pair in enumerate(chosen):
            before, after = _shares(answers, pair.before, pair.after)
            knew, knows = before >= MOST, after >= MOST
            both = ~np.isnan(before) & ~np.isnan(after)
            losses[number] = both & knew & ~knows
            known += both & knew
            lost += losses[number]
            gained += both & ~knew & knows
        order = np.lexsort((np.arange(size), known, -lost))[:most]
        items = [
            self._lost_item(place, known, lost, gained, losses) for place in order if lost[place]
        ]
        return items, np.bincount(lost[known > 0], minlength=count + 1)

    def _lost_item(
        self, place: np.intp, known: Places, lost: Places, gained: Places, losses: Flags
    ) -> LostItem:
        task = self._answers.task[place]
        question = self._questions[int(place)].as_py() if len(self._questions) else None
        return LostItem(
            place=int(place),
            task=self._answers.tasks[task],
            category=self._answers.categories[task],
            item=self._ids[int(place)].as_py(),
            question=question,
            known=int(known[place]),
            lost=int(lost[place]),
            gained=int(gained[place]),
            losers=tuple(np.flatnonzero(losses[:, place]).tolist()),
        )

    def _said(self, flips: Flips, pair: PairDetail) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        tables = {}
        for side, model in zip(SIDES, (pair.before, pair.after), strict=True):
            kept = self._answers.rows[model]
            tables[side] = kept.said.take(kept.places[flips.repeats, flips.places])
        if self._texts:
            columns["gold"] = pc.coalesce(tables["before"]["gold"], tables["after"]["gold"])
        for name in SAID[:-1] if self._texts else ("outcome",):
            for side in SIDES:
                columns[f"{name}_{side}"] = tables[side][name]
        if len(self._questions):
            columns["question"] = self._questions.take(flips.places)
        return columns

    def _read_responses(self) -> dict[str, dict[int, dict[str, Any]]]:
        """Return model -> row -> texts, for the chosen items of all pairs."""
        rows_of_model: dict[str, set[int]] = {}
        for pair, flips, chosen in zip(self._pairs, self.flips, self.chosen, strict=True):
            some = flips.take(chosen)
            for model in (pair.before, pair.after):
                rows = self._answers.rows[model].places[some.repeats, some.places]
                rows_of_model.setdefault(model, set()).update(rows.tolist())
        return {
            model: _read_texts(self._answers.rows[model], sorted(rows))
            for model, rows in rows_of_model.items()
        }


def _has_any(cells: Any) -> bool:
    return not isinstance(cells, pa.Array | pa.ChunkedArray) or cells.null_count < len(cells)


def _shares(answers: StudyAnswers, before: str, after: str) -> tuple[Any, Any]:
    """Return the share of right answers on each side, over common repeats; NaN without any."""
    first, second = answers.right[before], answers.right[after]
    count = min(len(first), len(second))
    paired = ~np.isnan(first[:count]) & ~np.isnan(second[:count])
    repeats = paired.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return (
            np.where(paired, first[:count], 0.0).sum(axis=0) / repeats,
            np.where(paired, second[:count], 0.0).sum(axis=0) / repeats,
        )


def _item_ids(answers: StudyAnswers) -> pa.Array:
    """Return the id of each item, from the first model that has it."""
    ids: list[str | None] = [None] * len(answers.task)
    for kept in answers.rows.values():
        if None not in ids:
            break
        for place, row in enumerate(kept.places.max(axis=0).tolist()):
            if row >= 0 and ids[place] is None:
                ids[place] = kept.items[row]
    return pa.array(ids, pa.string())


def _read_questions(answers: StudyAnswers) -> pa.Array:
    """Return the question of each item, from as few models as possible; empty if not recorded."""
    questions: list[str | None] = [None] * len(answers.task)
    for kept in answers.rows.values():
        missing = np.flatnonzero([question is None for question in questions])
        rows = kept.places.max(axis=0)[missing]
        indices = missing[rows >= 0]
        if not len(indices) or not any(_has_texts(run, "question") for run in kept.runs):
            continue
        known = _question_by_item(kept.runs)
        for place, row in zip(indices.tolist(), rows[rows >= 0].tolist(), strict=True):
            questions[place] = known.get((kept.tasks[row], kept.items[row]))
        if None not in questions:
            break
    has_any = any(question is not None for question in questions)
    return pa.array(questions if has_any else [], pa.string())


def _has_texts(run: Run, name: str) -> bool:
    return run.texts is not None and name in run.texts.collect_schema().names()


def _question_by_item(runs: Iterable[Run]) -> dict[tuple[str, str], str]:
    known: dict[tuple[str, str], str] = {}
    for run in runs:
        if run.texts is None or not _has_texts(run, "question"):
            continue
        with reading(run):
            frame = run.texts.select("task", "item", "question").collect()
        for task, item, question in frame.iter_rows():
            if question is not None:
                known.setdefault((task, item), shorten_middle(question, MOST_QUESTION))
    return known


def _read_texts(kept: AnswerRows, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Read response and options of some rows."""
    by_key: dict[tuple[str, str, int], int] = {
        (kept.tasks[row], kept.items[row], kept.repeats[row] or 0): row for row in rows
    }
    texts: dict[int, dict[str, Any]] = {}
    for run in kept.runs:
        for start in range(0, len(rows), KEYS_AT_ONCE):
            part = rows[start : start + KEYS_AT_ONCE]
            _add_texts(run, [(kept.tasks[row], kept.items[row]) for row in part], by_key, texts)
    return texts


def _add_texts(
    run: Run,
    items: Sequence[tuple[str, str]],
    by_key: Mapping[tuple[str, str, int], int],
    texts: dict[int, dict[str, Any]],
) -> None:
    names = [name for name in ("response", "options") if _has_texts(run, name)]
    if run.texts is None or not names:
        return
    has_repeats = _has_texts(run, "repeat")
    key = nw.concat_str("task", "item", separator=SEPARATOR)
    keys = sorted({SEPARATOR.join(item) for item in items})
    columns = ["task", "item", *(["repeat"] if has_repeats else []), *names]
    with reading(run):
        frame = run.texts.filter(key.is_in(keys)).select(*columns).collect()
    for record in frame.iter_rows(named=True):
        row = by_key.get((record["task"], record["item"], record.get("repeat") or 0))
        if row is not None:
            texts[row] = {name: _kept_text(name, record[name]) for name in names}


def _kept_text(name: str, value: Any) -> Any:
    if name == "options":
        return parse_options(value) if isinstance(value, str) else value
    return None if value is None else shorten_middle(value, MOST_RESPONSE)


def shorten_middle(text: str, most: int) -> str:
    """Keep the beginning and the end of a long text, where answers are."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
