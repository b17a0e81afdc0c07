"""Evidence of groups of items: counts, kinds of items, and sums of graded scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from forgetmap.comparison.cells import Cells
from forgetmap.comparison.graded import ChangeSums
from forgetmap.comparison.kinds import Kinds, names_at
from forgetmap.comparison.labels import Label


@dataclass(frozen=True)
class Evidence:
    """What is known about a group of items.

    Attributes:
        cells: the four cells, coverage and reasons.
        kinds: kinds of items with their answers.
        graded: sums of the decrease of graded scores; None if all are 0 or 1.
        probability: sums of the decrease of the probability of the right answer.
        macro: every task has the same weight.
    """

    cells: Cells
    kinds: Kinds
    graded: ChangeSums | None = None
    probability: ChangeSums | None = None
    macro: bool = False


@dataclass(frozen=True)
class GroupedEvidence:
    """Evidence of all items, to be divided by task, category and tag."""

    cells: Mapping[Label, Cells]
    kinds: Kinds
    graded: Mapping[Label, ChangeSums]
    probability: Mapping[Label, ChangeSums]

    def total(self, *, macro: bool = False) -> Evidence:
        """Return the evidence of all items, or of the mean over tasks."""
        return Evidence(
            Cells.total(self.cells.values()),
            self.kinds,
            _added(self.graded.values()),
            _added(self.probability.values()),
            macro,
        )

    def by(self, level: str) -> dict[str, Evidence]:
        """Return the evidence of each `task`, `category` or `tags`, sorted by name."""
        labels: dict[str, list[Label]] = {}
        for label in self.cells:
            for name in names_at(level, label):
                labels.setdefault(name, []).append(label)
        kinds = self.kinds.by(level)
        return {
            name: Evidence(
                cells,
                kinds.get(name, Kinds.empty()),
                _added(self.graded[label] for label in labels[name] if label in self.graded),
                _added(
                    self.probability[label] for label in labels[name] if label in self.probability
                ),
            )
            for name in sorted(labels)
            if (cells := Cells.total(self.cells[label] for label in labels[name])).paired
        }


def _added(parts: Iterable[ChangeSums]) -> ChangeSums | None:
    sums = [*parts]
    return reduce(add, sums) if sums else None


LONE_COUNTS = (
    "scored_before", "right_before", "items_before", "scored_after", "right_after", "items_after",
)  # fmt: skip


def with_lone_results(cells: Mapping[Label, Cells]) -> dict[Label, Cells]:
    """Move results without a counterpart to the label of their task, if it has only one.

    The join does not know their category or tags. If a task has several labels, they stay separate,
    and the coverage of a category counts only pairs.
    """
    labelled: dict[str, list[Label]] = {}
    for label, counts in cells.items():
        if counts.paired:
            labelled.setdefault(label.task, []).append(label)
    moved = dict(cells)
    for label, counts in cells.items():
        homes = labelled.get(label.task, [])
        if counts.paired or len(homes) != 1:
            continue
        home = moved[homes[0]]
        added: dict[str, Any] = {
            name: getattr(home, name) + getattr(counts, name) for name in LONE_COUNTS
        }
        moved[homes[0]] = replace(home, **added)
        none: dict[str, Any] = dict.fromkeys(LONE_COUNTS, 0)
        moved[label] = replace(counts, **none)
    return moved
