"""The first sentence of a result, in every situation."""

from __future__ import annotations

import pytest

import forgetmap as fm
from forgetmap.comparison.cells import Cells
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.group_results import group_result
from forgetmap.comparison.verdict import Policy
from forgetmap.comparison.words import counts_sentence, pairing_sentence, reasons_sentence
from small_runs import table


def sentence(n11: int, n10: int, n01: int, n00: int, items: int | None = None) -> str:
    n = n11 + n10 + n01 + n00
    cells = Cells(paired=n, items=n if items is None else items, n11=n11, n10=n10, n01=n01, n00=n00)
    return counts_sentence("base", "tuned", group_result("total", Evidence(cells), Policy()))


def test_nothing_scored() -> None:
    assert sentence(0, 0, 0, 0).startswith("No result: no item is scored in both base")


@pytest.mark.parametrize(("gained", "said"), [(0, "gained none"), (3, "gained 3")])
def test_nothing_known_before(gained: int, said: str) -> None:
    assert sentence(0, 0, gained, 5 - gained) == (
        f"base had none of the 5 items right, so nothing could be forgotten; tuned {said}."
    )


def test_nothing_lost() -> None:
    assert sentence(6, 0, 2, 2) == (
        "tuned forgot none of the 6 items that base had right and gained 2. Accuracy rose from "
        "60.0% to 80.0%."
    )


def test_a_loss_that_the_average_hides() -> None:
    assert sentence(3, 3, 3, 1) == (
        "tuned forgot 3 of the 6 items that base had right (50.0%) and gained 3. Accuracy stayed "
        "at 60.0%, which hides these losses."
    )


def test_a_loss_behind_a_rise() -> None:
    assert "rose from 40.0% to 70.0%, which hides these losses." in sentence(2, 2, 5, 1)


def test_a_loss_that_the_average_shows_in_part() -> None:
    assert "fell from 60.0% to 40.0%, which shows only 2 of these losses." in sentence(3, 3, 1, 3)


def test_a_loss_that_the_average_shows_in_full() -> None:
    assert "fell from 60.0% to 30.0%, which shows all of these losses." in sentence(3, 3, 0, 4)


@pytest.mark.parametrize("n", [*range(3, 60), 997, 7919, 1_000_003])
def test_what_the_average_shows_is_counted_in_whole_items(n: int) -> None:
    """Shares are floats: 7/10 - 6/10 is a little less than 1/10, and 2 is not 1.9999."""
    assert "shows only 1 of these losses" in sentence(0, 2, 1, n - 3)
    assert "shows all of these losses" in sentence(0, 2, 0, n - 2)


@pytest.mark.parametrize(
    ("gained", "ending"), [(0, "to 33.3%, which shows this loss."), (1, "which hides this loss.")]
)
def test_one_loss(gained: int, ending: str) -> None:
    said = sentence(1, 1, gained, 1 - gained)
    assert "forgot 1 of the 2 items" in said
    assert said.endswith(ending)


def test_singular() -> None:
    assert "forgot 1 of the 1 item that base had right (100.0%)" in sentence(0, 1, 0, 1)
    assert sentence(0, 0, 0, 1).startswith("base had none of the 1 item right")


def test_repeats_are_answers_not_items() -> None:
    assert "forgot 2 of the 6 answers that base" in sentence(4, 2, 0, 0, items=2)
    assert "forgot 1 of the 1 answer that base" in sentence(0, 1, 0, 1, items=1)
    assert sentence(0, 0, 1, 3, items=2).startswith("base had none of the 4 answers right")


def test_large_numbers_are_readable() -> None:
    assert "forgot 1,234 of the 2,000,000 items" in sentence(1_998_766, 1_234, 0, 0)


def test_why_lost_names_the_most_frequent_way_first() -> None:
    reasons = {"wrong": 2, "truncated": 5, "unknown": 1}
    total = group_result(
        "total", Evidence(Cells(n10=8, items=8, paired=8, reasons=reasons)), Policy()
    )
    assert reasons_sentence(total) == (
        "Why 8 were forgotten: cut at the token limit 5, wrong answer 2, not recorded 1."
    )


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ({}, "Nothing was forgotten."),
        ({"unknown": 1}, "Why 1 was forgotten is not recorded."),
        ({"refused": 1}, "Why 1 was forgotten: refused 1."),
    ],
)
def test_why_lost_when_there_is_little_to_say(reasons: dict[str, int], said: str) -> None:
    n = sum(reasons.values())
    total = group_result(
        "total", Evidence(Cells(n10=n, items=n, paired=n, n11=1, reasons=reasons)), Policy()
    )
    assert reasons_sentence(total) == said


def test_what_paired() -> None:
    both = fm.compare(table([1, 0]), table([1, 1]))
    assert pairing_sentence(both.result.pairing) == "All 2 results of both sides paired."
    partly = fm.compare(table([1]), table([1, 1, 0]), min_paired=0.3)
    assert pairing_sentence(partly.result.pairing) == "Paired 1 of 1 result before and 3 after."


def test_the_headline_of_a_comparison_is_made_of_its_own_counts() -> None:
    comparison = fm.compare(table([1, 1, 0, 0, 1]), table([0, 0, 1, 0, 1]))
    assert comparison.result.seen == (
        "after forgot 2 of the 3 items that before had right (66.7%) and gained 1. Accuracy fell "
        "from 60.0% to 40.0%, which shows only 1 of these losses."
    )


def test_the_headline_when_no_answer_is_scored() -> None:
    comparison = fm.compare(table([None, None]), table([None, None]))
    assert comparison.result.seen.startswith("No result")
    assert comparison.result.total.verdict == "cannot_tell"
    assert comparison.result.total.acc_before is None
    assert comparison.result.total_macro.excess.forgetting.value is None
