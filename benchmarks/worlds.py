"""Worlds with a known loss, for benchmarks/verdicts.py. Plain numpy: nothing of forgetmap.

A world draws items for every data set, simulates the answers of two models, and writes them as
tables. `Items` has the truth of each item; `answer_sheet` is the log of a harness.
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
    """The true loss, as shares of the population of items.

    Attributes:
        lost: the loss.
        knowledge: part of it that is no longer known; None if it is all of it.
        answering: part of it that is no longer answered.
        tasks: loss of each task, if they differ.
        macro: mean loss over tasks.
        guess_rate: share of never-known items that are wrong after which were right before by luck;
            given if it is more than data can show.
    """

    lost: float = 0.0
    knowledge: float | None = None
    answering: float = 0.0
    tasks: Mapping[str, float] | None = None
    macro: float | None = None
    guess_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One data set: two tables, and the options of their comparison."""

    before: Columns
    after: Columns
    truth: Truth = field(default_factory=Truth)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """How items and answers are drawn in one task.

    Attributes:
        items: number of items.
        k: number of options; 0 for open-ended items.
        logged_k: number of options in the log, if it is wrong.
        known: share of items that the model before knows.
        lost: share of all items known before and not after.
        gained: share of all items known after and not before.
        cluster: number of items per cluster; 0 for none. A cluster is lost as a whole.
        partly: probability of each known item of a lost cluster to be lost.
        repeated: probability that a guess is the same as before.
        habits: probability of each letter when guessing, before and after; None for equal ones.
        ruled_out: share of never-known items of which one wrong option can be excluded.
        gold: probability of each position to be right; None for equal ones.
        unread: probability that an answer after is unreadable, for known and for other items.
        unread_before: the same for answers before.
        flips: share of all answers that noise flips one way.
        choices: whether the log has the chosen options.
        positions: whether the log has the position of the right option.
        outcome: outcome of unreadable answers.
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
        """Return the loss in this world."""
        readable = (1 - self.unread_before) * (1 - 4 * self.flips)  # noise hides what it affects
        knowledge = readable * self.lost * (1 - self.unread[1])
        kept = self.unread[0] * (self.known - self.lost)
        answering = readable * (kept + self.unread[1] * self.lost)
        return Truth(knowledge + answering, knowledge, answering)


def draw_case(rng: Rng, world: World, **options: Any) -> Case:
    """Draw one task of a world."""
    return join_tasks([draw_task(rng, world, "task")], world.truth(), options)


def join_tasks(
    parts: Sequence[tuple[Columns, Columns]], truth: Truth, options: Mapping[str, Any] | None = None
) -> Case:
    """Combine several tasks into one table per side, with the columns that every task has."""
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
    """Draw both tables of one task."""
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
    """The truth of each item: its right option, whether each model knows it, its cluster."""

    gold: Array
    before: Array
    after: Array
    cluster: Array


def draw_items(rng: Rng, world: World) -> Items:
    """Draw items; those of a cluster are known separately, but lost together."""
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
    """Return the option that each model chooses: the right one if known, else a guess."""
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
    """Return a letter for each item, by habit, without excluded ones."""
    weight = np.tile(np.ones(k) if habit is None else np.asarray(habit, float), (len(excluded), 1))
    ruled = excluded >= 0
    weight[ruled, excluded[ruled]] = 0.0
    steps = np.cumsum(weight, axis=1)
    picks: Array = (rng.random((len(excluded), 1)) * steps[:, -1:] > steps).sum(axis=1)
    return picks


def answer_sheet(
    rng: Rng, world: World, items: Items, task: str, side: str, letters: Array
) -> Columns:
    """Return the log of multiple-choice answers."""
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
    """Draw both tables of open-ended items; some are undecided and may be right or wrong."""
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
    """Return the columns that identify items."""
    return {"task": np.full(n, task), "item": np.arange(n).astype(str)}


def with_clusters(sheet: Columns, world: World, items: Items, task: str) -> Columns:
    """Add the cluster of each item to the table, if there are any."""
    if not world.cluster:
        return sheet
    names = np.char.add(f"{task} passage ", items.cluster.astype(str))
    return {**sheet, "cluster": names}


def repeat_answers(
    rng: Rng, right_before: Array, right_after: Array, repeats: int, cluster: Array | None = None
) -> tuple[Columns, Columns]:
    """Draw repeated answers of models with a probability of being right per item."""
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


# --- worlds beyond a single task of the kind above ------------------------------------------------


def clustered_repeats(rng: Rng, clusters: int, size: int, lost: float, repeats: int = 2) -> Case:
    """V1: several answers to items of passages; a passage is lost as a whole."""
    n = clusters * size
    cluster = np.arange(n) // size
    mood = rng.choice([0.0, 0.5, 1.0], clusters, p=[0.3, 0.2, 0.5])[cluster]
    gone = (rng.random(clusters) < lost / 0.5)[cluster] & (mood == 1)
    after = np.where(gone, 0.0, mood)
    return Case(*repeat_answers(rng, mood, after, repeats, cluster), Truth(lost))


def moody(rng: Rng, items: int, repeats: int, lost: float) -> Case:
    """Every item has its own probability of being right; some that were certain are lost."""
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
    """V14: two tasks have the same questions; some are repeated within a task."""
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
    """V21: the model after has no results of 258 items of the model before."""
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
    """Tasks of very different size and kind, which lose the same share."""
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


# --- worlds of drift, certificates, probes, sweeps and monitoring ---------------------------------


@dataclass(frozen=True, slots=True)
class DriftCase:
    """Values of one metric before and after, in one or two tasks, and the true effect."""

    before: Columns
    after: Columns
    effect: float


def lengths(rng: Rng, items: int, ratio: float, spread: float, alike: float = 0.6) -> DriftCase:
    """V16: counts such as words of an answer, log-normal; the effect is the log of a ratio."""
    common = rng.standard_normal(items)
    own = rng.standard_normal((2, items))
    logs = spread * (np.sqrt(alike) * common + np.sqrt(1 - alike) * own) - spread**2 / 2
    words = np.array([[300.0], [300.0 * ratio]]) * np.exp(logs)
    sides: list[Columns] = [{**head("one", items), "score": row} for row in words]
    return DriftCase(sides[0], sides[1], float(np.log(ratio)))


def passages(
    rng: Rng, clusters: int, size: int, lost: float, before: float = 0.7, gained: float = 0.1
) -> DriftCase:
    """V16: items of few passages, which are easy or hard, and lose, as a whole."""
    easy = np.repeat(rng.beta(3 * before, 3 * (1 - before), clusters), size)
    share = np.repeat(rng.beta(3 * lost, 3 * (1 - lost), clusters), size)
    right = rng.random(easy.size) < easy
    names = np.char.add("passage ", (np.arange(easy.size) // size).astype(str))
    sides: list[Columns] = [
        {**head("one", easy.size), "score": scores, "cluster": names}
        for scores in _two_sides(rng, right, np.where(right, 1 - share, gained))
    ]
    after = before * (1 - lost) + (1 - before) * gained
    return DriftCase(sides[0], sides[1], _angle(after) - _angle(before))


def tasks_that_share(rng: Rng, items: int, lost: float, before: float = 0.7) -> DriftCase:
    """V16: two tasks with the same questions and nearly the same answers."""
    right = rng.random(items) < before
    sides = _two_sides(rng, right, np.where(right, 1 - lost, 0.1))
    shares = before, before * (1 - lost) + (1 - before) * 0.1
    texts = np.char.add("What is question ", np.arange(items).astype(str))
    sheets: list[Columns] = []
    for scores, share in zip(sides, shares, strict=True):
        again = rng.random(items) < 0.95  # else another prompt gives an independent answer
        sheets.append(
            {
                "task": np.repeat(["one", "two"], items),
                "item": np.tile(np.arange(items).astype(str), 2),
                "question": np.tile(texts, 2),
                "score": np.append(scores, np.where(again, scores, rng.random(items) < share)),
            }
        )
    return DriftCase(sheets[0], sheets[1], _angle(shares[1]) - _angle(before))


def _two_sides(rng: Rng, right: Array, chance: Array) -> tuple[Array, Array]:
    """Return scores before, and after, which are right with this probability."""
    return right.astype(float), (rng.random(right.size) < chance).astype(float)


def _angle(share: float) -> float:
    return float(2 * np.arcsin(np.sqrt(share)))


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of two models with log-probabilities of both, and the distance of the models.

    Attributes:
        prompt: index of the prompt of each completion.
        wrote_before: whether the model before generated it.
        before: log-probability under the model before.
        after: log-probability under the model after.
        distance: mean total variation over the population of prompts.
    """

    prompt: Array
    wrote_before: Array
    before: Array
    after: Array
    distance: float


def rare_disasters(
    rng: Rng, prompts: int, samples: int, disasters: float, moved: float
) -> Completions:
    """V17: nearly all prompts keep their completions; a few change completely.

    There are ten possible completions per prompt. An ordinary prompt moves a share `moved` of
    probability from one half to the other; on a disaster nearly all goes to the last one.
    """
    base = np.full(10, 0.1)
    step = np.repeat([-moved / 5, moved / 5], 5)
    ordinary = base + step
    disaster = np.append(np.full(9, 0.0002), 1 - 9 * 0.0002)
    hit = rng.random(prompts) < disasters
    after = np.where(hit[:, None], disaster, ordinary)
    steps = np.cumsum(np.stack([np.tile(base, (prompts, 1)), after]), axis=2)
    luck = rng.random((2, prompts, samples))
    chosen = (luck[..., None] > steps[:, :, None, :-1]).sum(axis=3)
    number = np.tile(np.arange(prompts)[None, :, None], (2, 1, samples))
    wrote = np.tile(np.array([True, False])[:, None, None], (1, prompts, samples))
    distance = (1 - disasters) * moved + disasters * np.abs(disaster - base).sum() / 2
    return Completions(
        number.ravel(),
        wrote.ravel(),
        np.log(base)[chosen].ravel(),
        np.log(after[number, chosen]).ravel(),
        float(distance),
    )


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """Full runs of the model before, and one run of the model after on all items."""

    before: Columns
    after: Columns


def wavering(
    rng: Rng, groups: int, items: int, repeats: int, chance: float, lost: float = 0.0
) -> ProbeCase:
    """V18: a tenth of the items of each group are right with this chance, the others always."""
    n = groups * items
    p = np.where(rng.random(n) < 0.1, chance, 1.0)
    group = np.char.add("group ", (np.arange(n) // items).astype(str))
    item = np.arange(n).astype(str)
    facts = {
        "task": group, "item": item, "category": group, "gold": np.full(n, "yes"),
        "question": np.char.add("question ", item),
    }  # fmt: skip
    before: Columns = {name: np.tile(values, repeats) for name, values in facts.items()}
    before["repeat"] = np.repeat(np.arange(repeats), n)
    before["score"] = (rng.random((repeats, n)) < p).astype(float).ravel()
    kept = rng.random(n) >= lost
    after: Columns = {**facts, "score": ((rng.random(n) < p) & kept).astype(float)}
    return ProbeCase(before, after)


WEIGHTS = tuple(round(0.1 * step, 1) for step in range(1, 10))
TUNED_LOST = 0.25
SHAPES: Mapping[str, Sequence[float]] = {
    "all at the budget": (0.5,) * 9,
    "a bump": (0.1, 0.2, 0.55, 0.6, 0.55, 0.3, 0.2, 0.2, 0.6),
    "a zigzag": (0.3, 0.51, 0.3, 0.51, 0.3, 0.51, 0.3, 0.51, 0.8),
    "rising": (0.05, 0.12, 0.22, 0.34, 0.46, 0.58, 0.7, 0.8, 0.9),
}
"""Loss of a merge at each weight, as a share of the loss of the tuned model."""


@dataclass(frozen=True, slots=True)
class SweepCase:
    """Answers of base, tuned and merges (in this order), and which weights keep half of the loss.

    Attributes:
        right: (run, item).
        weights: weights of the merges.
        within: whether each merge lost less than half of what the tuned model lost.
    """

    right: Array
    weights: Sequence[float]
    within: Array


def merges(rng: Rng, items: int, shape: str, *, alike: bool) -> SweepCase:
    """V19: the loss of merges does not only rise with the weight.

    Alike: the same items are lost first in every merge; otherwise each merge loses its own items
    among those that the tuned model lost, and as many among those that it kept.
    """
    losses = np.asarray(SHAPES[shape])[:, None]
    kind = rng.choice(4, items, p=[0.45, TUNED_LOST, 0.15, 0.15])  # kept, lost, gained, never
    luck = rng.random((1 if alike else len(WEIGHTS), items))
    if alike:
        lost = (kind == 1) & (luck < losses)
    else:
        spread = losses * TUNED_LOST / (TUNED_LOST + 0.45)
        lost = (kind <= 1) & (luck < spread)
    gains = rng.random(items) < np.asarray(WEIGHTS)[:, None]
    merged = ((kind <= 1) & ~lost) | ((kind == 2) & gains)
    right = np.vstack([kind <= 1, (kind == 0) | (kind == 2), merged])
    return SweepCase(right, WEIGHTS, losses[:, 0] < 0.5)


def fresh_looks(rng: Rng, looks: int, items: int, loss: float, *, graded: bool) -> list[Array]:
    """Draw scores of new items at each look; the mean loss is always the same."""
    shape = (looks, items)
    if graded:  # most items lose nothing, some a quarter or everything
        some, all_ = 2 * loss, loss / 2
        scores = rng.choice([0.0, 0.25, 1.0], shape, p=[1 - some - all_, some, all_])
    else:
        scores = (rng.random(shape) < loss).astype(float)
    return list(scores)


def same_items(rng: Rng, looks: int, items: int, loss: float, moving: float) -> list[Array]:
    """Draw scores of the same items at each look: the lost ones change slowly.

    From look to look an item is redrawn with the probability `moving`; at each single look a share
    `loss` of the population of items is lost.
    """
    states = rng.random(items) < loss
    scores = []
    for _ in range(looks):
        scores.append(states.astype(float))
        states = np.where(rng.random(items) < moving, rng.random(items) < loss, states)
    return scores


def planned_repeats(
    rng: Rng, items: int, repeats: int, lost: float, noise: float, *, coins: bool
) -> Case:
    """V5: as much noise as planned, all of it on coin flips or spread over many items."""
    n = items
    if coins:
        unsure, chance = rng.random(n) < 4 * noise, np.full(n, 0.5)
    else:
        unsure, chance = rng.random(n) < 6 * noise, rng.random(n)  # the mean of p (1 - p) is 1/6
    known = 0.6 / (1 - (4 if coins else 6) * noise)
    before = np.where(unsure, chance, (rng.random(n) < known).astype(float))
    gone = ~unsure & (before == 1) & (rng.random(n) < lost / 0.6)
    return Case(*repeat_answers(rng, before, np.where(gone, 0.0, before), repeats), Truth(lost))


def _fill_choices(sheet: Columns) -> None:
    """Add empty columns of choices for open-ended items, so that tasks can share a table."""
    n = len(sheet["score"])
    for name in ("k", "gold_index"):
        values = sheet.get(name, np.full(n, -1))
        sheet[name] = [int(value) if value >= 0 else None for value in values]
    for name in ("choice", "answer"):
        sheet.setdefault(name, [None] * n)


# --- answers by probabilities, for benchmarks/interval_coverage.py --------------------------------


@dataclass(frozen=True, slots=True)
class AnswerClass:
    """Items with the same probabilities.

    Attributes:
        share: share of all items.
        before: probability that the model before knows the answer; else it guesses each time.
        after: the same for the model after.
        silent: whether the model after never answers.
    """

    share: float
    before: float
    after: float
    silent: bool = False

    def right(self, k: int) -> tuple[float, float]:
        """Return the probability of each model to be right."""
        luck = 1 / k if k else 0.0
        before, after = (known + (1 - known) * luck for known in (self.before, self.after))
        return before, 0.0 if self.silent else after


@dataclass(frozen=True, slots=True)
class Sampling:
    """How answers of classes are drawn.

    Attributes:
        items: number of items.
        repeats: number of answers per item and model.
        k: number of options; 0 for open-ended items.
        cluster: number of items per cluster; 0 for none.
        tied: probability of an item to have the class of its cluster, else any.
    """

    items: int = 300
    repeats: int = 3
    k: int = 0
    cluster: int = 0
    tied: float = 0.6


def draw_classes(rng: Rng, classes: Sequence[AnswerClass], plan: Sampling) -> tuple[Array, Array]:
    """Draw the class and the cluster of each item; items of a cluster tend to have one class."""
    shares = [one.share for one in classes]
    cluster = np.arange(plan.items) // max(plan.cluster, 1)
    own = rng.choice(len(classes), plan.items, p=shares)
    if not plan.cluster:
        return own, cluster
    common = rng.choice(len(classes), cluster[-1] + 1, p=shares)[cluster]
    return np.where(rng.random(plan.items) < plan.tied, common, own), cluster


def sampled(
    rng: Rng, classes: Sequence[AnswerClass], plan: Sampling, task: str = "task"
) -> tuple[Columns, Columns]:
    """Draw repeated answers of models that know an item with some probability."""
    kinds, cluster = draw_classes(rng, classes, plan)
    gold = rng.integers(0, max(plan.k, 1), plan.items)
    sheets = []
    for side in ("before", "after"):
        known = np.array([getattr(one, side) for one in classes])[kinds]
        silent = np.array([one.silent and side == "after" for one in classes])[kinds]
        sheets.append(_repeated_sheet(rng, plan, known, silent, gold, cluster, task))
    return sheets[0], sheets[1]


def _repeated_sheet(
    rng: Rng, plan: Sampling, known: Array, silent: Array, gold: Array, cluster: Array, task: str
) -> Columns:
    n, shape = plan.items * plan.repeats, (plan.repeats, plan.items)
    knows = rng.random(shape) < known
    letters = np.where(knows, gold, rng.integers(0, max(plan.k, 1), shape)) if plan.k else None
    right = knows if letters is None else letters == gold
    right = (right & ~silent).ravel()
    unread = np.tile(silent, plan.repeats)
    sheet: Columns = {
        "task": np.full(n, task),
        "item": np.tile(np.arange(plan.items).astype(str), plan.repeats),
        "repeat": np.repeat(np.arange(plan.repeats), plan.items),
        "score": right.astype(float),
        "outcome": np.where(unread, "no_answer", np.where(right, "correct", "incorrect")),
    }
    if letters is not None:
        sheet["k"] = np.full(n, plan.k)
        sheet["gold_index"] = np.tile(gold, plan.repeats)
        texts = np.char.add(
            np.char.add(np.asarray(sheet["item"]), "-"), letters.ravel().astype(str)
        )
        names = LETTERS[letters.ravel()]
        for name, values in (("choice", texts), ("answer", names)):
            sheet[name] = [None if gone else x for gone, x in zip(unread, values, strict=True)]
    if plan.cluster:
        names = np.char.add(f"{task} passage ", cluster.astype(str))
        sheet["cluster"] = np.tile(names, plan.repeats)
    return sheet


def scored(
    rng: Rng, classes: Sequence[tuple[float, float, float]], plan: Sampling
) -> tuple[Columns, Columns]:
    """Draw graded scores: classes of items by share, score before and score after."""
    kinds, cluster = draw_classes(rng, [AnswerClass(*one) for one in classes], plan)
    table = np.asarray(classes)[np.tile(kinds, plan.repeats)]
    n = len(table)
    sheets = []
    for place in (1, 2):
        sheet: Columns = {
            "task": np.full(n, "task"),
            "item": np.tile(np.arange(plan.items).astype(str), plan.repeats),
            "repeat": np.repeat(np.arange(plan.repeats), plan.items),
            "score": table[:, place],
        }
        if plan.repeats == 1:
            del sheet["repeat"]
        if plan.cluster:
            sheet["cluster"] = np.tile(np.char.add("passage ", cluster.astype(str)), plan.repeats)
        sheets.append(sheet)
    return sheets[0], sheets[1]
