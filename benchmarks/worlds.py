"""Worlds with a known loss, for benchmarks/verdicts.py. Plain numpy: nothing of forgetmap.

A world draws items anew for every data set, asks two models about them, and writes their answers
as tables. `Items` holds what is true of each item; `answer_sheet` is what a harness would log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
Columns = dict[str, Array | list[Any]]
LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


@dataclass(frozen=True, slots=True)
class Truth:
    """What was lost, as shares of all items there could be.

    Attributes:
        lost: the loss.
        knowledge: of it, what is no longer known; None where it is all of it.
        answering: of it, what is no longer answered.
        tasks: loss of each task, where these differ.
        macro: mean loss over tasks.
        guess_rate: of never-known items that are wrong after, the share that luck had right before;
            named where this is more than any data could show.
    """

    lost: float = 0.0
    knowledge: float | None = None
    answering: float = 0.0
    tasks: Mapping[str, float] | None = None
    macro: float | None = None
    guess_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One data set: two tables, and how they are to be compared."""

    before: Columns
    after: Columns
    truth: Truth = field(default_factory=Truth)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """How items and answers come about in one task.

    Attributes:
        items: their number.
        k: options; 0 for open-ended items.
        logged_k: what the log says instead, if it is wrong.
        known: share that the model before knows.
        lost: share of all items known before and not after.
        gained: share of all items known after and not before.
        cluster: items of one cluster; 0 for none. A cluster is lost as a whole.
        partly: chance of each known item of a lost cluster to be lost.
        repeated: chance that a guess is the same as before.
        habits: chance of each letter when guessing, before and after; None for all alike.
        ruled_out: share of never-known items of which one wrong option can be ruled out.
        gold: chance of each position to be right; None for all alike.
        unread: chance that an answer after cannot be read, of known and of other items.
        unread_before: the same of answers before.
        flips: share of all answers that noise turns one way.
        choices: whether the log names the chosen options.
        positions: whether the log names the place of the right option.
        outcome: why an answer cannot be read.
    """

    items: int = 300
    k: int = 4
    logged_k: int | None = None
    known: float = 0.6
    lost: float = 0.0
    gained: float = 0.0
    cluster: int = 0
    partly: float = 1.0
    repeated: float = 0.0
    habits: tuple[Sequence[float] | None, Sequence[float] | None] = (None, None)
    ruled_out: float = 0.0
    gold: Sequence[float] | None = None
    unread: tuple[float, float] = (0.0, 0.0)
    unread_before: float = 0.0
    flips: float = 0.0
    choices: bool = True
    positions: bool = True
    outcome: str = "no_answer"

    def truth(self) -> Truth:
        """The loss in this world."""
        readable = (1 - self.unread_before) * (1 - 4 * self.flips)  # noise hides what it hits
        knowledge = readable * self.lost * (1 - self.unread[1])
        kept = self.unread[0] * (self.known - self.lost)
        answering = readable * (kept + self.unread[1] * self.lost)
        return Truth(knowledge + answering, knowledge, answering)


def draw_case(rng: Rng, world: World, **options: Any) -> Case:
    """One task of a world."""
    return join_tasks([draw_task(rng, world, "task")], world.truth(), options)


def join_tasks(
    parts: Sequence[tuple[Columns, Columns]], truth: Truth, options: Mapping[str, Any] | None = None
) -> Case:
    """Several tasks in one table a side; a column counts where every task has it."""
    sides: list[Columns] = [
        {
            name: np.concatenate([np.asarray(part[side][name]) for part in parts])
            for name in parts[0][side]
            if all(name in part[side] for part in parts)
        }
        for side in (0, 1)
    ]
    return Case(sides[0], sides[1], truth, options or {})


def draw_task(rng: Rng, world: World, task: str) -> tuple[Columns, Columns]:
    """Both tables of one task."""
    items = draw_items(rng, world)
    if world.k == 0:
        return open_answers(rng, world, items, task)
    chosen = chosen_options(rng, world, items)
    return tuple(  # type: ignore[return-value]
        answer_sheet(rng, world, items, task, side, letters)
        for side, letters in zip(("before", "after"), chosen, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Items:
    """What is true of each item: its right option, whether each model knows it, its cluster."""

    gold: Array
    before: Array
    after: Array
    cluster: Array


def draw_items(rng: Rng, world: World) -> Items:
    """Draw items; clusters are known or not item by item, but lost together."""
    n = world.items
    cluster = np.arange(n) // max(world.cluster, 1)
    before = rng.random(n) < world.known
    share = world.lost / (world.known * world.partly) if world.known else 0.0
    hit = rng.random(cluster[-1] + 1)[cluster] < share
    lost = before & hit & (rng.random(n) < world.partly)
    gain = world.gained / (1 - world.known) if world.known < 1 else 0.0
    gained = ~before & (rng.random(n) < gain)
    gold = rng.choice(max(world.k, 1), n, p=world.gold)
    return Items(gold, before, (before & ~lost) | gained, cluster)


def chosen_options(rng: Rng, world: World, items: Items) -> tuple[Array, Array]:
    """The option each model chooses: the right one if known, else a guess."""
    spare = np.where(
        rng.random(len(items.gold)) < world.ruled_out, rng.integers(1, world.k, len(items.gold)), 0
    )
    excluded = np.where(spare > 0, (items.gold + spare) % world.k, -1)
    guesses = [guess(rng, world.k, excluded, habit) for habit in world.habits]
    again = rng.random(len(items.gold)) < world.repeated
    guesses[1] = np.where(again, guesses[0], guesses[1])
    before, after = (
        np.where(known, items.gold, letters)
        for known, letters in zip((items.before, items.after), guesses, strict=True)
    )
    return before, after


def guess(rng: Rng, k: int, excluded: Array, habit: Sequence[float] | None) -> Array:
    """A letter for each item, by habit, but none that is ruled out."""
    weight = np.tile(np.ones(k) if habit is None else np.asarray(habit, float), (len(excluded), 1))
    ruled = excluded >= 0
    weight[ruled, excluded[ruled]] = 0.0
    steps = np.cumsum(weight, axis=1)
    picks: Array = (rng.random((len(excluded), 1)) * steps[:, -1:] > steps).sum(axis=1)
    return picks


def answer_sheet(
    rng: Rng, world: World, items: Items, task: str, side: str, letters: Array
) -> Columns:
    """What a harness logs of multiple-choice answers."""
    n = len(letters)
    if side == "after":
        chance = np.where(items.after, *world.unread)
    else:
        chance = np.full(n, world.unread_before)
    unread = rng.random(n) < chance
    right = (letters == items.gold) & ~unread
    numbers = np.arange(n)
    sheet: Columns = {
        **head(task, n),
        "score": right.astype(float),
        "k": np.full(n, world.logged_k or world.k),
        "outcome": np.where(unread, world.outcome, np.where(right, "correct", "incorrect")),
    }
    if world.positions:
        sheet["gold_index"] = items.gold
    if world.choices:
        texts = np.char.add(np.char.add(numbers.astype(str), "-"), letters.astype(str))
        sheet["choice"] = [None if lost else text for lost, text in zip(unread, texts, strict=True)]
        if world.positions:
            names = LETTERS[letters]
            sheet["answer"] = [
                None if lost else name for lost, name in zip(unread, names, strict=True)
            ]
    return with_clusters(sheet, world, items, task)


def open_answers(rng: Rng, world: World, items: Items, task: str) -> tuple[Columns, Columns]:
    """Both tables of open-ended items; some stand on the brink and fall to either side."""
    n = len(items.gold)
    brink = rng.random(n) < 4 * world.flips
    sheets = []
    for side, known in (("before", items.before), ("after", items.after)):
        right = np.where(brink, rng.random(n) < 0.5, known)
        chance = np.where(items.after, *world.unread) if side == "after" else world.unread_before
        unread = rng.random(n) < chance
        right = right & ~unread
        sheet: Columns = {
            **head(task, n),
            "score": right.astype(float),
            "outcome": np.where(unread, world.outcome, np.where(right, "correct", "incorrect")),
        }
        sheets.append(with_clusters(sheet, world, items, task))
    return sheets[0], sheets[1]


def head(task: str, n: int) -> Columns:
    """Columns that name items."""
    return {"task": np.full(n, task), "item": np.arange(n).astype(str)}


def with_clusters(sheet: Columns, world: World, items: Items, task: str) -> Columns:
    """The table with the cluster of each item, where there are any."""
    if not world.cluster:
        return sheet
    names = np.char.add(f"{task} passage ", items.cluster.astype(str))
    return {**sheet, "cluster": names}


def repeat_answers(
    rng: Rng, right_before: Array, right_after: Array, repeats: int, cluster: Array | None = None
) -> tuple[Columns, Columns]:
    """Tables of models that are right with some chance, item by item, asked several times."""
    n = len(right_before)
    sheets = []
    for chance in (right_before, right_after):
        score = rng.random((repeats, n)) < chance
        sheet: Columns = {
            "task": np.full(n * repeats, "task"),
            "item": np.tile(np.arange(n).astype(str), repeats),
            "repeat": np.repeat(np.arange(repeats), n),
            "score": score.ravel().astype(float),
        }
        if cluster is not None:
            sheet["cluster"] = np.tile(np.char.add("passage ", cluster.astype(str)), repeats)
        sheets.append(sheet)
    return sheets[0], sheets[1]


# --- worlds that are more than one task of the kind above -----------------------------------------


def clustered_repeats(rng: Rng, clusters: int, size: int, lost: float, repeats: int = 2) -> Case:
    """V1: several answers to items of passages; a passage is lost as a whole."""
    n = clusters * size
    cluster = np.arange(n) // size
    mood = rng.choice([0.0, 0.5, 1.0], clusters, p=[0.3, 0.2, 0.5])[cluster]
    gone = (rng.random(clusters) < lost / 0.5)[cluster] & (mood == 1)
    after = np.where(gone, 0.0, mood)
    return Case(*repeat_answers(rng, mood, after, repeats, cluster), Truth(lost))


def moody(rng: Rng, items: int, repeats: int, lost: float) -> Case:
    """Every item has a chance of its own to be right; some that were certain are lost."""
    certain = rng.random(items) < 0.5
    before = np.where(certain, 1.0, rng.beta(0.7, 0.7, items))
    gone = certain & (rng.random(items) < 2 * lost)
    return Case(*repeat_answers(rng, before, np.where(gone, 0.0, before), repeats), Truth(lost))


def many_tasks(
    rng: Rng, tasks: int, world: World, hit: int = 0, lost: float = 0.0, sizes: str = "equal"
) -> Case:
    """Many tasks, of which some lost something."""
    numbers = np.full(tasks, world.items)
    if sizes == "uneven":
        numbers = np.maximum((world.items * np.geomspace(0.2, 5, tasks)).astype(int), 5)
    names = [f"task {number:03}" for number in range(tasks)]
    losses = [lost if number < hit else world.lost for number in range(tasks)]
    parts = [
        draw_task(rng, replace(world, items=int(n), lost=loss), name)
        for n, loss, name in zip(numbers, losses, names, strict=True)
    ]
    total = float(numbers @ np.array(losses) / numbers.sum())
    per_task = dict(zip(names, losses, strict=True))
    return join_tasks(parts, Truth(total, tasks=per_task, macro=float(np.mean(losses))))


def tiny_clustered_task(rng: Rng, lost: float) -> Case:
    """V9: three large tasks and one of two passages."""
    large = World(items=800, k=0, known=0.7, lost=lost)
    parts = [draw_task(rng, large, f"large {number}") for number in range(3)]
    for part in parts:
        for sheet in part:
            names = np.char.add(np.asarray(sheet["task"]).astype(str), " ")
            sheet["cluster"] = np.char.add(names, np.asarray(sheet["item"]).astype(str))
    tiny = World(items=20, k=0, known=0.7, lost=lost, cluster=10)
    parts.append(draw_task(rng, tiny, "tiny"))
    return join_tasks(parts, Truth(lost, macro=lost))


def shared_questions(rng: Rng, items: int, lost: float, within: int = 0) -> Case:
    """V14: two tasks ask the same questions; some stand twice in one task."""
    world = World(items=items, k=0, known=0.7, lost=lost)
    parts = []
    before, after = draw_task(rng, world, "one")
    texts = [f"What is the {number}th word of this book?" for number in range(items)]
    for task in ("one", "two"):
        part = []
        for sheet in (before, after):
            copy: Columns = {**sheet, "task": np.full(items, task), "question": texts}
            if within:
                twice = np.concatenate([np.arange(items), np.arange(within)])
                copy = {name: np.asarray(values)[twice] for name, values in copy.items()}
                copy["item"] = np.arange(items + within).astype(str)
            part.append(copy)
        parts.append((part[0], part[1]))
    return join_tasks(parts, Truth(lost))


def missing_after(rng: Rng, right: float) -> Case:
    """V21: the model after has no results of 258 items that the model before had right or wrong."""
    world = World(items=600, k=0, known=0.55)
    case = draw_case(rng, world)
    candidates = np.flatnonzero(np.asarray(case.before["score"]) == right)
    gone = rng.choice(candidates, min(258, len(candidates)), replace=False)
    kept = np.setdiff1d(np.arange(600), gone)
    after = {name: np.asarray(values)[kept] for name, values in case.after.items()}
    return replace(case, after=after)


def graded(rng: Rng, items: int, lost: float) -> Case:
    """V22: scores in quarters, some of them fractions; a share falls from full to no credit."""
    before = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], items, p=[0.2, 0.1, 0.05, 0.05, 0.6])
    gone = (before == 1) & (rng.random(items) < lost / 0.6)
    after = np.where(gone, 0.0, before)
    sheets = [{**head("task", items), "score": scores} for scores in (before, after)]
    return Case(sheets[0], sheets[1], Truth(lost))


def sizes_apart(rng: Rng, lost: float) -> Case:
    """Tasks of very different size and kind; each loses the same share."""
    worlds = {
        "open": World(items=2000, k=0, known=0.7, lost=lost),
        "ten options": World(items=200, k=10, known=0.5, lost=lost),
        "few": World(items=15, k=4, known=0.6, lost=lost),
    }
    parts = []
    for name, world in worlds.items():
        sheets = draw_task(rng, world, name)
        for sheet in sheets:
            _fill_choices(sheet)
        parts.append(sheets)
    losses = dict.fromkeys(worlds, lost)
    return join_tasks(parts, Truth(lost, tasks=losses, macro=lost))


def mixed_options(rng: Rng, lost: float) -> Case:
    """Items with two, four and ten options in one task."""
    parts = []
    for k in (2, 4, 10):
        world = World(items=300, k=k, known=0.5, lost=lost)
        sheets = draw_task(rng, world, "task")
        for sheet in sheets:
            sheet["item"] = np.char.add(f"{k}-", np.asarray(sheet["item"]).astype(str))
        parts.append(sheets)
    return join_tasks(parts, Truth(lost))


def _fill_choices(sheet: Columns) -> None:
    """Empty columns of choices for open-ended items, so that tasks can share a table."""
    n = len(sheet["score"])
    for name in ("k", "gold_index"):
        values = sheet.get(name, np.full(n, -1))
        sheet[name] = [int(value) if value >= 0 else None for value in values]
    for name in ("choice", "answer"):
        sheet.setdefault(name, [None] * n)
