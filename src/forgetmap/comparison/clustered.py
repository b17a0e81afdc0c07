"""Design effects of dependent items on intervals.

Repeats of one item are a cluster, as are items that share a `cluster`, also across tasks, and, in
totals, items with the same content. Scores are summed within clusters; clusters with the same sums
are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np

from forgetmap.comparison.cells import DIGITS, is_none, label_columns, split_tags
from forgetmap.comparison.choice_counts import (
    CHOICE_COLUMNS,
    TWO_OPTIONS,
    ChoiceRelation,
    knows_answers,
    options_of,
    relation,
)
from forgetmap.comparison.graded import graded_fall
from forgetmap.comparison.luck import TaskTrust
from forgetmap.errors import PairingError
from forgetmap.pairing import (
    RIGHT,
    SIDES,
    WRONG,
    Pairs,
    Side,
    is_transition,
    scored_pair,
    side_value,
)
from forgetmap.records import CONTENT_HASHES, Frame
from forgetmap.stats import ClusterVariance, cluster_variance

DIRECTIONS = ("lost", "gained")
_STEPS = {"matched": 1, "low": 2, "high": 2}
"""Scores that are computed from scores of earlier steps; all others are computed from facts."""
SIZE, RIGHT_BEFORE, FALL = "size", "right_before", "fall"
"""Scored pairs of a cluster, pairs right before, and the decrease of graded scores."""


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Size and score sums of clusters -> number of such clusters. Groups can be added."""

    names: tuple[str, ...]
    counts: dict[tuple[float, ...], int] = field(default_factory=dict)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        merged = dict(self.counts)
        for sums, count in other.counts.items():
            merged[sums] = merged.get(sums, 0) + count
        return ClusterSums(self.names, merged)

    @property
    def count(self) -> int:
        """Clusters with scored pairs."""
        size = self.names.index(SIZE)
        return sum(count for sums, count in self.counts.items() if sums[size])

    def variance(
        self,
        scores: Sequence[str],
        squares: float,
        lost: Sequence[str] = (),
        less: Sequence[str] = (),
        size: str = SIZE,
    ) -> ClusterVariance | None:
        """CR2 variance of the mean of a score; None if every cluster has one member.

        Args:
            scores: names of the scores that are added up.
            squares: sum of the squared scores over items.
            lost: names of counts of losses; a cluster with a loss is affected.
            less: names of scores that are subtracted.
            size: name of the count that the mean divides by.
        """
        n = self.names.index(size)
        if all(sums[n] <= 1 for sums in self.counts):
            return None
        places = [self.names.index(name) for name in scores]
        losses = [self.names.index(name) for name in lost]
        off = [self.names.index(name) for name in less]
        alike: Counter[tuple[float, float, bool]] = Counter()
        for sums, count in self.counts.items():
            if not sums[n]:
                continue
            affected = any(sums[at] > 0 for at in losses)
            total = sum(sums[at] for at in places) - sum(sums[at] for at in off)
            alike[sums[n], total, affected] += count
        # Sorted by these columns, so that float sums do not depend on the other scores.
        rows = sorted(alike)
        times = [alike[row] for row in rows]
        sizes, totals, hit = np.repeat(np.array(rows, float), times, axis=0).T
        return cluster_variance(
            sizes, totals, squares=squares, affected=int(hit.sum()) if lost else None
        )


def is_clustered(pairs: Pairs) -> bool:
    """Return whether items are clustered within tasks."""
    return pairs.repeats or has_cluster_names(pairs)


def has_cluster_names(pairs: Pairs) -> bool:
    """Return whether a side names clusters of items."""
    return any(f"cluster_{side}" in pairs.columns for side in SIDES)


def has_shared_content(side: Side) -> bool:
    """Return whether items of a side share a question; counted without the join."""
    scores = side.measured.scores
    names = scores.collect_schema().names()
    if "question_hash" not in names:
        return False
    first = scores.filter(nw.col("repeat") == 0) if "repeat" in names else scores
    questions = first.filter(~nw.col("question_hash").is_null()).select("question_hash")
    counts = questions.select(
        nw.len().alias("items"), nw.col("question_hash").n_unique().alias("different")
    ).collect()
    return int(counts["different"][0] or 0) < int(counts["items"][0] or 0)


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Scored pairs, one row each: task, labels, cluster and the parts of every score.

    Attributes:
        frame: the rows.
        cluster: columns that identify a cluster, across tasks.
        scores: the columns of the scores.
        by_content: items with the same content are a cluster.
    """

    frame: Frame
    cluster: tuple[str, ...]
    scores: tuple[str, ...]
    by_content: bool


def score_pairs(pairs: Pairs, scores: Mapping[str, nw.Expr], *, by_content: bool) -> ScoredPairs:
    """Compute the scores of every scored pair, to be summed at all levels.

    Args:
        pairs: both sides.
        scores: from `score_columns`.
        by_content: items with the same content are a cluster.
    """
    cluster = cluster_columns(pairs, by_content=by_content)
    kept = {"task": nw.col("task"), **label_columns(pairs), **cluster}
    falls = {"_fall": graded_fall()} if FALL in scores else {}
    frame = (
        pairs.frame.filter(scored_pair())
        .select(**kept, **_facts(pairs), **falls)
        .with_columns(_c=_SPREAD, _luck=_LUCK)
    )
    # In steps: a nested expression would be evaluated many times.
    steps: dict[int, dict[str, nw.Expr]] = {}
    for name, score in scores.items():
        steps.setdefault(_STEPS.get(name.partition("_")[0], 0), {})[name] = score
    for step in sorted(steps):
        frame = frame.with_columns(**steps[step])
    return ScoredPairs(frame.select(*kept, *scores), tuple(cluster), tuple(scores), by_content)


def sum_levels(scored: ScoredPairs, levels: Iterable[str]) -> dict[str, Mapping[str, ClusterSums]]:
    """Sum scores of clusters at several levels, in one query if no cluster is in two groups.

    Args:
        scored: from `score_pairs`.
        levels: some of `task`, `category`, `tags` and `total`.
    """
    # Clusters by content differ between a task and the total.
    apart = {"task"} if scored.by_content else set()
    named = [level for level in levels if level not in apart | {"total"}]
    texts = {
        f"_{level}_name": nw.coalesce(nw.col(level).cast(nw.String), nw.lit("")) for level in named
    }
    ends = [
        end
        for level in named
        for end in (
            nw.col(f"_{level}_name").min().alias(f"_{level}_first"),
            nw.col(f"_{level}_name").max().alias(f"_{level}_last"),
        )
    ]
    by = [f"_{level}_{end}" for level in named for end in ("first", "last")]
    frame = scored.frame.with_columns(**texts) if texts else scored.frame
    rows = _count_alike(replace(scored, frame=frame), by, ends)
    for level in named:
        if any(row[f"_{level}_first"] != row[f"_{level}_last"] for row in rows):
            apart.add(level)
    return {
        level: sum_clusters(scored, level)
        if level in apart
        else _by_group(rows, None if level == "total" else f"_{level}_first", scored.scores)
        for level in levels
    }


def sum_clusters(scored: ScoredPairs, level: str) -> dict[str, ClusterSums]:
    """Sum the scores of every cluster of scored pairs.

    Args:
        scored: from `score_pairs`.
        level: `task`, `category`, `tags` or `total`; a cluster that is divided between groups is a
            cluster in each.
    """
    by = () if level == "total" else (level,)
    rows = _count_alike(replace(scored, cluster=(*by, *scored.cluster)), by)
    return _by_group(rows, None if level == "total" else level, scored.scores)


def sum_tags(pairs: Pairs, scored: ScoredPairs) -> dict[str, ClusterSums]:
    """Sum scores of clusters by tag; items of a cluster may have different lists of tags."""
    rows = pairs.frame.filter(scored_pair()).select(tags=label_columns(pairs)["tags"])
    lists = rows.filter(~nw.col("tags").is_null()).unique().collect()["tags"]
    by_tag: dict[str, list[str]] = {}
    for text in lists.to_list():
        for tag in split_tags(text):
            by_tag.setdefault(tag, []).append(text)
    return {
        tag: sum_clusters(
            replace(scored, frame=scored.frame.filter(nw.col("tags").is_in(texts))), "total"
        )[""]
        for tag, texts in by_tag.items()
    }


def _count_alike(
    scored: ScoredPairs, by: Sequence[str], more: Iterable[nw.Expr] = ()
) -> list[dict[str, Any]]:
    """Count the clusters of each group that have the same size and sums.

    Args:
        scored: pairs with their clusters.
        by: columns of the group.
        more: further aggregates of a cluster.
    """
    per_cluster = scored.frame.group_by(*scored.cluster).agg(
        nw.len().alias(SIZE), *(nw.col(name).sum() for name in scored.scores), *more
    )
    rounded = per_cluster.with_columns(*(nw.col(name).round(DIGITS) for name in scored.scores))
    counts = rounded.group_by(*by, SIZE, *scored.scores).agg(nw.len().alias("clusters")).collect()
    return list(counts.rows(named=True))


def _by_group(
    rows: Iterable[Mapping[str, Any]], column: str | None, scores: Iterable[str]
) -> dict[str, ClusterSums]:
    """Return counted clusters by the group in a column; all in one group without a column."""
    names = (SIZE, *scores)
    groups: dict[str, dict[tuple[float, ...], int]] = {}
    for row in rows:
        name = "" if column is None or is_none(row[column]) else str(row[column])
        sums = tuple(float(row[part]) for part in names)
        group = groups.setdefault(name, {})
        group[sums] = group.get(sums, 0) + int(row["clusters"])
    return {name: ClusterSums(names, group) for name, group in groups.items()}


def effect_across_tasks(pairs: Pairs, *, by_content: bool) -> float:
    """Return the design effect of clusters that span tasks, on the mean over tasks.

    u_g = sum over tasks of (flips - rate * items) / items of the task, squared and summed over
    clusters, relative to the same sum with each part of a cluster within a task as its own cluster:
    those already widen the interval of their task.

    Args:
        pairs: both sides.
        by_content: items with the same content are a cluster.
    """
    cluster = cluster_columns(pairs, by_content=by_content)
    lost = nw.when(is_transition(RIGHT, WRONG)).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    scored = pairs.frame.filter(scored_pair()).select("task", **cluster, _lost=lost)
    # A join, because an expression with one branch for each of a thousand tasks is too deep.
    tasks = scored.group_by("task").agg(nw.len().alias("_n"), nw.col("_lost").mean().alias("_rate"))
    sums = (
        scored.join(tasks, on="task")
        .with_columns(_u=(nw.col("_lost") - nw.col("_rate")) / nw.col("_n"))
        .group_by("task", *cluster)
        .agg(nw.col("_u").sum())
        .with_columns(_part=nw.col("_u") ** 2)
        .group_by(*cluster)
        .agg(nw.col("_u", "_part").sum())
        .with_columns(_cluster=nw.col("_u") ** 2)
        .select(nw.col("_cluster", "_part").sum())
        .collect()
    )
    whole, parts = float(sums["_cluster"][0]), float(sums["_part"][0])
    # Libraries add floats in different orders.
    return max(1.0, round(whole / parts, DIGITS)) if parts > 0 else 1.0


def refuse_split_items(pairs: Pairs) -> None:
    """Refuse items that are in two clusters: their intervals would mean nothing.

    Raises:
        PairingError: an item is in two clusters.
    """
    names = [f"cluster_{side}" for side in SIDES if f"cluster_{side}" in pairs.columns]
    item = ("task", *pairs.item_columns)
    both = nw.concat([
        pairs.frame.filter(scored_pair()).select(*item, cluster=nw.col(name)) for name in names
    ])  # fmt: skip
    ends = both.group_by(*item).agg(
        nw.col("cluster").min().alias("first"), nw.col("cluster").max().alias("last")
    )
    split = ends.filter(nw.col("first") != nw.col("last")).select("task", "first", "last")
    rows = split.head(1).collect().rows(named=True)
    if rows:
        row = rows[0]
        raise PairingError(
            f"an item of task {row['task']!r} is in two clusters, {row['first']!r} and "
            f"{row['last']!r}",
            hint="give all results of an item the same cluster, on both sides.",
        )


def total_clusters(parts: Iterable[ClusterSums]) -> ClusterSums | None:
    """Add up the clusters of several groups."""
    total: ClusterSums | None = None
    for part in parts:
        total = part if total is None else total + part
    return total


def cluster_columns(pairs: Pairs, *, by_content: bool) -> dict[str, nw.Expr]:
    """Return the cluster of a pair: as recorded, else its content, else the item itself."""
    recorded = has_cluster_names(pairs)
    if not recorded and not by_content:
        return {"_task": nw.col("task"), **{name: nw.col(name) for name in pairs.item_columns}}
    own = _text("item", "task", *pairs.item_columns)
    hashes = [
        column
        for name in CONTENT_HASHES
        for column in (f"{name}_before", name)
        if column in pairs.columns
    ]
    if by_content and hashes:
        content = _text("content", *hashes)
        own = nw.when(nw.col(hashes[0]).is_null()).then(own).otherwise(content)
    if not recorded:
        return {"cluster": own}
    name = side_value("cluster", pairs.columns)
    cluster_name = nw.concat_str(nw.lit("cluster "), name)
    return {"cluster": nw.when(name.is_null()).then(own).otherwise(cluster_name)}


def _text(kind: str, *names: str) -> nw.Expr:
    """Join several columns into one text."""
    parts = [nw.coalesce(nw.col(name).cast(nw.String), nw.lit("")) for name in names]
    return nw.concat_str(nw.lit(kind), *parts, separator="\x1f")


_K, _C = nw.col("_k"), nw.col("_c")
_SPREAD = nw.when(_K.is_null()).then(nw.lit(1.0)).otherwise(_K / (_K - 1))
_LUCK = nw.when(_K.is_null()).then(nw.lit(0.0)).otherwise(_K / (_K - 1) ** 2)
"""k / (k - 1), and k / (k - 1)^2: the weights of flips and of lucky guesses."""


def _facts(pairs: Pairs) -> dict[str, nw.Expr]:
    """Return the columns that scores are computed from."""
    facts = {
        "_k": options_of(pairs.columns).cast(nw.Float64),
        "_right": nw.col("state_before") == RIGHT,
        "_lost": is_transition(RIGHT, WRONG),
        "_gained": is_transition(WRONG, RIGHT),
        "_both_wrong": is_transition(WRONG, WRONG),
        "_how": nw.lit(int(ChoiceRelation.UNKNOWN), dtype=nw.Int8),
    }
    if knows_answers(pairs.columns):
        facts["_how"] = nw.coalesce(
            relation(pairs.columns), nw.lit(int(ChoiceRelation.OTHER), dtype=nw.Int8)
        )
    return facts


def score_columns(
    pairs: Pairs, trust: Mapping[str, TaskTrust], lacking: Iterable[str], *, graded: bool = False
) -> dict[str, nw.Expr]:
    """Return the parts of every score of a pair, for forgetting and for backward transfer.

    Some use the names of earlier ones (`_STEPS`). `wrong_` and `none_` count flips to and from a
    wrong answer and no answer; `answering_` is a score, and so is the knowledge part of an
    estimator under its name.

    Args:
        pairs: both sides.
        trust: trusted assumptions of each task.
        lacking: tasks whose choices are not all recorded.
        graded: some scores are neither 0 nor 1.
    """
    uneven = sorted({task for task, known in trust.items() if known.lopsided} | set(lacking))
    right = nw.when(nw.col("_right")).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    scores: dict[str, nw.Expr] = {RIGHT_BEFORE: right}
    if graded:
        scores[FALL] = nw.col("_fall")
    for name, other in (DIRECTIONS, DIRECTIONS[::-1]):
        scores |= _part_scores(name, has_choices=pairs.columns >= CHOICE_COLUMNS)
        redrawn, repeated, by_choices = (
            nw.col(f"{score}_{name}") for score in ("latent", "upper", "matched")
        )
        moved = _moved(trust, name, other, redrawn)
        if f"matched_{name}" not in scores:
            scores |= {f"low_{name}": moved, f"high_{name}": repeated}
            continue
        plain = _K.is_null() | (_K > TWO_OPTIONS)
        if uneven:
            plain = plain & ~nw.col("task").is_in(uneven)
        scores[f"low_{name}"] = nw.when(plain).then(by_choices).otherwise(moved)
        scores[f"high_{name}"] = nw.when(plain).then(by_choices).otherwise(repeated)
    return scores


def _part_scores(name: str, *, has_choices: bool) -> dict[str, nw.Expr]:
    """Return the scores that need no assumption about guesses."""
    zero, one, how = nw.lit(0.0), nw.lit(1.0), nw.col("_how")
    none = ChoiceRelation.TO_NONE if name == "lost" else ChoiceRelation.FROM_NONE
    to_none = how == int(none)
    moved, both_wrong = nw.col(f"_{name}"), nw.col("_both_wrong")
    answered = ~how.is_in([
        int(ChoiceRelation.TO_NONE), int(ChoiceRelation.FROM_NONE), int(ChoiceRelation.NONE_BOTH)
    ])  # fmt: skip
    wrong_twice = both_wrong & answered
    latent = (
        nw.when(moved & ~to_none).then(_C).when(wrong_twice).then(-nw.col("_luck")).otherwise(zero)
    )
    no_longer = nw.when(both_wrong & to_none & ~_K.is_null()).then(-1 / (_K - 1)).otherwise(zero)
    scores = {
        f"wrong_{name}": nw.when(moved & ~to_none).then(one).otherwise(zero),
        f"none_{name}": nw.when(moved & to_none).then(one).otherwise(zero),
        f"answering_{name}": nw.when(moved & to_none).then(one).otherwise(no_longer),
        f"upper_{name}": nw.when(moved & ~to_none).then(_C).otherwise(zero),
        f"latent_{name}": latent,
    }
    if has_choices:
        many = (
            nw.when(moved & ~to_none).then(_C)
            .when(how == int(ChoiceRelation.DIFFERENT)).then(-_C / (_K - 2))
            .otherwise(zero)
        )  # fmt: skip
        few = _K.is_null() | (_K == TWO_OPTIONS)
        scores[f"matched_{name}"] = nw.when(few).then(nw.col(f"latent_{name}")).otherwise(many)
    return scores


def _moved(trust: Mapping[str, TaskTrust], name: str, other: str, redrawn: nw.Expr) -> nw.Expr:
    """Return the lower end if guesses are redrawn, or if luck loses as many answers as it gains."""
    how, zero = nw.col("_how"), nw.lit(0.0)
    to_none, from_none = (ChoiceRelation.TO_NONE, ChoiceRelation.FROM_NONE)
    none, none_other = (to_none, from_none) if name == "lost" else (from_none, to_none)
    turned = (
        nw.when(nw.col(f"_{name}") & (how != int(none))).then(_C)
        .when(nw.col(f"_{other}") & (how != int(none_other))).then(-_C)
        .otherwise(zero)
    )  # fmt: skip
    score = redrawn
    for task, known in sorted(trust.items()):
        for k in sorted(known.moved):
            here = (nw.col("task") == task) & (k == _K)
            score = nw.when(here).then(turned).otherwise(score)
    return score
