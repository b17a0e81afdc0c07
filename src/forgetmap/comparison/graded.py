"""Changes of scores between 0 and 1, without a threshold for right and wrong."""

from __future__ import annotations

from dataclasses import dataclass, fields

import narwhals as nw

from forgetmap.comparison.cells import DIGITS, Label, label_columns, label_of
from forgetmap.pairing import Pairs, scored_pair


@dataclass(frozen=True, slots=True)
class GradedSums:
    """Sums of the decrease of graded scores, before minus after. Sums can be added.

    Attributes:
        n: scored pairs.
        graded: of these, pairs with a score that is neither 0 nor 1 on either side.
        total: sum of the decreases.
        squares: sum of their squares.
        cubes: sum of their third powers.
    """

    n: float = 0.0
    graded: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    def __add__(self, other: GradedSums) -> GradedSums:
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return GradedSums(*(round(value, DIGITS) for value in sums))


def graded_fall() -> nw.Expr:
    """Return the score before minus the score after."""
    return nw.col("score_before") - nw.col("score_after")


def sum_graded(pairs: Pairs) -> dict[Label, GradedSums]:
    """Sum by task, category and tags."""
    labels = label_columns(pairs)
    between = [
        (nw.col(name) != 0) & (nw.col(name) != 1) for name in ("score_before", "score_after")
    ]
    rows = pairs.frame.filter(scored_pair()).select(
        "task",
        **labels,
        fall=graded_fall(),
        square=graded_fall() ** 2,
        cube=graded_fall() ** 3,
        graded=nw.when(between[0] | between[1]).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    sums = rows.group_by("task", *labels).agg(
        nw.len().alias("n"), *(nw.col(name).sum() for name in ("fall", "square", "cube", "graded"))
    )
    return {
        label_of(row): GradedSums(
            *(round(float(row[name]), DIGITS) for name in ("n", "graded", "fall", "square", "cube"))
        )
        for row in sums.collect().rows(named=True)
    }
