"""Choice of the metric of a task, and the scores recorded for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import narwhals as nw

from forgetmap.errors import MetricError
from forgetmap.records import CONTENT_HASHES, Frame, Run


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A metric and its scorer."""

    metric: str = "score"
    scorer: str = "default"

    def __str__(self) -> str:
        return self.metric if self.scorer == "default" else f"{self.metric}/{self.scorer}"


@dataclass(frozen=True, slots=True)
class MeasuredScores:
    """The rows of a run for one measure per task.

    Attributes:
        scores: the rows.
        measures: the measure of each task.
        recorded: task -> content column -> number of rows that have it; `rows` is the number of
            rows.
        amounts: tasks left out because their main metric has no upper end, such as a number of
            words, so that answers are neither right nor wrong.
        offered: all measures of each task.
    """

    scores: Frame
    measures: dict[str, Measure]
    recorded: dict[str, dict[str, int]]
    amounts: dict[str, Measure] = field(default_factory=dict)
    offered: dict[str, frozenset[Measure]] = field(default_factory=dict)


Offered = Mapping[str, Mapping[Measure, dict[str, int]]]
"""Task -> measure -> number of rows, of graded rows, and of rows with each content column."""


def select_metric(
    run: Run,
    metric: str | None,
    agreed: Mapping[str, Measure] | None = None,
    offered: Offered | None = None,
) -> MeasuredScores:
    """Keep one measure per task.

    In this order: the measure that all runs share, `metric`, the main metric in the manifest, the
    only one of the task.

    Args:
        run: the run.
        metric: `METRIC` or `METRIC/SCORER` to use.
        agreed: measures that all runs share, by task.
        offered: counts of all measures, if already made.

    Raises:
        MetricError: a task has several candidates, or not the metric to use.
    """
    offered = count_measures(run) if offered is None else offered
    candidates = {
        task: (agreed or {}).get(task) or _choose(run, task, set(counts), metric)
        for task, counts in offered.items()
    }
    amounts = {} if metric else {task: m for task, m in candidates.items() if _is_amount(run, m)}
    if len(amounts) == len(candidates):
        amounts = {}  # with only these, the user sets the minimum score of a right answer
    chosen = {task: measure for task, measure in candidates.items() if task not in amounts}
    recorded = {task: offered[task][measure] for task, measure in chosen.items()}
    scores = run.scores
    if amounts or any(len(measures) > 1 for measures in offered.values()):
        scores = scores.filter(_is_chosen(run.columns, chosen))
    everything = {task: frozenset(measures) for task, measures in offered.items()}
    return MeasuredScores(scores, chosen, recorded, amounts, everything)


def agree_on_measures(sides: Sequence[MeasuredScores]) -> list[dict[str, Measure]]:
    """Choose measures that all sides have, for tasks in which their main metrics differ.

    Versions of a harness have different main metrics of the same task. The main metric of the first
    side is preferred, then those of the others, then any. Without a shared metric nothing changes.

    Returns:
        For each side, the tasks with another measure than their main metric.
    """
    everything = [{**side.measures, **side.amounts} for side in sides]
    changes: list[dict[str, Measure]] = [{} for _ in sides]
    for task in sorted(set.intersection(*map(set, everything))):
        mains = [measures[task] for measures in everything]
        best = [side.measures[task] for side in sides if task in side.measures] or mains
        agreed = _agreed(mains, best, [side.offered[task] for side in sides])
        for change, main, measure in zip(changes, mains, agreed, strict=True):
            if measure != main:
                change[task] = measure
    return changes


def _agreed(
    mains: Sequence[Measure], best: Sequence[Measure], offered: Sequence[frozenset[Measure]]
) -> Sequence[Measure]:
    """Return one measure per side: the same one, else the same metric, else the main ones.

    Args:
        mains: the main measure of each side.
        best: main measures to prefer.
        offered: all measures of each side.
    """
    if len(set(mains)) == 1:
        return mains
    exact = frozenset.intersection(*offered)
    same = next((main for main in best if main in exact), None)
    if same is not None:
        return [same] * len(mains)
    if len({main.metric for main in mains}) == 1:
        return mains
    names = frozenset.intersection(*(frozenset(m.metric for m in own) for own in offered))
    first = [main.metric for main in best if main.metric in names]
    metric = next(iter([*first, *sorted(names)]), None)
    choices = [_only(main, metric, own) for main, own in zip(mains, offered, strict=True)]
    known = [choice for choice in choices if choice is not None]
    return known if len(known) == len(mains) else mains


def _only(main: Measure, metric: str | None, offered: frozenset[Measure]) -> Measure | None:
    """Return the measure of this metric with the scorer of the main one, else the only one."""
    fitting = sorted(m for m in offered if m.metric == metric)
    by_main = [m for m in fitting if m.scorer == main.scorer]
    return next(iter(by_main), fitting[0] if len(fitting) == 1 else None)


def _is_amount(run: Run, measure: Measure) -> bool:
    """Whether a metric is an amount: it has a lower end, but no upper one."""
    known = run.info.metrics.get(measure.metric)
    return known is not None and known.high is None and known.low is not None


def count_measures(run: Run) -> Offered:
    """Count the rows of a run by task and measure."""
    names = measure_columns(run.columns)
    counted = [name for name in CONTENT_HASHES if name in run.columns]
    sums = [
        nw.len().alias("rows"),
        nw.col("graded").sum(),
        *(nw.col(name).count() for name in counted),
    ]
    rows = run.scores.select("task", *counted, **names, graded=is_graded())
    counts = rows.group_by("task", *names).agg(*sums).collect()
    return offered_by(counts.rows(named=True), ("rows", "graded", *counted))


def is_graded() -> nw.Expr:
    """Return 1 for a score that is neither 0 nor 1; cheap in a pass over all rows."""
    return ((nw.col("score") != 0) & (nw.col("score") != 1)).cast(nw.Int64)


def offered_by(rows: Iterable[Mapping[str, Any]], counts: Sequence[str]) -> Offered:
    """Add up counted rows by task and measure."""
    offered: dict[str, dict[Measure, dict[str, int]]] = defaultdict(dict)
    for row in rows:
        sums = offered[row["task"]].setdefault(measure_of(row), dict.fromkeys(counts, 0))
        for name in counts:
            sums[name] += int(row[name] or 0)
    # Engines return groups in any order, which must not affect errors and tables.
    return dict(sorted(offered.items()))


def measure_of(row: Mapping[str, Any]) -> Measure:
    """Return the measure of a counted row."""
    return Measure(**{name: row[name] for name in asdict(Measure()) if name in row})


def _choose(run: Run, task: str, measures: set[Measure], requested: str | None) -> Measure:
    info = run.info.tasks.get(task)
    candidates = measures
    if requested is not None:
        metric, _, scorer = requested.partition("/")
        candidates = {m for m in measures if m.metric == metric and scorer in ("", m.scorer)}
    elif len(measures) > 1 and info is not None and info.main_metric is not None:
        candidates = {
            m
            for m in measures
            if m.metric == info.main_metric and info.main_scorer in (None, m.scorer)
        }
    if len(candidates) == 1:
        return next(iter(candidates))
    raise _unclear(run, task, measures, requested)


def _unclear(run: Run, task: str, measures: set[Measure], requested: str | None) -> MetricError:
    choices = ", ".join(str(measure) for measure in sorted(measures))
    what = f"no single metric {requested!r}" if requested else f"{len(measures)} metrics"
    return MetricError(
        f"{run.origin}: task {task!r} has {what}; available: {choices}",
        hint=f"choose one with --metric, such as --metric {min(measures)}.",
    )


def _is_chosen(columns: frozenset[str], chosen: dict[str, Measure]) -> nw.Expr:
    by_measure: dict[Measure, list[str]] = defaultdict(list)
    for task, measure in chosen.items():
        by_measure[measure].append(task)
    kept: nw.Expr = nw.lit(False)  # noqa: FBT003
    for measure, tasks in by_measure.items():
        here = nw.col("task").is_in(tasks)
        for name, column in measure_columns(columns).items():
            here = here & (column == getattr(measure, name))
        kept = kept | here
    return kept


def measure_columns(columns: frozenset[str]) -> dict[str, nw.Expr]:
    """Return the columns of metric and scorer, with their defaults in place of nulls."""
    unnamed = asdict(Measure())
    return {
        name: nw.coalesce(nw.col(name), nw.lit(default))
        for name, default in unnamed.items()
        if name in columns
    }
