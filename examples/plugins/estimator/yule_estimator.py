"""An estimator of your own: forgetting less what the two accuracies alone would lead to expect."""

import numpy as np

from forgetmap.comparison import FromRepeats
from forgetmap.stats import PairedAnswers


def beyond_independence(answers: PairedAnswers) -> np.ndarray:
    """x(1-y) - a(1-b) of each item: negative on average where both models know the same items."""
    before, after = (answers.sample.mean(share) for share in (answers.x, answers.y))
    return answers.x * (1 - answers.y) - before * (1 - after)


independence = FromRepeats(
    name="independence",
    label="beyond two unrelated models",
    formula="F - a(1-b)",
    meaning="Forgetting beyond that of two models whose answers are unrelated.",
    misleads="the models are related, as they are: then negative",
    role="shown",
    score=beyond_independence,
    repeats=1,
)
