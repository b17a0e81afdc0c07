"""What the texts of answers say: reasons for scores of 0, and grades by forgetmap.

Post-training changes how a model writes its answers, so a harness that expects another form scores
right answers 0. That is not lost knowledge, so it gets an outcome of its own.

By default the verdict of the log is used, and answers without one are graded here. `log` leaves
such answers unscored; `own` grades every answer whose gold is known.
"""

from __future__ import annotations

import re
from functools import lru_cache

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import FAILED, Outcome
from forgetmap.scoring import AnswerKind, Grade, grade_response
from forgetmap.sources.adapter import OWN_SCORER, Problems, Sample, Score, Verdicts

METRIC = "acc"
MAX_GOLD_LENGTH = 200
"""Characters; a longer gold is a worked solution, which no response repeats word by word."""
MAX_END_LENGTH = 4_000
"""Characters at the end of a response that are searched for an answer."""
MAX_GRADES_CACHED = 1 << 15
"""Cached grades: a harness logs the same response again for each filter."""
_NUMBER = re.compile(r"[-+$]?\d[\d,]*(\.\d+)?%?")
_SOLUTION = re.compile(r"####\s*(?P<answer>[^\n]+?)\s*$")


def why_wrong(sample: Sample) -> Outcome | None:
    """Return the outcome of a sample with score 0; None without a usable gold or a response."""
    gold = _short(sample.gold)
    if gold is None or not sample.response:
        return None
    if sample.choice is not None:
        # The harness extracted an option, so the text contains an answer.
        return Outcome.INCORRECT
    options = tuple(sample.options or ())
    end = sample.response[-MAX_END_LENGTH:]
    try:
        grade = _grade_again(end, gold, _kind(gold, options), options, sample.finish_reason)
    except (FieldError, UsageError):
        grade = None
    if grade is not None and grade.score == 1:
        return Outcome.MISREAD
    if sample.answer and sample.answer.strip():
        # The extracted answer may be no option, such as the letter J with eight options.
        return Outcome.NO_ANSWER if gold in options else Outcome.INCORRECT
    if grade is None:
        return None
    # No answer found here does not mean that the harness found none.
    is_failure = grade.outcome in FAILED and grade.outcome is not Outcome.NO_ANSWER
    return grade.outcome if is_failure else Outcome.INCORRECT


def settle_verdicts(sample: Sample, verdicts: Verdicts, problems: Problems) -> Sample:
    """Set the scores of a sample for the chosen verdicts; a score that is unknown is None."""
    own = [score for score in sample.scores if score.scorer == OWN_SCORER]
    if verdicts == "log":
        for score in own:
            score.value, score.outcome = None, Outcome.UNSCORED
    elif not own:
        grade = _own_grade(sample, problems)
        value, outcome = (None, Outcome.UNSCORED) if grade is None else (grade.score, grade.outcome)
        if any(score.outcome is Outcome.ERROR for score in sample.scores):
            value, outcome = None, Outcome.ERROR
        sample.scores = [Score(METRIC, value, OWN_SCORER, outcome)]
    return sample


@lru_cache(MAX_GRADES_CACHED)
def grade_text(response: str, gold: str) -> float | None:
    """Grade an answer of a table by the final answer in it; None without a usable gold."""
    short = _short(gold)
    try:
        kind = _kind(short or "", ())
        return None if short is None else _grade(response, short, kind, (), None).score
    except (FieldError, UsageError):
        return None


def _own_grade(sample: Sample, problems: Problems) -> Grade | None:
    """Grade the response; None if there is no response or no usable gold."""
    options, index = tuple(sample.options or ()), sample.gold_index
    has_index = index is not None and 0 <= index < len(options)
    gold = _short(options[index] if has_index and index is not None else sample.gold)
    if gold is None or sample.response is None:
        return None
    kind: AnswerKind = "maths" if "\\" in gold else _kind(gold, options)
    try:
        return _grade(sample.response, gold, kind, options, sample.finish_reason)
    except (FieldError, UsageError) as error:
        problems.add(sample.file or "", error.message, line=sample.line, field="gold")
        return None


def _grade(
    response: str, gold: str, kind: AnswerKind, options: tuple[str, ...], finish_reason: str | None
) -> Grade:
    shown = options if kind == "option" else ()
    return grade_response(
        response, gold=gold, kind=kind, options=shown, finish_reason=finish_reason
    )


_grade_again = lru_cache(MAX_GRADES_CACHED)(_grade)


def _kind(gold: str, options: tuple[str, ...]) -> AnswerKind:
    """Return the kind of answer to extract, from the gold and the options."""
    if gold in options:
        return "option"
    return "number" if _NUMBER.fullmatch(gold) else "text"


def _short(gold: str | None) -> str | None:
    """Return the gold, or the answer at the end of a worked solution; None if it is too long."""
    if gold is None:
        return None
    solution = _SOLUTION.search(gold)
    short = solution["answer"] if solution else gold.strip()
    return short if 0 < len(short) <= MAX_GOLD_LENGTH else None
