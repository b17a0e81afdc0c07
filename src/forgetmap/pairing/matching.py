"""From two runs to pairs: choose the metric and the key, join, and refuse duplicates.

Benchmarks contain twins: items of a task with the same question, options and right answer. Those
whose id occurs on both sides are paired by id, the others in the order of their ids, which is
counted and reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import narwhals as nw

from forgetmap.errors import BackendError
from forgetmap.pairing.checks import check_positions, check_versions
from forgetmap.pairing.choices import PairBy
from forgetmap.pairing.keys import Keys, choose_keys, loosen
from forgetmap.pairing.metric import (
    Measure,
    MeasuredScores,
    agree_on_measures,
    count_measures,
    select_metric,
)
from forgetmap.pairing.pair import Pairs, join_sides
from forgetmap.pairing.totals import SideFacts, SideTotals, count_totals
from forgetmap.records import (
    Frame,
    Run,
    check_run,
    count_repeats,
    quote,
    reading,
    refuse_duplicates,
)
from forgetmap.text import listed

BUCKETS = 4_096
MAX_REPETITION = 8.0
"""Rows per key above which twins are resolved before the join; fewer are detected in the join."""


@dataclass(frozen=True, slots=True)
class Side:
    """A checked run with one measure per task, ready to be joined."""

    run: Run
    measured: MeasuredScores
    repeats: int
    totals: SideTotals | None = None
    """Counts made in one pass, if a cluster reads the run."""
    copies: tuple[str, ...] | None = None
    """What was said about repeats left out because they are copies; None if nobody looked."""

    @property
    def rows(self) -> int:
        """Number of results of the chosen measures."""
        return sum(counts["rows"] for counts in self.measured.recorded.values())


def no_facts(columns: frozenset[str]) -> Mapping[str, nw.Expr]:
    """Return no further columns to count by."""
    del columns
    return {}


def prepare_all(
    runs: Sequence[Run], metric: str | None = None, facts: SideFacts = no_facts
) -> list[Side]:
    """Check runs for a comparison, and choose metrics that all of them have, if possible.

    Args:
        runs: the runs.
        metric: the metric to use.
        facts: further columns to count by in the same pass, if a cluster reads the runs.
    """
    sides = [prepare(run, metric, facts=facts) for run in runs]
    if metric is not None or len(sides) < 2:
        return sides
    changes = agree_on_measures([side.measured for side in sides])
    return [
        prepare(run, agreed=change, totals=side.totals) if change else side
        for run, side, change in zip(runs, sides, changes, strict=True)
    ]


def prepare(
    run: Run,
    metric: str | None = None,
    *,
    agreed: Mapping[str, Measure] | None = None,
    facts: SideFacts = no_facts,
    totals: SideTotals | None = None,
) -> Side:
    """Check a run and choose its metrics.

    Args:
        run: the run.
        metric: the metric to use.
        agreed: measures of tasks that all runs share, instead of their main metric.
        facts: further columns to count by in the same pass, if a cluster reads the run.
        totals: counts of the run, if already made.
    """
    with reading(run):
        totals = totals or count_totals(run, facts)
        check_run(run, sums=totals.faults() if totals else None)
        measured = select_metric(run, metric, agreed, totals.offered() if totals else None)
    if agreed:
        run = replace(run, notices=(*run.notices, _other_metric(run, agreed)))
    if measured.amounts:
        run = replace(run, notices=(*run.notices, _left_out(measured)))
    if totals is not None:
        return Side(run, measured, totals.of(measured.measures).repeats, totals)
    return Side(run, measured, count_repeats(replace(run, scores=measured.scores)))


def with_results(side: Side, run: Run, scores: Frame) -> Side:
    """Return a side with other results of the same measures.

    Args:
        side: the side.
        run: its run with the other results.
        scores: its rows of the chosen measures.
    """
    measures = side.measured.measures
    offered = count_measures(replace(run, scores=scores))
    recorded = {task: offered[task][measure] for task, measure in measures.items()}
    measured = replace(side.measured, scores=scores, recorded=recorded)
    return Side(run, measured, count_repeats(replace(run, scores=scores)))


def _other_metric(run: Run, agreed: Mapping[str, Measure]) -> str:
    tasks = [f"{task} by {measure}" for task, measure in sorted(agreed.items())]
    mains = (run.info.tasks.get(task) for task in sorted(agreed))
    own = sorted({info.main_metric for info in mains if info and info.main_metric})
    instead = f", not by {listed(own)}" if own else ""
    return f"compared {listed(tasks, 'tasks')}{instead}, because both sides have this metric."


def _left_out(measured: MeasuredScores) -> str:
    tasks = ", ".join(sorted(measured.amounts))
    return (
        f"{tasks} left out: the answers are not scored right or wrong; `forgetmap drift` "
        "compares them."
    )


def match(before: Side, after: Side, *, correct_at: float, pair_by: PairBy = "auto") -> Pairs:
    """Join two sides on their keys, assuming one result per key and side."""
    check_versions(before.run, after.run)
    check_positions(before.run, after.run, pair_by)
    _same_library(before.run, after.run)
    keys = choose_keys(before.measured.recorded, after.measured.recorded, pair_by)
    if keys.use_content and pair_by == "auto" and _may_write_differently(before.run, after.run):
        keys = loosen(keys, before.measured.scores, after.measured.scores)
    repeats = _have_repeats(before, after)
    if _looks_doubled(before, keys, repeats=repeats):
        # A join would multiply the rows, so twins are resolved first.
        return match_twins(before, after, keys, correct_at=correct_at)
    scores = (before.measured.scores, after.measured.scores)
    return join_sides(*scores, keys, correct_at=correct_at, repeats=repeats)


def match_twins(before: Side, after: Side, keys: Keys, *, correct_at: float) -> Pairs:
    """Join two sides with several results per key: refuse duplicates, pair twins by id or order."""
    repeats = _have_repeats(before, after)
    task, *rest = keys.joined_on(repeats=repeats)
    for side in (before, after):
        refuse_duplicates(side.run, keys.add_to(side.measured.scores), [task, "item", *rest])
    sides = tell_apart(before.measured.scores, after.measured.scores, keys, repeats=repeats)
    return join_sides(*sides, keys, correct_at=correct_at, repeats=repeats, tie=True)


def _have_repeats(before: Side, after: Side) -> bool:
    return before.repeats > 1 or after.repeats > 1


def _may_write_differently(before: Run, after: Run) -> bool:
    """Whether two harnesses, or different or unknown versions of one, logged the runs."""
    first, second = before.info.harness, after.info.harness
    return None not in (first.name, second.name) and (first != second or first.version is None)


def _same_library(before: Run, after: Run) -> None:
    first, second = before.scores.implementation, after.scores.implementation
    if first != second:
        raise BackendError(
            f"{before.name} is a {first.value} frame and {after.name} a {second.value} frame",
            hint="pass both from the same library, or both as paths.",
        )
    if first.is_duckdb() and not _share_connection(before.scores, after.scores):
        raise BackendError(
            f"{before.name} and {after.name} belong to different DuckDB connections",
            hint="create both relations with the same connection, or pass both as paths.",
        )


def _share_connection(before: Frame, after: Frame) -> bool:
    """Whether both are of the same DuckDB connection; no query is run."""
    try:
        nw.to_native(before).set_alias("ours").cross(nw.to_native(after).set_alias("theirs"))
    except duckdb.InvalidInputException:
        return False
    return True


def _looks_doubled(side: Side, keys: Keys, *, repeats: bool) -> bool:
    if side.totals is None:
        return looks_doubled(side.measured.scores, keys, side.rows, repeats=repeats)
    used = [name for name in ("item", "question_hash") if name in keys.columns]
    return any(side.totals.repetition[name] > MAX_REPETITION for name in used)


def looks_doubled(scores: Frame, keys: Keys, rows: int, *, repeats: bool) -> bool:
    """Whether a join could multiply rows, because a key has very many of them.

    DuckDB counts rows by a coarse hash of the key: a bucket far above the others shows such a key
    at a tenth of the cost of grouping by the key. Small or other frames are grouped by the key.
    """
    by = keys.joined_on(repeats=repeats)
    keyed = keys.add_to(scores).select(*by)
    if not scores.implementation.is_duckdb() or rows < 16 * BUCKETS:
        largest = keyed.group_by(*by).agg(n=nw.len()).select(nw.col("n").max()).collect().item()
        return bool(largest > 1)
    bucket = f"hash({', '.join(map(quote, by))}) & {BUCKETS - 1}"
    counted = nw.to_native(keyed).aggregate("count(*) AS n", bucket).aggregate("max(n)")
    expected = rows / BUCKETS
    return bool(counted.fetchall()[0][0] > expected + 10 * expected**0.5)


def tell_apart(before: Frame, after: Frame, keys: Keys, *, repeats: bool) -> tuple[Frame, Frame]:
    """Add a column `tie` to both sides, which is empty for all items but twins.

    An item has the same tie in all its repeats, even if its twin has fewer repeats.
    """
    on = keys.joined_on(repeats=repeats)
    keyed = (keys.add_to(before), keys.add_to(after))
    sided = [frame.select("item", *on, side=nw.lit(side)) for side, frame in enumerate(keyed)]
    content = keys.joined_on(repeats=False)
    ties = _ties(nw.concat(sided), content, one=[*on, "side"])
    return _add_ties(keyed[0], ties, content), _add_ties(keyed[1], ties, content)


def _ties(results: Frame, content: list[str], one: list[str]) -> Frame:
    """Return the tie of every twin: its id if both sides have it, else its number on its side.

    Args:
        results: content, item and side of every result.
        content: columns that twins share.
        one: columns that would identify a result if there were no twins.
    """
    duplicates = results.group_by(*one).agg(n=nw.len()).filter(nw.col("n") > 1)
    twins = results.join(duplicates.select(*content), on=content, how="semi")
    ids = twins.group_by(*content, "item").agg(
        first_side=nw.col("side").min(), last_side=nw.col("side").max()
    )
    # Shorter ids first, so that 9 comes before 10. Arrow has no order within a group, so rows are
    # numbered over all groups, and the first number of the group is subtracted.
    group = [*content, "first_side", "last_side"]
    numbered = ids.with_columns(id_length=nw.col("item").str.len_chars()).with_row_index(
        "place", order_by=[*group, "id_length", "item"]
    )
    position = nw.col("place") - nw.col("place").min().over(*group)
    tie = (
        nw.when(nw.col("first_side") != nw.col("last_side"))
        .then(nw.concat_str(nw.lit("id "), nw.col("item")))
        .otherwise(nw.concat_str(nw.lit("#"), position.cast(nw.String)))
    )
    return numbered.select(*content, "item", tie=tie)


def _add_ties(frame: Frame, ties: Frame, content: list[str]) -> Frame:
    tied = frame.join(ties, on=[*content, "item"], how="left")
    names = [name for name in frame.collect_schema().names() if not name.startswith("key_")]
    return tied.select(*names, tie=nw.coalesce(nw.col("tie"), nw.lit("")))
