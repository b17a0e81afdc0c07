"""Outcomes of answers: correct, incorrect, truncated, error and others."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How the answer to one item ended; kept beside the score, never folded into it."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    PARTIAL = "partial"
    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    DEGENERATE = "degenerate"
    MISREAD = "misread"
    ERROR = "error"
    UNSCORED = "unscored"


MISSING = frozenset({Outcome.ERROR, Outcome.UNSCORED})
"""The score is null: nobody knows whether the model would have been right."""

FAILED = (
    Outcome.NO_ANSWER,
    Outcome.REFUSED,
    Outcome.TRUNCATED,
    Outcome.DEGENERATE,
    Outcome.MISREAD,
)
"""The score is 0, and this is why."""
