"""Counts of a group of items; groups can be added."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeVar

from forgetmap.comparison.cells import Cells, Label, label_columns, split_tags
from forgetmap.comparison.choice_counts import TWO_OPTIONS, ByOptions, OptionCounts, add_options
from forgetmap.comparison.clustered import (
    ClusterSums,
    cluster_columns,
    effect_across_tasks,
    has_cluster_names,
    is_clustered,
    refuse_split_items,
    score_columns,
    score_pairs,
    sum_levels,
    sum_tags,
    total_clusters,
)
from forgetmap.comparison.graded import GradedSums, sum_graded
from forgetmap.comparison.luck import Luck, TaskTrust, luck_of, trust_tasks, with_moved_habits
from forgetmap.comparison.repeated import (
    MIN_ANSWERS,
    ItemClusters,
    ItemSums,
    sum_item_clusters,
    sum_items,
)
from forgetmap.comparison.side_counts import SideCounts
from forgetmap.pairing import Pairs
from forgetmap.stats import LEVEL

Sides = tuple[Mapping[Label, SideCounts], Mapping[Label, SideCounts]]
"""Counts of the scored results before and after, paired or not."""
NO_SIDES: Sides = ({}, {})
Part = TypeVar("Part")

Need = Literal[
    "items", "possible_options", "options", "third_option", "choices", "balance",
    "choices_of_repeats", "repeats", "repeats_before",
]  # fmt: skip
"""Requirements of estimators on the data."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts about a group of items.

    Attributes:
        cells: the four cells, coverage, reasons, and counts by options.
        items: counts within items, if there are repeats.
        clusters: sums within clusters, if items are clustered.
        item_clusters: the same for items with repeated answers.
        luck: the counts by options again, by how luck is removed from them.
        lopsided: right answers of some task are at some positions far more often than at others.
        doubts: reasons why luck cannot be removed from some tasks.
        before: positions of right and chosen options before.
        graded: sums of graded scores, if scores are not just 0 and 1.
        level: confidence level of the intervals.
        across: design effect of clusters that span tasks, on the mean over tasks.
    """

    cells: Cells
    items: ItemSums | None = None
    clusters: ClusterSums | None = None
    item_clusters: ItemClusters | None = None
    luck: Mapping[Luck, ByOptions] = field(default_factory=dict)
    lopsided: bool = False
    doubts: tuple[str, ...] = ()
    before: SideCounts = field(default_factory=SideCounts)
    graded: GradedSums | None = None
    level: float = LEVEL
    across: float = 1.0

    @property
    def options(self) -> ByOptions:
        """Scored pairs by number of options."""
        return self.cells.options

    def count_repeated(self, estimator: str) -> int:
        """Count the items with enough answers from each model for an estimator by repeats."""
        if self.items is None:
            return 0
        repeated = self.items.repeated(**MIN_ANSWERS.get(estimator, {}))
        return min(int(repeated.weight.sum()), self.cells.items)

    def lacks(self, needs: Iterable[Need]) -> str | None:
        """Return the reason why a need is not met, for the first such need; None if all are met."""
        unmet = (NEEDS[need] for need in needs if not NEEDS[need].is_met(self))
        return next((condition.reason_for(self) for condition in unmet), None)

    @classmethod
    def total(cls, parts: Iterable[Evidence]) -> Evidence:
        """Add up the evidence of several groups."""
        parts = list(parts)
        items = [part.items for part in parts if part.items is not None]
        clusters = [part.clusters for part in parts if part.clusters is not None]
        graded = [part.graded for part in parts if part.graded is not None]
        return cls(
            cells=Cells.total(part.cells for part in parts),
            items=ItemSums.total(items) if items else None,
            clusters=total_clusters(clusters),
            luck={
                luck: add_options(part.luck.get(luck, {}) for part in parts)
                for luck in Luck
                if any(luck in part.luck for part in parts)
            },
            lopsided=any(part.lopsided for part in parts),
            doubts=tuple(dict.fromkeys(doubt for part in parts for doubt in part.doubts)),
            before=SideCounts.total(part.before for part in parts),
            graded=reduce(add, graded) if graded else None,
            level=parts[0].level if parts else LEVEL,
        )

    @property
    def cluster_count(self) -> int | None:
        """Number of clusters with scored pairs; None if items are not clustered."""
        if self.item_clusters is not None:
            return sum(self.item_clusters.counts.values())
        return None if self.clusters is None else self.clusters.count

    @property
    def gold_positions_known(self) -> bool:
        """Whether the positions of the right answers are recorded."""
        closed = sum(c.n for k, c in self.options.items() if not math.isinf(k) and k > TWO_OPTIONS)
        return closed <= sum(n for (k, _), n in self.before.gold.items() if k > TWO_OPTIONS)


class Condition(NamedTuple):
    """A requirement on the data: a test, the message if it is not met, and its name."""

    is_met: Callable[[Evidence], bool]
    reason: str
    label: str

    def reason_for(self, evidence: Evidence) -> str:
        """Return the message for these data."""
        return self.reason.format(doubt=next(iter(evidence.doubts), ""))


def _unknown_choices(evidence: Evidence) -> dict[float, int]:
    """Count pairs whose wrong choice is not recorded, by number of options."""
    options = evidence.options.items()
    return {k: counts.unknown for k, counts in options if not math.isinf(k) and counts.n}


def _is_repeated(evidence: Evidence, after: int) -> bool:
    items = evidence.items
    return items is not None and items.repeated(after=after).weight.sum() > 1


NEEDS: dict[Need, Condition] = {
    "items": Condition(lambda evidence: evidence.cells.n > 0, "no scored pair", "items"),
    "possible_options": Condition(
        lambda evidence: not evidence.doubts, "{doubt}", "a valid number of options"
    ),
    "options": Condition(
        lambda evidence: bool(_unknown_choices(evidence)),
        "open-ended items have no options to match; see the raw rate",
        "multiple-choice items",
    ),
    "third_option": Condition(
        lambda evidence: any(k > TWO_OPTIONS for k in _unknown_choices(evidence)),
        "with two options, the wrong answer does not show how luck changed; see the range",
        "three or more options",
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
        "right answers are at some positions far more often than at others",
        "right answers spread evenly over the positions",
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
    """Evidence by task, category and tags; clusters are separate, as groups may divide them."""

    groups: Mapping[Label, Evidence]
    clusters: Mapping[str, Mapping[str, ClusterSums]]
    item_clusters: Mapping[str, Mapping[str, ItemClusters]] = field(default_factory=dict)
    across: float = 1.0
    """As in `Evidence`."""

    def tasks(self) -> dict[str, Evidence]:
        """Return the evidence by task."""
        tasks = self._by("task")
        return {name: replace(task, across=self.across) for name, task in tasks.items()}

    def categories(self) -> dict[str, Evidence]:
        """Return the evidence by category; items without a category are left out."""
        return self._by("category")

    def tags(self) -> dict[str, Evidence]:
        """Return the evidence by tag; an item counts under each of its tags."""
        return self._by("tags")

    def total(self) -> Evidence:
        """Return the evidence of all items."""
        evidence = Evidence.total(self.groups.values())
        return replace(
            evidence,
            clusters=self.clusters.get("total", {}).get(""),
            item_clusters=self.item_clusters.get("total", {}).get(""),
        )

    def _by(self, level: str) -> dict[str, Evidence]:
        parts = _by_name(self.groups, level)
        clusters: dict[str, list[ClusterSums]] = {}
        for value, sums in self.clusters.get(level, {}).items():
            for name in split_tags(value) if level == "tags" else [value]:
                clusters.setdefault(name, []).append(sums)
        return {
            name: replace(
                evidence,
                clusters=total_clusters(clusters.get(name, [])),
                item_clusters=self.item_clusters.get(level, {}).get(name),
            )
            for name in sorted(parts)
            if (evidence := Evidence.total(parts[name])).cells.paired
        }


def gather_evidence(
    pairs: Pairs,
    cells: Mapping[Label, Cells],
    noise: Pairs | None = None,
    *,
    sides: Sides = NO_SIDES,
    level: float = LEVEL,
    graded: bool = False,
    shared_content: bool = False,
) -> GroupedEvidence:
    """Add repeats, clusters, positions and graded scores to the counts.

    Args:
        pairs: both sides.
        cells: counts of the pairs.
        noise: the model before, paired with a repeat of it.
        sides: positions of right and chosen options on each side.
        graded: some scores are neither 0 nor 1.
        level: confidence level of the intervals.
        shared_content: some items have the same content; they are one cluster.
    """
    if has_cluster_names(pairs):
        refuse_split_items(pairs)
    items, item_clusters = _count_repeats(pairs, noise, by_content=shared_content)
    trust = trust_tasks(by_task_total(sides[0]), by_task_total(sides[1]))
    lacking = tasks_without_choices(cells)
    trust = with_moved_habits(trust, pairs, _tasks_with_habits(cells, trust, lacking))
    positions = _on_labels(sides[0], cells)
    falls = sum_graded(pairs) if graded else {}
    cells = with_lone_results(cells)
    groups = {}
    for label, counts in cells.items():
        known = trust.get(label.task, TaskTrust())
        groups[label] = Evidence(
            counts,
            items.get(label),
            luck=_by_luck(counts.options, known, knows_choices=label.task not in lacking),
            lopsided=known.lopsided,
            doubts=(known.doubt,) if known.doubt else (),
            before=positions.get(label, SideCounts()),
            graded=falls.get(label),
            level=level,
        )
    return GroupedEvidence(
        groups,
        _clusters(pairs, trust, lacking, across=shared_content, graded=graded),
        item_clusters,
        _across(pairs, cells, by_content=shared_content),
    )


def _tasks_with_habits(
    cells: Mapping[Label, Cells], trust: Mapping[str, TaskTrust], lacking: set[str]
) -> set[str]:
    """Return the tasks whose lower end depends on guessing habits."""
    return {
        label.task
        for label, counts in cells.items()
        for k in counts.options
        if luck_of(k, trust.get(label.task, TaskTrust()), knows_choices=label.task not in lacking)
        is not Luck.CHOICES
    }


def _across(pairs: Pairs, cells: Mapping[Label, Cells], *, by_content: bool) -> float:
    tasks = {label.task for label, part in cells.items() if part.n}
    if len(tasks) < 2 or not (by_content or has_cluster_names(pairs)):
        return 1.0
    return effect_across_tasks(pairs, by_content=by_content)


def by_task_total(side: Mapping[Label, SideCounts]) -> dict[str, SideCounts]:
    """Add up the results of a side by task."""
    parts: dict[str, list[SideCounts]] = {}
    for label, counts in side.items():
        parts.setdefault(label.task, []).append(counts)
    return {task: SideCounts.total(group) for task, group in parts.items()}


def _on_labels(
    side: Mapping[Label, SideCounts], cells: Mapping[Label, Cells]
) -> dict[Label, SideCounts]:
    """Return the counts of a side by the labels of the pairs.

    Labels of one side may differ, because categories may come from the other side or from a table;
    a task with one label gets all counts. Results without a counterpart are counted under the task
    alone, which is not a label.
    """
    tasks = by_task_total(side)
    return {
        label: tasks.get(task, SideCounts()) if len(labels) == 1 else side.get(label, SideCounts())
        for task, labels in _labels_with_pairs(cells).items()
        for label in labels
    }


def _labels_with_pairs(cells: Mapping[Label, Cells]) -> dict[str, list[Label]]:
    """Return the labels of each task that have pairs."""
    labels: dict[str, list[Label]] = {}
    for label, counts in cells.items():
        if counts.paired:
            labels.setdefault(label.task, []).append(label)
    return labels


LONE_COUNTS = ("scored_before", "right_before", "scored_after", "right_after")


def with_lone_results(cells: Mapping[Label, Cells]) -> dict[Label, Cells]:
    """Move results without a counterpart to the label of their task, if it has only one.

    The join does not know their category or tags. If a task has several labels, they stay separate,
    and the coverage of a category counts only pairs.
    """
    labelled = _labels_with_pairs(cells)
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


def tasks_without_choices(cells: Mapping[Label, Cells]) -> set[str]:
    """Return the tasks with an unrecorded wrong choice among three or more options."""
    return {
        label.task
        for label, counts in cells.items()
        for k, part in counts.options.items()
        if TWO_OPTIONS < k < math.inf and part.unknown
    }


def _by_luck(options: ByOptions, trust: TaskTrust, *, knows_choices: bool) -> dict[Luck, ByOptions]:
    parts: dict[Luck, dict[float, OptionCounts]] = {}
    for k, counts in options.items():
        parts.setdefault(luck_of(k, trust, knows_choices=knows_choices), {})[k] = counts
    return dict(parts)


def _clusters(
    pairs: Pairs,
    trust: Mapping[str, TaskTrust],
    lacking: set[str],
    *,
    across: bool,
    graded: bool,
) -> dict[str, Mapping[str, ClusterSums]]:
    """Sum clusters of tasks, categories, tags and all items, if there are any."""
    if not (is_clustered(pairs) or across):
        return {}
    scores = score_columns(pairs, trust, lacking, graded=graded)
    scored = score_pairs(pairs, scores, by_content=across)
    # Items of one cluster may have different lists of tags; clusters of repeats share theirs.
    by_tag_apart = across or has_cluster_names(pairs)
    levels = [*_levels(pairs), "task"]
    sums = sum_levels(scored, [each for each in levels if each != "tags" or not by_tag_apart])
    if "tags" in levels and by_tag_apart:
        sums["tags"] = sum_tags(pairs, scored)
    return sums


def _count_repeats(
    pairs: Pairs, noise: Pairs | None, *, by_content: bool
) -> tuple[dict[Label, ItemSums], dict[str, Mapping[str, ItemClusters]]]:
    """Count repeated items by label, and their clusters by level; no clusters of single items."""
    if not (pairs.repeats or noise is not None):
        return {}, {}
    if not (has_cluster_names(pairs) or by_content):
        return sum_items(pairs, noise), {}
    cluster = cluster_columns(pairs, by_content=by_content)["cluster"]
    by_label = sum_item_clusters(pairs, noise, cluster)
    items = {label: ItemSums.total(clusters.values()) for label, clusters in by_label.items()}
    levels = {
        level: {name: ItemClusters.total(own) for name, own in _by_name(by_label, level).items()}
        for level in ("total", *Label._fields)
    }
    return items, dict(levels)


def _levels(pairs: Pairs) -> list[str]:
    return ["total", *label_columns(pairs)]


def _by_name(parts: Mapping[Label, Part], level: str) -> dict[str, list[Part]]:
    """Return the parts of each group at a level: `task`, `category`, `tags` or `total`."""
    groups: dict[str, list[Part]] = {}
    for label, part in parts.items():
        for name in _names_at(level, label):
            groups.setdefault(name, []).append(part)
    return groups


def _names_at(level: str, label: Label) -> list[str]:
    """Return the groups of a label: none without a category, one for each of its tags."""
    if level == "total":
        return [""]
    if level == "task":
        return [label.task]
    if level == "tags":
        return tags_of(label)
    return [label.category] if label.category else []


def tags_of(label: Label) -> list[str]:
    """Return the tags of a label, which are recorded as one text."""
    return split_tags(label.tags or "")
