"""What paired, what did not, and why; the point at which a comparison is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw

from forgetmap.errors import TooFewPairedError
from forgetmap.pairing.checks import Notice
from forgetmap.pairing.match import Side
from forgetmap.pairing.pair import Pairs, is_in
from forgetmap.records.run import Frame
from forgetmap.transitions.cells import Cells, Group, by_task

MIN_PAIRED = 0.8


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of each side found its counterpart.

    `rows_before = paired + only_before + conflicts`, and the same after.

    Attributes:
        rows_before: results before.
        rows_after: results after.
        paired: pairs of results, scored or not.
        items: different items among the scored pairs.
        only_before: results whose item does not occur after.
        only_after: results whose item does not occur before.
        duplicates: results that share question, options and gold with another item of their task.
        conflicts: same task and id on both sides, but other content; not paired.
        unscored: pairs without a score on one side or both; not counted as wrong.
    """

    rows_before: int
    rows_after: int
    paired: int
    items: int
    only_before: int
    only_after: int
    duplicates: int
    conflicts: int
    unscored: int

    @property
    def share(self) -> float:
        """Paired share of the smaller side."""
        return self.paired / min(self.rows_before, self.rows_after)


def is_one_to_one(cells: Cells, before: Side, after: Side) -> bool:
    """Whether every key stood for at most one result on each side.

    A join counts a result as often as its key occurs on the other side, so with unique keys the
    joined rows of a side are exactly its results, and with doubled keys they are more.
    """
    return (
        cells.paired + cells.only_before == before.rows
        and cells.paired + cells.only_after == after.rows
        and cells.lone_before_keys == cells.only_before
        and cells.lone_after_keys == cells.only_after
    )


def measure_coverage(pairs: Pairs, cells: Cells, before: Side, after: Side) -> Coverage:
    """Coverage from the sums; only conflicts need another look, and only where they can occur."""
    possible = pairs.keys.use_content and cells.only_before and cells.only_after
    conflicts = _count_conflicts(pairs) if possible else 0
    return Coverage(
        rows_before=before.rows,
        rows_after=after.rows,
        paired=cells.paired,
        items=cells.items,
        only_before=cells.only_before - conflicts,
        only_after=cells.only_after - conflicts,
        duplicates=cells.twins,
        conflicts=conflicts,
        unscored=cells.unscored,
    )


def conflicting(pairs: Pairs) -> Frame:
    """Task, item and repeat of results with the same id but other content."""
    key = ["task", "item", "repeat"]
    lone = [
        pairs.frame.filter(is_in(side) & ~is_in(other)).select(
            "task", nw.col(f"item_{side}").alias("item"), "repeat"
        )
        for side, other in (("before", "after"), ("after", "before"))
    ]
    return lone[0].join(lone[1], on=key, how="inner").unique()


def require_enough(
    coverage: Coverage, groups: Sequence[Group], min_paired: float, names: tuple[str, str]
) -> None:
    """Refuse a comparison of which too little paired.

    Raises:
        TooFewPairedError: saying how little, what differs, and what to do.
    """
    if coverage.paired and coverage.share >= min_paired:
        return
    smaller = min(coverage.rows_before, coverage.rows_after)
    if coverage.paired:
        share = f"{coverage.paired:,} of {smaller:,} results ({coverage.share:.1%})"
        found = f"only {share} occur on both sides"
    else:
        found = f"no item of {names[0]} occurs in {names[1]}"
    raise TooFewPairedError(
        f"{found}; {_difference(coverage, groups)}",
        hint=_advice(coverage, min_paired),
    )


def coverage_warnings(
    coverage: Coverage, cells: Cells, groups: Sequence[Group], min_paired: float
) -> list[Notice]:
    """What a reader must know about the items that are and are not in the numbers."""
    warnings = []
    lone = coverage.only_before + coverage.only_after
    if lone:
        warnings.append(
            Notice(
                "one_sided",
                f"{coverage.only_before:,} results occur only before and "
                f"{coverage.only_after:,} only after; they are not compared.",
            )
        )
    if coverage.conflicts:
        warnings.append(
            Notice(
                "conflict",
                f"{coverage.conflicts:,} results have the same id on both sides but other "
                "content; they are not compared.",
            )
        )
    if coverage.duplicates:
        warnings.append(
            Notice(
                "duplicates",
                f"{coverage.duplicates:,} results share question, options and gold with another "
                f"item; {cells.ordered_twins:,} of them are told apart by their order alone.",
            )
        )
    if coverage.unscored:
        warnings.append(
            Notice(
                "unscored",
                f"{coverage.unscored:,} pairs have no score on one side or both; they count "
                "neither as right nor as wrong.",
            )
        )
    if cells.prompts_differ:
        warnings.append(
            Notice(
                "prompts",
                f"{cells.prompts_differ:,} of {coverage.paired:,} pairs were asked with "
                "different prompts.",
            )
        )
    return warnings + _thin_tasks(groups, min_paired)  # fmt: skip


def _count_conflicts(pairs: Pairs) -> int:
    return int(conflicting(pairs).select(nw.len()).collect().item())


def _thin_tasks(groups: Sequence[Group], min_paired: float) -> list[Notice]:
    thin = []
    for task, cells in by_task(groups).items():
        smaller = min(cells.paired + cells.only_before, cells.paired + cells.only_after)
        if smaller and cells.paired / smaller < min_paired:
            thin.append(f"{task} ({cells.paired / smaller:.0%})")
    if not thin:
        return []
    shown = ", ".join(thin[:3]) + (f" and {len(thin) - 3:,} more" if len(thin) > 3 else "")  # noqa: PLR2004
    return [Notice("thin_task", f"less than {min_paired:.0%} paired in {shown}.")]


def _difference(coverage: Coverage, groups: Sequence[Group]) -> str:
    tasks = by_task(groups)
    before = [t for t, c in tasks.items() if not c.paired and not c.only_after]
    after = [t for t, c in tasks.items() if not c.paired and not c.only_before]
    facts = []
    if before:
        facts.append(f"tasks only before: {_listed(before)}")
    if after:
        facts.append(f"tasks only after: {_listed(after)}")
    if coverage.conflicts:
        facts.append(f"{coverage.conflicts:,} have the same id but other content")
    facts.append(f"{coverage.only_before:,} only before, {coverage.only_after:,} only after")
    return "; ".join(facts)


def _advice(coverage: Coverage, min_paired: float) -> str:
    if coverage.conflicts:
        return (
            "if you know that equal ids are equal items, pair by them: --pair-by id. Else evaluate "
            "both models on the same data."
        )
    if coverage.paired:
        return (
            f"evaluate both models on the same items, or accept less with --min-paired "
            f"{max(coverage.share - 0.005, 0):.2f} (now {min_paired:g})."
        )
    return "check that both come from the same benchmark and that --map names the same id column."


def _listed(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (
        f" and {len(names) - most:,} more" if len(names) > most else ""
    )
