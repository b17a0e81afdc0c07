"""Everything that is counted about a group of items, gathered once; groups add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from forgetmap.comparison.cells import Cells, Label, label_columns
from forgetmap.comparison.choice_counts import TWO_OPTIONS, ByOptions
from forgetmap.comparison.clustered import ClusterSums, is_clustered, sum_clusters, total_clusters
from forgetmap.comparison.repeated import ItemSums, sum_items
from forgetmap.pairing import Pairs
from forgetmap.stats import balance_p

LOPSIDED_P, LOPSIDED_BY = 0.01, 0.05
"""Right answers are lopsided if chance hardly explains it and it is too much to be overlooked: the
share of them that would have to move to other positions. Real benchmarks are off by about .02."""


Need = Literal[
    "items", "options", "third_option", "choices", "balance", "choices_of_repeats", "repeats",
    "repeats_before",
]  # fmt: skip
"""What an estimator may need."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was counted about a group of items.

    Attributes:
        cells: the four cells, coverage, reasons, and counts by options.
        items: counts within items, where there are repeats.
        clusters: sums within clusters, where items are clustered.
    """

    cells: Cells
    items: ItemSums | None = None
    clusters: ClusterSums | None = None

    @property
    def options(self) -> ByOptions:
        """Scored pairs by number of options."""
        return self.cells.options

    def lacks(self, needs: Iterable[Need]) -> str | None:
        """Why the first of these needs is not met that is not."""
        unmet = (NEEDS[need] for need in needs if not NEEDS[need].is_met(self))
        return next((condition.reason for condition in unmet), None)

    @classmethod
    def total(cls, parts: Iterable[Evidence]) -> Evidence:
        """The evidence of several groups together."""
        parts = list(parts)
        items = [part.items for part in parts if part.items is not None]
        clusters = [part.clusters for part in parts if part.clusters is not None]
        return cls(
            cells=Cells.total(part.cells for part in parts),
            items=ItemSums.total(items) if items else None,
            clusters=total_clusters(clusters),
        )

    @property
    def lopsided(self) -> bool:
        """Whether the right answers stand at some positions far more often than at others."""
        if not self.cells.n:
            return False
        once = self.cells.items / self.cells.n
        for k in {k for k, _ in self.cells.positions}:
            counts = [once * n for (of, _), n in self.cells.positions.items() if of == k]
            counts += [0.0] * (int(k) - len(counts))
            n = sum(counts)
            moved = sum(max(count / n - 1 / len(counts), 0.0) for count in counts)
            if moved > LOPSIDED_BY and balance_p(counts) < LOPSIDED_P:
                return True
        return False

    @property
    def gold_positions_known(self) -> bool:
        """Whether it is recorded where the right answers stood."""
        closed = sum(c.n for k, c in self.options.items() if not math.isinf(k) and k > TWO_OPTIONS)
        return closed <= sum(n for (k, _), n in self.cells.positions.items() if k > TWO_OPTIONS)


class Condition(NamedTuple):
    """What the data must have: how that is seen, what to say where they have not, its name."""

    is_met: Callable[[Evidence], bool]
    reason: str
    label: str


def _unknown_choices(evidence: Evidence) -> dict[float, int]:
    """Number of options -> pairs whose wrong choice is not recorded; of items with options."""
    options = evidence.options.items()
    return {k: counts.unknown for k, counts in options if not math.isinf(k) and counts.n}


def _is_repeated(evidence: Evidence, after: int) -> bool:
    items = evidence.items
    return items is not None and items.repeated(after=after).weight.sum() > 1


NEEDS: dict[Need, Condition] = {
    "items": Condition(lambda evidence: evidence.cells.n > 0, "no scored pair", "items"),
    "options": Condition(
        lambda evidence: bool(_unknown_choices(evidence)),
        "open-ended items: nothing to match; see the raw rate",
        "options",
    ),
    "third_option": Condition(
        lambda evidence: any(k > TWO_OPTIONS for k in _unknown_choices(evidence)),
        "two options: the one wrong answer does not tell how luck moved; see the range",
        "three or more of them",
    ),
    "choices": Condition(
        lambda evidence: (
            not any(n for k, n in _unknown_choices(evidence).items() if k > TWO_OPTIONS)
        ),
        "the chosen options are not recorded on both sides",
        "the options chosen",
    ),
    "balance": Condition(
        lambda evidence: not evidence.lopsided,
        "right answers stand at some positions far more often than at others",
        "right answers at all positions alike",
    ),
    "choices_of_repeats": Condition(
        lambda evidence: evidence.items is None or not evidence.items.lacks_choices,
        "the chosen options are not recorded on both sides",
        "the options chosen",
    ),
    "repeats": Condition(
        lambda evidence: _is_repeated(evidence, after=2),
        "needs two or more answers per item from both models",
        "repeats of both models",
    ),
    "repeats_before": Condition(
        lambda evidence: _is_repeated(evidence, after=1),
        "needs two or more answers per item from the model before",
        "repeats of the model before",
    ),
}


@dataclass(frozen=True, slots=True)
class GroupedEvidence:
    """The evidence by task, category and tags; clusters apart, because labels may divide them."""

    groups: Mapping[Label, Evidence]
    clusters: Mapping[str, Mapping[Label, ClusterSums]]

    def tasks(self) -> dict[str, Evidence]:
        """By task."""
        return self._by(lambda label: [label.task], "task")

    def categories(self) -> dict[str, Evidence]:
        """By category; items without one are in none."""
        return self._by(lambda label: [label.category] if label.category else [], "category")

    def tags(self) -> dict[str, Evidence]:
        """By tag; an item counts under each of its tags."""
        return self._by(tags_of, "tags")

    def total(self) -> Evidence:
        """All of it."""
        evidence = Evidence.total(self.groups.values())
        return replace(evidence, clusters=total_clusters(self.clusters.get("task", {}).values()))

    def _by(self, names_of: Callable[[Label], Sequence[str]], level: str) -> dict[str, Evidence]:
        parts: dict[str, list[Evidence]] = {}
        for label, evidence in self.groups.items():
            for name in names_of(label):
                parts.setdefault(name, []).append(evidence)
        clusters: dict[str, list[ClusterSums]] = {}
        for label, sums in self.clusters.get(level, {}).items():
            for name in names_of(label):
                clusters.setdefault(name, []).append(sums)
        return {
            name: replace(evidence, clusters=total_clusters(clusters.get(name, [])))
            for name in sorted(parts)
            if (evidence := Evidence.total(parts[name])).cells.paired
        }


def gather_evidence(
    pairs: Pairs, cells: Mapping[Label, Cells], noise: Pairs | None = None
) -> GroupedEvidence:
    """Add to the counts what repeats and clusters tell, where there are any."""
    items = sum_items(pairs, noise) if pairs.repeats or noise is not None else {}
    groups = {label: Evidence(counts, items.get(label)) for label, counts in cells.items()}
    levels = ("task", *label_columns(pairs)) if is_clustered(pairs) else ()
    clusters = {level: sum_clusters(pairs, within=[level]) for level in levels}
    return GroupedEvidence(groups, clusters)


def tags_of(label: Label) -> list[str]:
    """The tags of a group, which are recorded as one text."""
    return sorted({tag.strip() for tag in (label.tags or "").split(";")} - {""})
