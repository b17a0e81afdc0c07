"""Estimates from repeats: the noise floor, and changes beyond it.

Answers are counted within items by choice, and items with the same counts are counted together, so
no pair of answers is ever formed: the number of pairs of different wrong answers is a difference of
products of counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from forgetmap.comparison.cells import Label, label_columns, label_of
from forgetmap.comparison.choice_counts import TWO_OPTIONS, answer_failed, options_from, options_of
from forgetmap.pairing import RIGHT, SIDES, UNSCORED, Pairs, is_in
from forgetmap.records import Frame
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import (
    LEVEL,
    AnswerCounts,
    ClusterVariance,
    Interval,
    NetPart,
    Reals,
    change_p,
    cluster_variance,
    combined_interval,
    excess_before_scores,
    excess_scores,
    knowledge_scale,
    mean_interval,
    net_scores,
    permutation_moments,
    self_churn,
)

NET_PARTS: dict[str, NetPart] = {
    "net": "loss",
    "net_knowledge": "knowledge",
    "net_answering": "answering",
}
NOISE_SIDES = {"noise": SIDES, "noise_before": SIDES[:1], "noise_after": SIDES[1:]}
"""Noise floor -> models that it averages."""
MAX_NOISE = 0.5
"""Largest noise floor: one right answer of two."""
MIN_ANSWERS = {
    "excess_before": {"before": 2, "after": 1},
    "noise_before": {"before": 2, "after": 1},
    "noise_after": {"before": 1, "after": 2},
}
"""Minimum number of answers from each model, if it is not two."""
CLEAR_LOSS = 0.9
"""Minimum score of an item that was clearly lost, not just answered differently this time."""
_KINDS = ("right", "option", "none", "unknown")


class ItemCounts(NamedTuple):
    """Counts of the answers to an item: right, a wrong option, none, or wrong and not recorded.

    `same` counts pairs of the same wrong option between the models, and within each of them, where
    an answer also pairs with itself.
    """

    k: float
    right_before: int
    option_before: int
    none_before: int
    unknown_before: int
    right_after: int
    option_after: int
    none_after: int
    unknown_after: int
    same_between: int
    same_before: int
    same_after: int


@dataclass(frozen=True, slots=True)
class ItemSums:
    """Number of items with the same counts. Groups can be added."""

    counts: dict[ItemCounts, int] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Iterable[ItemSums]) -> ItemSums:
        """Add up the items of several groups, sorted independently of the groups."""
        merged: dict[ItemCounts, int] = {}
        for part in parts:
            for counts, n in part.counts.items():
                merged[counts] = merged.get(counts, 0) + n
        return cls(dict(sorted(merged.items())))

    def repeated(self, *, before: int = 2, after: int = 2) -> RepeatedItems:
        """Return the items with at least this many answers from each model, as arrays."""
        table = np.array([*self.counts], float).reshape(-1, len(ItemCounts._fields))
        weight = np.array([*self.counts.values()], float)
        kept = is_repeated(table, before=before, after=after)
        return RepeatedItems(table[kept], weight[kept])

    @property
    def lacks_choices(self) -> bool:
        """Whether an unrecorded wrong answer belongs to an item with three or more options."""
        return any(
            counts.unknown_before + counts.unknown_after
            for counts in self.counts
            if counts.k > TWO_OPTIONS and not math.isinf(counts.k)
        )


@dataclass(frozen=True, slots=True)
class ItemClusters:
    """Clusters as lists of kinds of items with their numbers -> number of such clusters.

    Clusters with the same content are counted together.
    """

    counts: Mapping[tuple[tuple[ItemCounts, int], ...], int]

    @classmethod
    def total(cls, groups: Iterable[Mapping[str, ItemSums]]) -> ItemClusters:
        """Merge the clusters of several groups, including clusters that are in two of them."""
        parts: dict[str, list[ItemSums]] = {}
        for clusters in groups:
            for name, items in clusters.items():
                parts.setdefault(name, []).append(items)
        alike = Counter(tuple(ItemSums.total(own).counts.items()) for own in parts.values())
        # Sorted, so that float sums do not depend on the order of a query.
        return cls(dict(sorted(alike.items())))

    def variance(self, name: str, squares: float) -> ClusterVariance | None:
        """CR2 variance of the mean of a score; None if every cluster has one item."""
        gained = name.endswith("_gained")
        score_name = name.rpartition("_")[0]
        rows = [(index, kind, n) for index, kinds in enumerate(self.counts) for kind, n in kinds]
        table = np.array([kind for _, kind, _ in rows], float).reshape(-1, len(ItemCounts._fields))
        cluster = np.array([index for index, _, _ in rows], int)
        weight = np.array([n for _, _, n in rows], float)
        kept = is_repeated(table, **MIN_ANSWERS.get(score_name, {}))
        cluster, items = cluster[kept], RepeatedItems(table[kept], weight[kept])
        scores = items.scores(score_name, gained=gained)
        sizes, totals, hits = (
            np.bincount(cluster, values, minlength=len(self.counts))
            for values in (items.weight, items.weight * scores, scores > CLEAR_LOSS)
        )
        times = np.array([*self.counts.values()], int) * (sizes > 0)
        if not times.any() or (sizes[times > 0] <= 1).all():
            return None
        affected = int(times[hits > 0].sum())
        if "excess" in score_name or "net" in score_name:
            lucky = items.weight * items.lucky_losses()
            noise = np.bincount(cluster, lucky, minlength=len(self.counts))
            affected = max(0, affected - math.ceil(float(times @ noise)))
        return cluster_variance(
            np.repeat(sizes, times), np.repeat(totals, times), squares=squares, affected=affected
        )


def is_repeated(table: Reals, *, before: int = 2, after: int = 2) -> NDArray[np.bool_]:
    """Return which kinds of items have at least this many answers from each model."""
    answers = table[:, 1:5].sum(1), table[:, 5:9].sum(1)
    enough: NDArray[np.bool_] = (answers[0] >= before) & (answers[1] >= after)
    return enough


def count_unrepeated(items: ItemSums, name: str) -> tuple[float, float, float]:
    """Count what an estimator by repeats ignores: share of all items, items, and their losses.

    The loss of an item is the probability of a right answer before and a wrong one after.
    """
    table = np.array([*items.counts], float).reshape(-1, len(ItemCounts._fields))
    weight = np.array([*items.counts.values()], float)
    before, after = table[:, 1:5].sum(1), table[:, 5:9].sum(1)
    rest = ~is_repeated(table, **MIN_ANSWERS.get(name, {})) & (before > 0) & (after > 0)
    lost = table[rest, 1] / before[rest] * (1 - table[rest, 5] / after[rest])
    number = float(weight[rest].sum())
    return number / max(float(weight.sum()), 1.0), number, float(weight[rest] @ lost)


@dataclass(frozen=True, slots=True)
class RepeatedItems:
    """Kinds of items, one row each, with the number of items of each kind."""

    table: Reals
    weight: Reals

    @property
    def k(self) -> Reals:
        """Number of options."""
        return np.asarray(self.table[:, 0])

    @property
    def profile(self) -> tuple[Reals, Reals, Reals, Reals]:
        """Right before, answers before, right after, answers after."""
        table = self.table
        return table[:, 1], table[:, 1:5].sum(1), table[:, 5], table[:, 5:9].sum(1)

    @property
    def before(self) -> AnswerCounts:
        """The answers of the model before."""
        return AnswerCounts(*self.table[:, [1, 2, 3, 4, 10]].T)

    @property
    def after(self) -> AnswerCounts:
        """The answers of the model after."""
        return AnswerCounts(*self.table[:, [5, 6, 7, 8, 11]].T)

    def scores(self, name: str, *, gained: bool = False) -> Reals:
        """Return the score of each kind of item."""
        if name == "excess_before":
            return excess_before_scores(*self.profile)
        if name in NOISE_SIDES:
            m_b, r_b, m_a, r_a = self.profile
            own = {"before": self_churn(m_b, r_b), "after": self_churn(m_a, r_a)}
            return np.asarray(np.mean([own[side] for side in NOISE_SIDES[name]], axis=0))
        if name == "excess":
            both = excess_scores(*self.profile)
            return both.gained if gained else both.lost
        sides = (self.after, self.before) if gained else (self.before, self.after)
        return net_scores(self.k, *sides, same=self.table[:, 9], part=NET_PARTS[name])

    def lucky_losses(self) -> Reals:
        """Return the expected clear losses by noise alone for each item without a clear change.

        If nothing changed, all divisions of the right answers between the two sides are equally
        likely: the items without a clear change tell how many clear losses to expect.
        """
        scores = excess_scores(*self.profile)
        lost, gained = scores.lost > CLEAR_LOSS, scores.gained > CLEAR_LOSS
        m_b, r_b, m_a, r_a = (part.astype(int) for part in self.profile)
        chances = [_clear_chance(*kind) for kind in zip(m_b + m_a, r_b, r_a, strict=True)]
        return np.where(lost | gained, 0.0, np.array(chances, float))

    def pseudo(self, name: str) -> float:
        """Return the largest score of one item: the pseudo observation of its interval."""
        if name in NOISE_SIDES:
            return 0.5
        if name in ("excess", "excess_before", "net_answering"):
            return 1.0
        return float(self.weight @ knowledge_scale(self.k) / max(self.weight.sum(), 1.0))

    def mean(
        self,
        scores: Reals,
        pseudo: float = 1.0,
        *,
        level: float = LEVEL,
        clusters: ClusterVariance | None = None,
        bound: float | None = None,
    ) -> Interval | None:
        """Return the mean score with its interval; None below two items."""
        n = self.weight.sum()
        if n < 2:
            return None
        sums = (self.weight @ scores, self.weight @ scores**2)
        return mean_interval(n, *sums, pseudo=pseudo, level=level, clusters=clusters, bound=bound)


def sum_items(pairs: Pairs, noise: Pairs | None = None) -> dict[Label, ItemSums]:
    """Count everything for `excess`, `net` and the noise floor, by task, category and tags.

    Args:
        pairs: both models.
        noise: the model before, paired with a repeat of it by the same keys.
    """
    labels, tallies = tuple(label_columns(pairs)), _tallies()
    per_item = _per_item(pairs, noise, {})
    counted = per_item.group_by("task", *labels, "k", *tallies).agg(nw.len().alias("n"))
    parts: dict[Label, dict[ItemCounts, int]] = {}
    for row in counted.collect().rows(named=True):
        parts.setdefault(label_of(row), {})[_item_counts(row)] = int(row["n"])
    return {label: ItemSums(counts) for label, counts in parts.items()}


def sum_item_clusters(
    pairs: Pairs, noise: Pairs | None, cluster: nw.Expr
) -> dict[Label, dict[str, ItemSums]]:
    """Count the same by cluster, in one query for all tasks, categories and tags.

    Args:
        pairs: both models.
        noise: the model before, paired with a repeat of it.
        cluster: expression that identifies a cluster.
    """
    labels, tallies = tuple(label_columns(pairs)), _tallies()
    per_item = _per_item(pairs, noise, {"cluster": cluster})
    counted = per_item.group_by("task", *labels, "cluster", "k", *tallies).agg(nw.len().alias("n"))
    parts: dict[Label, dict[str, ItemSums]] = {}
    for row in counted.collect().rows(named=True):
        clusters = parts.setdefault(label_of(row), {})
        counts = clusters.setdefault(str(row["cluster"]), ItemSums({})).counts
        counts[_item_counts(row)] = counts.get(_item_counts(row), 0) + int(row["n"])
    return parts


def _per_item(pairs: Pairs, noise: Pairs | None, cluster: Mapping[str, nw.Expr]) -> Frame:
    """Return one row per item: its answers by model and kind, its labels and its cluster."""
    labels = tuple(label_columns(pairs))
    item = ("task", *pairs.item_columns)
    sides = [_answers(pairs, side, own=side == "before", more=cluster) for side in SIDES]
    if noise is not None:
        like = {name: nw.lit(None, dtype=nw.String) for name in (*labels, *cluster)}
        sides.append(_answers(noise, "after", own=True, like=like))
    kept = [name for name in (*labels, *cluster, "k") if name not in item]
    chosen = (
        nw.concat(sides)
        .group_by(*item, "kind", "choice")
        .agg(*(nw.col(name).sum() for name in SIDES), *(nw.col(name).max() for name in kept))
    )
    tallies = _tallies()
    return (
        chosen.select(*item, *kept, **tallies)
        .group_by(*item)
        .agg(*(nw.col(name).sum() for name in tallies), *(nw.col(name).max() for name in kept))
    )


def _answers(
    pairs: Pairs,
    side: str,
    *,
    own: bool,
    more: Mapping[str, nw.Expr] | None = None,
    like: Mapping[str, nw.Expr] | None = None,
) -> Frame:
    """Return one row per scored answer of a side: right, a wrong option, none, or not recorded."""
    right = nw.col(f"state_{side}") == RIGHT
    has_choice = f"wrong_{side}" in pairs.columns
    choice = nw.col(f"wrong_{side}") if has_choice else nw.lit(None, dtype=nw.String)
    codes = [nw.lit(code, dtype=nw.Int8) for code in range(len(_KINDS))]
    kind = (
        nw.when(right).then(codes[0])
        .when(~choice.is_null()).then(codes[1])
        .when(answer_failed(side, pairs.columns)).then(codes[2])
        .otherwise(codes[3])
    )  # fmt: skip
    labels = like if like is not None else label_columns(pairs) | dict(more or {})
    return pairs.frame.filter(is_in(side) & (nw.col(f"state_{side}") != UNSCORED)).select(
        "task",
        *pairs.item_columns,
        **labels,
        k=options_of(pairs.columns).cast(nw.Float64),
        kind=kind,
        choice=nw.coalesce(choice, nw.lit("")),
        before=nw.lit(int(own), dtype=nw.Int64),
        after=nw.lit(int(not own), dtype=nw.Int64),
    )


def _tallies() -> dict[str, nw.Expr]:
    """Return the answers of an item by side and kind, and the pairs of equal wrong answers."""
    zero = nw.lit(0, dtype=nw.Int64)
    before, after = (nw.col(side).cast(nw.Int64) for side in SIDES)
    tallies = {}
    for side, count in zip(SIDES, (before, after), strict=True):
        for code, kind in enumerate(_KINDS):
            is_kind = nw.col("kind") == code
            tallies[f"{kind}_{side}"] = nw.when(is_kind).then(count).otherwise(zero)
    wrong_option = nw.col("kind") == _KINDS.index("option")
    pairs = {
        "same_between": before * after,
        "same_before": before * before,
        "same_after": after * after,
    }
    for name, same in pairs.items():
        tallies[name] = nw.when(wrong_option).then(same).otherwise(zero)
    return tallies


def _item_counts(row: Mapping[str, Any]) -> ItemCounts:
    counts = {name: int(row[name]) for name in ItemCounts._fields if name != "k"}
    return ItemCounts(k=options_from(row["k"]), **counts)


def interval_of(
    name: str,
    items: ItemSums,
    *,
    gained: bool = False,
    level: float = LEVEL,
    clusters: ItemClusters | None = None,
) -> Interval | None:
    """Return the interval of a score by repeats; None without the repeats it needs.

    Args:
        name: name of the score: `excess`, `excess_before`, `net`, a part of it, or a noise floor.
        items: counts within items.
        gained: of gains instead of losses.
        level: confidence level.
        clusters: sums of the scores within clusters, if items are clustered.
    """
    repeated = items.repeated(**MIN_ANSWERS.get(name, {}))
    return repeated.mean(
        repeated.scores(name, gained=gained),
        repeated.pseudo(name),
        level=level,
        clusters=_variance_of(name, items, gained=gained, clusters=clusters),
        bound=MAX_NOISE if name in NOISE_SIDES else None,
    )


def _variance_of(
    name: str, items: ItemSums, *, gained: bool, clusters: ItemClusters | None
) -> ClusterVariance | None:
    """Return how clusters widen the interval of a score; None without clusters."""
    repeated = items.repeated(**MIN_ANSWERS.get(name, {}))
    if clusters is None or not repeated.weight.sum():
        return None
    squares = float(repeated.weight @ repeated.scores(name, gained=gained) ** 2)
    return clusters.variance(f"{name}_{'gained' if gained else 'lost'}", squares)


def freedom_of(
    name: str, items: ItemSums, *, gained: bool = False, clusters: ItemClusters | None = None
) -> float:
    """Return the degrees of freedom of the interval of a score."""
    variance = _variance_of(name, items, gained=gained, clusters=clusters)
    if variance is not None and not math.isnan(variance.variance):
        return variance.freedom
    return max(float(items.repeated(**MIN_ANSWERS.get(name, {})).weight.sum()) - 1, 1.0)


def excess(items: ItemSums) -> Interval | None:
    """Return the loss beyond the noise floor; None without two items repeated on both sides."""
    return interval_of("excess", items)


def excess_before(items: ItemSums) -> Interval | None:
    """Return the loss beyond the noise floor of the model before; None if it was not repeated."""
    return interval_of("excess_before", items)


def excess_before_p(items: ItemSums) -> float | None:
    """Return the one-sided p-value (t test) of no loss beyond the noise of the model before."""
    interval = excess_before(items)
    if interval is None:
        return None
    return interval_p(interval, items.repeated(after=1).weight.sum() - 1)


def interval_p(interval: Interval, freedom: float, level: float = LEVEL) -> float:
    """Return the one-sided p-value that a mean is 0 or less, from its t interval."""
    from scipy.special import stdtr, stdtrit  # heavy, only here

    error = (interval.value - interval.low) / stdtrit(freedom, 0.5 + level / 2)
    return float(stdtr(freedom, -interval.value / error))


def excess_p(items: ItemSums) -> float | None:
    """Return the one-sided p-value of no loss beyond noise, by permutation within items."""
    repeated = items.repeated()
    if not repeated.weight.sum():
        return None
    m_b, r_b, m_a, r_a = repeated.profile
    lost = excess_scores(m_b, r_b, m_a, r_a).lost
    moments = np.array(
        [_moments(int(b), int(a))[:, int(m)] for m, b, a in zip(m_b + m_a, r_b, r_a, strict=True)]
    )
    variance, third = repeated.weight @ moments
    return float(change_p(repeated.weight @ lost, variance, third))


@lru_cache(maxsize=1024)
def _clear_chance(total: int, repeats_before: int, repeats_after: int) -> float:
    """Return the odds of a clear loss against no clear change, if nothing changed."""
    if repeats_before < 2 or repeats_after < 2:
        return 0.0
    before = np.arange(max(0, total - repeats_after), min(total, repeats_before) + 1)
    ways = np.array(
        [
            math.comb(repeats_before, int(m)) * math.comb(repeats_after, total - int(m))
            for m in before
        ],
        float,
    )
    scores = excess_scores(before, repeats_before, total - before, repeats_after)
    lost, gained = scores.lost > CLEAR_LOSS, scores.gained > CLEAR_LOSS
    neither = ways[~(lost | gained)].sum()
    return float(ways[lost].sum() / neither) if neither else 0.0


@lru_cache(maxsize=64)
def _moments(repeats_before: int, repeats_after: int) -> Reals:
    totals = np.arange(repeats_before + repeats_after + 1)
    return np.array(permutation_moments(totals, repeats_before, repeats_after))


def noise_floor(items: ItemSums, side: str) -> float | None:
    """Return how often two runs of one model flip one way; None without repeats of it."""
    least = {"before": 2, "after": 1} if side == "before" else {"before": 1, "after": 2}
    repeated = items.repeated(**least)
    n = repeated.weight.sum()
    if not n:
        return None
    m_b, r_b, m_a, r_a = repeated.profile
    right, answers = (m_b, r_b) if side == "before" else (m_a, r_a)
    return float(repeated.weight @ self_churn(right, answers) / n)


def noise_interval(
    items: ItemSums, level: float = LEVEL, clusters: ItemClusters | None = None
) -> Interval | None:
    """Return the noise floor with its interval, averaged over the repeated models."""
    repeated = {
        name: items.repeated(**MIN_ANSWERS.get(name, {})).weight.sum() for name in NOISE_SIDES
    }
    # Items that only one model answered twice have the noise floor of that model only.
    names = ["noise"] if len(set(repeated.values())) == 1 else ["noise_before", "noise_after"]
    parts = [interval_of(name, items, level=level, clusters=clusters) for name in names]
    intervals = [part for part in parts if part is not None]
    if not intervals:
        return None
    value, low, high = (
        np.asarray(sum(float(getattr(part, end)) for part in intervals) / len(intervals))
        for end in ("value", "low", "high")
    )
    return Interval(value, np.maximum(low, 0.0), np.minimum(high, MAX_NOISE))


def estimate(
    name: str, items: ItemSums, *, level: float = LEVEL, clusters: ItemClusters | None = None
) -> Estimates | Estimate:
    """Return `excess`, `excess_before` or `net`, if the data have the repeats it needs."""
    lost = interval_of(name, items, level=level, clusters=clusters)
    note = ", clustered" if clusters is not None else ""
    if name == "excess_before":
        return _as_estimate(name, lost, note)
    gained = interval_of(name, items, gained=True, level=level, clusters=clusters)
    return Estimates(
        forgetting=_as_estimate(name, lost, note),
        backward_transfer=_as_estimate(name, gained, note),
    )


class RepeatedTask(NamedTuple):
    """A task in a mean over tasks: counts within items, their clusters."""

    items: ItemSums
    clusters: ItemClusters | None = None


def over_tasks(
    name: str,
    parts: Sequence[RepeatedTask],
    tasks: Sequence[Estimates],
    level: float = LEVEL,
    inflate: float = 1.0,
) -> Estimates:
    """Average Student intervals over tasks, in both directions.

    Args:
        name: name of the score.
        parts: counts of each task.
        tasks: estimates of each task.
        level: confidence level.
        inflate: design effect of clusters that span tasks.
    """

    def combine(estimates: Sequence[Estimate], *, gained: bool) -> Estimate:
        missing = [one for one in estimates if one.value is None]
        if missing or not estimates:
            return missing[0] if missing else Estimate.missing(name, "no scored pair")
        freedom = [freedom_of(name, p.items, gained=gained, clusters=p.clusters) for p in parts]
        intervals = [
            Interval(*(np.asarray(x) for x in (e.value, e.low, e.high))) for e in estimates
        ]
        combined = combined_interval(intervals, freedom, level=level, inflate=inflate)
        return _as_estimate(f"{name}, mean over tasks", combined)

    return Estimates(
        forgetting=combine([task.forgetting for task in tasks], gained=False),
        backward_transfer=combine([task.backward_transfer for task in tasks], gained=True),
    )


def _as_estimate(name: str, interval: Interval | None, note: str = "") -> Estimate:
    assert interval is not None  # noqa: S101  # without repeats nobody asks
    value, low, high = float(interval.value), float(interval.low), float(interval.high)
    return Estimate(value=value, low=low, high=high, method=f"{name}, t interval{note}")
