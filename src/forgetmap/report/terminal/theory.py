"""The theory as lines and tables: runs of the two-mode model, claims, advice."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.text import Blocks, Line, Sheet
from forgetmap.theory import (
    LIMITS,
    OUTCOME_COLUMNS,
    ClaimOutcome,
    TrainingAdvice,
    TrainingRun,
    is_verified,
    outcome_cells,
)

ROWS_OF_RUN = 13


def tell_run(run: TrainingRun) -> Blocks:
    """How a run developed, at moments that are evenly spread."""
    last = len(run.path.times) - 1
    moments = sorted({round(last * part / (ROWS_OF_RUN - 1)) for part in range(ROWS_OF_RUN)})
    rows = [
        (f"{run.path.times[k]:.4g}", f"{run.weight[k]:.4g}", f"{run.mass[k]:.4g}",
         f"{run.drift[k]:.3g}")
        for k in moments
    ]  # fmt: skip
    return [
        Sheet((run.unit, "old weight", "mass near old", "drift"), rows),
        Line(),
        Line(f"{run.mass[-1] / run.mass[0]:.1%} of the old mass is left.", "strong"),
        *_limits(),
    ]


def tell_outcomes(outcomes: Sequence[ClaimOutcome]) -> Blocks:
    """Every claim with the check that came nearest to failing, and how many hold."""
    rows = [
        (outcome.id, "PASS" if is_verified(outcome) else "FAIL", *outcome_cells(outcome))
        for outcome in outcomes
    ]
    failed = [outcome.id for outcome in outcomes if not is_verified(outcome)]
    total = f"{len(outcomes) - len(failed)} of {len(outcomes)} claims hold"
    return [
        Sheet(("claim", "", *OUTCOME_COLUMNS), rows, spare=("control", "checks")),
        Line(),
        Line(f"{total}{': not ' + ', '.join(failed) if failed else ''}.", "strong"),
        *_limits(),
    ]


def tell_advice(advice: TrainingAdvice) -> Blocks:
    """The answer, what it assumes, and the claims it rests on."""
    blocks: Blocks = [Line(advice.answer, "strong")]
    for title, lines in (("Assumes", advice.assumes), ("Does not apply to", advice.not_for)):
        blocks += [Line(), Line(title, "strong"), *(Line(f"- {line}") for line in lines)]
    claims = Line(f"Rests on claims {', '.join(advice.claims)}.", "faint")
    return [*blocks, Line(), claims, *_limits()]


def _limits() -> Blocks:
    """What the theory does not know, below everything it says."""
    return [Line(), Line("Limits", "strong"), *(Line(f"- {limit}", "faint") for limit in LIMITS)]
