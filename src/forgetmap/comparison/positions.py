"""Positions of right and chosen options: signs that the number of options is wrong, or lopsided.

They do not touch the verdict; they are notes about estimates that assume blind guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from forgetmap.comparison.labels import Label
from forgetmap.comparison.side_counts import Positions, SideCounts
from forgetmap.stats import balance_p, family_wise, impossible_k

LOPSIDED_P, LOPSIDED_BY = 0.05, 0.05
"""Right answers are lopsided if the p-value over all tasks (Holm) is low, and if the share of them
that would have to move to other positions is above the limit. Real benchmarks are off by about
.02."""
Sides = Mapping[Label, SideCounts]


def doubt_options(before: Sides, after: Sides) -> list[str]:
    """Return why the number of options of tasks cannot be true, if so."""
    known, other = _by_task(before), _by_task(after)
    doubts = (_doubt(task, known[task], other.get(task, SideCounts())) for task in sorted(known))
    return [doubt for doubt in doubts if doubt]


def lopsided_tasks(before: Sides) -> list[str]:
    """Return the tasks whose right answers are at some positions far more often than at others."""
    known = _by_task(before)
    tasks = sorted(known)
    lopsided = _lopsided_tasks([known[task].gold for task in tasks]) if tasks else []
    return [task for task, uneven in zip(tasks, lopsided, strict=True) if uneven]


def _by_task(side: Sides) -> dict[str, SideCounts]:
    parts: dict[str, list[SideCounts]] = {}
    for label, counts in side.items():
        parts.setdefault(label.task, []).append(counts)
    return {task: SideCounts.total(group) for task, group in parts.items()}


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
            return f"{task} is logged with {k:g} options, but its answers use only {likely}"
    return None


def _at_positions(k: float, *sides: Positions) -> list[int]:
    """Count results at each position, on all sides together."""
    last = max((at for side in sides for of, at in side if of == k), default=-1)
    return [sum(side.get((k, at), 0) for side in sides) for at in range(max(int(k), last + 1))]
