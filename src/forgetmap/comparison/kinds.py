"""Kinds of items: items with the same answers, labels and cluster, counted together.

Every estimate and limit is the mean of a score of items that depends only on their answers, so a
small table of kinds is all that statistics need, however many items there are. It comes out of the
query that counts the cells if there is one answer per item; repeats, clusters, fresh answers and
earlier stages take one more query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forgetmap.comparison.choices_made import (
    ANSWERS,
    TWO_OPTIONS,
    answer_kind,
    options_of,
    same_choice,
)
from forgetmap.comparison.clusters import (
    cluster_text,
    content_columns,
    has_cluster_names,
    has_content,
)
from forgetmap.comparison.halves import character, half_text, halve
from forgetmap.comparison.labels import Label, is_none, label_columns, split_tags
from forgetmap.comparison.side_counts import from_zero, position_of
from forgetmap.errors import PairingError
from forgetmap.pairing import RIGHT, SIDES, UNSCORED, Pairs, is_in, scored_pair, side_value
from forgetmap.records import Frame
from forgetmap.stats import (
    Integers,
    ItemSample,
    PairedAnswers,
    Reals,
    ScoreBound,
    TaskSplit,
    confirmed_bound,
)

TALLIES = (*(f"{kind}_{side}" for side in SIDES for kind in ANSWERS), "same")
"""Answers of an item by side and kind; pairs of the same wrong option, one before and one after."""
EARLIER = ("earlier_right", "earlier_answers")
"""Answers at the stage before, in a chain."""
FRESH = ("flip", "fresh_right_before", "fresh_before", "fresh_right_after", "fresh_after")
"""Flip of the first answers (1 lost, -1 gained), and the answers when both were asked again."""


@dataclass(frozen=True)
class Kinds:
    """Kinds of items, one entry each in every array.

    Attributes:
        labels: task, category and tags of the items.
        label: index of the label of each kind.
        count: number of items.
        k: number of options; inf if open-ended.
        gold: position of the right option; nan if not recorded.
        half: half of the items, 0 or 1, by their content and not by their answers.
        cluster: index of the cluster; -1 for an item that is alone. None if all are.
        tallies: columns `TALLIES`.
        earlier: columns `EARLIER`; None outside of chains.
        fresh: columns `FRESH`; None without confirmation.
        weights: weight of each task in a mean over tasks; None if all are equal.
    """

    labels: tuple[Label, ...]
    label: Integers
    count: Reals
    k: Reals
    gold: Reals
    half: Integers
    cluster: Integers | None
    tallies: Reals
    earlier: Reals | None = None
    fresh: Reals | None = None
    weights: Mapping[str, float] | None = None

    @classmethod
    def empty(cls) -> Kinds:
        """Return a table without items."""
        none = np.zeros(0)
        whole = np.zeros(0, np.int64)
        return cls((), whole, none, none, none, whole, None, np.zeros((0, len(TALLIES))))

    def tally(self, name: str) -> Reals:
        """Return one column of the tallies."""
        return np.asarray(self.tallies[:, TALLIES.index(name)])

    def given(self, side: str) -> Reals:
        """Return the number of answers on a side."""
        first = TALLIES.index(f"right_{side}")
        return np.asarray(self.tallies[:, first : first + len(ANSWERS)].sum(1))

    def take(self, kept: Any) -> Kinds:
        """Return some of the kinds."""
        arrays: dict[str, Any] = {
            name: None if value is None else value[kept]
            for name in ("label", "count", "k", "gold", "half", "cluster", "tallies", "earlier",
                         "fresh")
            for value in [getattr(self, name)]
        }  # fmt: skip
        return replace(self, **arrays)

    @cached_property
    def mirrored(self) -> Kinds:
        """The kinds with before and after exchanged, so that gains become losses."""
        width = len(ANSWERS)
        order = [*range(width, 2 * width), *range(width), 2 * width]
        fresh, earlier = self.fresh, self.earlier
        if fresh is not None:
            fresh = fresh[:, [0, 3, 4, 1, 2]] * np.array([-1, 1, 1, 1, 1])
        if earlier is not None:
            # What was gained was wrong at first, so right answers at the stage before count.
            earlier = np.stack([earlier[:, 1] - earlier[:, 0], earlier[:, 1]], 1)
        return replace(self, tallies=self.tallies[:, order], fresh=fresh, earlier=earlier)

    def by(self, level: str) -> dict[str, Kinds]:
        """Return the kinds of each task, category or tag, sorted by name."""
        names: dict[str, list[int]] = {}
        for index, label in enumerate(self.labels):
            for name in names_at(level, label):
                names.setdefault(name, []).append(index)
        parts = {name: self.take(np.isin(self.label, own)) for name, own in names.items()}
        return {name: parts[name] for name in sorted(parts) if parts[name].count.size}

    @cached_property
    def items(self) -> int:
        """Number of items."""
        return int(self.count.sum())

    @cached_property
    def tasks(self) -> tuple[tuple[str, ...], Integers]:
        """Names of the tasks, and the index of the task of each kind."""
        names = tuple(sorted({self.labels[index].task for index in np.unique(self.label)}))
        index = {name: at for at, name in enumerate(names)}
        of_label = np.array([index.get(label.task, -1) for label in self.labels], np.int64)
        return names, of_label[self.label] if self.labels else self.label

    @cached_property
    def task_sizes(self) -> Reals:
        """Number of items of each task."""
        names, task = self.tasks
        return np.bincount(task, self.count, minlength=len(names)).astype(float)

    @cached_property
    def sample(self) -> ItemSample:
        """The items with equal weights."""
        return ItemSample(self.count, self._shared_cluster)

    @cached_property
    def _shared_cluster(self) -> Integers | None:
        """Clusters with two or more of these items, numbered anew; None if all are alone."""
        if self.cluster is None or not (self.cluster >= 0).any():
            return None
        names, own = np.unique(self.cluster, return_inverse=True)
        shared = (np.bincount(own, self.count) > 1) & (names >= 0)
        number = np.where(shared, np.cumsum(shared) - 1, -1)
        return np.asarray(number[own], np.int64) if shared.any() else None

    @cached_property
    def task_weights(self) -> Reals:
        """Share of each task in a mean over tasks."""
        names, _ = self.tasks
        if self.weights is None:
            return np.full(len(names), 1 / len(names))
        own = np.array([self.weights[name] for name in names])
        return np.asarray(own / own.sum())

    @cached_property
    def has_equal_weights(self) -> bool:
        """Whether a mean over tasks is the mean over items."""
        shares = self.task_weights * self.items / self.task_sizes
        return bool(np.allclose(shares, 1.0, rtol=1e-9, atol=0.0))

    @cached_property
    def macro_sample(self) -> ItemSample:
        """The items weighted so that every task has its weight in a mean over tasks."""
        _, task = self.tasks
        shares = self.task_weights / self.task_sizes
        factor = self.items * shares[task]
        return ItemSample(self.count, self._shared_cluster, factor, float(shares.max()))

    def answers(self, *, macro: bool = False) -> PairedAnswers:
        """Return the right answers of both models."""
        return replace(self._answers, sample=self.macro_sample) if macro else self._answers

    @cached_property
    def _answers(self) -> PairedAnswers:
        return PairedAnswers(
            self.tally("right_before"), self.given("before"),
            self.tally("right_after"), self.given("after"),
            self.sample,
        )  # fmt: skip

    def split(self, *, macro: bool = False) -> TaskSplit:
        """Return tasks and halves of the items."""
        _, task = self.tasks
        weights = self.task_weights if macro else self.task_sizes / self.items
        return TaskSplit(task, self.half, weights)

    def confirmed(self, sample: ItemSample) -> ScoreBound | None:
        """Return the limit by flips that were asked again; None without fresh answers."""
        if self.fresh is None:
            return None
        flip, right_before, before, right_after, after = self.fresh.T
        asked = (flip > 0) & (before > 0) & (after > 0)
        change = np.zeros(flip.size)
        change[asked] = (right_before / np.maximum(before, 1) - right_after / np.maximum(after, 1))[
            asked
        ]
        flips = self.count @ (flip > 0)
        return confirmed_bound(sample, change, float(flips), float(self.count @ asked))

    def earlier_stage(self, answers: PairedAnswers) -> ScoreBound | None:
        """Return the limit (1 - z) (x - y), z the answers of the stage before; None without it."""
        if self.earlier is None:
            return None
        right, given = self.earlier.T
        known = given > 0
        z = np.where(known, right / np.maximum(given, 1), 1.0)
        return ScoreBound(answers.sample, (1 - z) * answers.change)


def names_at(level: str, label: Label) -> list[str]:
    """Return the groups of a label: none without a category, one for each of its tags."""
    if level == "task":
        return [label.task]
    if level == "tags":
        return split_tags(label.tags or "")
    return [label.category] if label.category else []


class ItemAnswers(NamedTuple):
    """Answers to items of one kind: numbers of right and of all answers.

    Attributes:
        label: task, category and tags.
        key: name of the item.
        before: right and all answers before.
        after: right and all answers after.
        cluster: name of its cluster, if it has one.
        earlier: right and all answers at the stage before, in a chain.
        count: number of such items.
    """

    label: Label
    key: str
    before: tuple[float, float]
    after: tuple[float, float]
    cluster: str | None = None
    earlier: tuple[float, float] | None = None
    count: float = 1.0  # type: ignore[assignment]  # tuples can count


def kinds_of(items: Sequence[ItemAnswers]) -> Kinds:
    """Return the kinds of items whose answers are at hand, without a join."""
    labels = tuple(dict.fromkeys(item.label for item in items))
    index = {label: at for at, label in enumerate(labels)}
    tallies = np.zeros((len(items), len(TALLIES)))
    for side in SIDES:
        right, given = np.array([getattr(item, side) for item in items], float).reshape(-1, 2).T
        tallies[:, TALLIES.index(f"right_{side}")] = right
        tallies[:, TALLIES.index(f"unknown_{side}")] = given - right
    clusters = [item.cluster for item in items]
    earlier = None
    if any(item.earlier is not None for item in items):
        earlier = np.array([item.earlier or (0.0, 0.0) for item in items], float)
    return Kinds(
        labels=labels,
        label=np.array([index[item.label] for item in items], np.int64),
        count=np.array([item.count for item in items], float),
        k=np.full(len(items), math.inf),
        gold=np.full(len(items), math.nan),
        half=halve([None] * len(items), [item.cluster or item.key for item in items]),
        cluster=_cluster_index(clusters) if any(clusters) else None,
        tallies=tallies,
        earlier=earlier,
    )


# ---------------------------------------------------------------------- one answer per item


def plain_kinds(rows: Iterable[Mapping[str, Any]], label_of: Any) -> Kinds:
    """Return the kinds of items that were answered once, from counted rows of scored pairs.

    Args:
        rows: labels, states, `n`, and if recorded `k`, `relation`, `gold` and halves.
        label_of: returns the label of a row.
    """
    table: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = (
            label_of(row), _options(row.get("k")), _position(row.get("gold")),
            row.get("half_hash"), row.get("half_text"), _tallies_of(row),
        )  # fmt: skip
        table[key] = table.get(key, 0) + int(row["n"])
    # Float sums must not depend on the order in which an engine returns groups.
    table = dict(sorted(table.items(), key=lambda entry: str(entry[0])))
    labels = tuple(dict.fromkeys(key[0] for key in table))
    index = {label: at for at, label in enumerate(labels)}
    return Kinds(
        labels=labels,
        label=np.array([index[key[0]] for key in table], np.int64),
        count=np.array([*table.values()], float),
        k=np.array([key[1] for key in table], float),
        gold=np.array([key[2] for key in table], float),
        half=halve([key[3] for key in table], [key[4] for key in table]),
        cluster=None,
        tallies=np.array([key[5] for key in table], float).reshape(-1, len(TALLIES)),
    )


def _options(value: object) -> float:
    return math.inf if is_none(value) else float(value)  # type: ignore[arg-type]


def _position(value: object) -> float:
    position = from_zero(value)
    return math.nan if position is None else float(position)


def _tallies_of(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the tallies of an item with one answer on each side."""
    kinds = []
    for side in SIDES:
        kind: Any = row.get(f"kind_{side}")
        wrong = ANSWERS.index("unknown") if is_none(kind) else int(kind)
        kinds.append(0 if int(row[f"state_{side}"]) == RIGHT else wrong)
    same: Any = row.get("same")
    return (
        *(int(kind == code) for kind in kinds for code in range(len(ANSWERS))),
        0 if is_none(same) else int(same),
    )


# ---------------------------------------------------------------------- repeats and clusters


def item_kinds(
    pairs: Pairs,
    *,
    noise: Pairs | None = None,
    by_content: bool = False,
    suffix: int = 1,
    more: Sequence[Frame] = (),
) -> Kinds:
    """Return the kinds of items with repeats, clusters, fresh answers or an earlier stage.

    Args:
        pairs: both models.
        noise: the model before, paired with a repeat of it by the same keys.
        by_content: items with the same content are a cluster.
        suffix: as in `half_columns`.
        more: frames with one row per item, `EARLIER` or `FRESH` columns, to be joined.
    """
    facts = _item_facts(pairs, by_content=by_content)
    if pairs.repeats or noise is not None:
        items = _repeated_items(pairs, noise, facts)
    else:
        items = _single_items(pairs, facts)
    item = ["task", *pairs.item_columns]
    joined = []
    for frame in more:
        added = [name for name in frame.collect_schema().names() if name not in item]
        items = items.join(frame.select(*item, *added), on=item, how="left")
        items = items.with_columns(
            *(nw.coalesce(nw.col(name), nw.lit(0)).alias(name) for name in added)
        )
        joined += added
    items = items.with_columns(half_text=half_text(pairs, facts, suffix))
    kept = [*(name for name in facts if name != "digit"), "half_text"]
    if "cluster" in facts:
        size = nw.len().over("cluster")
        items = items.with_columns(cluster=nw.when(size > 1).then(nw.col("cluster")))
    counted = items.group_by("task", *kept, *TALLIES, *joined).agg(nw.len().alias("n"))
    return _collect(counted.collect().to_arrow(), joined)


def _item_facts(pairs: Pairs, *, by_content: bool) -> dict[str, nw.Expr]:
    """Return what items are told apart by besides their answers."""
    # Of uneven repeats, no answer may have a counterpart: a label of either side will do.
    facts = {name: side_value(name, pairs.columns) for name in label_columns(pairs)}
    facts["k"] = options_of(pairs.columns).cast(nw.Float64)
    gold = gold_position(pairs)
    if gold is not None:
        facts["gold"] = gold
    if has_cluster_names(pairs) or by_content:
        facts["cluster"] = cluster_text(pairs, by_content=by_content)
    if hashes := content_columns(pairs):
        digit = character(nw.col(hashes[0]).cast(nw.String), 1)
        facts["digit"] = nw.when(has_content(hashes[0])).then(digit)
    return facts


def gold_position(pairs: Pairs) -> nw.Expr | None:
    """Return the position of the right option, where options and positions are recorded."""
    if not pairs.columns & {"k_before", "k_after"}:
        return None
    if "gold_index_before" in pairs.columns:
        return nw.col("gold_index_before").cast(nw.Float64)  # a missing number is a float in pandas
    return position_of("gold_before", None, pairs.columns)


def _single_items(pairs: Pairs, facts: Mapping[str, nw.Expr]) -> Frame:
    """Return one row per item, for items that were answered once."""
    zero, one = nw.lit(0, dtype=nw.Int64), nw.lit(1, dtype=nw.Int64)
    tallies = {
        f"{kind}_{side}": nw.when(answer_kind(side, pairs.columns) == code)
        .then(one)
        .otherwise(zero)
        for side in SIDES
        for code, kind in enumerate(ANSWERS)
    }
    tallies["same"] = same_choice(pairs.columns).cast(nw.Int64)
    scored = pairs.frame.filter(scored_pair())
    return scored.select("task", *pairs.item_columns, **facts, **tallies)


def _repeated_items(pairs: Pairs, noise: Pairs | None, facts: Mapping[str, nw.Expr]) -> Frame:
    """Return one row per item with all answers of each model, also those without a counterpart.

    Items that only the repeat answered are left out.
    """
    item = ("task", *pairs.item_columns)
    sides = [_answers_of(pairs, side, facts, own=side) for side in SIDES]
    if noise is not None:
        types = pairs.frame.select(**facts).collect_schema()
        nothing = {name: nw.lit(None, dtype=types[name]) for name in facts}
        sides.append(_answers_of(noise, "after", nothing, own="again"))
    kept = [name for name in facts if name not in item]
    chosen = (
        nw.concat(sides)
        .group_by(*item, "kind", "choice")
        .agg(
            *(nw.col(name).sum() for name in (*SIDES, "again")),
            *(nw.col(name).max() for name in kept),
        )
    )
    zero = nw.lit(0, dtype=nw.Int64)
    own, after, again = (nw.col(name).cast(nw.Int64) for name in (*SIDES, "again"))
    before = own + again
    tallies = {
        f"{kind}_{side}": nw.when(nw.col("kind") == code).then(count).otherwise(zero)
        for side, count in zip(SIDES, (before, after), strict=True)
        for code, kind in enumerate(ANSWERS)
    }
    is_option = nw.col("kind") == ANSWERS.index("option")
    tallies["same"] = nw.when(is_option).then(before * after).otherwise(zero)
    items = (
        chosen.select(*item, *kept, own=own, other=after, **tallies)
        .group_by(*item)
        .agg(
            *(nw.col(name).sum() for name in ("own", "other", *tallies)),
            *(nw.col(name).max() for name in kept),
        )
    )
    return items.filter((nw.col("own") > 0) & (nw.col("other") > 0))


def _answers_of(pairs: Pairs, side: str, facts: Mapping[str, nw.Expr], *, own: str) -> Frame:
    """Return one row per scored answer of a side."""
    has_choice = f"wrong_{side}" in pairs.columns
    choice = nw.col(f"wrong_{side}") if has_choice else nw.lit(None, dtype=nw.String)
    kept = is_in(side) & (nw.col(f"state_{side}") != UNSCORED)
    return pairs.frame.filter(kept).select(
        "task",
        *pairs.item_columns,
        **facts,
        kind=answer_kind(side, pairs.columns),
        choice=nw.coalesce(choice.cast(nw.String), nw.lit("")),
        **{name: nw.lit(int(own == name), dtype=nw.Int64) for name in (*SIDES, "again")},
    )


def _collect(table: pa.Table, joined: Sequence[str]) -> Kinds:
    """Return the counted items as arrays, in an order that no engine decides."""
    labels, label = _labels(table)
    texts, half = _codes(table, "half_text")
    golds, gold = _codes(table, "gold")
    cluster = None
    if "cluster" in table.column_names:
        names, cluster = _codes(table, "cluster")
        order = pc.sort_indices(pa.array(names, pa.string())).to_numpy()
        cluster = np.append(np.argsort(order), -1)[cluster]
    numbers = {name: table[name].cast(pa.float64()).to_numpy() for name in (*TALLIES, *joined, "n")}
    kinds = Kinds(
        labels=labels,
        label=label,
        count=numbers["n"],
        k=pc.fill_null(table["k"].cast(pa.float64()), math.inf).to_numpy(),
        gold=np.array([*map(_position, golds), math.nan])[gold],
        half=np.append(halve([None] * len(texts), texts), 0)[half],
        cluster=cluster,
        tallies=np.stack([numbers[name] for name in TALLIES], 1),
        earlier=_stacked(numbers, EARLIER, joined),
        fresh=_stacked(numbers, FRESH, joined),
    )
    # Float sums must not depend on the order in which an engine returns groups.
    keys = [
        *(numbers[name] for name in ("n", *joined, *TALLIES)),
        np.nan_to_num(kinds.gold, nan=-1.0), kinds.k, kinds.half, label,
    ]  # fmt: skip
    if cluster is not None:
        keys.append(cluster)
    return kinds.take(np.lexsort(keys))


def _codes(table: pa.Table, name: str) -> tuple[list[Any], Integers]:
    """Return the different values of a column, and the place of each row's value; -1 for null."""
    if name not in table.column_names:
        return [], np.full(len(table), -1)
    column = table[name].combine_chunks().dictionary_encode()
    places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return column.dictionary.to_pylist(), places


def _labels(table: pa.Table) -> tuple[tuple[Label, ...], Integers]:
    """Return the different labels, sorted, and the place of each row's label."""
    combined = np.zeros(len(table), np.int64)
    values = []
    for name in ("task", "category", "tags"):
        names, places = _codes(table, name)
        values.append([*names, None])
        combined = combined * len(values[-1]) + places % len(values[-1])
    found, label = np.unique(combined, return_inverse=True)
    sizes = [len(own) for own in values]
    parts = zip(*(np.unravel_index(found, sizes)), strict=True)
    labels = [
        Label(*(own[int(at)] for own, at in zip(values, part, strict=True))) for part in parts
    ]
    order = sorted(range(len(labels)), key=lambda at: str(labels[at]))
    rank = np.argsort(np.array(order, np.int64))
    return tuple(labels[at] for at in order), rank[label]


def _stacked(
    numbers: Mapping[str, Reals], names: Sequence[str], joined: Sequence[str]
) -> Reals | None:
    return np.stack([numbers[name] for name in names], 1) if set(names) <= set(joined) else None


def _cluster_index(names: Sequence[str | None]) -> Integers:
    known = sorted({name for name in names if name is not None})
    index = {name: at for at, name in enumerate(known)}
    return np.array([-1 if name is None else index[name] for name in names], np.int64)


def refuse_one_cluster(kinds: Kinds) -> None:
    """Refuse a cluster column that makes one cluster of everything.

    Raises:
        PairingError: all items are in one cluster.
    """
    if kinds.items > 1 and kinds.sample.clusters < TWO_OPTIONS:
        raise PairingError(
            "the column `cluster` puts all items into one cluster, so nothing can be concluded",
            hint="leave the column out, or give it one value per passage.",
        )
