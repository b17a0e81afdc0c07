"""From counts to rates, for one group and for averages over groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forgetmap.transitions.cells import REASONS, Cells, Group, by_task
from forgetmap.transitions.result import Estimate, GroupResult


def group_result(name: str, cells: Cells) -> GroupResult:
    """Counts and raw rates of one group; a rate of nothing is null."""
    return GroupResult(
        name=name,
        items=cells.items,
        n=cells.n,
        n00=cells.n00,
        n01=cells.n01,
        n10=cells.n10,
        n11=cells.n11,
        acc_before=_share(cells.n11 + cells.n10, cells.n),
        acc_after=_share(cells.n11 + cells.n01, cells.n),
        forgetting=_raw(cells.n10, cells.n),
        backward_transfer=_raw(cells.n01, cells.n),
        conditional_forgetting=_raw(cells.n10, cells.n10 + cells.n11),
        conventional_forgetting=_share(max(cells.n10 - cells.n01, 0), cells.n),
        reasons=_reasons(cells),
    )


def macro_result(tasks: Sequence[GroupResult], total: GroupResult) -> GroupResult:
    """Counts of all tasks, rates as plain means over the tasks that have them."""
    means = {
        name: _mean(tasks, name) for name in ("acc_before", "acc_after", "conventional_forgetting")
    }
    estimates = {
        name: Estimate(value=_mean(tasks, name), method="mean over tasks")
        for name in ("forgetting", "backward_transfer", "conditional_forgetting")
    }
    return total.model_copy(update={"name": "macro", **means, **estimates})


def results_by_task(groups: Sequence[Group]) -> list[GroupResult]:
    """One result per task that has pairs."""
    return [group_result(task, cells) for task, cells in by_task(groups).items() if cells.paired]


def results_by(
    groups: Sequence[Group], labels: Callable[[Group], Sequence[str]]
) -> list[GroupResult]:
    """One result per label; a group counts under each of its labels."""
    parts: dict[str, list[Cells]] = {}
    for group in groups:
        for label in labels(group):
            parts.setdefault(label, []).append(group.cells)
    totals = {label: Cells.total(parts[label]) for label in sorted(parts)}
    return [group_result(label, cells) for label, cells in totals.items() if cells.paired]


def _reasons(cells: Cells) -> dict[str, int | None]:
    """Zero where the way of ending was recorded for all lost items, null where for none."""
    if cells.n10 and cells.reasons.get("unknown") == cells.n10:
        return {name: cells.n10 if name == "unknown" else None for name in REASONS}
    return {name: cells.reasons.get(name, 0) for name in REASONS}


def _raw(count: int, of: int) -> Estimate:
    return Estimate(value=_share(count, of), method="raw")


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _mean(tasks: Sequence[GroupResult], name: str) -> float | None:
    values = []
    for task in tasks:
        value = getattr(task, name)
        values.append(value.value if isinstance(value, Estimate) else value)
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
