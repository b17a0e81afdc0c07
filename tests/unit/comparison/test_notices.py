"""Warnings about misleading numbers, on both sides of each threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison.notices import CEILING, FAILURE_DIFFERENCE, MAX_STANDARD_ERRORS, MIN_ITEMS
from small_runs import message, table


def codes(comparison: fm.Comparison) -> set[str]:
    return {notice.code for notice in comparison.result.pairing.warnings}


def scored(right: int, n: int, k: int | None = None) -> pa.Table:
    columns: dict[str, Any] = {} if k is None else {"k": [k] * n}
    return table([1.0] * right + [0.0] * (n - right), **columns)


@pytest.mark.parametrize(("n", "warned"), [(1, True), (MIN_ITEMS - 1, True), (MIN_ITEMS, False)])
def test_few_items(n: int, *, warned: bool) -> None:
    comparison = fm.compare(scored(0, n), scored(0, n))
    assert ("tiny" in codes(comparison)) is warned


def test_what_a_single_item_moves() -> None:
    said = message(fm.compare(scored(1, 8), scored(1, 8)), "tiny")
    assert said == "only 8 items: a single item changes every rate by 12.5%."


@pytest.mark.parametrize(("stated", "contradicted"), [(None, False), (0.03, True), (0.5, False)])
def test_a_stated_noise_floor_is_held_against_the_repeats(
    stated: float | None, *, contradicted: bool
) -> None:
    items = [str(n) for n in range(100) for _ in range(2)]
    flips = [1.0, 0.0] * 40 + [1.0, 1.0] * 60
    side = table(flips, item=items, repeat=[0, 1] * 100)
    comparison = fm.compare(side, side, noise_floor=stated)
    assert ("noise_floor" in codes(comparison)) is contradicted
    if contradicted:
        said = message(comparison, "noise_floor")
        assert "floor is 3.0%, but repeats flip 20.0% of the items one way" in said


def test_repeats_do_not_make_few_items_many() -> None:
    items = [str(n) for n in range(10) for _ in range(10)]
    side = table([1.0, 0.0] * 50, item=items, repeat=list(range(10)) * 10)
    assert "tiny" in codes(fm.compare(side, side))


def least_not_below_chance(n: int, k: int) -> int:
    luck = 1 / k
    return math.ceil(n * (luck - MAX_STANDARD_ERRORS * math.sqrt(luck * (1 - luck) / n)))


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_side_below_chance(side: str) -> None:
    edge = least_not_below_chance(400, 4)
    good, bad, fine = scored(200, 400, 4), scored(edge - 1, 400, 4), scored(edge, 400, 4)
    pairs = [(bad, good), (fine, good)] if side == "before" else [(good, bad), (good, fine)]
    warned, silent = (fm.compare(*pair) for pair in pairs)
    assert message(warned, "below_chance") == (
        f"fewer right answers {side} than by guessing in t ({100 * (edge - 1) / 400:.1f}%, "
        "guessing 25.0%): a wrong format or failed extraction can look like lost knowledge."
    )
    assert "below_chance" not in codes(silent)


def test_open_questions_have_no_chance_to_be_below() -> None:
    assert "below_chance" not in codes(fm.compare(scored(0, 400), scored(0, 400)))


@pytest.mark.parametrize(("right", "warned"), [(97, True), (96, False)])
def test_a_ceiling_before(right: int, *, warned: bool) -> None:
    assert CEILING == 0.97
    comparison = fm.compare(scored(right, 100), scored(50, 100))
    assert ("ceiling" in codes(comparison)) is warned
    if warned:
        said = message(comparison, "ceiling")
        assert said == "nearly all right before in t (97.0%): gains cannot show there."


def test_a_ceiling_after_is_good_news_and_one_of_few_items_is_luck() -> None:
    assert "ceiling" not in codes(fm.compare(scored(50, 100), scored(100, 100)))
    few = MIN_ITEMS - 1
    assert "ceiling" not in codes(fm.compare(scored(few, few), scored(few, few)))


def ended(failed: int, n: int, how: str | None = "no_answer") -> pa.Table:
    outcomes = [how] * failed + ["incorrect"] * (n - failed)
    return table([0.0] * n, outcome=outcomes)


@pytest.mark.parametrize("how", ["no_answer", "misread", "truncated"])
def test_unreadable_answers_differ_between_the_sides(how: str) -> None:
    comparison = fm.compare(ended(10, 1000, how), ended(140, 1000, how))
    assert message(comparison, "failures_differ") == (
        "1.0% of the answers before and 14.0% after could not be read (none found, misread or cut "
        "off): part of the change may be extraction, not knowledge."
    )
    assert "failures_differ" in codes(fm.compare(ended(140, 1000, how), ended(10, 1000, how)))


@pytest.mark.parametrize(
    ("before", "after", "n"),
    [
        (10, 10 + round(1000 * FAILURE_DIFFERENCE) - 1, 1000),  # too little to matter
        (0, 2, 20),  # 10%, but two answers are luck
    ],
)
def test_small_differences_are_not_warned_about(before: int, after: int, n: int) -> None:
    assert "failures_differ" not in codes(fm.compare(ended(before, n), ended(after, n)))


@pytest.mark.parametrize("how", ["refused", "degenerate"])
def test_what_the_model_does_itself_is_no_failure_of_extraction(how: str) -> None:
    assert "failures_differ" not in codes(fm.compare(ended(0, 1000, how), ended(500, 1000, how)))


def test_failed_samples_count_neither_as_read_nor_as_unreadable() -> None:
    def side(unreadable: int, errors: int) -> pa.Table:
        outcomes: Sequence[str] = (
            ["no_answer"] * unreadable + ["error"] * errors + ["incorrect"] * 900
        )
        scores = [None if how == "error" else 0.0 for how in outcomes]
        return table(scores, outcome=outcomes)

    found = message(fm.compare(side(0, 100), side(100, 0)), "failures_differ")
    assert found.startswith("0.0% of the answers before and 10.0% after")


def test_a_side_without_outcomes_is_not_compared() -> None:
    comparison = fm.compare(table([0.0] * 1000), ended(500, 1000))
    assert "failures_differ" not in codes(comparison)
    assert "failures_differ" not in codes(fm.compare(ended(600, 1000, None), ended(500, 1000)))


def passage(n: int, size: int, beginning: str = "") -> str:
    return beginning + f"Text {n // size}. " + "It goes on and on. " * 12 + f"Question {n}?"


@pytest.mark.parametrize(
    ("questions", "warned"),
    [
        ([passage(n, 5) for n in range(100)], True),
        ([passage(n, 1) for n in range(100)], False),
        ([passage(n, 100) for n in range(100)], False),
        ([passage(n, 1, "Choose the right answer. " * 10) for n in range(100)], False),
        ([passage(n, 5) for n in range(10)] + [f"{n}?" for n in range(90)], False),
        ([f"Short {n // 5}. Question {n}?" for n in range(100)], False),
    ],
    ids=["passages", "none shared", "one for all", "instruction", "few", "short"],
)
def test_passages_that_nobody_declared(questions: Sequence[str], *, warned: bool) -> None:
    scores = [1.0] * 90 + [0.0] * 10
    sides = [table(own, question=questions) for own in (scores, scores[::-1])]
    warnings = fm.compare(sides[0], sides[1]).result.pairing.warnings
    assert ("passages" in {notice.code for notice in warnings}) == warned


def test_declared_passages_need_no_warning() -> None:
    questions = [passage(n, 5) for n in range(100)]
    clusters = [str(n // 5) for n in range(100)]
    scores = [1.0] * 90 + [0.0] * 10
    before, after = (
        table(own, question=questions, cluster=clusters) for own in (scores, scores[::-1])
    )
    warnings = fm.compare(before, after).result.pairing.warnings
    assert "passages" not in {notice.code for notice in warnings}
