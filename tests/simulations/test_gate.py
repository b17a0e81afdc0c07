"""A gate errs in at most 3 of 100 releases: a small part of benchmarks/gate.py."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from forgetmap.gate import GatePolicy, GateRule, run_gate

ITEMS, KNOWN = 1_500, 1_050
MOST_LOST = 75
"""More are lost in fewer than 1 of 100,000 releases that lose 3 % of all items."""


def scores(items: int, right: int) -> pa.Table:
    """Items that cannot be guessed, of which the first ones are right."""
    names = [str(number) for number in range(items)]
    right_first = (np.arange(items) < right).astype(float)
    return pa.table({"task": ["t"] * items, "item": names, "score": right_first})


def decide(items: int, known: int, gone: int) -> str:
    policy = GatePolicy(rule=(GateRule(),))
    return run_gate(scores(items, known), scores(items, known - gone), policy=policy).status


@cache
def decisions() -> list[str]:
    """For every number of lost items that can come about."""
    return [decide(ITEMS, KNOWN, gone) for gone in range(MOST_LOST)]


@pytest.mark.parametrize(
    ("lost", "wrong"), [(0.02, {"PASS", "FAIL"}), (0.01, {"FAIL"}), (0.03, {"PASS"})]
)
def test_wrong_decisions_are_rare(lost: float, wrong: set[str]) -> None:
    """Each known item is lost by itself, so the chance of every number of them is known."""
    chance = binom(KNOWN, lost * ITEMS / KNOWN)
    assert chance.sf(MOST_LOST - 1) < 1e-4
    for status in wrong:
        numbers = [gone for gone, each in enumerate(decisions()) if each == status]
        assert chance.pmf(numbers).sum() <= 0.03


def test_few_and_many_losses_are_decided() -> None:
    assert (decisions()[0], decisions()[-1]) == ("PASS", "FAIL")


@pytest.mark.parametrize("known", [25, 35, 42, 49, 60])
def test_sixty_items_decide_nothing(known: int) -> None:
    assert decide(60, known, 0) == "INCONCLUSIVE"
