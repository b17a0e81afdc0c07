"""The grade of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forgetmap.records import FAILED, Outcome

AnswerKind = Literal["option", "text", "number", "maths"]
"""Kind of an answer: one of the options, a text, a number, or mathematics (by math-verify)."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of an answer.

    Attributes:
        score: the score, such as 1 or 0; None if unknown.
        outcome: how the answer ended.
        answer: the extracted answer, in the words of the response.
        choice: the text of the chosen option, if there are options.
        strict: whether the answer has the requested form: `Answer: X` (or a box) on the last line,
            or only the answer. None if there is no answer.
        error: the error message, if the outcome is `error`.
    """

    score: float | None
    outcome: Outcome
    answer: str | None = None
    choice: str | None = None
    strict: bool | None = None
    error: str | None = None


UNSCORED = Grade(None, Outcome.UNSCORED)
"""Grade of an answer that is not scored."""


def grade_failure(outcome: Outcome) -> Grade:
    """Return a score of 0 with the reason why there is no answer."""
    return Grade(0.0, outcome)


def grade_missing(error: str, answer: str | None = None, *, strict: bool | None = None) -> Grade:
    """Return a missing score, for an answer that cannot be graded."""
    return Grade(None, Outcome.ERROR, answer, strict=strict, error=error)


def grade_answer(
    answer: str, *, right: bool, choice: str | None = None, strict: bool | None = None
) -> Grade:
    """Return the grade of a right or wrong answer."""
    outcome = Outcome.CORRECT if right else Outcome.INCORRECT
    return Grade(float(right), outcome, answer, choice, strict)


def grade_share(value: float, answer: str | None = None, *, strict: bool | None = None) -> Grade:
    """Return the grade of a share: 1 is correct, 0 incorrect, anything else partial."""
    outcome = {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT}.get(float(value), Outcome.PARTIAL)
    return Grade(float(value), outcome, answer, strict=strict)


def grade_count(value: float, answer: str | None = None) -> Grade:
    """Return the grade of a count, which is neither right nor wrong."""
    return Grade(float(value), Outcome.PARTIAL, answer)


def outcome_of(grade: Grade) -> Outcome | None:
    """Return the outcome; None for a failure whose score is not 0, as on scales that start at 1."""
    return None if grade.score and grade.outcome in FAILED else grade.outcome
