"""Two results are the same item by content if both sides have it, else by id."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from forgetmap.errors import PairingError, TooFewPairedError
from forgetmap.pairing.keys import choose_keys
from small_items import compare, item, paired_ids, table, warned

FULL = {"rows": 4, "question_hash": 4, "gold_hash": 4, "options_hash": 2}


@pytest.mark.parametrize(
    ("before", "after", "pair_by", "expected"),
    [
        (FULL, FULL, "auto", ("question_hash", "gold_hash", "options_hash")),
        (FULL, FULL, "content", ("question_hash", "gold_hash", "options_hash")),
        (FULL, FULL, "id", ("item",)),
        (FULL, {"rows": 4}, "auto", ("item",)),
        (FULL, FULL | {"question_hash": 3}, "auto", ("item",)),
        (FULL, FULL | {"options_hash": 0}, "auto", ("question_hash", "gold_hash")),
    ],
)
def test_content_counts_as_far_as_both_sides_have_it(
    before: dict[str, int], after: dict[str, int], pair_by: Any, expected: tuple[str, ...]
) -> None:
    assert choose_keys({"t": before}, {"t": after}, pair_by).by_task == {"t": expected}
    assert choose_keys({"t": after}, {"t": before}, pair_by).by_task == {"t": expected}


def test_content_that_is_asked_for_but_not_there() -> None:
    with pytest.raises(PairingError, match="and 0 of 1 after have a question"):
        compare(table(item("a", 1.0, question="q")), table(item("a", 1.0)), pair_by="content")


def test_tasks_have_keys_of_their_own() -> None:
    before = pl.concat(
        [table(item("1", 1.0, question="q"), task="asked"),
         table(item("1", 1.0, question=None), task="bare")],
        how="vertical_relaxed",
    )  # fmt: skip
    after = before.with_columns(item=pl.when(pl.col("task") == "asked").then(pl.lit("99"))
                                .otherwise("item"))  # fmt: skip
    assert paired_ids(compare(before, after)) == {("1", "99"), ("1", "1")}


def test_swapped_ids_are_seen_through() -> None:
    """lm-eval numbers documents wrongly when samples are asked for in another order."""
    before = table(item("5", 1.0, question="five"), item("2", 0.0, question="two"))
    after = table(item("2", 1.0, question="five"), item("5", 0.0, question="two"))
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("5", "2"), ("2", "5")}
    assert comparison.result.total.n10 == comparison.result.total.n01 == 0


def test_the_same_id_with_other_content_is_a_conflict() -> None:
    shared = [item(name, 1.0, question=name) for name in "abc"]
    before = table(*shared, item("d", 1.0, question="old"), item("e", 1.0, question="gone"))
    after = table(*shared, item("d", 0.0, question="new"))
    comparison = compare(before, after)
    pairing = comparison.result.pairing
    assert (pairing.paired, pairing.conflicts) == (3, 1)
    assert (pairing.only_before, pairing.only_after) == (1, 0)
    assert comparison.unpaired().select("item", "why").rows() == [
        ("d", "same id, other content"),
        ("e", "only before"),
    ]
    assert warned(comparison, "conflict").startswith("1 result")


def test_ids_can_be_trusted_on_request() -> None:
    before = table(item("a", 1.0, question="What's 1+1?"), item("b", 1.0, question="old"))
    after = table(item("a", 0.0, question="What is 1+1?"), item("b", 1.0, question="new"))
    with pytest.raises(TooFewPairedError) as caught:
        compare(before, after)
    assert "--pair-by id" in caught.value.hint
    trusted = compare(before, after, pair_by="id")
    assert paired_ids(trusted) == {("a", "a"), ("b", "b")}
    assert trusted.result.pairing.conflicts == 0


def test_items_that_differ_in_their_options_alone() -> None:
    """As in MMLU: which of the following is true?"""
    question = {"question": "Which is true?", "gold": "both"}
    before = table(item("1", 1.0, **question, options=["both", "P"]),
                   item("2", 0.0, **question, options=["both", "Q"]))  # fmt: skip
    after = table(item("7", 0.0, **question, options=["Q", "both"]),
                  item("8", 1.0, **question, options=["P", "both"]))  # fmt: skip
    comparison = compare(before, after)
    assert paired_ids(comparison) == {("1", "8"), ("2", "7")}
    assert comparison.result.pairing.duplicates == 0


def test_shuffled_options_and_letters_still_pair() -> None:
    before = table(item("1", 1.0, question="Capital?", options=["Paris", "Rome"], gold="A"))
    after = table(item("2", 1.0, question=" Capital? ", options=["Rome", "Paris"], gold="B"))
    assert paired_ids(compare(before, after)) == {("1", "2")}


def test_another_right_answer_is_another_item() -> None:
    before = table(*(item(f"{n}", 1.0, question=f"q{n}", gold="yes") for n in range(3)))
    after = before.with_columns(gold=pl.when(pl.col("item") == "1").then(pl.lit("no"))
                                .otherwise("gold"))  # fmt: skip
    pairing = compare(before, after).result.pairing
    assert (pairing.paired, pairing.conflicts) == (2, 1)


def test_a_rendered_prompt_warns_but_does_not_part() -> None:
    sides = [
        table(*(item(f"{n}", 1.0, question=f"q{n}", prompt=f"{role}: q{n}") for n in range(3)))
        for role in ("Question", "User")
    ]
    comparison = compare(*sides)
    assert comparison.result.total.n == 3
    assert "3 of 3 pairs" in warned(comparison, "prompts")


def test_repeats_on_one_side_only_pair_with_the_first() -> None:
    before = table(item("a", 1.0), item("b", 1.0))
    after = table(*(item(name, 0.0, repeat=seed, response=f"{seed}")
                    for name in "ab" for seed in (11, 42, 7)))  # fmt: skip
    pairing = compare(before, after).result.pairing
    assert (pairing.paired, pairing.only_after, pairing.rows_after) == (2, 0, 6)


def test_the_same_tag_twice_counts_once() -> None:
    frame = table(item("a", 1.0, tags="x; x;y"), item("b", 1.0, tags="y"))
    tags = compare(frame, frame).result.tags
    assert [(tag.name, tag.n) for tag in tags] == [("x", 1), ("y", 2)]
