"""Answers of all models to all items as arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.errors import PairingError
from forgetmap.pairing import Side
from forgetmap.stats import ClusterDesign

Flags = NDArray[np.bool_]
NO_CATEGORY, TARGET = "no category", "target"
_KEY = ("task", "item", "repeat")
_FACTS = ("category", "cluster", "k", "logprob_gold")


@dataclass(frozen=True, slots=True)
class States:
    """Answers scored in every run; a column is an item (or one of its repeats).

    Attributes:
        right: run x column.
        category: category of each column.
        target: columns of tasks that the tuned model was trained for.
        design: dependence between columns.
        chance: probability of a right guess; 0 for open-ended items.
        loss: run x column, minus the log-probability of the right answer; None if not recorded.
        left_out: number of answers that some run lacks or that have no score.
    """

    right: Flags
    category: NDArray[np.str_]
    target: Flags
    design: ClusterDesign
    chance: NDArray[np.float64]
    loss: NDArray[np.float64] | None
    left_out: int

    @property
    def categories(self) -> list[str]:
        """Names of categories; those of the target last."""
        names = sorted(set(self.category.tolist()))
        return sorted(names, key=lambda name: bool(self.target[self.category == name].all()))


def gather_states(
    sides: Sequence[Side], *, correct_at: float, target: Collection[str] = ()
) -> States:
    """Match the answers of runs of the same suite by task, item and repeat.

    Args:
        sides: base, tuned, then the merges.
        correct_at: minimum score of a right answer.
        target: names of the tasks that tuned was trained for.
    """
    tables = [_rows(side) for side in sides]
    shared = [key for key in tables[0] if all(key in table for table in tables[1:])]
    kept = [key for key in shared if all(table[key]["score"] is not None for table in tables)]
    everything = set().union(*tables)
    if not kept:
        raise PairingError(
            "no item has a score in every run of the sweep",
            hint="check the runs with `forgetmap records show`.",
        )
    first = [tables[0][key] for key in kept]
    loss = [[table[key]["logprob_gold"] for key in kept] for table in tables]
    is_complete = all(value is not None for row in loss for value in row)
    return States(
        right=np.array([[table[key]["score"] >= correct_at for key in kept] for table in tables]),
        category=np.array(
            [row["category"] or _unnamed(key, target) for key, row in zip(kept, first, strict=True)]
        ),
        target=np.array([key[0] in target for key in kept], bool),
        design=_design(kept, first),
        chance=np.array([1 / row["k"] if (row["k"] or 0) > 1 else 0.0 for row in first]),
        loss=-np.array(loss, float) if is_complete else None,
        left_out=len(everything) - len(kept),
    )


def _rows(side: Side) -> dict[tuple[Any, ...], dict[str, Any]]:
    names = side.measured.scores.collect_schema().names()
    columns = [name for name in (*_KEY, "score", *_FACTS) if name in names]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in side.measured.scores.select(*columns).collect().rows(named=True):
        full = {name: _known(row.get(name)) for name in ("score", *_FACTS)}
        rows[row["task"], row["item"], row.get("repeat") or 0] = full
    return rows


def _known(value: Any) -> Any:
    """Return None for NaN, which pandas writes for null."""
    return None if value != value else value  # noqa: PLR0124


def _unnamed(key: tuple[Any, ...], target: Collection[str]) -> str:
    return TARGET if key[0] in target else NO_CATEGORY


def _design(keys: Sequence[tuple[Any, ...]], rows: Sequence[dict[str, Any]]) -> ClusterDesign:
    """Cluster repeats of an item, and items of a cluster."""
    names = [
        (key[0], "cluster", row["cluster"]) if row["cluster"] else (key[0], "item", key[1])
        for key, row in zip(keys, rows, strict=True)
    ]
    numbers = {name: index for index, name in enumerate(dict.fromkeys(names))}
    if len(numbers) == len(names):
        return ClusterDesign()
    return ClusterDesign(np.array([numbers[name] for name in names], np.int64))
