"""The published aggregation: per task and seed, clipped; over tasks of a category; over seeds.

Only for comparison with published numbers. Clipping before averaging biases upwards (at k = 4 and
50 items with nothing lost the clipped mean is .026), and a task of 100 items has the weight of one
of 2,000; the default roll-up does neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from forgetmap.comparison.cells import CELL_NAMES, Cells
from forgetmap.comparison.choices_made import options_of
from forgetmap.comparison.labels import is_none, label_columns
from forgetmap.comparison.task_tables import IGNORED, MISSING
from forgetmap.pairing import SIDES, Pairs, scored_pair
from forgetmap.stats import published

MEASURES = (
    "forgetting",
    "backward_transfer",
    "forgetting_max",
    "backward_transfer_max",
    "acc_before",
    "acc_after",
)
TOTAL = "Total"
AGREEMENT_SIZES = (2, 3)
"""Numbers of seeds that must agree, as in the published code."""
MAX_SEEDS = 20
"""Maximum number of seeds; the history of an item must fit into one integer."""


@dataclass(frozen=True, slots=True)
class SeedRow:
    """Counts of one task under one seed, with its k and category."""

    task: str
    seed: int
    cells: Cells
    k: float
    category: str


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Mean and sample standard deviation over seeds; None for a single seed."""

    name: str
    mean: dict[str, float]
    deviation: dict[str, float | None]


def count_seeds(pairs: Pairs) -> list[SeedRow]:
    """Count every task and repeat; k and category come from the data or a table."""
    labels = label_columns(pairs)
    category = labels.get("category", nw.lit(None, dtype=nw.String))
    k = options_of(pairs.columns)
    rows = pairs.frame.filter(scored_pair()).select(
        "task", "repeat", *(nw.col(f"state_{side}") for side in SIDES), category=category, k=k
    )
    by = ("task", "category", "repeat", "state_before", "state_after", "k")
    counts = rows.group_by(*by).agg(nw.len().alias("n")).collect()
    parts: dict[tuple[str, str, int], list[tuple[Cells, float]]] = {}
    for row in counts.rows(named=True):
        name = MISSING if is_none(row["category"]) else row["category"]
        cell = CELL_NAMES[int(row["state_before"]), int(row["state_after"])]
        luck = 0.0 if is_none(row["k"]) else int(row["n"]) / (float(row["k"]) - 1)
        counted = Cells(**{cell: int(row["n"])})  # type: ignore[arg-type]
        parts.setdefault((row["task"], name, int(row["repeat"])), []).append((counted, luck))
    rows_by_seed = []
    for (task, name, seed), group in parts.items():
        cells = Cells.total(part for part, _ in group)
        luck = math.fsum(luck for _, luck in group)  # exact: groups come in any order
        # The k whose luck 1/(k-1) is the mean over the items.
        options = 1 + cells.n / luck if luck else math.inf
        rows_by_seed.append(SeedRow(task, seed, cells, options, name))
    return rows_by_seed


def row_values(row: SeedRow) -> dict[str, float]:
    """Return chance-adjusted, clipped values of one task and seed, as published."""
    cells = row.cells
    before, after = (cells.n11 + cells.n10) / cells.n, (cells.n11 + cells.n01) / cells.n
    adjusted = published(before, after, cells.n10 / cells.n, cells.n01 / cells.n, row.k)
    values = {name: float(getattr(adjusted, name)) for name in MEASURES[:4]}
    return values | {"acc_before": before, "acc_after": after}


def roll_up(rows: Sequence[SeedRow]) -> list[RolledUp]:
    """Average by category, sorted, with the total last; without empty and ignored tasks."""
    kept = [row for row in rows if row.cells.n and row.category != IGNORED]
    seeds = sorted({row.seed for row in kept})
    categories = sorted({row.category for row in kept})
    by_seed: dict[int, dict[str, dict[str, float]]] = {seed: {} for seed in seeds}
    for seed in seeds:
        for category in categories:
            values = [row_values(r) for r in kept if (r.seed, r.category) == (seed, category)]
            if values:
                by_seed[seed][category] = _mean(values)
    total = {seed: _mean(list(means.values())) for seed, means in by_seed.items()}
    rolled = [
        _over_seeds(name, [means[name] for means in by_seed.values() if name in means])
        for name in categories
    ]
    return [*rolled, _over_seeds(TOTAL, list(total.values()))] if rolled else []


def _mean(values: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(value[name] for value in values) for name in MEASURES}


def _over_seeds(name: str, values: Sequence[dict[str, float]]) -> RolledUp:
    several = len(values) > 1
    spread = {m: stdev(v[m] for v in values) if several else None for m in MEASURES}
    return RolledUp(name, _mean(values), spread)


@dataclass(frozen=True, slots=True)
class Consensus:
    """Changes of the items on which this many seeds agree, as in the published code.

    Attributes:
        name: name of the category, or `Total`.
        seeds: number of seeds that must agree.
        forgetting: forgotten share of the items on which they agree.
        backward_transfer: gained share of these items.
        dropped: share of all items on which they do not agree.
    """

    name: str
    seeds: int
    forgetting: float
    backward_transfer: float
    dropped: float


def agree_over_seeds(pairs: Pairs, rows: Sequence[SeedRow]) -> list[Consensus]:
    """Compute the consensus by category and in total, for each number of seeds.

    Args:
        pairs: both models.
        rows: from `count_seeds`.
    """
    seeds = sorted({row.seed for row in rows})[:MAX_SEEDS]
    sizes = [size for size in AGREEMENT_SIZES if size <= len(seeds)]
    histories = _histories(pairs, seeds) if sizes else {}
    return [group for size in sizes for group in _consensus_of(histories, size)]


def consensus(
    transitions: ArrayLike, size: int, weight: ArrayLike | None = None
) -> tuple[dict[str, float], float]:
    """Return mean counts of the transitions on which `size` seeds agree, over all subsets.

    As in the published code, for comparison: it keeps stable items, so it does not show how much
    was lost of the others.

    Args:
        transitions: items x seeds, as the strings 00, 01, 10 and 11; empty if a seed has no answer,
            which excludes the item from subsets with that seed.
        size: number of seeds per subset.
        weight: number of items of each kind; 1 by default.

    Returns:
        Mean count of each transition, and the mean share of items on which the seeds disagree.
    """
    table = np.asarray(transitions)
    items = np.ones(len(table)) if weight is None else np.asarray(weight, float)
    counts = dict.fromkeys(("00", "01", "10", "11"), 0.0)
    dropped = 0.0
    subsets = list(combinations(range(table.shape[1]), size))
    for subset in subsets:
        chosen = table[:, list(subset)]
        complete = (chosen != "").all(axis=1)
        agreed = complete & (chosen == chosen[:, :1]).all(axis=1)
        dropped += 1 - float(items[agreed].sum()) / max(float(items[complete].sum()), 1.0)
        for name in counts:
            counts[name] += float(items[agreed & (chosen[:, 0] == name)].sum())
    return {name: count / len(subsets) for name, count in counts.items()}, dropped / len(subsets)


def _consensus_of(histories: Histories, size: int) -> list[Consensus]:
    by_category: dict[str, list[tuple[float, float, float]]] = {}
    for (_, category), kinds in histories.items():
        table = [list(history) for history in kinds]
        counts, dropped = consensus(table, size, list(kinds.values()))
        agreed = sum(counts.values())
        if agreed and category != IGNORED:
            rates = (counts["10"] / agreed, counts["01"] / agreed, dropped)
            by_category.setdefault(category, []).append(rates)
    means = {name: _means(rates) for name, rates in sorted(by_category.items())}
    if means:
        means[TOTAL] = _means(list(means.values()))
    return [Consensus(name, size, *rates) for name, rates in means.items()]


def _means(rates: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    lost, gained, dropped = (fmean(column) for column in zip(*rates, strict=True))
    return lost, gained, dropped


Histories = dict[tuple[str, str], dict[tuple[str, ...], int]]
"""Task and category -> transitions of an item by seed -> number of items."""


def _histories(pairs: Pairs, seeds: Sequence[int]) -> Histories:
    """Count histories; an integer holds one digit per seed, 0 without an answer."""
    base = len(CELL_NAMES) + 1
    category = label_columns(pairs).get("category", nw.lit(None, dtype=nw.String))
    digit = 1 + 2 * nw.col("state_before").cast(nw.Int64) + nw.col("state_after").cast(nw.Int64)
    weight = nw.lit(0, dtype=nw.Int64)
    for rank, seed in enumerate(seeds):
        here = nw.col("repeat") == seed
        weight = nw.when(here).then(nw.lit(base**rank, dtype=nw.Int64)).otherwise(weight)
    rows = pairs.frame.filter(scored_pair()).with_columns(category=category, digit=digit * weight)
    items = rows.group_by("task", "category", *pairs.item_columns).agg(nw.col("digit").sum())
    counts = items.group_by("task", "category", "digit").agg(nw.len().alias("n")).collect()
    histories: Histories = {}
    for row in counts.rows(named=True):
        name = MISSING if is_none(row["category"]) else row["category"]
        history = _history(int(row["digit"]), len(seeds), base)
        kinds = histories.setdefault((row["task"], name), {})
        kinds[history] = kinds.get(history, 0) + int(row["n"])
    return histories


def _history(number: int, seeds: int, base: int) -> tuple[str, ...]:
    digits = [number // base**rank % base for rank in range(seeds)]
    return tuple("" if not digit else f"{(digit - 1) // 2}{(digit - 1) % 2}" for digit in digits)
