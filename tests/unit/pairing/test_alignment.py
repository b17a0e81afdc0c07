"""A task with two names is matched by name, then by its questions, and reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.errors import TooFewPairedError
from small_items import warned


def items(
    task: str, *numbers: int, wrong: tuple[int, ...] = (), about: str = "q"
) -> list[dict[str, object]]:
    return [
        {
            "task": task,
            "item": f"{task}-{number}",
            "score": float(number not in wrong),
            "question": f"{about} {number}?",
            "gold": f"a{number}",
        }
        for number in numbers
    ]


LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": pa.Table.to_pandas,
    "polars": pl.from_arrow,
    "polars-lazy": lambda table: pl.DataFrame(table).lazy(),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
}


def cells(comparison: fm.Comparison) -> tuple[int, int, int, int]:
    total = comparison.result.total
    return total.n11, total.n10, total.n01, total.n00


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("arc_easy", "ARC-Easy"),
        ("leaderboard|arc:easy|25", "arc_easy"),
        ("inspect_evals/arc_easy", "community|arc:easy|0|0"),
    ],
)
def test_names_that_differ_only_in_spelling_are_one_task(before: str, after: str) -> None:
    other = items("other", *range(4), about="other")
    compared = fm.compare(
        pl.DataFrame(items(before, *range(4)) + other),
        pl.DataFrame(items(after, *range(4), wrong=(1,)) + other),
    )
    assert cells(compared) == (7, 1, 0, 0)
    assert [task.name for task in compared.result.tasks] == sorted([before, "other"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_that_have_nothing_in_common_are_matched_by_questions(library: str) -> None:
    before = items("a", *range(6)) + items("b", *range(10, 16))
    after = items("x", *range(10, 16), wrong=(12,)) + items("y", *range(6), wrong=(3, 4))
    build = LIBRARIES[library]
    compared = fm.compare(build(pa.Table.from_pylist(before)), build(pa.Table.from_pylist(after)))
    by_task = {task.name: task.n10 for task in compared.result.tasks}
    assert by_task == {"a": 2, "b": 1}
    assert "a is y" in warned(compared, "log")


def test_a_task_split_over_two_files_is_one() -> None:
    parts = items("part1", 0, 2, 4, wrong=(2,)) + items("part2", 1, 3, 5)
    whole = items("whole", *range(6))
    split_after = fm.compare(pl.DataFrame(whole), pl.DataFrame(parts))
    split_before = fm.compare(pl.DataFrame(parts), pl.DataFrame(whole))
    assert cells(split_after) == (5, 1, 0, 0)
    assert cells(split_before) == (5, 0, 1, 0)
    assert [task.name for task in split_before.result.tasks] == ["whole"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tasks_that_ask_the_same_twice_are_not_one(library: str) -> None:
    """Which of `direct` and `reasoned` is `asked` cannot be told by their questions."""
    build, more = LIBRARIES[library], items("more", *range(20, 30), about="more")
    twice = items("direct", *range(6)) + items("reasoned", *range(6), wrong=tuple(range(6)))
    asked = items("asked", *range(6))
    tables = [build(pa.Table.from_pylist(rows + more)) for rows in (twice, asked)]
    for before, after in (tables, tables[::-1]):
        compared = fm.compare(before, after, min_paired=0.1)
        assert [task.name for task in compared.result.tasks] == ["more"]
        assert cells(compared) == (10, 0, 0, 0)


def test_tasks_of_other_questions_stay_apart() -> None:
    before = items("a", *range(6)) + items("same", *range(20, 30))
    after = items("x", *range(40, 46)) + items("same", *range(20, 30), wrong=(20,))
    compared = fm.compare(pl.DataFrame(before), pl.DataFrame(after), min_paired=0.1)
    assert cells(compared) == (9, 1, 0, 0)
    assert compared.result.pairing.only_before == compared.result.pairing.only_after == 6


def test_a_task_that_has_its_namesake_is_not_given_away() -> None:
    """Questions of `a` also occur in `x`, but `a` is there on both sides."""
    before = items("a", *range(6))
    after = items("a", *range(6), wrong=(0,)) + items("x", *range(6), wrong=(1, 2, 3))
    compared = fm.compare(pl.DataFrame(before), pl.DataFrame(after), min_paired=0.5)
    assert cells(compared) == (5, 1, 0, 0)


def test_tasks_of_other_names_are_not_paired_by_ids_alone() -> None:
    bare = ["task", "item", "score"]
    before = pl.DataFrame(items("a", *range(6))).select(bare)
    with pytest.raises(TooFewPairedError, match="tasks only before: a; tasks only after: b"):
        fm.compare(before, before.with_columns(task=pl.lit("b")))


def test_every_side_of_a_fan_out_is_aligned_to_the_first() -> None:
    first = items("a", *range(6))
    fan = fm.compare(
        pl.DataFrame(first),
        pl.DataFrame(items("x", *range(6), wrong=(0,))),
        pl.DataFrame(items("y", *range(6), wrong=(1, 2))),
    )
    assert [each.result.total.n10 for each in fan] == [1, 2]
    assert {task.name for each in fan for task in each.result.tasks} == {"a"}
