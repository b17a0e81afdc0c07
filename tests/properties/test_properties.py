"""Properties of any two runs: order, files, sides, sums, and equal numbers in all libraries."""

from __future__ import annotations

import csv
import gzip
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import forgetmap as fm
from backends import as_arrow, as_frame, counted, foretold, rows_of
from effort import examples
from forgetmap.comparison.comparison import Comparison
from generated_runs import Pair, pairs_of_runs
from oracle import Row, expect

CELLS = ("n", "n00", "n01", "n10", "n11")
KINDS = ("csv", "jsonl", "parquet")
SOME, FEW = examples(5, long=120), examples(3, long=40)


def compare(before: Any, after: Any) -> Comparison:
    return fm.compare(before, after, min_paired=1e-9)


def compare_rows(runs: Sequence[Sequence[Row]], library: str = "polars") -> Comparison:
    before, after = (as_frame(rows, library, Path()) for rows in runs)
    return compare(before, after)


MISSING = {"coverage", "worst_case"}
"""What tells of results that are missing on one side."""


def numbers(comparison: Comparison) -> dict[str, Any]:
    """All of a result that does not depend on names of runs."""
    names = {"headline", "before", "after"}
    result = {key: value for key, value in comparison.result.to_dict().items() if key not in names}
    return result | {"unpaired": rows_of(comparison.unpaired())}


@contextmanager
def written(runs: Pair, kind: str) -> Iterator[tuple[Path, list[Path]]]:
    """A folder, and in it both runs as one file each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{side}.{kind}" for side in ("before", "after")]
        for path, rows in zip(paths, runs, strict=True):
            write(rows, path)
        yield Path(folder), paths


def write(rows: Sequence[Row], path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(as_arrow(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows({name: _csv_cell(cell) for name, cell in row.items()} for row in rows)


def _csv_cell(cell: Any) -> Any:
    return json.dumps(cell) if isinstance(cell, list) else cell


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "duckdb"])
@SOME
@given(runs=pairs_of_runs())
def test_every_library_counts_what_plain_python_counts(library: str, runs: Pair) -> None:
    comparison = compare_rows(runs, library)
    assert counted(comparison, ("forgotten",)) == foretold(expect(*runs), ("forgotten",))


@FEW
@given(runs=pairs_of_runs(), kind=st.sampled_from(KINDS))
def test_every_file_counts_what_plain_python_counts(runs: Pair, kind: str) -> None:
    with written(runs, kind) as (_, paths):
        assert counted(compare(*paths), ("forgotten",)) == foretold(expect(*runs), ("forgotten",))


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "duckdb"])
@FEW
@given(runs=pairs_of_runs(), seed=st.integers())
def test_the_order_of_rows_never_matters(library: str, runs: Pair, seed: int) -> None:
    dice = random.Random(seed)
    shuffled = [dice.sample(rows, len(rows)) for rows in runs]
    assert numbers(compare_rows(shuffled, library)) == numbers(compare_rows(runs, library))


@SOME
@given(runs=pairs_of_runs(("shared",)), seed=st.integers())
def test_the_order_of_twins_never_matters(runs: Pair, seed: int) -> None:
    dice = random.Random(seed)
    shuffled = [dice.sample(rows, len(rows)) for rows in runs]
    assert numbers(compare_rows(shuffled)) == numbers(compare_rows(runs))


@FEW
@given(
    runs=pairs_of_runs(),
    kind=st.sampled_from(KINDS),
    names=st.permutations(["a.csv", "results (1)", "B'ase.txt", "ünder.data"]),
)
def test_the_names_of_files_never_matter(runs: Pair, kind: str, names: list[str]) -> None:
    with written(runs, kind) as (folder, paths):
        usual = numbers(compare(*paths))
        renamed = [path.rename(folder / name) for path, name in zip(paths, names, strict=False)]
        assert numbers(compare(*renamed)) == usual


@FEW
@given(runs=pairs_of_runs(), kind=st.sampled_from(KINDS), seed=st.integers())
def test_splitting_into_files_never_matters(runs: Pair, kind: str, seed: int) -> None:
    dice = random.Random(seed)
    with written(runs, kind) as (folder, paths):
        whole = numbers(compare(*paths))
        for side, rows in zip(("before", "after"), runs, strict=True):
            (folder / side).mkdir()
            places = [dice.randrange(3) for _ in rows]
            for place in set(places):
                part = [row for row, own in zip(rows, places, strict=True) if own == place]
                write(part, folder / side / f"part{place}.{kind}")
        assert numbers(compare(folder / "before", folder / "after")) == whole


@FEW
@given(runs=pairs_of_runs(), kind=st.sampled_from(KINDS))
def test_gzip_never_matters(runs: Pair, kind: str) -> None:
    with written(runs, kind) as (folder, paths):
        packed = [folder / f"{path.name}.gz" for path in paths]
        for path, target in zip(paths, packed, strict=True):
            target.write_bytes(gzip.compress(path.read_bytes()))
        assert numbers(compare(*packed)) == numbers(compare(*paths))


@SOME
@given(runs=pairs_of_runs())
def test_swapping_the_sides_swaps_forgetting_and_gain(runs: Pair) -> None:
    there, back = compare_rows(runs).result, compare_rows(runs[::-1]).result
    # Twins may be paired across categories; the side before then names it.
    both = [(each, [*each.categories, *each.tags]) for each in (there, back)]
    labels = not there.pairing.duplicates
    groups = [[each.total, *each.tasks, *(named if labels else [])] for each, named in both]
    for ours, theirs in zip(*groups, strict=True):
        assert ours.name == theirs.name
        assert (ours.n00, ours.n11, ours.items) == (theirs.n00, theirs.n11, theirs.items)
        assert (ours.n10, ours.n01) == (theirs.n01, theirs.n10)
        assert ours.forgetting == theirs.backward_transfer
        assert ours.acc_before == theirs.acc_after
    assert there.pairing.only_before == back.pairing.only_after
    assert there.pairing.only_after == back.pairing.only_before
    for name in ("paired", "items", "conflicts", "duplicates", "unscored", "share"):
        assert getattr(there.pairing, name) == getattr(back.pairing, name)


@SOME
@given(runs=pairs_of_runs())
def test_everything_is_counted_once(runs: Pair) -> None:
    result = compare_rows(runs).result
    pairing, total = result.pairing, result.total
    left_before = pairing.rows_before - pairing.paired - pairing.only_before - pairing.conflicts
    left_after = pairing.rows_after - pairing.paired - pairing.only_after - pairing.conflicts
    # Further answers to an item that the other side answered less often are neither.
    is_repeated = any("repeat" in row for rows in runs for row in rows)
    assert (left_before >= 0 <= left_after) if is_repeated else (left_before == 0 == left_after)
    assert total.n == pairing.paired - pairing.unscored
    for group in (total, *result.tasks, *result.categories, *result.tags):
        assert group.n == group.n00 + group.n01 + group.n10 + group.n11
        assert sum(count or 0 for count in group.reasons.values()) == group.n10
        assert group.items <= group.n
    for name in (*CELLS, "items"):
        assert sum(getattr(task, name) for task in result.tasks) == getattr(total, name)


@SOME
@given(runs=pairs_of_runs())
def test_categories_add_up_and_the_macro_average_is_the_mean_of_the_tasks(runs: Pair) -> None:
    labelled = [[row | {"category": f"of {row['task']}"} for row in rows] for rows in runs]
    result = compare_rows(labelled).result
    for name in CELLS:
        found = sum(getattr(each, name) for each in result.categories)
        assert found == getattr(result.total, name)
    macro = result.total_macro
    for name in ("forgetting", "backward_transfer", "drop"):
        rates = [getattr(task, name).value for task in result.tasks]
        known = [rate for rate in rates if rate is not None]
        mean = pytest.approx(sum(known) / len(known), abs=1e-12) if known else None
        assert getattr(macro, name).value == mean
    flips = macro.forgetting.value
    share = flips / macro.acc_before if flips is not None and macro.acc_before else None
    assert macro.conditional_forgetting.value == share


@SOME
@given(runs=pairs_of_runs(("none", "own")))
def test_dropping_an_unscored_item_changes_no_other_number(runs: Pair) -> None:
    """Twins are left out: told apart by order, they move up when one of them goes.

    So are answers with a score whose counterpart has none, where there are repeats: they still
    tell how often their model disagrees with itself.
    """
    repeated = any(row.get("repeat") for rows in runs for row in rows)
    first = {rows[0]["item"] for rows in runs}
    unscored = [
        pair
        for pair in expect(*runs).pairs
        if pair.before
        and pair.after
        and not pair.is_scored
        and pair.before["item"] not in first
        and not (repeated and (pair.before["score"], pair.after["score"]) != (None, None))
    ]
    assume(unscored)
    gone = unscored[0]
    left = [
        [row for row in rows if not is_of(row, gone.task, own, gone.repeat)]
        for rows, own in zip(runs, (gone.before, gone.after), strict=True)
    ]
    was, now = compare_rows(runs).result, compare_rows(left).result
    assert now.pairing.unscored == was.pairing.unscored - 1
    assert now.pairing.paired == was.pairing.paired - 1
    for name in ("total", "total_macro"):
        kept, full = (getattr(each, name).to_dict() for each in (now, was))
        assert {each: kept[each] for each in kept.keys() - MISSING} == {
            each: full[each] for each in full.keys() - MISSING
        }
    for name in ("only_before", "only_after", "conflicts", "items"):
        assert getattr(now.pairing, name) == getattr(was.pairing, name)


def is_of(row: Row, task: str, other: Row | None, repeat: int) -> bool:
    """Whether this is the row of another's item, in the repeat of this number."""
    labels = (7, 11, 42)
    same = other is not None and (row["task"], row["item"]) == (task, other["item"])
    return same and row.get("repeat") in (None, 5, labels[repeat])


@SOME
@given(runs=pairs_of_runs())
def test_a_copy_of_every_task_doubles_every_count(runs: Pair) -> None:
    doubled = [
        [*rows, *(row | {"task": f"copy of {row['task']}"} for row in rows)] for rows in runs
    ]
    once, twice = compare_rows(runs).result, compare_rows(doubled).result
    for name in ("paired", "items", "only_before", "only_after", "duplicates", "conflicts"):
        assert getattr(twice.pairing, name) == 2 * getattr(once.pairing, name)
    for ours, theirs in ((once.total, twice.total), *zip(once.tags, twice.tags, strict=True)):
        for name in (*CELLS, "items"):
            assert getattr(theirs, name) == 2 * getattr(ours, name)
    # The same mean of twice as many numbers: its last digit may differ.
    same = (
        None
        if once.total.forgetting.value is None
        else pytest.approx(once.total.forgetting.value, rel=1e-12)
    )
    assert twice.total.forgetting.value == same
