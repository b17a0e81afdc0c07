"""Assumptions about lucky guesses, by task.

Three things decide whether they hold. The number of options must be possible: a position that is
never right and never chosen does not exist. Right answers must be spread evenly over positions, or
letter preferences look like knowledge. Letter preferences must be the same in both models, or items
flip without any loss.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import narwhals as nw
import numpy as np

from forgetmap.comparison.cells import is_none
from forgetmap.comparison.choice_counts import TWO_OPTIONS, options_of
from forgetmap.comparison.side_counts import (
    Positions,
    SideCounts,
    from_zero,
    has_empty_position,
    positions_of,
)
from forgetmap.pairing import RIGHT, SIDES, Pairs, scored_pair
from forgetmap.stats import balance_p, family_wise, impossible_k, stuart_maxwell_p

MOVED_P = 0.05
"""Letter habits changed if the p-value of their change is below this."""
LOPSIDED_P, LOPSIDED_BY = 0.05, 0.05
"""Right answers are lopsided if the p-value over all tasks (Holm) is low, and if the share of them
that would have to move to other positions is above the limit. Real benchmarks are off by about
.02."""


class Luck(StrEnum):
    """How luck is removed from items, at the lower and the upper end of the plausible range."""

    CHOICES = "choices"
    """From the chosen wrong options, at both ends."""
    REDRAWN = "redrawn"
    """From all guesses redrawn to all guesses repeated."""
    MOVED = "moved"
    """Habits changed: from as many lost by luck as gained, to all guesses repeated."""


@dataclass(frozen=True, slots=True)
class TaskTrust:
    """Trusted assumptions about the guesses in one task.

    Attributes:
        lopsided: right answers are at some positions far more often than at others.
        one_sided: right answers are never at some positions.
        moved: numbers of options for which letter habits changed between the models.
        doubt: why luck cannot be removed, if so.
    """

    lopsided: bool = False
    one_sided: bool = False
    moved: frozenset[float] = frozenset()
    doubt: str | None = None


def luck_of(k: float, trust: TaskTrust, *, knows_choices: bool) -> Luck:
    """Return how luck is removed from the items of a task with k options."""
    if math.isinf(k):
        return Luck.CHOICES  # nothing to remove
    if k > TWO_OPTIONS and knows_choices and not trust.lopsided:
        return Luck.CHOICES
    # Habits flip as many answers either way only if right answers are at all positions.
    return Luck.MOVED if k in trust.moved and not trust.lopsided else Luck.REDRAWN


LetterTables = Mapping[tuple[str, float], np.ndarray[tuple[int, int], np.dtype[np.float64]]]
"""Task and number of options -> pairs by chosen position before (rows) and after (columns)."""


def trust_tasks(
    before: Mapping[str, SideCounts], after: Mapping[str, SideCounts]
) -> dict[str, TaskTrust]:
    """Return the trusted assumptions of each task, from each side alone."""
    tasks = sorted(before)
    lopsided = _lopsided_tasks([before[task].gold for task in tasks])
    return {
        task: TaskTrust(
            lopsided=uneven,
            one_sided=has_empty_position(before[task].gold),
            doubt=_doubt(task, before[task], after.get(task, SideCounts())),
        )
        for task, uneven in zip(tasks, lopsided, strict=True)
    }


def with_moved_habits(
    trust: Mapping[str, TaskTrust], pairs: Pairs, tasks: Collection[str]
) -> dict[str, TaskTrust]:
    """Add the numbers of options for which letter habits changed, for some tasks."""
    letters = count_letters(pairs, tasks) if tasks else {}
    moved: dict[str, set[float]] = {}
    for (task, k), table in letters.items():
        if stuart_maxwell_p(table) < MOVED_P:
            moved.setdefault(task, set()).add(k)
    known = {
        task: _with_moved(task, trust.get(task, TaskTrust()), ks) for task, ks in moved.items()
    }
    return dict(trust) | known


def _with_moved(task: str, trust: TaskTrust, moved: Collection[float]) -> TaskTrust:
    """Return the trusted assumptions of a task whose chosen letters changed.

    If right answers are at some positions more often, flips by habit are more likely one way, by an
    unknown amount. If they are always at the same positions, a loss itself changes the letters.
    """
    if not trust.lopsided or trust.one_sided:
        return replace(trust, moved=frozenset(moved))
    why = (
        f"the chosen letters changed in {task}, and its right answers are at some positions more "
        "often than at others: luck cannot be removed"
    )
    return replace(trust, moved=frozenset(moved), doubt=trust.doubt or why)


def count_letters(pairs: Pairs, tasks: Collection[str]) -> LetterTables:
    """Count the positions chosen before and after, of pairs with both known.

    With two options, right or wrong determines the letter; with more the answer must be a letter.
    """
    positions = {side: positions_of(pairs.columns, f"_{side}") for side in SIDES}
    if not all("gold" in places for places in positions.values()) or not pairs.columns & {
        "k_before",
        "k_after",
    }:
        return {}
    columns = {f"{name}_{side}": value for side in SIDES for name, value in positions[side].items()}
    of_tasks = nw.col("task").is_in([*tasks])
    rows = pairs.frame.filter(scored_pair() & of_tasks).select(
        "task", *(f"state_{side}" for side in SIDES), k=options_of(pairs.columns), **columns
    )
    by = ("task", "k", *(f"state_{side}" for side in SIDES), *columns)
    counts = rows.filter(~nw.col("k").is_null()).group_by(*by).agg(nw.len().alias("n")).collect()
    tables: dict[tuple[str, float], np.ndarray[tuple[int, int], np.dtype[np.float64]]] = {}
    for row in counts.rows(named=True):
        k = float(row["k"])
        letters = [_letter(row, side, k) for side in SIDES]
        if all(letter is not None and 0 <= letter < k for letter in letters):
            table = tables.setdefault((row["task"], k), np.zeros((int(k), int(k))))
            table[letters[0], letters[1]] += int(row["n"])
    return tables


def _letter(row: Mapping[str, object], side: str, k: float) -> int | None:
    gold, answer = (from_zero(row.get(f"{name}_{side}")) for name in ("gold", "answer"))
    if gold is None or is_none(row[f"state_{side}"]):
        return None
    if row[f"state_{side}"] == RIGHT:
        return gold
    return 1 - gold if k == TWO_OPTIONS else answer


def _lopsided_tasks(golds: Sequence[Positions]) -> list[bool]:
    """Return which tasks have lopsided right answers, corrected for the number of tasks."""
    p, uneven = [], []
    for gold in golds:
        tests = [_balance(gold, k) for k in sorted({k for k, _ in gold})]
        p.append(min((p for p, _ in tests), default=1.0) * max(len(tests), 1))
        uneven.append(any(moved > LOPSIDED_BY for _, moved in tests))
    adjusted = family_wise(np.minimum(p, 1.0))
    return [bool(q <= LOPSIDED_P and far) for q, far in zip(adjusted, uneven, strict=True)]


def _balance(gold: Positions, k: float) -> tuple[float, float]:
    """Return the p-value of evenly spread right answers, and the share that would have to move."""
    counts = [n for (of, at), n in gold.items() if of == k and at < k]
    counts += [0] * (int(k) - len(counts))
    n = sum(counts)
    if not n:
        return 1.0, 0.0
    return balance_p(counts), sum(max(count / n - 1 / len(counts), 0.0) for count in counts)


def _doubt(task: str, before: SideCounts, after: SideCounts) -> str | None:
    """Return why the number of options of a task cannot be true, if so."""
    for k in sorted({k for k, _ in (*before.gold, *after.gold)}):
        gold = _at_positions(k, before.gold or after.gold)  # both sides have the same items
        chosen = _at_positions(k, before.chosen, after.chosen)
        likely = impossible_k(int(k), gold, chosen, before.wrong.get(k, 0))
        if likely is not None:
            return (
                f"{task} is logged with {k:g} options, but its answers use only {likely}: luck "
                "cannot be removed"
            )
    return None


def _at_positions(k: float, *sides: Positions) -> list[int]:
    """Count results at each position, on all sides together."""
    last = max((at for side in sides for of, at in side if of == k), default=-1)
    return [sum(side.get((k, at), 0) for side in sides) for at in range(max(int(k), last + 1))]
