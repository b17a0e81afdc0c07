"""Reasons for answers with score 0: derived from the text, without contradicting the harness."""

from __future__ import annotations

import pytest

from forgetmap.records.outcome import Outcome
from forgetmap.sources.adapter import Sample, Score
from forgetmap.sources.reasons import why_wrong

LOOP = "the sky is the sky is " * 60
SIX = "I add them up.\nThe answer is 6."


def sample(response: str | None, gold: str | None = "6", **more: object) -> Sample:
    made = Sample("sums", "1", [Score("acc", 0.0)], gold=gold, response=response)
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("response", "gold", "reason"),
    [
        (SIX, "6", Outcome.MISREAD),
        (SIX, "7", Outcome.INCORRECT),
        (SIX, "Add two and four.\n#### 6", Outcome.MISREAD),
        ("The answer is Paris.", "Paris", Outcome.MISREAD),
        (LOOP, "6", Outcome.DEGENERATE),
        ("I cannot help with that.", "6", Outcome.REFUSED),
        ("Let me see.", "6", Outcome.INCORRECT),
        (None, "6", None),
        (SIX, None, None),
        (SIX, "6" * 300, None),
    ],
)
def test_what_the_text_says(response: str | None, gold: str | None, reason: Outcome | None) -> None:
    assert why_wrong(sample(response, gold)) == reason


def test_an_option_the_harness_found_is_an_answer() -> None:
    options = ["four", "six"]
    assert why_wrong(sample(LOOP, "six", options=options)) == Outcome.DEGENERATE
    found = why_wrong(sample(LOOP, "six", options=options, choice="four"))
    assert found == Outcome.INCORRECT


def test_an_answer_that_is_no_option_is_none() -> None:
    found = why_wrong(sample("The answer is J.", "six", options=["four", "six"], answer="J"))
    assert found == Outcome.NO_ANSWER


def test_an_extracted_answer_is_no_failure_but_may_be_a_misreading() -> None:
    assert why_wrong(sample(LOOP, answer="5")) == Outcome.INCORRECT
    assert why_wrong(sample(SIX, answer="5")) == Outcome.MISREAD
