"""Verdicts that are an amount: a share, or a number of something."""

from __future__ import annotations

from forgetmap.records import Outcome
from forgetmap.scoring.grades import Judged


def shared(value: float, answer: str | None = None, *, strict: bool | None = None) -> Judged:
    """A share from 0 to 1: all of it is correct, none of it incorrect, anything else partial."""
    outcome = {0.0: Outcome.INCORRECT, 1.0: Outcome.CORRECT}.get(float(value), Outcome.PARTIAL)
    return Judged(float(value), outcome, answer, strict=strict)


def counted(value: float, answer: str | None = None) -> Judged:
    """A number of something, which is neither right nor wrong."""
    return Judged(float(value), Outcome.PARTIAL, answer)
