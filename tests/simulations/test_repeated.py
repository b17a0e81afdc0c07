"""Limits where some items were answered once and others twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import forgetmap as fm


def answers(right: NDArray[np.bool_], single: int) -> pa.Table:
    """A task for each row; all items but the first `single` ones are answered twice."""
    tries, items = right.shape
    item = np.concatenate([np.arange(items), np.arange(single, items)])
    repeat = np.repeat([0, 1], [items, items - single])
    return pa.table({
        "task": np.repeat(np.arange(tries).astype(str), item.size).tolist(),
        "item": np.tile(item.astype(str), tries).tolist(),
        "repeat": np.tile(repeat, tries),
        "score": right[:, item].ravel().astype(float),
    })  # fmt: skip


@pytest.mark.parametrize("where", ["repeated", "unrepeated", "both"])
def test_items_without_repeats_count_as_well(where: str) -> None:
    """95 % of the items are answered twice; 4 % are lost among these, the others or all.

    The tries are the tasks of one comparison: a task alone has the same interval.
    """
    random = np.random.default_rng(6)
    tries, items, single = 100, 400, 20
    chance = {"repeated": (0.0, 0.05), "unrepeated": (0.8, 0.0), "both": (0.05, 0.05)}[where]
    known = random.random((tries, items)) < 0.8
    gone = known & (random.random((tries, items)) < np.where(np.arange(items) < single, *chance))
    sides = [answers(right, single) for right in (known, known & ~gone)]
    tasks = fm.compare(sides[0], sides[1]).result.tasks
    assert len(tasks) == tries
    wrong = {"above": 0, "below": 0}
    for task in tasks:
        loss, lost = task.loss, gone[int(task.name)].mean()
        assert loss.low is not None
        assert loss.high is not None
        wrong["above"] += loss.low > lost
        wrong["below"] += loss.high < lost
    assert max(wrong.values()) <= 6
