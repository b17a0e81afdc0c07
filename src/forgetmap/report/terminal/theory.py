"""Results of the theory as lines and tables: simulations, claims, advice."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.text import Blocks, Line, Sheet
from forgetmap.theory import (
    LIMITS,
    OUTCOME_COLUMNS,
    ClaimOutcome,
    ConditionReport,
    MethodCondition,
    TrainingAdvice,
    TrainingRun,
    is_verified,
    outcome_cells,
)

ROWS_OF_RUN = 13


def tell_run(run: TrainingRun) -> Blocks:
    """Describe a run at evenly spaced times."""
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
    """Describe every claim with its weakest check, and how many hold."""
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


def tell_conditions(report: ConditionReport) -> Blocks:
    """Describe what is kept, every inequality with both sides, and its assumptions."""
    heads = ("condition", "secures", "left", "", "right", "holds", "claims")
    rows = [_condition_row(condition) for condition in report.conditions]
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}"
        for name, value in report.numbers.items()
        if value is not None
    )
    return [
        Line(f"{report.method}: {_mass_sentence(report)} {_drift_sentence(report)}", "strong"),
        Line(),
        Sheet(heads, rows, spare=("claims",)),
        Line(),
        Line(f"For {numbers}.", "faint"),
        Line(
            "If a condition does not hold, old behaviour is lost or moved; `not shown` means "
            "that the bound is too loose to decide.",
            "faint",
        ),
        Line(),
        Line("Assumes", "strong"),
        *(Line(f"- {line}") for line in report.assumes),
        *_limits(),
    ]


def _mass_sentence(report: ConditionReport) -> str:
    if report.mass is None:
        return "no guarantee for the old mass."
    floor = report.numbers["floor"]
    enough = "less than" if report.mass < (floor or 0) else "at least"
    return f"{report.mass:.3g} of old mass in the long run, {enough} the {floor:g} required."


def _drift_sentence(report: ConditionReport) -> str:
    if report.drift is None:
        return "No guarantee for drift."
    accepted = report.numbers["tolerance"]
    within = "more than" if report.drift > (accepted or 0) else "within"
    return f"Drift is at most {report.drift:.3g}, {within} the accepted {accepted:g}."


def _condition_row(condition: MethodCondition) -> tuple[str, ...]:
    unshown = "no" if condition.exact else "not shown"
    return (
        condition.name,
        condition.secures,
        "no bound" if condition.left is None else f"{condition.left:.4g}",
        condition.sign,
        f"{condition.right:.4g}",
        "yes" if condition.holds else unshown,
        ", ".join(condition.claims),
    )


def tell_advice(advice: TrainingAdvice) -> Blocks:
    """Describe the answer, its assumptions, and the claims behind it."""
    blocks: Blocks = [Line(advice.answer, "strong")]
    for title, lines in (("Assumes", advice.assumes), ("Does not apply to", advice.not_for)):
        blocks += [Line(), Line(title, "strong"), *(Line(f"- {line}") for line in lines)]
    claims = Line(f"Based on claims {', '.join(advice.claims)}.", "faint")
    return [*blocks, Line(), claims, *_limits()]


def _limits() -> Blocks:
    """Return the limits of the theory."""
    return [Line(), Line("Limits", "strong"), *(Line(f"- {limit}", "faint") for limit in LIMITS)]
