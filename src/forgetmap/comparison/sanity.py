"""Signs that a comparison cannot mean what it seems to mean."""

from __future__ import annotations

import math
from collections.abc import Mapping

import narwhals as nw

from forgetmap.comparison.cells import is_none
from forgetmap.comparison.evidence import Evidence
from forgetmap.pairing import SIDES
from forgetmap.records import MISSING, Frame, Outcome
from forgetmap.results import Notice
from forgetmap.text import counted, listed, percent

TINY = 30
"""Fewer items are anecdotes."""
CEILING = 0.97
"""Share right before from which on hardly anything can be gained."""
ERRORS_OFF = 3.0
"""Standard errors that luck does not explain."""
FAILURES_APART = 0.05
"""Difference in the share of unreadable answers that can pass for a change of the model."""
UNREADABLE = (Outcome.NO_ANSWER, Outcome.MISREAD, Outcome.TRUNCATED)

Failures = tuple[int, int]
"""Unreadable answers, and answers of which the outcome is known."""


def sanity_warnings(
    total: Evidence, tasks: Mapping[str, Evidence], failures: tuple[Failures | None, ...]
) -> list[Notice]:
    """What makes the numbers doubtful, whatever they are.

    Args:
        total: all that was counted.
        tasks: the same by task.
        failures: of each side, as `count_failures` found them.
    """
    return [
        *_tiny(total),
        *(notice for side in SIDES for notice in _below_chance(tasks, side)),
        *_ceiling(tasks),
        *_failures_differ(failures),
    ]


def count_failures(scores: Frame) -> Failures | None:
    """How many answers of a run could not be read; None where most outcomes are not recorded.

    Counted on one side alone, without the join.
    """
    if "outcome" not in scores.collect_schema().names():
        return None
    found = scores.group_by("outcome").agg(nw.len().alias("n")).collect()
    counts = {row["outcome"]: int(row["n"]) for row in found.rows(named=True)}
    known = {how: n for how, n in counts.items() if not is_none(how) and how not in MISSING}
    unknown = sum(n for how, n in counts.items() if is_none(how))
    answers = sum(known.values())
    if answers <= unknown:
        return None
    return sum(known.get(how, 0) for how in UNREADABLE), answers


def _tiny(total: Evidence) -> list[Notice]:
    items = total.cells.items
    if not 0 < items < TINY:
        return []
    words = f"only {counted(items, 'item')}: a single one moves every rate by {percent(1 / items)}."
    return [Notice("tiny", words)]


def _below_chance(tasks: Mapping[str, Evidence], side: str) -> list[Notice]:
    """Tasks in which a model does worse than one that never read the question."""
    low = []
    for task, found in tasks.items():
        closed = {k: c for k, c in found.options.items() if not math.isinf(k)}
        n = sum(counts.n for counts in closed.values())
        if not n:
            continue
        right = sum(c.n11 + (c.n10 if side == "before" else c.n01) for c in closed.values())
        luck = sum(counts.n / k for k, counts in closed.items()) / n
        # Repeats of an item are not independent: as many errors as there are items.
        error = math.sqrt(luck * (1 - luck) / (n * found.cells.items / found.cells.n))
        if right / n < luck - ERRORS_OFF * error:
            low.append(f"{task} ({percent(right / n)}, guessing {percent(luck)})")
    if not low:
        return []
    message = (
        f"fewer right {side} than by guessing in {listed(low, 'tasks')}: wrong format or "
        "extraction can look like lost knowledge."
    )
    return [Notice("below_chance", message)]


def _ceiling(tasks: Mapping[str, Evidence]) -> list[Notice]:
    """Tasks so easy for the model before that nothing is left to gain."""
    high = []
    for task, found in tasks.items():
        cells = found.cells
        if cells.items >= TINY and cells.n11 + cells.n10 >= CEILING * cells.n:
            high.append(f"{task} ({percent((cells.n11 + cells.n10) / cells.n)})")
    if not high:
        return []
    message = f"nearly all right before in {listed(high, 'tasks')}: no gain can show there."
    return [Notice("ceiling", message)]


def _failures_differ(failures: tuple[Failures | None, ...]) -> list[Notice]:
    """Answers that could not be read are as good as wrong: more of them look like a loss."""
    known = [each for each in failures if each is not None]
    if len(known) < len(SIDES):
        return []
    shares = [failed / answers for failed, answers in known]
    pooled = sum(failed for failed, _ in known) / sum(answers for _, answers in known)
    error = math.sqrt(pooled * (1 - pooled) * sum(1 / answers for _, answers in known))
    apart = abs(shares[0] - shares[1])
    if apart < FAILURES_APART or apart <= ERRORS_OFF * error:
        return []
    message = (
        f"{percent(shares[0])} of the answers before and {percent(shares[1])} after could not be "
        "read (none found, misread or cut off): part of the change may be extraction, not "
        "knowledge."
    )
    return [Notice("failures_differ", message)]
