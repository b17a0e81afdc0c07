"""Numbers of options that observed positions contradict."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import impossible_k


def test_two_options_logged_as_four() -> None:
    assert impossible_k(4, [60, 60, 0, 0], [110, 130], 40) == 2
    assert impossible_k(4, [60, 60], [110, 130, 0, 0], 40) == 2


def test_sorted_gold_is_no_contradiction() -> None:
    """Always the first option: the other positions are chosen, by wrong answers at least."""
    assert impossible_k(4, [800, 0, 0, 0], [1200, 150, 130, 120], 200) is None


@pytest.mark.parametrize(("k", "enough"), [(4, 37), (10, 110)])
def test_gold_alone_needs_so_many_items(k: int, enough: int) -> None:
    for items, expected in ((enough, 2), (enough - 1, None)):
        gold = [items - items // 2, items // 2]
        assert impossible_k(k, gold, [items, items], 500) == expected


def test_wrong_answers_are_needed_too() -> None:
    # (k-1)(1 - 1/(k-1))^W < .01: W >= 15 at k = 4.
    assert impossible_k(4, [60, 60], [120, 120], 15) == 2
    assert impossible_k(4, [60, 60], [120, 120], 14) is None


def test_positions_beyond_k() -> None:
    assert impossible_k(4, [3, 1, 2, 1, 1], [], 0) == 5
    assert impossible_k(4, [3, 1], [0, 0, 0, 0, 0, 1], 1) == 6


def test_gap_between_positions() -> None:
    assert impossible_k(4, [60, 0, 60, 60], [100, 0, 120, 140], 60) == 3


def test_nothing_logged() -> None:
    assert impossible_k(4, [], [], 100) is None
    assert impossible_k(2, [0, 0], [0, 0], 0) is None


def test_two_options_of_which_one_is_never_right() -> None:
    assert impossible_k(2, [100, 0], [200, 0], 0) is None
    assert impossible_k(2, [100, 0], [150, 50], 30) is None


@pytest.mark.parametrize("k", [2, 3, 4, 5, 10])
def test_true_k_is_hardly_ever_contradicted(k: int) -> None:
    rng = np.random.default_rng(k)
    alarms = 0
    for _ in range(3000):
        n = int(rng.integers(5, 150))
        gold = np.bincount(rng.integers(k, size=n), minlength=k)
        wrong = np.bincount(rng.integers(k, size=n // 3), minlength=k)
        alarms += impossible_k(k, gold, gold + wrong, n // 3) is not None
    assert alarms == 0
