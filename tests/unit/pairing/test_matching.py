"""Items with equal content are distinguished by id, then by order, and never counted twice."""

from __future__ import annotations

import itertools

import polars as pl
import pytest

from forgetmap.errors import DuplicateKeyError
from small_items import compare, item, paired_ids, table, warned


def test_twins_are_told_apart_by_ids_that_agree() -> None:
    before = table(*(item(name, 1.0, question="same") for name in ("x", "y", "z")))
    after = table(*(item(name, 0.0, question="same") for name in ("z", "x", "y")))
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("x", "x"), ("y", "y"), ("z", "z")}
    assert comparison.result.pairing.duplicates == 3
    assert "order" not in warned(comparison, "duplicates")


def test_twins_with_other_ids_are_paired_in_the_order_of_their_ids() -> None:
    before = table(*(item(name, 1.0, question="same") for name in ("10", "9", "100")))
    after = table(*(item(name, 1.0, question="same") for name in ("doc-11", "doc-2", "doc-1")))
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("9", "doc-1"), ("10", "doc-2"), ("100", "doc-11")}
    assert "3 of them" in warned(comparison, "duplicates")


def test_ids_that_agree_go_first_and_the_rest_by_order() -> None:
    before = table(*(item(name, 1.0, question="same") for name in ("1", "2", "3")))
    after = table(*(item(name, 1.0, question="same") for name in ("2", "7", "8", "9")))
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("2", "2"), ("1", "7"), ("3", "8")}
    assert comparison.result.pairing.only_after == 1
    assert comparison.unpaired()["item"].to_list() == ["9"]


def test_one_item_here_and_two_there_pair_once() -> None:
    before = table(item("1", 1.0, question="same"))
    after = table(item("5", 0.0, question="same"), item("6", 0.0, question="same"))
    for sides, pairs in (((before, after), {("1", "5")}), ((after, before), {("5", "1")})):
        comparison = compare(*sides)
        assert paired_ids(comparison) == pairs
        assert comparison.result.pairing.paired == 1


def test_single_items_beside_twins_keep_their_pairs() -> None:
    before = table(item("1", 1.0, question="a"), item("2", 1.0, question="a"),
                   item("3", 1.0, question="b"))  # fmt: skip
    after = table(item("x", 0.0, question="b"), item("1", 1.0, question="a"))
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("1", "1"), ("3", "x")}
    assert comparison.result.pairing.duplicates == 2


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5])
def test_the_order_of_rows_does_not_tell_twins_apart(order: tuple[int, ...]) -> None:
    names = ("1", "2", "30", "4")
    before = table(*(item(name, float(len(name) > 1), question="same") for name in names))
    after = table(*(item(f"x{name}", 1.0, question="same") for name in names))
    shuffled = [compare(before[list(order)], after), compare(before, after[list(order)])]
    expected = {(name, f"x{name}") for name in names}
    assert [paired_ids(each) for each in shuffled] == [expected, expected]


def test_twins_of_two_tasks_do_not_meet() -> None:
    sides = [
        pl.concat([table(item(f"{side}{task}", 1.0, question="same"), task=task) for task in "pq"])
        for side in "xy"
    ]
    comparison = compare(*sides)
    assert paired_ids(comparison) == {("xp", "yp"), ("xq", "yq")}
    assert comparison.result.pairing.duplicates == 0


def test_a_twin_keeps_its_counterpart_over_all_repeats() -> None:
    """Item 1 was not asked the second time; item 2 must not take its place there."""
    asked = [("1", 0), ("2", 0), ("3", 0), ("2", 1), ("3", 1)]
    before = table(*(item(name, 1.0, question="same", repeat=time, response=f"{time}")
                     for name, time in asked))  # fmt: skip
    after = table(*(item(f"x{name}", 1.0, question="same", repeat=time, response=f"{time}")
                    for name in "123" for time in (0, 1)))  # fmt: skip
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("1", "x1"), ("2", "x2"), ("3", "x3")}
    assert comparison.result.total.n == 5
    assert comparison.result.total.items == 3


def test_samples_with_ids_of_their_own_are_no_twins() -> None:
    """Some harnesses number every answer; the repeats of an item then share their content."""
    before = table(*(item(f"{n}", 1.0, question="q", repeat=n) for n in range(3)))
    after = table(*(item(f"{9 - n}", 0.0, question="q", repeat=n) for n in range(3)))
    result = compare(before, after).result
    assert (result.total.n10, result.total.items, result.pairing.duplicates) == (3, 1, 0)


@pytest.mark.parametrize("scores", [(1.0, 1.0), (1.0, 0.0), (None, 1.0)])
@pytest.mark.parametrize("more", [{}, {"question": "q"}, {"category": "x"}])
@pytest.mark.parametrize("place", ["both", "before", "after"])
def test_exact_duplicates_are_refused(
    scores: tuple[float | None, ...], more: dict[str, str], place: str
) -> None:
    """Also where the doubled rows have no counterpart, and where their scores differ."""
    whole = [item(name, 1.0, **dict.fromkeys(more, name)) for name in "abcdef"]
    doubled = [*whole, *(item("dup", score, **more) for score in scores)]
    before = table(*(whole if place == "after" else doubled))
    after = table(*(whole if place == "before" else doubled))
    with pytest.raises(DuplicateKeyError) as caught:
        compare(before, after)
    assert (caught.value.field, caught.value.line) == ("item", len(doubled))
    assert "'dup'" in caught.value.message


def test_doubles_that_differ_only_in_category_are_refused() -> None:
    after = table(item("a", 1.0, category="x"), item("b", 1.0, category="x"),
                  item("b", 1.0, category="y"))  # fmt: skip
    with pytest.raises(DuplicateKeyError):
        compare(table(item("a", 1.0)), after)


def test_a_question_that_is_the_same_for_all_leaves_the_ids() -> None:
    number = 20_000
    rows = pl.DataFrame({"item": range(number)}).with_columns(
        task=pl.lit("t"), question=pl.lit("Answer the question."), score=pl.col("item") % 2 == 0
    )
    result = compare(rows, rows.with_columns(score=pl.col("item") % 3 == 0)).result
    right_before = {n for n in range(number) if n % 2 == 0}
    right_after = {n for n in range(number) if n % 3 == 0}
    assert result.total.n10 == len(right_before - right_after)
    assert result.pairing.duplicates == number
