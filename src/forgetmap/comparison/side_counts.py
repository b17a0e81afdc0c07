"""Counts of each side, paired or not: coverage, and the answer positions in use.

Counted on one side alone, without the join, in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

import narwhals as nw

from forgetmap.comparison.labels import Label, is_none, label_of
from forgetmap.pairing import SideFacts, SideTotals
from forgetmap.records import Frame

Positions = Mapping[tuple[float, int], int]
"""Number of options and position among them, from 0 -> number of results."""


@dataclass(frozen=True, slots=True)
class SideCounts:
    """Counts of the scored results of one side. Counts can be added.

    Attributes:
        gold: positions of the right options, if recorded; of first answers only, because repeats of
            an item are not further items.
        chosen: positions of the chosen options, likewise.
        wrong: number of options -> wrong answers with a recorded position, likewise.
    """

    gold: Positions = field(default_factory=dict)
    chosen: Positions = field(default_factory=dict)
    wrong: Mapping[float, int] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Iterable[SideCounts]) -> SideCounts:
        """Add up several groups."""
        parts = list(parts)
        gold: Counter[tuple[float, int]] = Counter()
        chosen: Counter[tuple[float, int]] = Counter()
        wrong: Counter[float] = Counter()
        for part in parts:
            gold.update(part.gold)
            chosen.update(part.chosen)
            wrong.update(part.wrong)
        return cls(
            gold=dict(gold),
            chosen=dict(chosen),
            wrong=dict(wrong),
        )


def count_side(
    scores: Frame, correct_at: float, totals: SideTotals | None = None
) -> dict[Label, SideCounts]:
    """Count the scored results of one side by its own tasks, categories and tags.

    Args:
        scores: results of the side.
        correct_at: minimum score of a right answer.
        totals: counts of the side by `side_facts`, if available.
    """
    counted = _count_rows(scores, correct_at) if totals is None else _counted_rows(totals)
    parts: dict[Label, list[SideCounts]] = {}
    for row in counted:
        parts.setdefault(label_of(row), []).append(_counts(row))
    return {label: SideCounts.total(group) for label, group in parts.items()}


def side_facts(correct_at: float) -> SideFacts:
    """Return the columns to count a side by; categories and tags only if there are options."""

    def facts(columns: frozenset[str]) -> dict[str, nw.Expr]:
        if "k" not in columns:
            return {}
        labels: dict[str, nw.Expr] = {
            name: nw.col(name) for name in ("category", "tags") if name in columns
        }
        return {**labels, **_facts(columns, correct_at)}

    return facts


def _counted_rows(totals: SideTotals) -> Iterable[Mapping[str, Any]]:
    return ({**row, "n": row["rows"]} for row in totals.rows if not is_none(row["right"]))


def _count_rows(scores: Frame, correct_at: float) -> Iterable[Mapping[str, Any]]:
    names = scores.collect_schema().names()
    facts = _facts(names, correct_at)
    labels = [name for name in ("category", "tags") if name in names]
    rows = scores.filter(~nw.col("score").is_null()).select("task", *labels, **facts)
    counts = rows.group_by("task", *labels, *facts).agg(nw.len().alias("n")).collect()
    counted: list[dict[str, Any]] = counts.rows(named=True)
    return counted


def has_empty_position(gold: Positions) -> bool:
    """Return whether no right answer is at some position."""
    return any((k, at) not in gold for k in {k for k, _ in gold} for at in range(int(k)))


def position_of(column: str, index: str | None, names: Collection[str]) -> nw.Expr | None:
    """Return the position of an option, or its letter; None if there is no such column."""
    if index is not None and index in names:
        return nw.col(index)
    if column in names:
        return nw.when(nw.col(column).is_in([*ascii_uppercase])).then(nw.col(column))
    return None


def positions_of(names: Collection[str], side: str = "") -> dict[str, nw.Expr]:
    """Return the positions of the right option and of the answer, if they are recorded.

    Args:
        names: available columns.
        side: suffix of the names, such as `_before`.
    """
    # Options may be recorded by their letters; pairs only keep the wrong ones.
    answers = (f"{name}{side}" for name in ("answer", "choice", "wrong"))
    answer = next((name for name in answers if name in names), "")
    places = {
        "gold": position_of(f"gold{side}", f"gold_index{side}", names),
        "answer": position_of(answer, None, names),
    }
    return {name: place for name, place in places.items() if place is not None}


def from_zero(position: Any) -> int | None:
    """Return a position as a number from 0; None if it is unknown."""
    if is_none(position):
        return None
    return ascii_uppercase.index(position) if isinstance(position, str) else int(position)


def _facts(names: Collection[str], correct_at: float) -> dict[str, nw.Expr]:
    facts = {"right": nw.col("score") >= correct_at}
    if "k" in names:
        if "repeat" in names:
            facts["again"] = nw.col("repeat") > 0
        facts["k"] = nw.col("k")
        facts |= positions_of(names)
        if "answer" in facts and "choice" in names:  # a letter beyond the options is not a choice
            facts["answer"] = nw.when(~nw.col("choice").is_null()).then(facts["answer"])
    return facts


def _counts(row: Mapping[str, Any]) -> SideCounts:
    n, right = int(row["n"]), bool(row["right"])
    if is_none(row.get("k")) or row.get("again"):
        return SideCounts()
    k, gold, answer = float(row["k"]), from_zero(row.get("gold")), from_zero(row.get("answer"))
    chosen = gold if right else answer
    return SideCounts(
        gold={} if gold is None else {(k, gold): n},
        chosen={} if chosen is None else {(k, chosen): n},
        wrong={} if right or chosen is None else {k: n},
    )
