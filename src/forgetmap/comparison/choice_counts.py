"""Counts of the options chosen before and after, by number of options.

The score of a pair under every estimator depends only on its cell, on k and on the relation of the
two choices, so the estimators need nothing but these counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self

import narwhals as nw

from forgetmap.pairing import RIGHT, WRONG, is_transition, side_value
from forgetmap.records import FAILED

CHOICE_COLUMNS = frozenset({"wrong_before", "wrong_after"})
"""Columns of wrong choices."""
TWO_OPTIONS = 2
"""Number of options of an item with a single wrong option."""


class ChoiceRelation(IntEnum):
    """How two answers relate if at least one is wrong; null if it does not matter."""

    DIFFERENT = 1
    TO_NONE = 2
    FROM_NONE = 3
    OTHER = 4
    UNKNOWN = 5
    NONE_BOTH = 6


@dataclass(frozen=True, slots=True)
class OptionCounts:
    """Scored pairs with the same number of options. Counts can be added.

    Attributes:
        n11: right before and after.
        n10: right before, wrong after.
        n01: wrong before, right after.
        n00: wrong before and after.
        lost_to_none: of n10, no answer after.
        gained_from_none: of n01, no answer before.
        different: of n00, two different wrong options.
        wrong_to_none: of n00, a wrong option before and no answer after.
        none_to_wrong: of n00, no answer before and a wrong option after.
        none_to_none: of n00, no answer before nor after.
        unknown: pairs with a wrong answer whose chosen option is not recorded.
    """

    n11: int = 0
    n10: int = 0
    n01: int = 0
    n00: int = 0
    lost_to_none: int = 0
    gained_from_none: int = 0
    different: int = 0
    wrong_to_none: int = 0
    none_to_wrong: int = 0
    none_to_none: int = 0
    unknown: int = 0

    @property
    def n(self) -> int:
        """Scored pairs."""
        return self.n11 + self.n10 + self.n01 + self.n00

    @property
    def lost_to_wrong(self) -> int:
        """Right before, a wrong answer after."""
        return self.n10 - self.lost_to_none

    @property
    def wrong_to_wrong(self) -> int:
        """A wrong answer before and after."""
        return self.n00 - self.wrong_to_none - self.none_to_wrong - self.none_to_none

    def __add__(self, other: Self) -> OptionCounts:
        return OptionCounts(
            *(getattr(self, count.name) + getattr(other, count.name) for count in fields(self))
        )

    def reversed(self) -> OptionCounts:
        """Return the counts with before and after exchanged, so that losses become gains."""
        return OptionCounts(
            n11=self.n11,
            n10=self.n01,
            n01=self.n10,
            n00=self.n00,
            lost_to_none=self.gained_from_none,
            gained_from_none=self.lost_to_none,
            different=self.different,
            wrong_to_none=self.none_to_wrong,
            none_to_wrong=self.wrong_to_none,
            none_to_none=self.none_to_none,
            unknown=self.unknown,
        )


ByOptions = Mapping[float, OptionCounts]
"""Number of options -> counts; `inf` for open-ended items."""

_FIELDS = {
    ("n10", ChoiceRelation.TO_NONE): "lost_to_none",
    ("n01", ChoiceRelation.FROM_NONE): "gained_from_none",
    ("n00", ChoiceRelation.DIFFERENT): "different",
    ("n00", ChoiceRelation.TO_NONE): "wrong_to_none",
    ("n00", ChoiceRelation.FROM_NONE): "none_to_wrong",
    ("n00", ChoiceRelation.NONE_BOTH): "none_to_none",
}


def count_options(cell: str, relation: int | None, n: int) -> OptionCounts:
    """Return the counts of n pairs in the same cell; the choice is unknown without a relation."""
    counts = {cell: n}
    if cell != "n11":
        kind = ChoiceRelation.UNKNOWN if relation is None else ChoiceRelation(relation)
        if kind is ChoiceRelation.UNKNOWN:
            counts["unknown"] = n
        elif (cell, kind) in _FIELDS:
            counts[_FIELDS[cell, kind]] = n
    return OptionCounts(**counts)


def add_options(parts: Iterable[ByOptions]) -> dict[float, OptionCounts]:
    """Add up the counts of several groups."""
    total: dict[float, OptionCounts] = {}
    for part in parts:
        for k, counts in part.items():
            total[k] = total[k] + counts if k in total else counts
    return dict(sorted(total.items()))


def reverse(options: ByOptions) -> dict[float, OptionCounts]:
    """Return the counts with before and after exchanged."""
    return {k: counts.reversed() for k, counts in options.items()}


def options_of(columns: frozenset[str]) -> nw.Expr:
    """Return the number of options of a joined row; null if open-ended or a single option."""
    if not columns & {"k_before", "k_after"}:
        return nw.lit(None, dtype=nw.Float64)  # pandas has no nullable integer
    k = side_value("k", columns)
    return nw.when(k >= TWO_OPTIONS).then(k)


def options_from(value: object) -> float:
    """Return the number of options of a counted row; null (NaN in pandas) means open-ended."""
    return math.inf if value is None or value != value else float(value)  # type: ignore[arg-type]  # noqa: PLR0124


def relation(columns: frozenset[str]) -> nw.Expr:
    """Return how the two answers of a joined row relate; null if both are right.

    An answer counts as given unless its outcome says otherwise: outcomes alone show whether an item
    is no longer answered, and recorded options show which one was chosen.
    """
    picked = {side: _picked(side, columns) for side in ("before", "after")}
    none = {side: ~picked[side] & answer_failed(side, columns) for side in picked}
    lost, gained, wrong = (
        is_transition(RIGHT, WRONG),
        is_transition(WRONG, RIGHT),
        is_transition(WRONG, WRONG),
    )
    both = wrong & picked["before"] & picked["after"]
    different = (
        both & (nw.col("wrong_before") != nw.col("wrong_after"))
        if columns >= CHOICE_COLUMNS
        else both
    )
    other = both | (lost & picked["after"]) | (gained & picked["before"])
    return (
        nw.when(wrong & none["before"] & none["after"]).then(_code(ChoiceRelation.NONE_BOTH))
        .when(different).then(_code(ChoiceRelation.DIFFERENT))
        .when((lost | wrong) & none["after"]).then(_code(ChoiceRelation.TO_NONE))
        .when((gained | wrong) & none["before"]).then(_code(ChoiceRelation.FROM_NONE))
        .when(other).then(_code(ChoiceRelation.OTHER))
        .when(lost | gained | wrong).then(_code(ChoiceRelation.UNKNOWN))
    )  # fmt: skip


def _picked(side: str, columns: frozenset[str]) -> nw.Expr:
    """Return whether a wrong choice is recorded; false if either side has no such column."""
    if not columns >= CHOICE_COLUMNS:
        return nw.lit(False)  # noqa: FBT003
    return ~nw.col(f"wrong_{side}").is_null()


def knows_answers(columns: frozenset[str]) -> bool:
    """Return whether the columns show how the answers of a pair relate."""
    return columns >= CHOICE_COLUMNS or bool(columns & {"outcome_before", "outcome_after"})


def answer_failed(side: str, columns: frozenset[str]) -> nw.Expr:
    """Return whether there is no choice because the answer failed, rather than unrecorded."""
    if f"outcome_{side}" not in columns:
        return nw.lit(False)  # noqa: FBT003
    outcome = nw.col(f"outcome_{side}")
    return ~outcome.is_null() & outcome.is_in([*map(str, FAILED)])


def _code(relation: ChoiceRelation) -> nw.Expr:
    return nw.lit(int(relation), dtype=nw.Int8)
