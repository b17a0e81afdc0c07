"""Groups of a comparison against the oracle of the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import decide_oracle
import estimator_oracle as oracle
from decide_oracle import Judged
from estimator_oracle import Item
from forgetmap.comparison import ComparisonResult, GroupResult

LEVELS = ("tasks", "categories", "tags")
Groups = Mapping[str, Sequence[Item]]
Halves = Mapping[tuple[str, str], int]


def judge_items(groups: Groups, halves: Halves, **how: Any) -> dict[str, Judged]:
    """Judge groups that are examined together, by the oracle."""
    settings = {name: how.pop(name) for name in ("confirmed", "staged", "macro") if name in how}
    return decide_oracle.judge(
        {name: oracle.as_decided(own, halves=halves, **settings) for name, own in groups.items()},
        **how,
    )


def judge_both(items: Sequence[Item], halves: Halves, **how: Any) -> tuple[Judged, Judged]:
    """Judge the loss and the gain of a group that is a claim of its own."""
    loss, gain = (
        judge_items({"group": own}, halves, **how)["group"]
        for own in (items, oracle.swapped(items))
    )
    return loss, gain


def swap_all(groups: Groups) -> dict[str, list[Item]]:
    """Exchange before and after in every group."""
    return {name: oracle.swapped(own) for name, own in groups.items()}


def losable(groups: Groups) -> dict[str, Sequence[Item]]:
    """Return the groups of which something can be lost."""
    return {
        name: own
        for name, own in groups.items()
        if any(oracle.is_right(row) for item in own for row in item.before.values())
    }


def check_group(group: GroupResult, loss: Judged | None, gain: Judged) -> None:
    """Compare a group with the oracle; without a loss, nothing was right before."""
    for found, expected in ((group.loss, loss), (group.gain, gain)):
        if expected is None:
            assert (found.low, found.high, found.p, found.q) == (None, None, None, None)
            continue
        assert found.low == pytest.approx(max(expected.low, -1.0), abs=1e-9), group.name
        assert found.high == pytest.approx(min(expected.high, 1.0), abs=1e-9), group.name
        assert found.p == pytest.approx(expected.p, abs=1e-9)
        assert found.q == (None if expected.q is None else pytest.approx(expected.q, abs=1e-9))
    if loss is None:
        assert (group.verdict, group.undecided) == ("cannot_tell", "nothing_right")
    else:
        assert (group.verdict, group.undecided) == (loss.verdict, None)
        assert group.drop.high == pytest.approx(min(loss.high_drop, 1.0), abs=1e-9)


def check_totals(
    result: ComparisonResult, items: Sequence[Item], halves: Halves, **how: Any
) -> None:
    """Compare the total and the mean over tasks with the oracle."""
    for group, macro in ((result.total, False), (result.total_macro, True)):
        check_group(group, *judge_both(items, halves, macro=macro, **how))


def check_families(
    result: ComparisonResult, items: Sequence[Item], halves: Halves, **how: Any
) -> None:
    """Compare tasks, categories and tags with the oracle."""
    for level in LEVELS:
        groups = oracle.groups_of(items)[level]
        found = {group.name: group for group in getattr(result, level)}
        assert list(found) == list(groups)
        losses = judge_items(losable(groups), halves, **how)
        gains = judge_items(swap_all(groups), halves, **how)
        for name, group in found.items():
            check_group(group, losses.get(name), gains[name])
            family = None if group.family is None else (group.family.name, group.family.size)
            assert family == ((level, len(losses)) if len(losses) > 1 else None)
