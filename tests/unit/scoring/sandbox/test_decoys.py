"""Decoys that cannot be distinguished from the expected value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from forgetmap.scoring.sandbox.decoys import far_above, far_below, shuffle, unlike, with_decoys

VALUES: list[Any] = [
    True, 0, -7, 10**30, 0.5, 3.14, 2j, Decimal("1.5"), Fraction(1, 3), np.float64(2), np.uint8(3),
    "", "Hello 42", "ä", b"", b"\xff\x00", [], [1, ["a"]], (), (1, 2), set(), {1, 2}, {0.5},
    frozenset({"ab"}), {}, {"a": [1]}, date.max, date.min, datetime(9999, 12, 31, tzinfo=UTC),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_decoy_differs_and_is_of_the_same_kind(value: Any) -> None:
    for _ in range(50):
        decoy = unlike(value)
        assert decoy != value
        assert type(decoy) is type(value)


@pytest.mark.parametrize("value", [None, float("inf"), 1e300, Decimal("Infinity"), ...], ids=repr)
def test_what_has_no_other_of_its_kind_is_compared_with_a_text_that_nobody_knows(
    value: Any,
) -> None:
    assert len(unlike(value)) > 20
    assert unlike(value) != unlike(value)


def test_a_decoy_is_no_spelling_and_no_rounding_of_the_value() -> None:
    for _ in range(50):
        assert unlike("Hello").casefold() != "hello"
        assert abs(unlike(0.3) - 0.3) > 0.9
        assert sorted(unlike([2, 1])) != [1, 2]


def test_the_value_may_be_anywhere_among_its_decoys() -> None:
    """Were all made from it, it would be in the middle every second time."""
    places = []
    for _ in range(600):
        values = with_decoys(100, 7, unlike)
        assert values[0] == 100
        assert len(set(values)) == len(values) > 1
        places.append(sorted(values).index(100) / (len(values) - 1))
    in_the_middle = sum(0.4 < place < 0.6 for place in places) / len(places)
    assert in_the_middle < 0.4
    assert {0.0, 1.0} <= set(places)


def test_there_are_fewer_decoys_where_there_are_no_more() -> None:
    assert with_decoys(True, 7, unlike) == [True, False]
    value = np.array([1, 2])
    assert [type(each) for each in with_decoys(value, 2, unlike)] == [np.ndarray, str, str]


def test_the_order_is_any_order() -> None:
    orders = {tuple(shuffle([1, 2, 3])) for _ in range(500)}
    assert len(orders) == 6


def test_nothing_is_beyond() -> None:
    assert far_below() < -(2**127) < 2**127 < far_above()
