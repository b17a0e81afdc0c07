"""Problems in a log: parts that could not be used, and statements that its records contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ContradictionKind = Literal["total_contradicted", "verdict_unmatched"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a log that could not be used, and the reason."""

    file: str
    line: int | None
    field: str | None
    message: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        about = f", field '{self.field}'" if self.field else ""
        return f"{self.file}{line}{about}: {self.message}"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A statement of a log about its results that the records read from it contradict.

    Attributes:
        kind: `total_contradicted`: the records give another total; `verdict_unmatched`: verdicts
            that belong to no answer.
        task: the task.
        field: field of the log with the statement.
        stated: the total, or the number of verdicts.
        found: the total of the records, or the number of verdicts that belong to an answer.
        message: one sentence with both numbers.
        metric: metric of a total; None for every one of the task.
        scorer: scorer of a total; None for every one of the metric.
        results: number of results behind a total.
        unscored: of them, results without a score.
        is_own_grading: forgetmap graded the answers, so its total may differ from that of the log.
        is_explained: results without a score, or guesses of the harness, may be the difference.
    """

    kind: ContradictionKind
    task: str
    field: str
    stated: float
    found: float
    message: str
    metric: str | None = None
    scorer: str | None = None
    results: int = 0
    unscored: int = 0
    is_own_grading: bool = False
    is_explained: bool = False
