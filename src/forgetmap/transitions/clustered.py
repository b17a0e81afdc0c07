"""Items that stand or fall together: how much wider that makes an interval.

Repeats of one item are a cluster, and so are items that share a `cluster`. Scores are summed within
clusters; clusters with the same sums are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np

from forgetmap.pairing.pair import RIGHT, SIDES, WRONG, Pairs, either, scored_pair, went
from forgetmap.stats.clusters import ClusterVariance, cluster_variance
from forgetmap.transitions.cells import Label, label_columns, label_of
from forgetmap.transitions.options import CHOICES, PAIR, Relation, options_of, relation

DIGITS = 9
"""Sums are equal or differ by much more than this."""


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Size and score sums of clusters -> how many clusters have them. Groups add up."""

    names: tuple[str, ...]
    counts: dict[tuple[float, ...], int] = field(default_factory=dict)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        merged = dict(self.counts)
        for sums, count in other.counts.items():
            merged[sums] = merged.get(sums, 0) + count
        return ClusterSums(self.names, merged)

    def variance(self, name: str, squares: float) -> ClusterVariance | None:
        """CR2 variance of the mean of one score; None if every cluster has one member."""
        if all(sums[0] <= 1 for sums in self.counts):
            return None
        place = self.names.index(name)
        alike: Counter[tuple[float, float]] = Counter()
        for sums, count in self.counts.items():
            alike[sums[0], sums[place]] += count
        # In an order of their own, or sums of floats would depend on the other scores.
        rows = np.array(sorted(alike))
        times = [alike[size, total] for size, total in sorted(alike)]
        return cluster_variance(*np.repeat(rows, times, axis=0).T, squares=squares)


def is_clustered(pairs: Pairs) -> bool:
    """Whether there is anything to cluster by."""
    return pairs.repeats or any(f"cluster_{side}" in pairs.columns for side in SIDES)


def sum_clusters(pairs: Pairs, within: Sequence[str]) -> dict[Label, ClusterSums]:
    """Score sums of every cluster of scored pairs, by task and these labels.

    A cluster whose items differ in a label is one cluster of its task, and one of each label.
    """
    labels = {name: value for name, value in label_columns(pairs).items() if name in within}
    scores, cluster = _scores(pairs), _cluster(pairs)
    by = ("task", *labels)
    per_cluster = (
        pairs.frame.filter(scored_pair())
        .select("task", **labels, **cluster, **scores)
        .group_by(*by, *cluster)
        .agg(nw.len().alias("size"), *(nw.col(name).sum() for name in scores))
    )
    rounded = per_cluster.with_columns(*(nw.col(name).round(DIGITS) for name in scores))
    found = rounded.group_by(*by, "size", *scores).agg(nw.len().alias("clusters")).collect()
    names = ("size", *scores)
    groups: dict[Label, dict[tuple[float, ...], int]] = {}
    for row in found.rows(named=True):
        sums = tuple(float(row[name]) for name in names)
        counts = groups.setdefault(label_of(row), {})
        counts[sums] = counts.get(sums, 0) + int(row["clusters"])
    return {label: ClusterSums(names, counts) for label, counts in groups.items()}


def total_clusters(parts: Iterable[ClusterSums]) -> ClusterSums | None:
    """The clusters of several groups."""
    total: ClusterSums | None = None
    for part in parts:
        total = part if total is None else total + part
    return total


def _cluster(pairs: Pairs) -> dict[str, nw.Expr]:
    """The cluster of a pair: as recorded, else the item itself."""
    item = {name: nw.col(name) for name in pairs.item_columns}
    if not any(f"cluster_{side}" in pairs.columns for side in SIDES):
        return item
    recorded = either("cluster", pairs.columns)
    parts = [value.cast(nw.String) for value in item.values()]
    own = nw.concat_str(nw.lit("item "), *parts, separator="\x1f")
    named = nw.concat_str(nw.lit("cluster "), recorded)
    return {"cluster": nw.when(recorded.is_null()).then(own).otherwise(named)}


def _scores(pairs: Pairs) -> dict[str, nw.Expr]:
    """Every score of a pair, for forgetting and for backward transfer."""
    k = options_of(pairs.columns).cast(nw.Float64)
    zero, one = nw.lit(0.0), nw.lit(1.0)
    c = nw.when(k.is_null()).then(one).otherwise(k / (k - 1))
    luck = nw.when(k.is_null()).then(zero).otherwise(c**2 / k)
    both_wrong = went(WRONG, WRONG)
    moves = {
        "lost": (went(RIGHT, WRONG), Relation.TO_NONE),
        "gained": (went(WRONG, RIGHT), Relation.FROM_NONE),
    }
    scores = {}
    for name, (moved, none) in moves.items():
        latent = nw.when(moved).then(c).when(both_wrong).then(-luck).otherwise(zero)
        scores[f"raw_{name}"] = nw.when(moved).then(one).otherwise(zero)
        scores[f"upper_{name}"] = nw.when(moved).then(c).otherwise(zero)
        scores[f"latent_{name}"] = latent
        if pairs.columns >= CHOICES:
            how = relation(pairs.columns)
            many = (
                nw.when(moved & (how == int(none))).then(one)
                .when(moved).then(c)
                .when(how == int(Relation.DIFFERENT)).then(-c / (k - 2))
                .when(both_wrong & (how == int(none))).then(-1 / (k - 1))
                .otherwise(zero)
            )  # fmt: skip
            few = k.is_null() | (k == PAIR)
            scores[f"matched_{name}"] = nw.when(few).then(latent).otherwise(many)
            scores[f"matched_upper_{name}"] = (
                nw.when(few).then(scores[f"upper_{name}"]).otherwise(many)
            )
    return scores
