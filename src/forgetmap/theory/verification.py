"""Verification of several claims, with the results as table cells, Markdown and JSON."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from forgetmap.theory.claims.registry import ClaimOutcome, TheoryClaim, find_claims, verify

OUTCOME_COLUMNS = ("check nearest to failing", "measured", "expected", "checks", "control")
"""Headers of the cells that `outcome_cells` returns."""
SIGNS = {"at most": "<=", "at least": ">="}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LIMITS = (
    (
        "Formulas are derived here from first principles. Of arXiv 2603.12163 only the abstract "
        "was available: results that agree with it are marked, and no theorem of it is quoted."
    ),
    (
        "Forward KL drives the old weight to 0 only if the old component is fixed or well "
        "separated; if it is trained and overlaps with the new one, the two merge instead (F4)."
    ),
    (
        "Reverse KL converges only from nearby starts, otherwise it can stay in a collapsed state "
        "for exponentially long (L1); its target must contain the old mode (L2). Drift is measured "
        "after matching components to modes, because swapped components would look like drift."
    ),
    (
        "One context, two Gaussian modes of one covariance, no prompts and no shared network. Most "
        "forgetting of real models is interference between prompts, which this model does not "
        "include: measure real models with the estimators, and use the dynamics to understand "
        "mechanisms."
    ),
    (
        "Not examined: adaptive optimisers, claims and conditions for more than two modes (only "
        "simulations on batches support them), trained covariances, targets that cannot be fitted "
        "(except in P2), factorisation into tokens."
    ),
)
"""Limitations of the theory; printed with all of its results."""


def verify_claims(
    ids: tuple[str, ...], *, controls: bool, processes: int = 2
) -> Iterator[ClaimOutcome]:
    """Yield outcomes as they finish; the slowest claims start first.

    Args:
        ids: ids of the claims; none means all.
        controls: run every experiment again with its formula changed.
        processes: number of processes; 1 stays in this process.
    """
    claims = sorted(find_claims(ids), key=lambda claim: -claim.cost)
    if processes == 1 or len(claims) == 1:
        yield from (verify(claim.id, control=controls) for claim in claims)
        return
    # A separate pool, because this package must work without the rest, so without _workers.
    context = multiprocessing.get_context("spawn")
    with _one_thread_each(), ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = [pool.submit(verify, claim.id, control=controls) for claim in claims]
        for future in as_completed(futures):
            yield future.result()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit processes that are started within the context to one thread each."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def is_verified(outcome: ClaimOutcome) -> bool:
    """Return whether a claim passed and its control, if run, failed."""
    return outcome.passed and not outcome.control_passed


def outcomes_json(outcomes: list[ClaimOutcome]) -> str:
    """Return all outcomes as JSON, in the order of the claims.

    `control_passed` is whether the experiment still passed with the changed formula; it must be
    false, and is null if controls were not run. `measured`, `expected` and `tolerance` are those of
    the check nearest to failing; all are in `checks`.
    """
    rows = [_row(claim, outcome) for claim, outcome in _in_order(outcomes)]
    return json.dumps({"claims": rows, "limits": list(LIMITS)}, indent=2)


def _row(claim: TheoryClaim, outcome: ClaimOutcome) -> dict[str, Any]:
    worst = outcome.decisive
    return {
        "id": claim.id,
        "statement": claim.statement,
        "formula": claim.formula,
        "provenance": claim.provenance,
        "check": worst.name,
        "measured": _number(worst.measured),
        "expected": _number(worst.expected),
        "relation": worst.relation,
        "tolerance": worst.tolerance,
        "passed": outcome.passed,
        "control": f"{claim.control.where} x {claim.control.factor:g}",
        "control_passed": outcome.control_passed,
        "seconds": round(outcome.seconds, 2),
        "checks": [
            {
                "name": check.name,
                "measured": _number(check.measured),
                "expected": _number(check.expected),
                "relation": check.relation,
                "tolerance": check.tolerance,
                "passed": check.passed,
            }
            for check in outcome.checks
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def outcomes_markdown(outcomes: list[ClaimOutcome]) -> str:
    """Return a table of every claim with the check nearest to failing."""
    rows = [
        (claim.id, f"{claim.statement} ({claim.provenance})", *outcome_cells(outcome))
        for claim, outcome in _in_order(outcomes)
    ]
    return markdown_table(("id", "claim", *OUTCOME_COLUMNS), rows)


def outcome_cells(outcome: ClaimOutcome) -> tuple[str, ...]:
    """Return the cells of an outcome, as named by `OUTCOME_COLUMNS`."""
    worst = outcome.decisive
    return (
        worst.name,
        f"{worst.measured:.4g}",
        expected_words(worst.relation, worst.expected, worst.tolerance),
        f"{sum(check.passed for check in outcome.checks)}/{len(outcome.checks)}",
        _control_words(outcome),
    )


def markdown_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format cells as a Markdown table."""
    head = (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    body = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join([*head, *body]) + "\n"


def expected_words(relation: str, expected: float, tolerance: float) -> str:
    """Format an expectation briefly."""
    if relation in SIGNS:
        return f"{SIGNS[relation]} {expected:.4g}"
    allowed = f"{100 * tolerance:g} %" if relation == "relative" else f"{tolerance:.2g}"
    return f"{expected:.4g} +- {allowed}"


def _control_words(outcome: ClaimOutcome) -> str:
    if outcome.control_passed is None:
        return "-"
    return "NOT NOTICED" if outcome.control_passed else "fails"


def _in_order(outcomes: list[ClaimOutcome]) -> list[tuple[TheoryClaim, ClaimOutcome]]:
    by_id = {outcome.id: outcome for outcome in outcomes}
    return [(claim, by_id[claim.id]) for claim in find_claims(tuple(by_id))]
