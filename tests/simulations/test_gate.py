"""A gate errs in one of twenty releases at most: a small part of benchmarks/gate.py."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from forgetmap.gate import GatePolicy, GateRule, run_gate

RELEASES = 120
MOST = 12
"""More wrong ones of 120, at a rate of 5 %, come about in 1 of 100 tries."""


def draw(random: np.random.Generator, items: int, lost: float) -> tuple[pa.Table, pa.Table]:
    """Items that cannot be guessed, of which the model before knows 70 %."""
    known = random.random(items) < 0.7
    gone = known & (random.random(items) < lost / 0.7)
    names = [str(number) for number in range(items)]
    sides = [
        pa.table({"task": ["t"] * items, "item": names, "score": scores.astype(float)})
        for scores in (known, known & ~gone)
    ]
    return sides[0], sides[1]


@pytest.mark.parametrize(
    ("items", "lost", "wrong"),
    [
        (1_500, 0.02, {"PASS", "FAIL"}),
        (1_500, 0.01, {"FAIL"}),
        (1_500, 0.03, {"PASS"}),
        (60, 0.0, {"PASS", "FAIL"}),
    ],
)
def test_wrong_decisions_are_rare(items: int, lost: float, wrong: set[str]) -> None:
    policy = GatePolicy(rule=(GateRule(),))
    random = np.random.default_rng(5)
    statuses: Counter[str] = Counter(
        run_gate(*draw(random, items, lost), policy=policy).status for _ in range(RELEASES)
    )
    for status in wrong:
        assert statuses[status] <= MOST
    if items == 60:
        assert statuses["INCONCLUSIVE"] == RELEASES
