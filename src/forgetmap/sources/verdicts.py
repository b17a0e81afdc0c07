"""The choice between verdicts of the log and grades by forgetmap.

By default the verdict of the log is used, and answers without one are graded here. `log` leaves
such answers unscored; `own` grades every answer whose gold is known.
"""

from __future__ import annotations

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import Outcome
from forgetmap.scoring import AnswerKind, Grade, grade_response
from forgetmap.sources.adapter import OWN_SCORER, Problems, Sample, Score, Verdicts
from forgetmap.sources.reasons import kind_of, short_gold

METRIC = "acc"


def settle_verdicts(sample: Sample, verdicts: Verdicts, problems: Problems) -> Sample:
    """Set the scores of a sample for the chosen verdicts; a score that is unknown is None."""
    own = [score for score in sample.scores if score.scorer == OWN_SCORER]
    if verdicts == "log":
        for score in own:
            score.value, score.outcome = None, Outcome.UNSCORED
    elif not own:
        grade = _grade(sample, problems)
        value, outcome = (None, Outcome.UNSCORED) if grade is None else (grade.score, grade.outcome)
        if any(score.outcome is Outcome.ERROR for score in sample.scores):
            value, outcome = None, Outcome.ERROR
        sample.scores = [Score(METRIC, value, OWN_SCORER, outcome)]
    return sample


def _grade(sample: Sample, problems: Problems) -> Grade | None:
    """Grade the response; None if there is no response or no usable gold."""
    options = tuple(sample.options or ())
    gold = short_gold(_gold_text(sample))
    if gold is None or sample.response is None:
        return None
    kind: AnswerKind = "maths" if "\\" in gold else kind_of(gold, options)
    try:
        return grade_response(
            sample.response,
            gold=gold,
            kind=kind,
            options=options if kind == "option" else (),
            finish_reason=sample.finish_reason,
        )
    except (FieldError, UsageError) as error:
        problems.add(sample.file or "", error.message, line=sample.line, field="gold")
        return None


def _gold_text(sample: Sample) -> str | None:
    """Return the gold as text, from its index if there is one."""
    options, index = sample.options or [], sample.gold_index
    return options[index] if index is not None and 0 <= index < len(options) else sample.gold
