"""From two runs to pairs: choose metric and key, join, and never let one result count twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import narwhals as nw

from forgetmap.errors import BackendError
from forgetmap.pairing.checks import check_positions, check_versions
from forgetmap.pairing.choices import PairBy
from forgetmap.pairing.keys import Keys, choose_keys, loosen
from forgetmap.pairing.metric import MeasuredScores, select_metric
from forgetmap.pairing.pair import Pairs, join_sides
from forgetmap.pairing.twins import looks_doubled, tell_apart
from forgetmap.records import Frame, Run, check_run, count_repeats, reading, refuse_duplicates


@dataclass(frozen=True, slots=True)
class Side:
    """A checked run under one measure per task, ready to be joined."""

    run: Run
    measured: MeasuredScores
    repeats: int

    @property
    def rows(self) -> int:
        """Results under the chosen measures."""
        return sum(counts["rows"] for counts in self.measured.recorded.values())


def prepare(run: Run, metric: str | None = None) -> Side:
    """Check a run and choose what is compared."""
    with reading(run):
        check_run(run)
        measured = select_metric(run, metric)
    if measured.amounts:
        run = replace(run, notices=(*run.notices, _left_out(measured)))
    return Side(run, measured, count_repeats(replace(run, scores=measured.scores)))


def _left_out(measured: MeasuredScores) -> str:
    tasks = ", ".join(sorted(measured.amounts))
    return f"{tasks} left out: neither right nor wrong; `forgetmap drift` compares them."


def match(before: Side, after: Side, *, correct_at: float, pair_by: PairBy = "auto") -> Pairs:
    """Join two sides on their keys, as if every key stood for one result on each side."""
    check_versions(before.run, after.run)
    check_positions(before.run, after.run, pair_by)
    _same_library(before.run, after.run)
    keys = choose_keys(before.measured.recorded, after.measured.recorded, pair_by)
    if keys.use_content and pair_by == "auto" and _may_write_differently(before.run, after.run):
        keys = loosen(keys, before.measured.scores, after.measured.scores)
    repeats = _have_repeats(before, after)
    if looks_doubled(before.measured.scores, keys, before.rows, repeats=repeats):
        # A join would multiply them: settle it before, not after.
        return match_twins(before, after, keys, correct_at=correct_at)
    scores = (before.measured.scores, after.measured.scores)
    return join_sides(*scores, keys, correct_at=correct_at, repeats=repeats)


def match_twins(before: Side, after: Side, keys: Keys, *, correct_at: float) -> Pairs:
    """The same where a key stands for several results: told apart by id and order, or refused."""
    repeats = _have_repeats(before, after)
    task, *rest = keys.joined_on(repeats=repeats)
    for side in (before, after):
        refuse_duplicates(side.run, keys.add_to(side.measured.scores), [task, "item", *rest])
    sides = tell_apart(before.measured.scores, after.measured.scores, keys, repeats=repeats)
    return join_sides(*sides, keys, correct_at=correct_at, repeats=repeats, tie=True)


def _have_repeats(before: Side, after: Side) -> bool:
    return before.repeats > 1 or after.repeats > 1


def _may_write_differently(before: Run, after: Run) -> bool:
    """Whether two harnesses, or versions of one, logged the runs; or versions nobody knows."""
    ours, theirs = before.info.harness, after.info.harness
    return None not in (ours.name, theirs.name) and (ours != theirs or ours.version is None)


def _same_library(before: Run, after: Run) -> None:
    ours, theirs = before.scores.implementation, after.scores.implementation
    if ours != theirs:
        raise BackendError(
            f"{before.name} is a {ours.value} frame and {after.name} a {theirs.value} frame",
            hint="hand in both from the same library, or both as paths.",
        )
    if ours.is_duckdb() and not _share_connection(before.scores, after.scores):
        raise BackendError(
            f"{before.name} and {after.name} live in two DuckDB connections",
            hint="make both relations with the same connection, or hand in both as paths.",
        )


def _share_connection(before: Frame, after: Frame) -> bool:
    """Whether DuckDB would combine the two; asking runs nothing."""
    try:
        nw.to_native(before).set_alias("ours").cross(nw.to_native(after).set_alias("theirs"))
    except duckdb.InvalidInputException:
        return False
    return True
