"""Positions of right answers: `matched` is used only if no position is preferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import forgetmap as fm
from forgetmap.results import Estimate
from small_runs import codes, message

LETTERS = "ABCDEFGHIJ"


def letters(places: Sequence[int], *, repeats: int = 1, gold: str = "index") -> fm.Comparison:
    """Four options; every third item is lost, every third one wrong twice in different ways."""
    tables = []
    for side in (0, 1):
        rows = []
        for item, place in enumerate(places):
            right = item % 3 == 0 or (item % 3 == 1 and not side)
            wrong = LETTERS[(place + 1 + (item // 3 + side) % 3) % 4]
            row = {
                "task": "t",
                "item": str(item),
                "score": float(right),
                "k": 4,
                "choice": LETTERS[place] if right else wrong,
            }
            row |= {"gold_index": place} if gold == "index" else {"gold": LETTERS[place]}
            rows += [row | {"repeat": repeat} for repeat in range(repeats)]
        tables.append(pa.Table.from_pylist(rows))
    return fm.compare(tables[0], tables[1])


def is_refused(comparison: fm.Comparison) -> bool:
    matched = comparison.result.total.matched.forgetting
    assert ("lopsided" in codes(comparison)) == (matched.value is None)
    return matched.value is None


def limits(estimate: Estimate) -> tuple[float | None, ...]:
    return estimate.value, estimate.low, estimate.high


def spread(counts: Sequence[int]) -> list[int]:
    return [place for place, count in enumerate(counts) for _ in range(count)]


@pytest.mark.parametrize("gold", ["index", "letter"])
@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        ([60, 60, 60, 60], False),
        ([240, 0, 0, 0], True),
        ([90, 50, 50, 50], True),
        ([70, 60, 60, 50], False),  # chance explains it
        ([5, 1, 1, 1], False),  # too few to tell
    ],
)
def test_matched_is_refused_where_one_place_holds_the_answer_too_often(
    counts: list[int], refused: bool, gold: str
) -> None:
    assert is_refused(letters(spread(counts), gold=gold)) == refused


def test_much_data_makes_a_small_imbalance_no_reason() -> None:
    """Real benchmarks are off by a few percent; with many items that is significant."""
    counts = [1100, 1000, 1000, 900]
    assert stats.chisquare(counts).pvalue < 0.001
    assert not is_refused(letters(spread(counts)))


def test_repeats_do_not_count_as_evidence_of_imbalance() -> None:
    counts = [13, 7, 6, 6]
    assert stats.chisquare(counts).pvalue > 0.01 > stats.chisquare([5 * n for n in counts]).pvalue
    assert not is_refused(letters(spread(counts), repeats=5))


def test_what_is_said_and_shown_instead() -> None:
    comparison = letters([0] * 120)
    total = comparison.result.total
    assert "far more often" in message(comparison, "lopsided")
    assert total.headline.estimator == "bracket"
    for end, own in ((total.bracket_low, total.latent), (total.bracket_high, total.upper)):
        assert limits(end.forgetting) == limits(own.forgetting)
    assert "positions" in (total.matched.forgetting.reason or "")


def test_imbalance_within_one_task_is_refused_there_only() -> None:
    places = {"even": spread([30, 30, 30, 30]), "first": [0] * 40}
    tables = []
    for side in (0, 1):
        rows = [
            {
                "task": task,
                "item": str(item),
                "score": float(item % 2 and not side),
                "k": 4,
                "choice": LETTERS[(place + (not (item % 2 and not side))) % 4],
                "gold_index": place,
            }
            for task, golds in places.items()
            for item, place in enumerate(golds)
        ]
        tables.append(pa.Table.from_pylist(rows))
    result = fm.compare(tables[0], tables[1]).result
    found = {task.name: task.matched.forgetting.value is not None for task in result.tasks}
    assert found == {"even": True, "first": False}
    assert result.total_macro.matched.forgetting.value is None


def test_without_places_matched_is_taken_at_its_word() -> None:
    rows = [{"task": "t", "item": str(n), "score": n % 2, "k": 4, "choice": "x"} for n in range(9)]
    comparison = fm.compare(pa.Table.from_pylist(rows), pa.Table.from_pylist(rows))
    assert not is_refused(comparison)


def two_options(habit_before: int, habit_after: int, seed: int = 0, n: int = 2000) -> list[Any]:
    """Nothing is lost; what is not known is answered by always the same letter."""
    random = np.random.default_rng(seed)
    gold, known = random.integers(2, size=n), random.random(n) < 0.6
    frames = []
    for habit in (habit_before, habit_after):
        right = known | (gold == habit)
        frames.append(
            pl.DataFrame(
                {
                    "task": "t",
                    "item": [str(number) for number in range(n)],
                    "score": right.astype(float),
                    "k": 2,
                    "gold_index": gold,
                }
            )
        )
    return frames


def test_a_habit_that_moves_is_no_loss() -> None:
    before, after = two_options(0, 1)
    comparison = fm.compare(before, after)
    assert comparison.result.total.verdict == "cannot_tell"
    assert "habits_moved" in {notice.code for notice in comparison.result.pairing.warnings}


def test_a_habit_that_moves_where_right_answers_are_lopsided_blocks_the_estimate() -> None:
    """Nothing is lost, but the letter of the habit before is right more often than that after."""
    before, after = (
        frame.filter((pl.col("gold_index") == 0) | (pl.col("item").str.slice(-1) < "6"))
        for frame in two_options(0, 1)
    )
    total = fm.compare(before, after).result.total
    assert total.verdict == "cannot_tell"
    assert "the chosen letters changed in t" in total.headline.words
    assert total.latent.forgetting.value is None


def test_a_habit_that_stays_is_not_named() -> None:
    before, after = two_options(0, 0)
    comparison = fm.compare(before, after)
    assert "habits_moved" not in {notice.code for notice in comparison.result.pairing.warnings}


def test_a_number_of_options_that_cannot_be_true_blocks_the_estimate() -> None:
    frames = [frame.with_columns(k=pl.lit(4)) for frame in two_options(0, 1)]
    answers = [
        frame.with_columns(
            answer=pl.when((pl.col("score") == 1) == (pl.col("gold_index") == 0))
            .then(pl.lit("A"))
            .otherwise(pl.lit("B"))
        )
        for frame in frames
    ]
    total = fm.compare(answers[0], answers[1]).result.total
    assert total.verdict == "cannot_tell"
    assert "use only 2" in total.headline.words
    assert total.latent.forgetting.value is None
