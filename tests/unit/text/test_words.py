"""Numbers and names as written in sentences."""

from __future__ import annotations

import pytest

from forgetmap.text import counted, limit, listed, percent, printable


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (None, "-"), (0.0, "0.0%"), (1.0, "100.0%"), (0.125, "12.5%"), (1e-9, "<0.1%"),
        (0.0004, "<0.1%"), (0.0006, "0.1%"), (0.9999, ">99.9%"), (0.9994, "99.9%"),
        (-0.125, "-12.5%"), (-1e-9, ">-0.1%"), (-1.5, "-150.0%"),
    ],
)  # fmt: skip
def test_percent_never_rounds_something_to_nothing(share: float | None, shown: str) -> None:
    assert percent(share) == shown


def test_percent_has_as_many_digits_as_wanted() -> None:
    assert percent(0.05, 0) == "5%"
    assert percent(0.001, 0) == "<1%"


@pytest.mark.parametrize(("count", "words"), [(0, "0 items"), (1, "1 item"), (2000, "2,000 items")])
def test_counted(count: int, words: str) -> None:
    assert counted(count, "item") == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.02, "2.0%"), (0.0203, "2.03%"), (0.0199, "1.99%"),
     (0.019999, "1.99%"), (0.020001, "2.01%"), (0.03, "3.0%"),
     (-0.1, "0.0%"), (1.2, "100.0%")],
)  # fmt: skip
def test_a_limit_is_told_from_the_margin(value: float | None, shown: str) -> None:
    assert limit(value, 0.02) == shown


def test_listed_names_the_first_and_counts_the_rest() -> None:
    assert listed(["a"]) == "a"
    assert listed([*"abc"], "tasks") == "a, b, c"
    assert listed([*"abcd"], "tasks") == "a, b, c and 1 more tasks"
    assert listed([*"abcd"]) == "a, b, c and 1 more"


def test_printable_text_drives_no_terminal() -> None:
    assert printable("naïve \x1b[31m\n文") == "naïve \ufffd[31m\ufffd文"
