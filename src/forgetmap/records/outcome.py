"""Outcomes of answers: correct, incorrect, truncated, error and others."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How the answer to an item ended; stored next to the score, not part of it."""

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
"""Outcomes with a null score: whether the model would have been right is unknown."""

FAILED = (
    Outcome.NO_ANSWER,
    Outcome.REFUSED,
    Outcome.TRUNCATED,
    Outcome.DEGENERATE,
    Outcome.MISREAD,
)
"""Outcomes that are the reason for a score of 0."""
