"""Totals stated by a log, compared with the records read from it.

A difference means that the harness counts differently, or that rows are missing. It is reported
with both numbers and never corrected silently.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.records import Contradiction
from forgetmap.sources.adapter import OWN_SCORER, StatedTotal
from forgetmap.sources.fields import replace_surrogates
from forgetmap.text import counted, listed

MIN_DIGITS = 2
"""Minimum number of decimals of a mean: 0.5 means 0.50, not 0.45 to 0.55."""
MAX_NOTICES = 5
"""Differences with a notice of their own; a harness that counts differently does so everywhere."""
SLACK = 1e-6
"""Tolerance for sums of floating-point numbers."""
_COLUMNS = ("task", "metric", "scorer", "category", "repeat", "score")


@dataclass(frozen=True, slots=True)
class _ScoreSums:
    """Results behind a total.

    Attributes:
        rows: number of results.
        scored: of them, results with a score.
        total: sum of the scores.
        is_own: whether forgetmap graded some of them.
    """

    rows: int
    scored: int
    total: float
    is_own: bool


def compare_totals(scores: Path, stated: Sequence[StatedTotal]) -> list[Contradiction]:
    """Return the totals of the logs that differ from the records.

    Args:
        scores: the table of scores.
        stated: totals stated by the logs.
    """
    if not stated:
        return []
    table = pq.read_table(scores, columns=list(_COLUMNS))
    return [*filter(None, (_difference(table, total) for total in dict.fromkeys(stated)))]


def total_notices(differences: Sequence[Contradiction]) -> list[str]:
    """Return a notice for each of the first totals that differ, and the number of the others."""
    more = len(differences) - MAX_NOTICES
    notices = [one.message for one in differences[:MAX_NOTICES]]
    return notices + ([f"{more:,} more totals differ."] if more > 0 else [])


def graded_notices(tasks: Collection[str]) -> list[str]:
    """Return the notice that tasks without verdicts in the log were graded by forgetmap."""
    if not tasks:
        return []
    named = listed(sorted(tasks), "tasks")
    what = "the log stores no verdict per item, so answers were graded by forgetmap"
    return [f"{named}: {what} (--scores log leaves them unscored)."]


def _difference(table: pa.Table, total: StatedTotal) -> Contradiction | None:
    sums = _sums(table, total)
    if not sums.rows:
        return None
    ours = sums.total if total.kind == "sum" else sums.total / max(sums.scored, 1) * total.scale
    if _agrees(total, ours):
        return None
    part = f", {total.category}" if total.category else ""
    part += "" if total.repeat is None else f", repetition {total.repeat + 1}"
    missing = sums.rows - sums.scored
    without = f", {missing:,} of them without score" if missing else ""
    return Contradiction(
        "total_contradicted",
        total.task,
        total.field,
        stated=total.value,
        found=ours,
        message=(
            f"{total.task}{part}: the log states {total.field} {_number(total.value)}, but these "
            f"records give {_number(ours)} ({counted(sums.rows, 'result')}{without})."
        ),
        metric=total.metric,
        scorer=total.scorer,
        results=sums.rows,
        unscored=missing,
        is_own_grading=sums.is_own,
    )


def _sums(table: pa.Table, total: StatedTotal) -> _ScoreSums:
    chosen = pc.equal(table["task"], replace_surrogates(total.task))
    for name in ("metric", "scorer", "category"):
        value = getattr(total, name)
        if value is not None:
            chosen = pc.and_(chosen, pc.equal(table[name], replace_surrogates(value)))
    if total.repeat is not None:
        chosen = pc.and_(chosen, pc.equal(table["repeat"], total.repeat))
    results = table.filter(chosen)
    scores = results["score"]
    return _ScoreSums(
        rows=len(scores),
        scored=len(scores) - scores.null_count,
        total=pc.sum(scores).as_py() or 0.0,
        is_own=bool(pc.any(pc.equal(results["scorer"], OWN_SCORER)).as_py()),
    )


def _agrees(total: StatedTotal, ours: float) -> bool:
    """Whether both are equal up to the rounding of the log."""
    if total.kind == "sum":
        return math.isclose(total.value, ours, abs_tol=0.01)
    digits = max(len(repr(total.value).partition(".")[2]), MIN_DIGITS)
    rounding = 0.5 * math.pow(10, -digits)
    return abs(total.value - ours) <= rounding + SLACK * total.scale


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4g}"
