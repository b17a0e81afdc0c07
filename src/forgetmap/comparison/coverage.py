"""Coverage of a comparison: paired and unpaired results, and when it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

import narwhals as nw

from forgetmap.comparison.cells import Cells, by_task
from forgetmap.comparison.labels import Label
from forgetmap.errors import TooFewPairedError
from forgetmap.pairing import Pairs, Side, is_in
from forgetmap.records import Frame
from forgetmap.text import listed


@dataclass(frozen=True, slots=True)
class PairingCoverage:
    """Coverage of each side by its counterpart.

    `rows_before = paired + only_before + conflicts`, and the same after, but for further answers to
    items that the other side answered less often.

    Attributes:
        rows_before: results before.
        rows_after: results after.
        paired: pairs of results, scored or not.
        items: distinct items among the scored pairs.
        only_before: results whose item is missing after.
        only_after: results whose item is missing before.
        duplicates: results with the same question, options and gold as another item of their task.
        conflicts: results with the same task and id on both sides but different content; not
            paired.
        unscored: pairs without a score on at least one side; not counted as wrong.
        scored_before: share of the items scored before that are scored after too; None if there
            are none.
        scored_after: the same in the other direction.
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
    scored_before: float | None = None
    scored_after: float | None = None

    @property
    def share(self) -> float:
        """Paired share of the smaller side."""
        return self.paired / min(self.rows_before, self.rows_after)

    @property
    def covered(self) -> float:
        """The share that must reach the minimum: the smaller one of the two scored shares.

        If no pair is scored, the paired share is used, and the verdict states the reason.
        """
        known = [share for share in (self.scored_before, self.scored_after) if share is not None]
        return min(known) if any(known) else self.share


def is_one_to_one(cells: Cells, before: Side, after: Side) -> bool:
    """Return whether every key belongs to at most one result on each side.

    A join counts a result as often as its key occurs on the other side, so with unique keys the
    joined rows of a side are exactly its results, and with duplicate keys there are more.
    """
    return (
        cells.paired + cells.only_before == before.rows
        and cells.paired + cells.only_after == after.rows
        and cells.lone_before_keys == cells.only_before
        and cells.lone_after_keys == cells.only_after
    )


def measure_coverage(
    pairs: Pairs,
    cells: Cells,
    before: Side,
    after: Side,
) -> PairingCoverage:
    """Compute the coverage from the counts; conflicts take another query, if they are possible."""
    possible = pairs.keys.use_content and all(cells.missing)
    conflicts = _count_conflicts(pairs) if possible else 0
    return PairingCoverage(
        rows_before=before.rows,
        rows_after=after.rows,
        paired=cells.paired,
        items=cells.items,
        only_before=cells.missing[0] - conflicts,
        only_after=cells.missing[1] - conflicts,
        duplicates=cells.twins,
        conflicts=conflicts,
        unscored=cells.unscored,
        **_scored_shares(cells),
    )


def _scored_shares(cells: Cells) -> dict[str, float | None]:
    """Return the share of the scored items of each side that are scored on both."""
    return {
        "scored_before": cells.items / cells.items_before if cells.items_before else None,
        "scored_after": cells.items / cells.items_after if cells.items_after else None,
    }


def missing_items(cells: Cells) -> tuple[int, int] | None:
    """Count results scored before that are in no scored pair, and those of them that were right."""
    missing = cells.scored_before - cells.n
    right = cells.right_before - cells.n11 - cells.n10
    return (missing, right) if missing > 0 and 0 <= right <= missing else None


def conflicting(pairs: Pairs) -> Frame:
    """Return task, item and repeat of results with the same id but different content."""
    key = ["task", "item", "repeat"]
    lone = [
        pairs.frame.filter(is_in(side) & ~is_in(other)).select(
            "task", nw.col(f"item_{side}").alias("item"), "repeat"
        )
        for side, other in (("before", "after"), ("after", "before"))
    ]
    return lone[0].join(lone[1], on=key, how="inner").unique()


def require_enough(
    coverage: PairingCoverage,
    groups: Mapping[Label, Cells],
    min_paired: float,
    names: tuple[str, str],
) -> None:
    """Refuse a comparison with too few pairs.

    Raises:
        TooFewPairedError: names the coverage, the differences and what to do.
    """
    if coverage.paired and coverage.covered >= min_paired:
        return
    if coverage.paired:
        problem = _too_little(coverage, min_paired, names)
    else:
        problem = f"{names[0]} and {names[1]} have no item in common"
    raise TooFewPairedError(
        f"{problem}; {_difference(coverage, groups)}", hint=_advice(coverage, groups)
    )


def _too_little(coverage: PairingCoverage, min_paired: float, names: tuple[str, str]) -> str:
    """Name the side with too little coverage."""
    sides = [(coverage.scored_before, *names), (coverage.scored_after, *names[::-1])]
    known = [(share, name, other) for share, name, other in sides if share is not None]
    if not known:
        return f"only {coverage.share:.1%} of the results of {names[0]} and {names[1]} pair"
    share, name, other = min(known, key=lambda side: side[0])
    return (
        f"only {share:.1%} of the scored items of {name} are also scored in {other}, less than "
        f"the required {min_paired:.0%}"
    )


def _count_conflicts(pairs: Pairs) -> int:
    return int(conflicting(pairs).select(nw.len()).collect().item())


def _difference(coverage: PairingCoverage, groups: Mapping[Label, Cells]) -> str:
    before, after = _lone_tasks(groups)
    facts = []
    if before:
        facts.append(f"tasks only before: {listed(before)}")
    if after:
        facts.append(f"tasks only after: {listed(after)}")
    if coverage.conflicts:
        facts.append(f"{coverage.conflicts:,} with the same id but different content")
    facts.append(f"{coverage.only_before:,} only before, {coverage.only_after:,} only after")
    return "; ".join(facts)


def _lone_tasks(groups: Mapping[Label, Cells]) -> tuple[list[str], list[str]]:
    """Return the tasks that occur only before, and those that occur only after."""
    tasks = by_task(groups)
    return (
        [task for task, cells in tasks.items() if not cells.paired + cells.only_after],
        [task for task, cells in tasks.items() if not cells.paired + cells.only_before],
    )


def _advice(coverage: PairingCoverage, groups: Mapping[Label, Cells]) -> str:
    if coverage.conflicts:
        return (
            "if equal ids mean equal items, pair by id: --pair-by id. Otherwise evaluate both "
            "models on the same data."
        )
    if coverage.paired:
        # Rounded down, so that the proposed value is accepted.
        enough = Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(coverage.covered)
        return (
            "evaluate both models on the same items, or lower the requirement with --min-paired "
            f"{enough:f}."
        )
    if all(_lone_tasks(groups)):
        return "use the same task names on both sides; --task NAME names the task of a whole table."
    return (
        "check that both come from the same benchmark and that --columns names the same id column."
    )
