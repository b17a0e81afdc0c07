"""The grade of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forgetmap.records import FAILED, Outcome

AnswerKind = Literal["option", "text", "number", "maths"]
"""How an answer is read and judged: one of the options, a text, a number, or by math-verify."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer counts as.

    Attributes:
        score: 1 or 0; None when nobody can say.
        outcome: how the answer ended.
        answer: what was taken for the answer, in the words of the response.
        choice: the chosen option by content, where there are options.
        strict: the answer stood in the demanded form: `Answer: X` (or a box) on the last line, or
            nothing but the answer. False when it was found elsewhere, None when there is none.
        error: what went wrong, where the outcome is `error`.
    """

    score: float | None
    outcome: Outcome
    answer: str | None = None
    choice: str | None = None
    strict: bool | None = None
    error: str | None = None


UNSCORED = Grade(None, Outcome.UNSCORED)
"""Nobody has judged it yet, or nobody can."""


def grade_failure(outcome: Outcome) -> Grade:
    """No answer was given, and this is why: the score is 0."""
    return Grade(0.0, outcome)


def grade_missing(error: str, answer: str | None = None, *, strict: bool | None = None) -> Grade:
    """Nobody can say whether the answer is right: the score is missing."""
    return Grade(None, Outcome.ERROR, answer, strict=strict, error=error)


def grade_answer(
    answer: str, *, right: bool, choice: str | None = None, strict: bool | None = None
) -> Grade:
    """An answer was given; it is right or wrong."""
    outcome = Outcome.CORRECT if right else Outcome.INCORRECT
    return Grade(float(right), outcome, answer, choice, strict)


def grade_share(value: float, answer: str | None = None, *, strict: bool | None = None) -> Grade:
    """A share from 0 to 1: all of it is correct, none of it incorrect, anything else partial."""
    outcome = {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT}.get(float(value), Outcome.PARTIAL)
    return Grade(float(value), outcome, answer, strict=strict)


def grade_count(value: float, answer: str | None = None) -> Grade:
    """A number of something, which is neither right nor wrong."""
    return Grade(float(value), Outcome.PARTIAL, answer)


def outcome_of(grade: Grade) -> Outcome | None:
    """The outcome, unless it says that nothing was said and the least value is not 0."""
    return None if grade.score and grade.outcome in FAILED else grade.outcome
