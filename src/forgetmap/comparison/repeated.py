"""Estimates from repeats: the noise floor, and changes beyond it.

Answers are counted within items by what was chosen, and items with the same counts are counted
together, so no pair of answers is ever formed: the number of pairs of different wrong answers is a
difference of products of counts.
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
"""Noise floors: of which models."""
MAX_NOISE = 0.5
"""What a noise floor can be: of two answers, one right."""
MIN_ANSWERS = {
    "excess_before": {"before": 2, "after": 1},
    "noise_before": {"before": 2, "after": 1},
    "noise_after": {"before": 1, "after": 2},
}
"""Answers that a score needs from each model, where these are not two."""
CLEAR_LOSS = 0.9
"""Score of an item from which on it was surely lost, not just answered otherwise this time."""
_KINDS = ("right", "option", "none", "unknown")


class ItemCounts(NamedTuple):
    """The answers to an item: right, a wrong option, none, or wrong and not recorded.

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
    """How many items have the same counts; groups add up."""

    counts: dict[ItemCounts, int] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Iterable[ItemSums]) -> ItemSums:
        """The items of several groups, in an order that does not depend on them."""
        merged: dict[ItemCounts, int] = {}
        for part in parts:
            for counts, n in part.counts.items():
                merged[counts] = merged.get(counts, 0) + n
        return cls(dict(sorted(merged.items())))

    def repeated(self, *, before: int = 2, after: int = 2) -> RepeatedItems:
        """The items with at least so many answers from each model, as arrays."""
        table = np.array([*self.counts], float).reshape(-1, len(ItemCounts._fields))
        weight = np.array([*self.counts.values()], float)
        kept = is_repeated(table, before=before, after=after)
        return RepeatedItems(table[kept], weight[kept])

    @property
    def lacks_choices(self) -> bool:
        """Whether some wrong answer to an item with three or more options is not recorded."""
        return any(
            counts.unknown_before + counts.unknown_after
            for counts in self.counts
            if counts.k > TWO_OPTIONS and not math.isinf(counts.k)
        )


@dataclass(frozen=True, slots=True)
class ItemClusters:
    """Clusters of items as lists of kinds of items: cluster -> kinds and how many items of each.

    Clusters with the same content are counted together.
    """

    counts: Mapping[tuple[tuple[ItemCounts, int], ...], int]

    @classmethod
    def total(cls, groups: Iterable[Mapping[str, ItemSums]]) -> ItemClusters:
        """The clusters of several groups; one that is in two of them is put together."""
        parts: dict[str, list[ItemSums]] = {}
        for clusters in groups:
            for name, items in clusters.items():
                parts.setdefault(name, []).append(items)
        alike = Counter(tuple(ItemSums.total(own).counts.items()) for own in parts.values())
        # In an order of their own, or sums of floats would depend on that of a query.
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
    """Which kinds of items have at least so many answers from each model."""
    answers = table[:, 1:5].sum(1), table[:, 5:9].sum(1)
    enough: NDArray[np.bool_] = (answers[0] >= before) & (answers[1] >= after)
    return enough


def count_unrepeated(items: ItemSums, name: str) -> tuple[float, float, float]:
    """What an estimator by repeats does not see: its share of all items, items, and their losses.

    A loss of an item is how often a right answer before stands beside a wrong one after.
    """
    table = np.array([*items.counts], float).reshape(-1, len(ItemCounts._fields))
    weight = np.array([*items.counts.values()], float)
    before, after = table[:, 1:5].sum(1), table[:, 5:9].sum(1)
    left = ~is_repeated(table, **MIN_ANSWERS.get(name, {})) & (before > 0) & (after > 0)
    lost = table[left, 1] / before[left] * (1 - table[left, 5] / after[left])
    number = float(weight[left].sum())
    return number / max(float(weight.sum()), 1.0), number, float(weight[left] @ lost)


@dataclass(frozen=True, slots=True)
class RepeatedItems:
    """Kinds of items, one row each, and how many items are of each kind."""

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
        """The score of each kind of item."""
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
        """Clear losses that noise alone makes for each item that is none, gained ones as well.

        If nothing changed, all ways of dealing the right answers to the two sides are alike: the
        items that were dealt neither way tell how many were dealt as a clear loss.
        """
        scores = excess_scores(*self.profile)
        lost, gained = scores.lost > CLEAR_LOSS, scores.gained > CLEAR_LOSS
        m_b, r_b, m_a, r_a = (part.astype(int) for part in self.profile)
        chances = [_clear_chance(*kind) for kind in zip(m_b + m_a, r_b, r_a, strict=True)]
        return np.where(lost | gained, 0.0, np.array(chances, float))

    def pseudo(self, name: str) -> float:
        """How far one item can lie: the pseudo observation of its interval."""
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
        """The mean score with its interval; one item has no spread."""
        n = self.weight.sum()
        if n < 2:
            return None
        sums = (self.weight @ scores, self.weight @ scores**2)
        return mean_interval(n, *sums, pseudo=pseudo, level=level, clusters=clusters, bound=bound)


def sum_items(pairs: Pairs, noise: Pairs | None = None) -> dict[Label, ItemSums]:
    """Everything `excess`, `net` and the noise floor need, by task, category and tags.

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
    """The same by cluster: one query for all tasks, categories and tags, since each takes long.

    Args:
        pairs: both models.
        noise: the model before, paired with a repeat of it.
        cluster: what items of a cluster share.
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
    """One row per item: how often each model answered it how, its labels and its cluster."""
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
    """One row per scored answer of a side: right, a wrong option, none, or not recorded."""
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
    """Answers of an item by side and kind, and how many pairs of wrong answers are the same."""
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
    """`excess`, `excess_before`, `net` or a part of it; None without the repeats it needs.

    Args:
        name: of the score.
        items: counts within items.
        gained: of what was gained.
        level: of the interval.
        clusters: sums of the scores within clusters, where items are clustered.
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
    """How clusters widen the interval of a score; None without any."""
    repeated = items.repeated(**MIN_ANSWERS.get(name, {}))
    if clusters is None or not repeated.weight.sum():
        return None
    squares = float(repeated.weight @ repeated.scores(name, gained=gained) ** 2)
    return clusters.variance(f"{name}_{'gained' if gained else 'lost'}", squares)


def freedom_of(
    name: str, items: ItemSums, *, gained: bool = False, clusters: ItemClusters | None = None
) -> float:
    """Degrees of freedom of the interval of a score."""
    variance = _variance_of(name, items, gained=gained, clusters=clusters)
    if variance is not None and not math.isnan(variance.variance):
        return variance.freedom
    return max(float(items.repeated(**MIN_ANSWERS.get(name, {})).weight.sum()) - 1, 1.0)


def excess(items: ItemSums) -> Interval | None:
    """What was lost beyond the noise floor; None without repeats on both sides of two items."""
    return interval_of("excess", items)


def excess_before(items: ItemSums) -> Interval | None:
    """Forgetting beyond the noise floor of the model before; None where it was not repeated."""
    return interval_of("excess_before", items)


def excess_before_p(items: ItemSums) -> float | None:
    """One-sided p that nothing was lost beyond the noise floor of the model before, by its t."""
    interval = excess_before(items)
    if interval is None:
        return None
    return interval_p(interval, items.repeated(after=1).weight.sum() - 1)


def interval_p(interval: Interval, freedom: float, level: float = LEVEL) -> float:
    """One-sided p that a mean is 0 or less, from its t interval."""
    from scipy.special import stdtr, stdtrit  # heavy, only here

    error = (interval.value - interval.low) / stdtrit(freedom, 0.5 + level / 2)
    return float(stdtr(freedom, -interval.value / error))


def excess_p(items: ItemSums) -> float | None:
    """One-sided p that nothing was lost beyond noise, by permutation within items."""
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
    """Clear losses for each deal of so many right answers that is neither clear loss nor gain."""
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
    """How often two runs of one model flip one way; None without repeats of it."""
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
    """The noise floor, mean over the models that were repeated, with its interval."""
    repeated = {
        name: items.repeated(**MIN_ANSWERS.get(name, {})).weight.sum() for name in NOISE_SIDES
    }
    # Items that one model alone answered twice have a floor of that model only.
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
    """One of `excess`, `excess_before` and `net`, where there are the repeats it needs."""
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
    """Mean over tasks of Student intervals, in both directions.

    Args:
        name: of the score.
        parts: what was counted in each task.
        tasks: estimates of each.
        level: of the intervals.
        inflate: design effect of clusters that reach over tasks.
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
