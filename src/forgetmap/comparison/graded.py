"""Changes of scores between 0 and 1, and of the probability of the right answer."""

from __future__ import annotations

from dataclasses import dataclass, fields

import narwhals as nw

from forgetmap.comparison.cells import DIGITS
from forgetmap.comparison.labels import Label, label_columns, label_of
from forgetmap.pairing import SIDES, Pairs, scored_pair


@dataclass(frozen=True, slots=True)
class ChangeSums:
    """Sums of the decrease of a value, before minus after. Sums can be added.

    Attributes:
        n: scored pairs with the value on both sides.
        graded: of these, pairs with a value that is neither 0 nor 1 on either side.
        total: sum of the decreases.
        squares: sum of their squares.
        cubes: sum of their third powers.
    """

    n: float = 0.0
    graded: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    def __add__(self, other: ChangeSums) -> ChangeSums:
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return ChangeSums(*(round(value, DIGITS) for value in sums))


def sum_changes(pairs: Pairs, column: str) -> dict[Label, ChangeSums]:
    """Sum by task, category and tags; empty if a side does not have the column.

    Args:
        pairs: both sides.
        column: `score`, or `probability` of the right answer.
    """
    names = [f"{column}_{side}" for side in SIDES]
    if not set(names) <= pairs.columns:
        return {}
    labels = label_columns(pairs)
    before, after = (nw.col(name) for name in names)
    fall = before - after
    between = ((before != 0) & (before != 1)) | ((after != 0) & (after != 1))
    known = scored_pair() & ~before.is_null() & ~after.is_null()
    rows = pairs.frame.filter(known).select(
        "task",
        **labels,
        fall=fall,
        square=fall**2,
        cube=fall**3,
        graded=nw.when(between).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    sums = rows.group_by("task", *labels).agg(
        nw.len().alias("n"), *(nw.col(name).sum() for name in ("fall", "square", "cube", "graded"))
    )
    return {
        label_of(row): ChangeSums(
            *(round(float(row[name]), DIGITS) for name in ("n", "graded", "fall", "square", "cube"))
        )
        for row in sums.collect().rows(named=True)
    }
