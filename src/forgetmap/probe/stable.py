"""Items that a model knows stably: right in every repeat, or right by a clear margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from forgetmap.errors import UsageError
from forgetmap.pairing import prepare
from forgetmap.records import Run, as_repeats, reading

DEFAULT_LEAD = 1.0
"""Minimum lead of the right option over any other, as a difference of log-likelihoods, for a single
answer to count as stable."""
CORRECT_AT = 0.5

Evidence = Literal["repeats", "margin", "one answer"]
Key = tuple[str, str]
"""Task and item."""


@dataclass(frozen=True, slots=True)
class AnsweredItem:
    """The answers of a model to one item.

    Attributes:
        task: task of the item.
        item: its id.
        category: category of the item.
        right: number of right answers.
        answers: number of scored answers.
        lead: lead of the answer over the next option in log-likelihood; None if unknown.
    """

    task: str
    item: str
    category: str | None
    right: int
    answers: int
    lead: float | None

    @property
    def key(self) -> Key:
        """Unique key of the item in a run."""
        return self.task, self.item

    @property
    def share(self) -> float:
        """Share of right answers."""
        return self.right / self.answers


@dataclass(frozen=True, slots=True)
class Known:
    """The items of a run that the model knows stably.

    Attributes:
        answered: all items with a scored answer.
        stable: those it knows stably.
        evidence: why items count as stable.
    """

    answered: tuple[AnsweredItem, ...]
    stable: tuple[AnsweredItem, ...]
    evidence: Evidence

    def noise(self, items: Sequence[AnsweredItem]) -> float:
        """Estimate the share of the stable items that an unchanged model gets wrong.

        Items that were wrong once in r answers show what those right in r - 1 answers do next.
        """
        if self.evidence != "repeats":
            return 0.0
        once = sum(1 / item.answers for item in items if item.answers - item.right == 1)
        always = sum(item.answers == item.right for item in items)
        return once / (once + always) if once else 0.0


def join_repeats(runs: Sequence[Run]) -> Run:
    """Return one run, or several of the same model as its repeats."""
    return runs[0] if len(runs) == 1 else as_repeats(runs, origin=runs[0].origin)


def answered_items(run: Run, metric: str | None = None) -> list[AnsweredItem]:
    """Return every item with a scored answer, sorted by task and id."""
    side = prepare(run, metric)
    frame = side.measured.scores
    present = frame.collect_schema().names()
    lead = nw.lit(None, dtype=nw.Float64)
    if {"logprob_answer", "logprob_next"} <= set(present):
        lead = nw.col("logprob_answer") - nw.col("logprob_next")
    category = nw.col("category") if "category" in present else nw.lit(None, dtype=nw.String)
    rows = frame.filter(~nw.col("score").is_null()).select(
        "task",
        nw.col("item").cast(nw.String),
        category=category,
        right=(nw.col("score") >= CORRECT_AT).cast(nw.Int64),
        lead=lead,
    )
    summed = rows.group_by("task", "item").agg(
        nw.col("category").max(),
        nw.col("right").sum(),
        nw.len().alias("answers"),
        nw.col("lead").min(),
    )
    with reading(run):
        collected = summed.sort("task", "item").collect().rows(named=True)
    return [_answered_item(row) for row in collected]


def _answered_item(row: Mapping[str, Any]) -> AnsweredItem:
    return AnsweredItem(
        task=row["task"],
        item=row["item"],
        category=row["category"],
        right=int(row["right"]),
        answers=int(row["answers"]),
        lead=None if row["lead"] is None else float(row["lead"]),
    )


def known_stably(run: Run, *, lead: float = DEFAULT_LEAD, metric: str | None = None) -> Known:
    """Return the items that the model of a run knows stably.

    Args:
        run: a full run, with repeats if answers were sampled.
        lead: minimum lead in log-likelihood of a single answer.
        metric: `METRIC` or `METRIC/SCORER`, if a run has several.

    Raises:
        UsageError: answers were sampled only once, so stability is unknown.
    """
    answered = answered_items(run, metric)
    if any(item.answers > 1 for item in answered):
        sure = [item for item in answered if item.right == item.answers > 1]
        return Known(tuple(answered), tuple(sure), "repeats")
    if run.info.is_sampled:
        raise UsageError(
            f"{run.name} has a single sampled answer per item, which may be luck",
            hint="evaluate it again with --repeats 4 or more, or greedily with --temperature 0.",
        )
    right = [item for item in answered if item.right]
    weighed = [item for item in right if item.lead is not None]
    if not weighed:
        return Known(tuple(answered), tuple(right), "one answer")
    sure = [item for item in weighed if item.lead is not None and item.lead >= lead]
    return Known(tuple(answered), tuple(sure), "margin")
