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

from forgetmap.comparison.cells import Label, label_columns, label_of
from forgetmap.comparison.choice_counts import (
    CHOICE_COLUMNS,
    TWO_OPTIONS,
    ChoiceRelation,
    options_of,
    relation,
)
from forgetmap.pairing import RIGHT, SIDES, WRONG, Pairs, is_transition, scored_pair, side_value
from forgetmap.stats import ClusterVariance, cluster_variance

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
        index = self.names.index(name)
        alike: Counter[tuple[float, float]] = Counter()
        for sums, count in self.counts.items():
            alike[sums[0], sums[index]] += count
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
    # Step by step: an expression written out within others would be worked on many times.
    per_cluster = (
        pairs.frame.filter(scored_pair())
        .select("task", **labels, **cluster, **_facts(pairs))
        .with_columns(_c=_SPREAD, _luck=_LUCK)
        .select(*by, *cluster, **scores)
        .group_by(*by, *cluster)
        .agg(nw.len().alias("size"), *(nw.col(name).sum() for name in scores))
    )
    rounded = per_cluster.with_columns(*(nw.col(name).round(DIGITS) for name in scores))
    clusters = rounded.group_by(*by, "size", *scores).agg(nw.len().alias("clusters")).collect()
    names = ("size", *scores)
    groups: dict[Label, dict[tuple[float, ...], int]] = {}
    for row in clusters.rows(named=True):
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
    recorded = side_value("cluster", pairs.columns)
    parts = [value.cast(nw.String) for value in item.values()]
    own = nw.concat_str(nw.lit("item "), *parts, separator="\x1f")
    named = nw.concat_str(nw.lit("cluster "), recorded)
    return {"cluster": nw.when(recorded.is_null()).then(own).otherwise(named)}


_K, _C = nw.col("_k"), nw.col("_c")
_SPREAD = nw.when(_K.is_null()).then(nw.lit(1.0)).otherwise(_K / (_K - 1))
_LUCK = nw.when(_K.is_null()).then(nw.lit(0.0)).otherwise(_K / (_K - 1) ** 2)
"""k / (k - 1), and its square over k: by how much guesses are reckoned up."""


def _facts(pairs: Pairs) -> dict[str, nw.Expr]:
    """What scores are made of."""
    facts = {
        "_k": options_of(pairs.columns).cast(nw.Float64),
        "_lost": is_transition(RIGHT, WRONG),
        "_gained": is_transition(WRONG, RIGHT),
        "_both_wrong": is_transition(WRONG, WRONG),
    }
    return facts | ({"_how": relation(pairs.columns)} if pairs.columns >= CHOICE_COLUMNS else {})


def _scores(pairs: Pairs) -> dict[str, nw.Expr]:
    """Every score of a pair, for forgetting and for backward transfer."""
    zero, one = nw.lit(0.0), nw.lit(1.0)
    how, both_wrong = nw.col("_how"), nw.col("_both_wrong")
    scores = {}
    for name, none in {"lost": ChoiceRelation.TO_NONE, "gained": ChoiceRelation.FROM_NONE}.items():
        moved = nw.col(f"_{name}")
        latent = nw.when(moved).then(_C).when(both_wrong).then(-nw.col("_luck")).otherwise(zero)
        scores[f"raw_{name}"] = nw.when(moved).then(one).otherwise(zero)
        scores[f"upper_{name}"] = nw.when(moved).then(_C).otherwise(zero)
        scores[f"latent_{name}"] = latent
        if pairs.columns >= CHOICE_COLUMNS:
            many = (
                nw.when(moved & (how == int(none))).then(one)
                .when(moved).then(_C)
                .when(how == int(ChoiceRelation.DIFFERENT)).then(-_C / (_K - 2))
                .when(both_wrong & (how == int(none))).then(-1 / (_K - 1))
                .otherwise(zero)
            )  # fmt: skip
            few = _K.is_null() | (_K == TWO_OPTIONS)
            scores[f"matched_{name}"] = nw.when(few).then(latent).otherwise(many)
            scores[f"matched_upper_{name}"] = (
                nw.when(few).then(scores[f"upper_{name}"]).otherwise(many)
            )
    return scores
