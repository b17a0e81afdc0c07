from __future__ import annotations

import math

import pytest

from forgetmap.errors import FieldError, UsageError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.grading import Normalise, grade_likelihoods

OPTIONS = ("no", "perhaps it is", "yes")


@pytest.mark.parametrize(
    ("normalise", "choice"),
    [("none", "no"), ("tokens", "yes"), ("chars", "perhaps it is")],
)
def test_what_is_most_likely_depends_on_the_length(normalise: Normalise, choice: str) -> None:
    # sums -2, -6.5, -3; per token -2, -3.25, -1; per character -1, -0.5, -1
    judged = grade_likelihoods((-2, -6.5, -3), (1, 2, 3), OPTIONS, gold=choice, normalise=normalise)
    assert (judged.score, judged.outcome, judged.choice) == (1.0, Outcome.CORRECT, choice)
    assert (judged.answer, judged.strict) == (choice, None)


def test_another_choice_is_wrong() -> None:
    judged = grade_likelihoods((-1, -2, -3), (1, 1, 1), OPTIONS, gold="yes")
    assert (judged.score, judged.outcome, judged.choice) == (0.0, Outcome.INCORRECT, "no")


def test_further_right_options_count() -> None:
    assert (
        grade_likelihoods((-1, -2, -3), (1, 1, 1), OPTIONS, gold="yes", also_right=("no",)).score
        == 1.0
    )


@pytest.mark.parametrize("logprobs", [(-1.0, -1.0, -3.0), (-math.inf,) * 3])
def test_a_tie_is_no_choice_whatever_the_order(logprobs: tuple[float, ...]) -> None:
    for gold in OPTIONS:
        judged = grade_likelihoods(logprobs, (1, 1, 1), OPTIONS, gold=gold)
        assert (judged.score, judged.outcome) == (0.0, Outcome.NO_ANSWER)


def test_a_tie_of_equal_texts_is_a_choice() -> None:
    assert grade_likelihoods((-1, -2, -1), (1, 1, 1), ("x", "y", "x"), gold="x").score == 1.0


def test_an_impossible_option_does_not_hinder_the_others() -> None:
    assert grade_likelihoods((-math.inf, -2, -3), (1, 1, 1), OPTIONS, gold=OPTIONS[1]).score == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_missing(value: float) -> None:
    judged = grade_likelihoods((-1, value, -3), (1, 1, 1), OPTIONS, gold="no")
    assert (judged.score, judged.outcome) == (None, Outcome.ERROR)
    assert judged.error


def test_an_option_without_tokens_is_missing_if_tokens_count() -> None:
    assert (
        grade_likelihoods((-1, -2, 0), (1, 1, 0), OPTIONS, gold="no", normalise="tokens").score
        is None
    )


def test_lengths_must_agree() -> None:
    with pytest.raises(UsageError, match="2 log-likelihoods"):
        grade_likelihoods((-1, -2), (1, 1, 1), OPTIONS, gold="no")


def test_gold_must_be_among_them() -> None:
    with pytest.raises(FieldError, match="'never' is not among the 3 options"):
        grade_likelihoods((-1, -2, -3), (1, 1, 1), OPTIONS, gold="never")
