"""Totals stated by a log, compared with the records read from it.

A difference means that the harness counts differently, or that rows are missing. It is reported
with both numbers and never corrected silently.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.records import FAILED, Contradiction, MetricInfo
from forgetmap.sources.adapter import OWN_SCORER, StatedTotal
from forgetmap.sources.fields import replace_surrogates
from forgetmap.text import counted, listed

MIN_DIGITS = 2
"""Minimum number of decimals of a share: 0.5 means 0.50, not 0.45 to 0.55."""
MAX_NOTICES = 5
"""Differences with a notice of their own; a harness that counts differently does so everywhere."""
SLACK = 1e-6
"""Tolerance for sums of floating-point numbers."""
_COLUMNS = ("task", "metric", "scorer", "category", "repeat", "score", "outcome")


class _ScoreSums(NamedTuple):
    """Results behind a total; some have no score, some are wrong as no answer can be read."""

    rows: int
    missing: int
    total: float
    failed: int
    metrics: Sequence[str]
    scorers: Sequence[str]


def compare_totals(
    scores: Path, stated: Sequence[StatedTotal], metrics: Mapping[str, MetricInfo]
) -> list[Contradiction]:
    """Return the stated totals that differ from the records; `metrics` have ranges of their own."""
    table = pq.read_table(scores, columns=list(_COLUMNS)) if stated else None
    differences = (_difference(table, total, metrics) for total in dict.fromkeys(stated))
    return [*filter(None, differences)]


def total_notices(differences: Sequence[Contradiction]) -> list[str]:
    """Return a notice for each of the first totals that differ, and the number of the others."""
    more = len(differences) - MAX_NOTICES
    notices = [one.message for one in differences[:MAX_NOTICES]]
    return notices + ([f"{more:,} more totals differ."] if more > 0 else [])


def graded_notices(tasks: Collection[str]) -> list[str]:
    """Return the notice that tasks without verdicts in the log were graded by forgetmap."""
    if not tasks:
        return []
    what = "the log stores no verdict per item, so answers were graded by forgetmap"
    return [f"{listed(sorted(tasks), 'tasks')}: {what} (--scores log leaves them unscored)."]


def _difference(
    table: pa.Table, total: StatedTotal, metrics: Mapping[str, MetricInfo]
) -> Contradiction | None:
    sums = _sums(table, total)
    if not sums.rows:
        return None
    mean = sums.total / max(sums.rows - sums.missing, 1)
    if total.may_be_percent:
        # A share or in percent, whichever is closer.
        scale = min(1.0, 100.0, key=lambda one: abs(total.value - mean * one))
        total = replace(total, scale=scale)
    ours = sums.total if total.kind == "sum" else mean * total.scale
    if _agrees(total, ours, ours):
        return None
    part = f", {total.category}" if total.category else ""
    part += "" if total.repeat is None else f", repetition {total.repeat + 1}"
    without = f", {sums.missing:,} of them without score" if sums.missing else ""
    metric = sums.metrics[0] if len(sums.metrics) == 1 else total.metric
    scorer = sums.scorers[0] if len(sums.scorers) == 1 else total.scorer
    return Contradiction(
        "total_contradicted",
        replace_surrogates(total.task),
        total.field,
        stated=total.value,
        found=ours,
        message=(
            f"{total.task}{part}: the log states {total.field} {_number(total.value)}, but these "
            f"records give {_number(ours)} ({counted(sums.rows, 'result')}{without})."
        ),
        metric=metric,
        scorer=scorer,
        results=sums.rows,
        unscored=sums.missing,
        is_own_grading=OWN_SCORER in sums.scorers,
        is_explained=_agrees(total, *_reach(total, sums, metrics.get(metric or "", MetricInfo()))),
    )


def _sums(table: pa.Table, total: StatedTotal) -> _ScoreSums:
    results = table
    for name in ("task", "metric", "scorer", "category", "repeat"):
        value = getattr(total, name)
        if value is not None:
            value = replace_surrogates(value) if isinstance(value, str) else value
            results = results.filter(pc.equal(results[name], value))
    scores = results["score"]
    return _ScoreSums(
        rows=len(scores),
        missing=scores.null_count,
        total=pc.sum(scores).as_py() or 0.0,
        failed=pc.sum(pc.is_in(results["outcome"], pa.array(FAILED))).as_py() or 0,
        metrics=results["metric"].unique().to_pylist(),
        scorers=results["scorer"].unique().to_pylist(),
    )


def _reach(total: StatedTotal, sums: _ScoreSums, metric: MetricInfo) -> tuple[float, float]:
    """Return the least and the greatest total that missing scores and guesses allow."""
    low, high = (
        0.0 if not sums.missing else end if bound is None else bound * sums.missing
        for bound, end in ((metric.low, -math.inf), (metric.high, math.inf))
    )
    high += sums.failed if total.guesses else 0
    # A mean over the scored results alone lies in between.
    unit = 1.0 if total.kind == "sum" else total.scale / sums.rows
    return (sums.total + low) * unit, (sums.total + high) * unit


def _agrees(total: StatedTotal, low: float, high: float) -> bool:
    """Whether a total lies between two others, up to the rounding of the log."""
    if total.kind == "sum":
        slack = max(0.01, 1e-9 * abs(total.value))
    else:
        decimals = len(repr(total.value).partition(".")[2].rstrip("0"))
        digits = max(decimals, MIN_DIGITS - math.log10(total.scale))
        slack = 0.5 * math.pow(10, -digits) + SLACK * total.scale
    return low - slack <= total.value <= high + slack


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4g}"
