"""What a scorer makes of one sample, whatever the sample is."""

from __future__ import annotations

from typing import cast

from forgetmap.errors import FieldError
from forgetmap.records import FAILED, Outcome
from forgetmap.scoring.grades import UNSCORED, Judged, undecided
from forgetmap.scoring.registry import needs_of
from forgetmap.scoring.scorer import Answered, Fields, RuleScorer, Scorer


def values_of(scorer: Scorer, sample: Answered) -> Fields:
    """The values by rule; missing where a judge or a sandbox is needed.

    An item that cannot be used is an error of its own.
    """
    if needs_of(scorer) != "rule":
        return dict.fromkeys(scorer.fields, UNSCORED)
    try:
        return cast("RuleScorer", scorer).score(sample)
    except FieldError as error:
        return dict.fromkeys(scorer.fields, undecided(error.message))


def outcome_of(judged: Judged) -> Outcome | None:
    """The outcome, unless it says that nothing was said and the least value is not 0."""
    return None if judged.score and judged.outcome in FAILED else judged.outcome
