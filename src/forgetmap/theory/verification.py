"""Trying many claims at once, and saying what came out as text, Markdown and JSON."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from forgetmap.theory.claims.registry import Claim, Outcome, find_claims, verify
from forgetmap.theory.limits import LIMITS

TOLD = ("check nearest to failing", "measured", "expected", "checks", "control")
SIGNS = {"at most": "<=", "at least": ">="}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def try_claims(ids: tuple[str, ...], *, controls: bool, processes: int = 2) -> Iterator[Outcome]:
    """Outcomes as they come, the dear claims first.

    Args:
        ids: of the claims; none means all.
        controls: run every experiment once more with its formula changed.
        processes: how many at once; 1 stays in this process.
    """
    wanted = sorted(find_claims(ids), key=lambda each: -each.cost)
    if processes == 1 or len(wanted) == 1:
        yield from (verify(each.id, control=controls) for each in wanted)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread_each(), ProcessPoolExecutor(processes, mp_context=context) as pool:
        waiting = [pool.submit(verify, each.id, control=controls) for each in wanted]
        for done in as_completed(waiting):
            yield done.result()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile do not fight over cores."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def good(outcome: Outcome) -> bool:
    """Whether a claim passed and its control, if tried, failed."""
    return outcome.passed and not outcome.control_passed


def as_json(outcomes: list[Outcome]) -> str:
    """All outcomes, in the order of the claims.

    `control_passed` says whether the experiment still passed once its formula was changed; it must
    be false, and is null where controls were not tried. `measured`, `expected` and `tolerance` are
    those of the check that came nearest to failing; all are in `checks`.
    """
    rows = [_row(each, outcome) for each, outcome in _in_order(outcomes)]
    return json.dumps({"claims": rows, "limits": list(LIMITS)}, indent=2)


def _row(about: Claim, outcome: Outcome) -> dict[str, Any]:
    worst = outcome.decisive
    return {
        "id": about.id,
        "statement": about.statement,
        "formula": about.formula,
        "provenance": about.provenance,
        "check": worst.name,
        "measured": _number(worst.measured),
        "expected": _number(worst.expected),
        "relation": worst.relation,
        "tolerance": worst.tolerance,
        "passed": outcome.passed,
        "control": f"{about.control.where} x {about.control.factor:g}",
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


def as_markdown(outcomes: list[Outcome]) -> str:
    """One table: every claim with the check that came nearest to failing."""
    rows = [
        (about.id, f"{about.statement} ({about.provenance})", *told(outcome))
        for about, outcome in _in_order(outcomes)
    ]
    return markdown_table(("id", "claim", *TOLD), rows)


def told(outcome: Outcome) -> tuple[str, ...]:
    """An outcome in words, as `TOLD` names them."""
    worst = outcome.decisive
    return (
        worst.name,
        f"{worst.measured:.4g}",
        expected_words(worst.relation, worst.expected, worst.tolerance),
        f"{sum(check.passed for check in outcome.checks)}/{len(outcome.checks)}",
        _control_words(outcome),
    )


def markdown_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Cells as a table of Markdown."""
    head = (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    body = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join([*head, *body]) + "\n"


def expected_words(relation: str, expected: float, tolerance: float) -> str:
    """An expectation in a few letters."""
    if relation in SIGNS:
        return f"{SIGNS[relation]} {expected:.4g}"
    allowed = f"{100 * tolerance:g} %" if relation == "relative" else f"{tolerance:.2g}"
    return f"{expected:.4g} +- {allowed}"


def _control_words(outcome: Outcome) -> str:
    if outcome.control_passed is None:
        return "-"
    return "NOT NOTICED" if outcome.control_passed else "fails"


def _in_order(outcomes: list[Outcome]) -> list[tuple[Claim, Outcome]]:
    found = {each.id: each for each in outcomes}
    return [(each, found[each.id]) for each in find_claims(tuple(found))]
