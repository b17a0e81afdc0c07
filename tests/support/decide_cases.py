"""Seeded random data sets for the limits of a loss, as items and as the kernel takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decide_oracle import Items, factors
from forgetmap.stats.limits import ItemSample, PairedAnswers, ScoreBound
from forgetmap.stats.verdicts import Bound, BoundName, TaskSplit, confirmed_bound, offered_bounds

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """What a random data set has; answers are single unless said."""

    items: int = 40
    repeats: tuple[int, int] = (1, 1)
    uneven: bool = False
    """Every item has its own number of answers, from 1 to `repeats`."""
    clusters: int = 0
    """Largest size of a cluster; some items have none."""
    tasks: int = 0
    macro: bool = False
    """Tasks count equally; otherwise as many items as they have."""
    confirm: float = 0.0
    """Part of the flips that is asked again."""
    stages: bool = False
    drop: float = 0.1
    extreme: float | None = None
    """All probabilities are this number."""


DESIGNS = {
    "single": Design(),
    "single, large": Design(items=400),
    "single, tiny": Design(items=4, drop=0.3),
    "one item": Design(items=1),
    "all right": Design(extreme=1.0),
    "nothing right": Design(extreme=0.0),
    "all right, clusters": Design(extreme=1.0, clusters=5),
    "nothing right, repeats": Design(extreme=0.0, repeats=(2, 2)),
    "repeats": Design(repeats=(3, 3)),
    "repeats, unequal sides": Design(repeats=(2, 5)),
    "repeats, tiny": Design(items=3, repeats=(2, 2)),
    "repeats before": Design(repeats=(4, 1)),
    "repeats after": Design(repeats=(1, 3)),
    "repeats per item": Design(repeats=(3, 4), uneven=True),
    "repeats per item, before": Design(repeats=(4, 1), uneven=True),
    "clusters": Design(clusters=4),
    "clusters, lost as a whole": Design(items=90, clusters=3, drop=0.6),
    "clusters, repeats": Design(clusters=9, repeats=(2, 3)),
    "tasks": Design(items=120, tasks=9),
    "tasks, too few": Design(items=40, tasks=7),
    "tasks, clusters over tasks": Design(items=90, tasks=8, clusters=4),
    "tasks, repeats": Design(items=90, tasks=10, repeats=(2, 2)),
    "macro": Design(items=60, tasks=5, macro=True),
    "macro, nothing lost": Design(items=60, tasks=5, macro=True, extreme=0.0),
    "macro, tasks, clusters": Design(items=90, tasks=8, macro=True, clusters=4),
    "macro, repeats": Design(items=60, tasks=9, macro=True, repeats=(3, 2)),
    "confirmed": Design(confirm=1.0),
    "confirmed in part": Design(items=80, confirm=0.5, drop=0.3),
    "confirmed, clusters": Design(items=60, confirm=0.7, clusters=3),
    "confirmed, macro": Design(items=60, confirm=1.0, tasks=4, macro=True),
    "confirmed, repeats": Design(confirm=1.0, repeats=(3, 3)),
    "stages": Design(stages=True),
    "stages, clusters, repeats": Design(stages=True, clusters=4, repeats=(2, 2)),
    "everything": Design(
        items=90, repeats=(3, 2), uneven=True, clusters=4, tasks=8, macro=True, confirm=0.6,
        stages=True,
    ),
}  # fmt: skip


def random_items(name: str, seed: int) -> Items:
    """Return a random data set of a design."""
    design = DESIGNS[name]
    random = np.random.default_rng([seed, *name.encode()])
    size = design.items
    p = random.beta(1.0, 0.6, size)
    if design.extreme is not None:
        p = np.full(size, design.extreme)
    clusters = _clusters(design, random) if design.clusters else None
    q = _after(p, clusters, design, random)
    r_b, r_a = (
        random.integers(1, most + 1, size) if design.uneven else np.full(size, most)
        for most in design.repeats
    )
    m, n = random.binomial(r_b, p), random.binomial(r_a, q)
    tasks, halves = None, None
    if design.tasks:
        tasks = [*range(design.tasks), *random.integers(0, design.tasks, size - design.tasks)]
        halves = _halves(size, clusters, random)
    flipped = random.random(size) < (m / r_b) * (1 - n / r_a)
    confirmed = None
    if design.confirm:
        chosen = np.flatnonzero(flipped)
        asked = set(chosen[: int(np.ceil(design.confirm * chosen.size))].tolist())
        fresh = random.integers(-3, 4, size) / 3
        confirmed = [float(fresh[i]) if i in asked else None for i in range(size)]
    return Items(
        m=m.tolist(), r_b=r_b.tolist(), n=n.tolist(), r_a=r_a.tolist(), clusters=clusters,
        tasks=tasks, halves=halves, macro=design.macro, confirmed=confirmed,
        flipped=flipped.tolist() if design.confirm else None,
        earlier=(random.integers(0, 4, size) / 3).tolist() if design.stages else None,
    )  # fmt: skip


def _clusters(design: Design, random: np.random.Generator) -> list[int | None]:
    names: list[int | None] = []
    while len(names) < design.items:
        names += [len(names)] * int(random.integers(1, design.clusters + 1))
    alone = random.random(design.items) < 0.15
    return [None if alone[i] else names[i] for i in range(design.items)]


def _after(
    p: Reals, clusters: list[int | None] | None, design: Design, random: np.random.Generator
) -> Reals:
    """Lose and gain items, whole clusters where there are some."""
    if design.extreme is not None:
        return p
    fate = random.random(p.size)
    if clusters is not None:
        fate = np.array([fate[i if name is None else name] for i, name in enumerate(clusters)])
    gone = random.uniform(0.0, 2 * design.drop)
    return np.where(fate < gone, 0.0, np.where(fate > 0.95, 1.0, p))


def _halves(size: int, clusters: list[int | None] | None, random: np.random.Generator) -> list[int]:
    sides = random.integers(0, 2, size)
    if clusters is None:
        return [int(side) for side in sides]
    return [int(sides[i if name is None else name]) for i, name in enumerate(clusters)]


@dataclass(frozen=True)
class Taken:
    """A data set as the kernel takes it."""

    answers: PairedAnswers
    bounds: dict[BoundName, Bound]


def take(items: Items, *, kinds: bool = False) -> Taken:
    """Return items for the kernel, one by one or as kinds of equal items with their number."""
    columns = _columns(items)
    rows = np.array(list(columns.values()), float).T
    count = np.ones(len(rows))
    if kinds:
        rows, found = np.unique(rows, axis=0, return_counts=True)
        count = found.astype(float)
    given = dict(zip(columns, rows.T, strict=True))
    cluster = given["cluster"].astype(np.int64) if items.clusters is not None else None
    factor = given["factor"] if items.macro else None
    step = float(factor.max()) / items.size if factor is not None else None
    sample = ItemSample(count, cluster, factor, step)
    answers = PairedAnswers(given["m"], given["r_b"], given["n"], given["r_a"], sample)
    more: dict[BoundName, Bound] = {}
    if items.confirmed is not None:
        flipped, asked = count @ given["flipped"], count @ given["asked"]
        more["confirmed"] = confirmed_bound(sample, given["fresh"], float(flipped), float(asked))
    if items.earlier is not None:
        scores = (1 - given["earlier"]) * answers.change
        more["earlier_stage"] = ScoreBound(sample, scores)
    split = None
    if items.tasks is not None:
        task = given["task"].astype(np.int64)
        weights = np.bincount(task, count) / items.size
        if items.macro:
            weights = np.full(weights.size, 1 / weights.size)
        split = TaskSplit(task, given["half"].astype(np.int64), weights)
    return Taken(answers, offered_bounds(answers, split, more))


def _columns(items: Items) -> dict[str, list[float]]:
    """Return one number per item and property."""
    nothing = [0] * items.size
    names = items.clusters if items.clusters is not None else [None] * items.size
    index = {name: n for n, name in enumerate(dict.fromkeys(names)) if name is not None}
    fresh = items.confirmed or [None] * items.size
    return {
        "m": list(items.m), "r_b": list(items.r_b), "n": list(items.n), "r_a": list(items.r_a),
        "cluster": [-1 if name is None else index[name] for name in names],
        "task": list(items.tasks or nothing), "half": list(items.halves or nothing),
        "factor": factors(items), "earlier": list(items.earlier or nothing),
        "flipped": list(items.flipped or nothing),
        "asked": [each is not None for each in fresh],
        "fresh": [0.0 if each is None else each for each in fresh],
    }  # fmt: skip
