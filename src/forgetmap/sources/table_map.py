"""The mapping of a table: which column is which field, and constants for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from forgetmap.errors import UsageError

ROWS, MODEL = "rows", "model"
"""Names in --columns that are no fields: the list that holds the results, and the column that says
whose result a row is."""
PERCENT = "percent"


class ScoreRange(NamedTuple):
    """A scale of scores: what is worst and what is best on it; the worst may be the larger."""

    worst: float
    best: float

    def __str__(self) -> str:
        return f"{self.worst:g}:{self.best:g}"

    def holds(self, score: float) -> bool:
        """Whether a score lies on this scale."""
        return min(self) <= score <= max(self)

    def share(self, score: float) -> float:
        """Where a score lies between worst and best: 0 to 1."""
        return (score - self.worst) / (self.best - self.worst)


def parse_range(text: str) -> ScoreRange:
    """`1:10`, or `percent` for 0:100.

    Raises:
        UsageError: it is neither.
    """
    worst, colon, best = ("0:100" if text.strip().lower() == PERCENT else text).partition(":")
    try:
        ends = ScoreRange(float(worst), float(best)) if colon else None
    except ValueError:
        ends = None
    if ends is None or ends.worst == ends.best or not all(abs(end) < 1e300 for end in ends):
        raise UsageError(
            f"--range {text} is not a scale of two different numbers",
            hint="write the worst and the best score, such as --range 1:10 or --range 0:100.",
        )
    return ends


@dataclass(frozen=True, slots=True)
class TableMap:
    """How to read a table.

    Attributes:
        columns: canonical field -> column, or path into one.
        task: name of the only task.
        rows: path of the list that holds the results of a JSON document; `.` is the document.
        model: the column that says whose result a row is.
        score_range: the scale of the scores, where it is not 0 to 1.
        fallback_task: name of the only task where the table names none.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    rows: str | None = None
    model: str | None = None
    score_range: ScoreRange | None = None
    fallback_task: str | None = None

    def merged(
        self, columns: Mapping[str, str], task: str | None, score_range: ScoreRange | None
    ) -> TableMap:
        """The same with what is named now, which wins."""
        fields = {name: column for name, column in columns.items() if name not in {ROWS, MODEL}}
        # A column of task names takes the place of the one name for all rows.
        known_task = None if "task" in fields else self.task
        return TableMap(
            {**self.columns, **fields},
            task or known_task,
            columns.get(ROWS) or self.rows,
            columns.get(MODEL) or self.model,
            score_range or self.score_range,
        )

    def with_columns(self, **columns: str) -> TableMap:
        """The same with further columns."""
        return replace(self, columns={**self.columns, **columns})

    @property
    def names_columns(self) -> bool:
        """Whether it says that this is a table, not a log."""
        return bool(self.columns or self.rows or self.model)
