"""What a scorer makes of one sample, whatever the sample is."""

from __future__ import annotations

from typing import cast

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.judged import Judged, undecided
from forgetmap.scoring.scorer import Answered, Fields, RuleScorer, Scorer
from forgetmap.scoring.scorers import needs_of

_UNSCORED = Judged(None, Outcome.UNSCORED)


def values_of(scorer: Scorer, sample: Answered | None) -> Fields:
    """The values by rule; missing where there is no response, or a judge or sandbox is needed.

    An item that cannot be used is an error of its own.
    """
    if sample is None or needs_of(scorer) != "rule":
        return dict.fromkeys(scorer.fields, _UNSCORED)
    try:
        return cast("RuleScorer", scorer).score(sample)
    except FieldError as error:
        return dict.fromkeys(scorer.fields, undecided(error.message))
