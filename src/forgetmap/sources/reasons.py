"""Reasons for answers with score 0, from their texts.

Post-training changes how a model writes its answers, so a harness that expects another form scores
right answers 0. That is not lost knowledge, so it gets an outcome of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import FAILED, Outcome
from forgetmap.scoring import AnswerKind, grade_response
from forgetmap.sources.adapter import Sample

MAX_GOLD_LENGTH = 200
"""Characters; a longer gold is a worked solution, which no response repeats word by word."""
MAX_END_LENGTH = 4_000
"""Characters at the end of a response that are searched for an answer."""
MAX_REASONS_CACHED = 1 << 15
"""Cached reasons: a harness logs the same response again for each filter."""
_NUMBER = re.compile(r"[-+$]?\d[\d,]*(\.\d+)?%?")
_SOLUTION = re.compile(r"####\s*(?P<answer>[^\n]+?)\s*$")


def why_wrong(sample: Sample) -> Outcome | None:
    """Return the outcome of a sample with score 0; None without a usable gold or a response."""
    gold = short_gold(sample.gold)
    if gold is None or not sample.response:
        return None
    if sample.choice is not None:
        # The harness extracted an option, so the text contains an answer.
        return Outcome.INCORRECT
    end = sample.response[-MAX_END_LENGTH:]
    reason = _why(end, gold, tuple(sample.options or ()), sample.finish_reason)
    if reason is Outcome.MISREAD or not (sample.answer and sample.answer.strip()):
        return reason
    # The extracted answer is not an option, such as the letter J with eight options.
    return Outcome.NO_ANSWER if gold in (sample.options or ()) else Outcome.INCORRECT


@lru_cache(MAX_REASONS_CACHED)
def _why(
    response: str, gold: str, options: tuple[str, ...], finish_reason: str | None
) -> Outcome | None:
    kind = kind_of(gold, options)
    try:
        grade = grade_response(
            response,
            gold=gold,
            kind=kind,
            options=options if kind == "option" else (),
            finish_reason=finish_reason,
        )
    except (FieldError, UsageError):
        return None
    if grade.score == 1:
        return Outcome.MISREAD
    # No answer found here does not mean that the harness found none.
    is_failure = grade.outcome in FAILED and grade.outcome is not Outcome.NO_ANSWER
    return grade.outcome if is_failure else Outcome.INCORRECT


def kind_of(gold: str, options: Sequence[str]) -> AnswerKind:
    """Return the kind of answer to extract, from the gold and the options."""
    if gold in options:
        return "option"
    return "number" if _NUMBER.fullmatch(gold) else "text"


def short_gold(gold: str | None) -> str | None:
    """Return the gold, or the answer at the end of a worked solution; None if it is too long."""
    if gold is None:
        return None
    solution = _SOLUTION.search(gold)
    short = solution["answer"] if solution else gold.strip()
    return short if 0 < len(short) <= MAX_GOLD_LENGTH else None
