"""Kinds of items: equal to a plain count of the answers, in every dataframe library."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estimator_oracle as oracle
import forgetmap as fm
from backends import LIBRARIES, as_arrow, as_frame
from estimator_oracle import Item, Row, Shape
from estimator_runs import read_halves
from forgetmap.comparison import Kinds
from forgetmap.errors import PairingError

SEED = 4
SHAPES = {
    "single": Shape(),
    "single, many tasks": Shape(tasks=9, items=12),
    "unscored": Shape(unscored=0.2),
    "no choices": Shape(silent=1.0),
    "open-ended": Shape(ks=(None,)),
    "repeats": Shape(repeats=3, items=14),
    "uneven repeats": Shape(repeats=(3, 2), items=14, missing=0.4, unscored=0.2, tasks=9),
    "repeats after": Shape(repeats=(1, 3), items=14),
    "clusters": Shape(clusters=True, tasks=9, items=12),
    "clusters, uneven repeats": Shape(repeats=(1, 2), clusters=True, missing=0.4, items=12),
    "content": Shape(content=1, tasks=9, items=12),
    "shared content": Shape(content=3, tasks=9, items=12),
    "shared content, repeats": Shape(content=2, repeats=2, unscored=0.2, items=12),
    "shared content, clusters": Shape(content=3, clusters=True, items=12),
}
Kind = tuple[Any, ...]


def sides(shape: Shape) -> tuple[list[Row], list[Row]]:
    """Return both runs; each lacks an item of the other."""
    before, after = (oracle.random_run(SEED, shape, side) for side in ("before", "after"))
    return (
        [row for row in before if (row["task"], row["item"]) != ("arc", "1")],
        [row for row in after if (row["task"], row["item"]) != ("piqa", "10")],
    )


def kinds_of(comparison: fm.Comparison) -> Kinds:
    return comparison.grounds.evidence.kinds


def counted(kinds: Kinds) -> Counter[Kind]:
    """Count the items of a table by everything but their cluster."""
    found: Counter[Kind] = Counter()
    for at, count in enumerate(kinds.count):
        gold = kinds.gold[at]
        label = kinds.labels[kinds.label[at]]
        key = (*label, kinds.k[at], None if math.isnan(gold) else gold, *kinds.tallies[at])
        found[key] += int(count)
    return found


def foretold(items: Sequence[Item]) -> Counter[Kind]:
    """Return the same, counted from the answers."""
    return Counter(
        (*(item.row[name] for name in ("task", "category", "tags")), item.k,
         item.row["gold_index"], *map(float, oracle.tally(item)))
        for item in items
    )  # fmt: skip


def partition(kinds: Kinds) -> Counter[tuple[Kind, ...]]:
    """Return the clusters of two or more items, each as the kinds of its items."""
    members: dict[int, list[Kind]] = defaultdict(list)
    if kinds.cluster is not None:
        for at, count in enumerate(kinds.count):
            if kinds.cluster[at] >= 0:
                key = (kinds.labels[kinds.label[at]].task, *kinds.tallies[at])
                members[int(kinds.cluster[at])] += [key] * int(count)
    return Counter(tuple(sorted(own)) for own in members.values() if len(own) > 1)


def foretold_partition(items: Sequence[Item]) -> Counter[tuple[Kind, ...]]:
    members: dict[Any, list[Kind]] = defaultdict(list)
    for item, cluster in zip(items, oracle.shared_clusters(items), strict=True):
        if cluster is not None:
            members[cluster].append((item.row["task"], *map(float, oracle.tally(item))))
    return Counter(tuple(sorted(own)) for own in members.values())


def items_of(shape: Shape, *runs: list[Row]) -> list[Item]:
    single = shape.repeats == 1 and len(runs) == 2
    before, after, *again = runs
    return (
        oracle.paired_items(before, after)
        if single
        else oracle.items_of(before, after, *(again[0] if again else ()))
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", SHAPES)
def test_kinds_are_those_of_a_plain_count(name: str, library: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    before, after = sides(shape)
    frames = [
        as_frame(rows, library, tmp_path / f"{place}.parquet")
        for place, rows in enumerate((before, after))
    ]
    kinds = kinds_of(fm.compare(frames[0], frames[1], min_paired=0.5))
    items = items_of(shape, before, after)
    assert counted(kinds) == foretold(items)
    assert partition(kinds) == foretold_partition(items)
    assert (kinds.cluster is not None) >= bool(foretold_partition(items))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["single, many tasks", "uneven repeats", "shared content"])
def test_a_noise_run_is_more_answers_of_the_model_before(
    name: str, library: str, tmp_path: Path
) -> None:
    shape = SHAPES[name]
    before, after = sides(shape)
    again = [row for row in oracle.random_run(SEED, shape, "again") if row["item"] != "7"]
    frames = [
        as_frame(rows, library, tmp_path / f"{place}.parquet")
        for place, rows in enumerate((before, after, again))
    ]
    kinds = kinds_of(fm.compare(frames[0], frames[1], noise=frames[2], min_paired=0.5))
    assert counted(kinds) == foretold(items_of(shape, before, after, again))


# ---------------------------------------------------------------------------- halves


@pytest.mark.parametrize("pair_by", ["auto", "id"])
@pytest.mark.parametrize("name", [name for name in SHAPES if SHAPES[name].tasks > 8])
def test_halves_are_a_property_of_items_and_not_of_their_answers(name: str, pair_by: str) -> None:
    shape = SHAPES[name]
    before, after = (oracle.random_run(SEED, shape, side) for side in ("before", "after"))
    found = read_halves(before, after, pair_by=pair_by, min_paired=0.5)
    wrong = [row | {"score": 0.0, "choice": None, "outcome": "incorrect"} for row in after]
    again = read_halves(before[::-1], wrong, pair_by=pair_by, min_paired=0.5)
    assert {key: again[key] for key in found} == found
    assert 0.3 < np.mean(list(found.values())) < 0.7


@pytest.mark.parametrize("pair_by", ["auto", "id"])
@pytest.mark.parametrize(
    "shape",
    [
        Shape(content=3, tasks=9, items=12),
        Shape(content=3, tasks=9, items=12, repeats=2),
        Shape(content=3, tasks=9, items=12, clusters=True),
        Shape(tasks=9, items=12, clusters=True, repeats=(1, 2), missing=0.5, unscored=0.3),
    ],
)
@pytest.mark.parametrize("without", [(), ("before",), ("after",)])
def test_a_cluster_is_in_one_half(shape: Shape, pair_by: str, without: tuple[str, ...]) -> None:
    """Also where only one side names the clusters, or only some tasks have content on both."""
    runs = {side: oracle.random_run(SEED, shape, side) for side in ("before", "after")}
    for side in without:
        runs[side] = [_forget(row, shape) for row in runs[side]]
    if shape.content and "before" in without:
        return  # the content of the model before makes clusters
    found = read_halves(*runs.values(), pair_by=pair_by, min_paired=0.5)
    whole = {oracle_key(row): row for row in oracle.random_run(SEED, shape, "before")}
    of: dict[Any, set[int]] = defaultdict(set)
    for key, half in found.items():
        of[Item(whole[key], {}, {}).cluster].add(half)
    assert len(of) > 8
    assert all(len(own) == 1 for cluster, own in of.items() if cluster is not None)


def oracle_key(row: Row) -> tuple[str, str]:
    return row["task"], row["item"]


def _forget(row: Row, shape: Shape) -> Row:
    """Drop the clusters of a row, and the question of some tasks."""
    if shape.content and row["task"] in oracle.TASKS[::2]:
        return row | {"question": None}
    return {name: value for name, value in row.items() if shape.content or name != "cluster"}


@pytest.mark.parametrize(
    "ids",
    [
        [f"{n}" for n in range(90)],
        [f"{n:04d}-with-a-long-suffix-of-its-own" for n in range(90)],
        [f"{n}" + "x" * 3000 for n in range(90)],
        [chr(65 + n % 26) + chr(0x4E00 + n) for n in range(90)],
        ["a" * (n + 1) for n in range(90)],
    ],
    ids=["numbers", "long endings", "very long", "other scripts", "one letter"],
)
def test_ids_of_any_form_are_halved(ids: list[str]) -> None:
    rows = [{"task": f"t{n % 9}", "item": name, "score": 1.0} for n, name in enumerate(ids)]
    found = read_halves(rows, rows)
    assert found.keys() == {(f"t{n % 9}", name) for n, name in enumerate(ids)}


# ---------------------------------------------------------------------------- parts and edges


def test_an_item_is_in_each_of_its_tags_and_in_no_empty_group() -> None:
    before, after = sides(SHAPES["clusters"])
    kinds = kinds_of(fm.compare(as_arrow(before), as_arrow(after), min_paired=0.5))
    items = oracle.paired_items(before, after)
    names = {"tasks": "task", "categories": "category", "tags": "tags"}
    for level, groups in oracle.groups_of(items).items():
        parts = kinds.by(names[level])
        assert list(parts) == sorted(groups)
        for name, own in groups.items():
            assert counted(parts[name]) == foretold(own)
            assert parts[name].sample.clusters == len(
                {c or item.key for item, c in zip(own, oracle.shared_clusters(own), strict=True)}
            )


def test_mirrored_twice_is_the_same() -> None:
    before, after = sides(SHAPES["repeats"])
    kinds = kinds_of(fm.compare(as_arrow(before), as_arrow(after), min_paired=0.5))
    assert counted(kinds.mirrored) == foretold(oracle.swapped(oracle.items_of(before, after)))
    assert counted(kinds.mirrored.mirrored) == counted(kinds)


def passages(lost: set[int], size: int = 6, count: int = 12) -> tuple[pa.Table, pa.Table]:
    """Two runs of passages, of which some are forgotten as a whole."""
    places = [(passage, place) for passage in range(count) for place in range(size)]
    rows = [{"task": "t", "item": f"{p}-{i}", "cluster": f"p{p}", "score": 1.0} for p, i in places]
    later = [
        row | {"score": float(p not in lost)} for row, (p, _) in zip(rows, places, strict=True)
    ]
    return as_arrow(rows), as_arrow(later)


def test_one_cluster_of_everything_is_refused_and_items_alone_change_nothing() -> None:
    before, after = passages({1, 2}, count=1, size=30)
    with pytest.raises(PairingError, match="all items into one cluster"):
        fm.compare(before, after)
    before, after = passages({1, 2}, size=1, count=60)
    alone = fm.compare(before.drop_columns("cluster"), after.drop_columns("cluster")).result
    assert fm.compare(before, after).result == alone
    assert alone.total.clusters is None


def test_an_item_in_two_clusters_is_refused() -> None:
    before, after = passages({1})
    moved = after.set_column(2, "cluster", pa.array(["p0"] * len(after)))
    with pytest.raises(PairingError, match="an item of task 't' is in two clusters"):
        fm.compare(before, moved)
