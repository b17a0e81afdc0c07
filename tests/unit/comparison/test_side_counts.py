"""Positions of right and chosen options, counted on one side."""

from __future__ import annotations

import narwhals as nw
import polars as pl

from forgetmap.comparison.labels import Label
from forgetmap.comparison.side_counts import SideCounts, count_side, has_empty_position

ROWS = pl.DataFrame(
    {
        "task": ["t"] * 5,
        "score": [1.0, 0.0, 0.0, 0.5, None],
        "k": [4, 4, 4, None, 4],
        "gold_index": [2, 0, 1, None, 3],
        "answer": ["C", "B", "E", None, "D"],
        "choice": ["c", "b", None, None, "d"],
    }
)


def counts(frame: pl.DataFrame = ROWS) -> SideCounts:
    return count_side(nw.from_native(frame).lazy(), 0.5)[Label("t")]


def test_results_without_a_score_are_not_counted() -> None:
    assert (4, 3) not in counts().gold


def test_a_right_answer_stands_where_gold_does_a_wrong_one_at_its_letter() -> None:
    assert counts().gold == {(4, 2): 1, (4, 0): 1, (4, 1): 1}
    assert counts().chosen == {(4, 2): 1, (4, 1): 1}
    assert counts().wrong == {4: 1}


def test_a_letter_beyond_the_options_names_no_position() -> None:
    assert (4, 4) not in counts().chosen


def test_groups_add_up() -> None:
    double = SideCounts.total([counts(), counts()])
    assert (double.gold[4, 2], double.chosen[4, 1], double.wrong[4]) == (2, 2, 2)


def test_a_position_that_is_never_right_is_noticed() -> None:
    assert has_empty_position({(3, 0): 5, (3, 2): 1})
    assert not has_empty_position({(2, 0): 5, (2, 1): 1})
