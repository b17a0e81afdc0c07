"""An answer counted twice: found anywhere, and only in the demanded form.

What a model loses in the second and keeps in the first is form, not ability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from forgetmap.records import Outcome
from forgetmap.scoring.grades import Judged
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, Fields, Scale

FORMS: Mapping[str, Scale] = {"acc": RIGHT_OR_WRONG, "acc_strict": RIGHT_OR_WRONG}


def both_forms(judged: Judged) -> Fields:
    """`acc` is the verdict; `acc_strict` has no answer where it stood in another form."""
    if judged.score is None or judged.strict is not False:
        return {"acc": judged, "acc_strict": judged}
    return {"acc": judged, "acc_strict": replace(judged, score=0.0, outcome=Outcome.NO_ANSWER)}
