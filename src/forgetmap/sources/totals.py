"""Totals stated by a log, compared with the records read from it.

A difference means that the harness counts differently, or that rows are missing. It is reported
with both numbers and never corrected silently.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

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
_PARTS = ("task", "metric", "scorer", "category", "repeat")


def compare_totals(
    scores: Path, stated: Sequence[StatedTotal], metrics: Mapping[str, MetricInfo]
) -> list[Contradiction]:
    """Return the stated totals that differ from the records; `metrics` have ranges of their own."""
    table = pq.read_table(scores, columns=[*_PARTS, "score", "outcome"]) if stated else None
    differences = (_difference(table, total, metrics) for total in dict.fromkeys(stated))
    return [*filter(None, differences)]


def total_notices(differences: Sequence[Contradiction]) -> list[str]:
    """Return a notice for each of the first totals that differ, and the number of the others."""
    more = len(differences) - MAX_NOTICES
    notices = [one.message for one in differences[:MAX_NOTICES]]
    return notices + ([f"{more:,} more totals differ."] if more > 0 else [])


def graded_notices(tasks: Collection[str]) -> list[str]:
    """Return the notice that tasks without verdicts in the log were graded by forgetmap."""
    what = "the log stores no verdict per item, so answers were graded by forgetmap"
    notice = f"{listed(sorted(tasks), 'tasks')}: {what} (--scores log leaves them unscored)."
    return [notice] if tasks else []


def _difference(
    table: pa.Table, total: StatedTotal, metrics: Mapping[str, MetricInfo]
) -> Contradiction | None:
    results = table
    for name in _PARTS:
        value = getattr(total, name)
        if value is not None:
            value = replace_surrogates(value) if isinstance(value, str) else value
            results = results.filter(pc.equal(results[name], value))
    count, missing = len(results), results["score"].null_count
    if not count:
        return None
    score_sum = pc.sum(results["score"]).as_py() or 0.0
    mean = score_sum / max(count - missing, 1)
    if total.may_be_percent:  # a share or in percent, whichever is closer
        distances = {abs(total.value - mean * scale): scale for scale in (100.0, 1.0)}
        total = replace(total, scale=distances[min(distances)])
    ours = score_sum if total.kind == "sum" else mean * total.scale
    if _agrees(total, ours, ours):
        return None
    part = f", {total.category}" if total.category else ""
    part += "" if total.repeat is None else f", repetition {total.repeat + 1}"
    without = f", {missing:,} of them without score" if missing else ""
    [metric, *others] = results["metric"].unique().to_pylist()
    metric = total.metric if others else metric
    [scorer, *others] = scorers = results["scorer"].unique().to_pylist()
    least, greatest = _reach(total, results, metrics.get(metric or "", MetricInfo()))
    theirs, given = (
        f"{value:,.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4g}"
        for value in (total.value, ours)
    )
    return Contradiction(
        "total_contradicted",
        replace_surrogates(total.task),
        total.field,
        stated=total.value,
        found=ours,
        message=f"{total.task}{part}: the log states {total.field} {theirs}, but these records "
        f"give {given} ({counted(count, 'result')}{without}).",
        metric=metric,
        scorer=total.scorer if others else scorer,
        results=count,
        unscored=missing,
        is_own_grading=OWN_SCORER in scorers,
        is_explained=_agrees(total, least, greatest),
    )


def _reach(total: StatedTotal, results: pa.Table, metric: MetricInfo) -> tuple[float, float]:
    """Return the least and the greatest total that missing scores and guesses allow."""
    scores, failed = results["score"], pc.is_in(results["outcome"], pa.array(FAILED))
    low = high = pc.sum(scores).as_py() or 0.0
    if scores.null_count:
        low += -math.inf if metric.low is None else metric.low * scores.null_count
        high += math.inf if metric.high is None else metric.high * scores.null_count
    high += (pc.sum(failed).as_py() or 0) if total.guesses else 0
    # A mean over the scored results alone lies in between.
    unit = 1.0 if total.kind == "sum" else total.scale / len(results)
    return low * unit, high * unit


def _agrees(total: StatedTotal, low: float, high: float) -> bool:
    """Whether a total lies between two others, up to the rounding of the log."""
    if total.kind == "sum":
        slack = max(0.01, 1e-9 * abs(total.value))
    else:
        decimals = len(repr(total.value).partition(".")[2].rstrip("0"))
        digits = max(decimals, MIN_DIGITS - math.log10(total.scale))
        slack = 0.5 * math.pow(10, -digits) + SLACK * total.scale
    return low - slack <= total.value <= high + slack
