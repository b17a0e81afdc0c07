"""Counts of the states of every group, in one pass over the joined results.

A result is right, wrong, unscored or absent on each side, so a few counts per task are enough. The
expressions are narwhals, so the same code runs in DuckDB, Polars, pandas and Spark; only counts are
collected, never items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import narwhals as nw

from forgetmap.comparison.choices_made import (
    answer_kind,
    knows_answers,
    options_of,
    same_choice,
)
from forgetmap.comparison.labels import Label, is_none, label_columns, label_of
from forgetmap.pairing import (
    RIGHT,
    SIDES,
    UNSCORED,
    WRONG,
    Pairs,
    both_sides,
    is_in,
    is_transition,
    scored_pair,
    side_value,
)
from forgetmap.records import FAILED, Frame

REASONS = ("wrong", *map(str, FAILED), "unknown")
"""Reasons why an item went from right to wrong; `unknown` if no outcome is recorded."""

CELL_NAMES = {
    (RIGHT, RIGHT): "n11",
    (RIGHT, WRONG): "n10",
    (WRONG, RIGHT): "n01",
    (WRONG, WRONG): "n00",
}
"""States before and after -> name of the cell."""
DIGITS = 9
"""Decimals of sums of scores, so that they do not depend on the order of summation."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts over (item, repeat) pairs of one group. Counts of groups can be added.

    Attributes:
        paired: pairs of results.
        only_before: results without a counterpart after.
        only_after: results without a counterpart before.
        further_before: of these, further answers to items that are scored after too; they count.
        further_after: the same after.
        unscored: pairs without a score on at least one side.
        items: distinct items among the scored pairs.
        items_before: distinct items that are scored before, paired or not.
        items_after: the same after.
        n11: right before and after.
        n00: wrong before and after.
        n10: right before, wrong after: forgotten.
        n01: wrong before, right after: gained.
        scored_before: results before with a score, paired or not, without the further ones.
        right_before: of these, right.
        scored_after: results after with a score.
        right_after: of these, right.
        prompts_differ: pairs whose rendered prompts differ.
        lone_before_keys: distinct keys among `only_before`; fewer than rows if keys are duplicated.
        lone_after_keys: the same for `only_after`.
        twins: results with the same content as another item.
        ordered_twins: pairs of them that only their order distinguishes.
        first_flips: n10 of the first answers, which choose what is asked again.
        reasons: n10 by outcome after.
    """

    paired: int = 0
    only_before: int = 0
    only_after: int = 0
    further_before: int = 0
    further_after: int = 0
    unscored: int = 0
    items: int = 0
    items_before: int = 0
    items_after: int = 0
    n11: int = 0
    n10: int = 0
    n01: int = 0
    n00: int = 0
    scored_before: int = 0
    right_before: int = 0
    scored_after: int = 0
    right_after: int = 0
    prompts_differ: int = 0
    lone_before_keys: int = 0
    lone_after_keys: int = 0
    twins: int = 0
    ordered_twins: int = 0
    first_flips: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Scored pairs."""
        return self.n11 + self.n10 + self.n01 + self.n00

    @property
    def missing(self) -> tuple[int, int]:
        """Results whose item is missing after, and before."""
        return self.only_before - self.further_before, self.only_after - self.further_after

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """Add up several groups."""
        parts = list(parts)
        counts = {name: sum(getattr(part, name) for part in parts) for name in _COUNTS}
        names = {name for part in parts for name in part.reasons}
        reasons = {
            name: sum(part.reasons.get(name, 0) for part in parts)
            for name in REASONS
            if name in names
        }
        return cls(**counts, reasons=reasons)


_COUNTS = tuple(count.name for count in fields(Cells) if count.name != "reasons")


Counted = tuple[dict[Label, Cells], list[dict[str, Any]]]
"""Counts by label, and the counted rows of the scored pairs, for `plain_kinds`."""


def count_cells(pairs: Pairs) -> dict[Label, Cells]:
    """Count everything by task, category and tags; see `count_pairs`."""
    return count_pairs(pairs)[0]


def count_pairs(pairs: Pairs, more: Mapping[str, nw.Expr] | None = None) -> Counted:
    """Count everything by task, category and tags.

    Args:
        pairs: both sides.
        more: further columns to count scored pairs by.
    """
    labels = label_columns(pairs)
    by = ["task", *labels]
    marks = {**_marks(pairs), **{
        name: nw.when(scored_pair()).then(value) for name, value in (more or {}).items()
    }}  # fmt: skip
    states, scored = _states(), _scored()
    counted = (
        _with_further(pairs)
        .with_columns(**labels, **states, **marks, **scored, lone_key=_lone_key(pairs))
        .group_by(*by, *states, *marks)
        .agg(
            nw.len().alias("n"),
            nw.col("lone_key").n_unique(),
            *(nw.col(name).sum() for name in scored),
        )
    )
    parts: dict[Label, list[Cells]] = {}
    rows: list[dict[str, Any]] = counted.collect().rows(named=True)
    for row in rows:
        parts.setdefault(label_of(row), []).append(_cells(row))
    totals = {label: Cells.total(cells) for label, cells in parts.items()}
    if pairs.repeats:
        items = _count_items(pairs, by, labels)
        totals = {label: replace(sums, **items.get(label, {})) for label, sums in totals.items()}
    return totals, [row for row in rows if _is_scored(row)]


def _is_scored(row: Mapping[str, Any]) -> bool:
    states = [row[f"state_{side}"] for side in SIDES]
    return not any(is_none(state) or int(state) == UNSCORED for state in states)


def count_scored_before(
    pairs: Pairs, name: Literal["category", "tags"]
) -> tuple[dict[str, int], int]:
    """Count results scored before, paired or not, by category or list of tags.

    A result without a counterpart has the label recorded before. If the labels of others come from
    AFTER, a missing label is unknown.

    Returns the counts, and the number of results that may belong to any label.

    Args:
        pairs: both sides.
        name: the label to count by.
    """
    own = f"{name}_before"
    rows = _with_further(pairs).select(
        label=side_value(name, pairs.columns),
        lone=~is_in("after"),
        is_own=~nw.col(own).is_null() if own in pairs.columns else nw.lit(value=False),
        scored=_scored()["scored_before"],
    )
    counted = rows.group_by("label", "lone", "is_own").agg(nw.col("scored").sum()).collect()
    counts: dict[str, int] = {}
    unlabelled, is_borrowed = 0, False
    for row in counted.rows(named=True):
        if not is_none(row["label"]):
            counts[row["label"]] = counts.get(row["label"], 0) + int(row["scored"])
            is_borrowed = is_borrowed or (not row["is_own"] and row["scored"] > 0)
        elif row["lone"]:
            unlabelled += int(row["scored"])
    return counts, unlabelled if is_borrowed else 0


def by_task(groups: Mapping[Label, Cells]) -> dict[str, Cells]:
    """Add up the groups of each task, sorted by name."""
    parts: dict[str, list[Cells]] = {}
    for label, cells in groups.items():
        parts.setdefault(label.task, []).append(cells)
    return {task: Cells.total(parts[task]) for task in sorted(parts)}


def _states() -> dict[str, nw.Expr]:
    """Return the state on each side; all results without a counterpart get the same one.

    They are only counted, and in one group per task: in two groups, duplicates would go unnoticed.
    """
    lone = nw.lit(UNSCORED, dtype=nw.Int8)
    return {
        f"state_{side}": nw.when(is_in(other)).then(nw.col(f"state_{side}")).otherwise(lone)
        for side, other in (SIDES, SIDES[::-1])
    }


def _with_further(pairs: Pairs) -> Frame:
    """Mark answers without a counterpart to items that the other side answered less often.

    Their items are compared, so they are neither missing there nor left out here.
    """
    zero, one = nw.lit(0, dtype=nw.Int64), nw.lit(1, dtype=nw.Int64)
    if not pairs.repeats:
        return pairs.frame.with_columns(**{f"further_{side}": zero for side in SIDES})
    item, further = ("task", *pairs.item_columns), {}
    for side, other in (SIDES, SIDES[::-1]):
        known = is_in(other) & (nw.col(f"state_{other}") != UNSCORED)
        answers = nw.when(known).then(one).otherwise(zero).sum().over(*item)
        is_further = is_in(side) & ~is_in(other) & (answers > 0)
        further[f"further_{side}"] = nw.when(is_further).then(one).otherwise(zero)
    return pairs.frame.with_columns(**further)


def _scored() -> dict[str, nw.Expr]:
    """Return 1 or 0 for "has a score" and "is right" on each side, to be summed.

    Further answers are a sum of their own.
    """
    one, zero = nw.lit(1, dtype=nw.Int64), nw.lit(0, dtype=nw.Int64)
    scored = {}
    for side in SIDES:
        state = nw.col(f"state_{side}")
        known = ~state.is_null() & (state != UNSCORED) & (nw.col(f"further_{side}") == 0)
        scored[f"scored_{side}"] = nw.when(known).then(one).otherwise(zero)
        scored[f"right_{side}"] = nw.when(known & (state == RIGHT)).then(one).otherwise(zero)
        scored[f"further_{side}"] = nw.col(f"further_{side}")
    scored["first"] = nw.when(nw.col("repeat") == 0).then(one).otherwise(zero)
    return scored


def _marks(pairs: Pairs) -> dict[str, nw.Expr]:
    """Return further properties of a joined row, each with few values."""
    marks: dict[str, nw.Expr] = {}
    if "outcome_after" in pairs.columns:
        marks["reason"] = nw.when(is_transition(RIGHT, WRONG)).then(nw.col("outcome_after"))
    if {"prompt_hash_before", "prompt_hash_after"} <= pairs.columns:
        marks["prompts_differ"] = nw.col("prompt_hash_before") != nw.col("prompt_hash_after")
    if "tie" in pairs.columns:
        marks["tie_kind"] = nw.col("tie").str.slice(0, 1)
    if pairs.columns & {"k_before", "k_after"}:
        marks["k"] = nw.when(both_sides()).then(options_of(pairs.columns))
    if knows_answers(pairs.columns):
        scored = scored_pair()
        for side in SIDES:
            marks[f"kind_{side}"] = nw.when(scored).then(answer_kind(side, pairs.columns))
        marks["same"] = nw.when(scored).then(same_choice(pairs.columns))
    return marks


def _lone_key(pairs: Pairs) -> nw.Expr:
    """Return the key of a result without a counterpart, else null."""
    parts = [nw.col(name).cast(nw.String) for name in pairs.item_columns]
    if pairs.repeats:
        parts.append(nw.col("repeat").cast(nw.String))
    key = nw.concat_str(*parts, separator="\x1f") if len(parts) > 1 else parts[0]
    return nw.when(~both_sides()).then(key)


def _cells(row: dict[str, Any]) -> Cells:
    """Return the counts of rows in the same state."""
    sides: dict[str, Any] = {
        f"{name}_{side}": int(row[f"{name}_{side}"])
        for name in ("scored", "right", "further")
        for side in SIDES
    }
    before, after, n = row["state_before"], row["state_after"], int(row["n"])
    before, after = (None if is_none(state) else int(state) for state in (before, after))
    sides |= {f"items_{side}": sides[f"scored_{side}"] for side in SIDES}
    if after is None:
        keys = int(row["lone_key"])
        return Cells(only_before=n, lone_before_keys=keys, twins=_twins(row, n), **sides)
    if before is None:
        keys = int(row["lone_key"])
        return Cells(only_after=n, lone_after_keys=keys, twins=_twins(row, n), **sides)
    counts: dict[str, Any] = {"paired": n, "twins": _twins(row, n), **sides}
    counts["prompts_differ"] = n if _is_true(row.get("prompts_differ")) else 0
    counts["ordered_twins"] = n if row.get("tie_kind") == "#" else 0
    if UNSCORED in (before, after):
        return Cells(**counts, unscored=n)
    cell = CELL_NAMES[before, after]
    reasons = {}
    if cell == "n10":
        reasons[reason_of(row.get("reason"))] = n
        counts["first_flips"] = int(row["first"])
    return Cells(**counts, **{cell: n}, items=n, reasons=reasons)


def reason_of(outcome: Any) -> str:
    """Return why an item was forgotten, from its outcome after."""
    if is_none(outcome):
        return "unknown"
    return str(outcome) if outcome in REASONS else "wrong"


def _twins(row: dict[str, Any], n: int) -> int:
    return n if row.get("tie_kind") else 0


def _is_true(value: object) -> bool:
    return not is_none(value) and bool(value)


def _count_items(
    pairs: Pairs, by: Sequence[str], labels: Mapping[str, nw.Expr]
) -> dict[Label, dict[str, Any]]:
    """Count distinct items among the scored pairs, and those scored on either side."""
    zero, one = nw.lit(0, dtype=nw.Int64), nw.lit(1, dtype=nw.Int64)
    known = {"items": nw.when(scored_pair()).then(one).otherwise(zero)}
    for side in SIDES:
        scored = is_in(side) & (nw.col(f"state_{side}") != UNSCORED)
        known[f"items_{side}"] = nw.when(scored).then(one).otherwise(zero)
    per_item: Frame = (
        pairs.frame.select("task", *pairs.item_columns, **labels, **known)
        .group_by("task", *pairs.item_columns)
        # An answer without a counterpart may have no label of its own.
        .agg(*(nw.col(name).max() for name in (*known, *labels)))
    )
    counts = per_item.group_by(*by).agg(*(nw.col(name).sum() for name in known)).collect()
    return {
        label_of(row): {name: int(row[name]) for name in known} for row in counts.rows(named=True)
    }
