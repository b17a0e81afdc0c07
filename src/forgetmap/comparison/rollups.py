"""The published roll-up: per task and seed, clipped; over the tasks of a category; over seeds.

For comparison with published numbers only. Clipping before averaging biases upwards (at k = 4 and
50 items with nothing lost the clipped mean is .026), and a task of 100 items counts like one of
2,000; the default roll-up does neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import narwhals as nw

from forgetmap.comparison.cells import CELL_NAMES, Cells, is_none, label_columns
from forgetmap.comparison.choice_counts import count_options, options_from, options_of
from forgetmap.comparison.from_counts import average_options
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


@dataclass(frozen=True, slots=True)
class SeedRow:
    """The counts of one task under one seed, with the k and the category it is given."""

    task: str
    seed: int
    cells: Cells
    k: float
    category: str


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Mean over seeds and sample standard deviation between them; None with a single seed."""

    name: str
    mean: dict[str, float]
    deviation: dict[str, float | None]


def count_seeds(pairs: Pairs) -> list[SeedRow]:
    """The counts of every task and repeat; k and category as the data or a table say."""
    labels = label_columns(pairs)
    category = labels.get("category", nw.lit(None, dtype=nw.String))
    k = options_of(pairs.columns)
    rows = pairs.frame.filter(scored_pair()).select(
        "task", "repeat", *(nw.col(f"state_{side}") for side in SIDES), category=category, k=k
    )
    by = ("task", "category", "repeat", "state_before", "state_after", "k")
    counts = rows.group_by(*by).agg(nw.len().alias("n")).collect()
    parts: dict[tuple[str, str, int], list[Cells]] = {}
    for row in counts.rows(named=True):
        name = MISSING if is_none(row["category"]) else row["category"]
        cell = CELL_NAMES[int(row["state_before"]), int(row["state_after"])]
        options = {options_from(row["k"]): count_options(cell, None, int(row["n"]))}
        counted = Cells(**{cell: int(row["n"])}, options=options)  # type: ignore[arg-type]
        parts.setdefault((row["task"], name, int(row["repeat"])), []).append(counted)
    return [
        SeedRow(task, seed, cells, average_options(cells.options), category)
        for (task, category, seed), cells in ((key, Cells.total(p)) for key, p in parts.items())
    ]


def row_values(row: SeedRow) -> dict[str, float]:
    """Chance-adjusted, clipped values of one task and seed, as published."""
    cells = row.cells
    before, after = (cells.n11 + cells.n10) / cells.n, (cells.n11 + cells.n01) / cells.n
    adjusted = published(before, after, cells.n10 / cells.n, cells.n01 / cells.n, row.k)
    values = {name: float(getattr(adjusted, name)) for name in MEASURES[:4]}
    return values | {"acc_before": before, "acc_after": after}


def roll_up(rows: Sequence[SeedRow]) -> list[RolledUp]:
    """Categories by name, the total last; tasks without items or marked ignored do not enter."""
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
