"""An estimator of your own: forgetting less what the two accuracies alone would lead to expect."""

import math

from forgetmap.comparison import Estimator, Evidence
from forgetmap.results import Estimate, Estimates


def beyond_independence(evidence: Evidence) -> Estimates:
    """n10/n - a(1-b): negative where the two models know the same items."""
    cells = evidence.cells
    before, after = (cells.n11 + cells.n10) / cells.n, (cells.n11 + cells.n01) / cells.n
    error = 1.96 * math.sqrt(before * (1 - before) * after * (1 - after) / cells.n)

    def estimate(count: int, expected: float) -> Estimate:
        value = count / cells.n - expected
        return Estimate(value=value, low=value - error, high=value + error, method="independence")

    return Estimates(
        forgetting=estimate(cells.n10, before * (1 - after)),
        backward_transfer=estimate(cells.n01, after * (1 - before)),
    )


independence = Estimator(
    name="independence",
    scale="answers",
    label="beyond two unrelated models",
    legend="what two unrelated models would lose",
    meaning="Forgetting beyond that of two models whose answers are unrelated.",
    formula="n10/n - a(1-b)",
    misleads="the models are related, as they are: then negative",
    estimate=beyond_independence,
)
