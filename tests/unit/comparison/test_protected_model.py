"""A protected model of the demo's shape: its drop is proven, although averages hardly fall."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import forgetmap as fm

ITEMS, TASKS, CLUSTERS = 2711, 123, 1059
RIGHT, LOST, GAINED = 2472, 98, 24


def protected(seed: int) -> tuple[pa.Table, pa.Table]:
    """Draw which items are lost and gained, and which two or three share a passage of a task."""
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.arange(ITEMS) % CLUSTERS)
    order = rng.permutation(ITEMS)
    before = np.zeros(ITEMS)
    before[order[:RIGHT]] = 1
    after = before.copy()
    after[order[:LOST]] = 0
    after[order[RIGHT : RIGHT + GAINED]] = 1
    facts = {
        "task": [f"task {name % TASKS}" for name in cluster],
        "item": [f"{item}" for item in range(ITEMS)],
        "cluster": [f"passage {name}" for name in cluster],
    }
    return pa.table({**facts, "score": before}), pa.table({**facts, "score": after})


@pytest.mark.parametrize("seed", range(3))
def test_a_protected_model_lost_something(seed: int) -> None:
    result = fm.compare(*protected(seed)).result
    total = result.total
    assert (total.items, total.forgotten, total.gained) == (ITEMS, LOST, GAINED)
    assert (len(result.tasks), total.clusters) == (TASKS, CLUSTERS)
    assert (total.verdict, total.loss.carried_by) == ("lost", "drop")
    assert total.loss.low == pytest.approx(0.018, abs=0.0005)
    assert total.loss.high == pytest.approx(0.044, abs=0.002)
