"""The mapping of a table: which column is which field, and constants for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from forgetmap.errors import UsageError

ROWS, MODEL = "rows", "model"
"""Names in --columns that are not fields: the list of results, and the column with the model."""
PERCENT = "percent"


class ScoreRange(NamedTuple):
    """A scale of scores: its worst and its best value; the worst may be the larger one."""

    worst: float
    best: float

    def __str__(self) -> str:
        return f"{self.worst:g}:{self.best:g}"

    def holds(self, score: float) -> bool:
        """Whether a score lies on this scale."""
        return min(self) <= score <= max(self)

    def share(self, score: float) -> float:
        """Return the position of a score between worst (0) and best (1)."""
        return (score - self.worst) / (self.best - self.worst)


def parse_range(text: str) -> ScoreRange:
    """Parse a scale: `1:10`, or `percent` for 0:100.

    Raises:
        UsageError: the text is not a scale.
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
        rows: path of the list of results in a JSON document; `.` is the document.
        model: column with the model of each row.
        score_range: scale of the scores, if it is not 0 to 1.
        fallback_task: name of the only task if the table has none.
        left_out: fields that are not read although the table has such columns.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    rows: str | None = None
    model: str | None = None
    score_range: ScoreRange | None = None
    fallback_task: str | None = None
    left_out: tuple[str, ...] = ()

    def merged(
        self, columns: Mapping[str, str], task: str | None, score_range: ScoreRange | None
    ) -> TableMap:
        """Return the map with these options, which take precedence."""
        fields = {name: column for name, column in columns.items() if name not in {ROWS, MODEL}}
        # A column of task names replaces the single name for all rows.
        known_task = None if "task" in fields else self.task
        return TableMap(
            {**self.columns, **fields},
            task or known_task,
            columns.get(ROWS) or self.rows,
            columns.get(MODEL) or self.model,
            score_range or self.score_range,
        )

    def with_columns(self, **columns: str) -> TableMap:
        """Return the map with further columns."""
        return replace(self, columns={**self.columns, **columns})

    @property
    def names_columns(self) -> bool:
        """Whether the map names columns, so that the file must be a table, not a log."""
        return bool(self.columns or self.rows or self.model)
