"""Intervals contain the enumerated truth at their nominal rate; benchmarks/overlap_coverage.py has
the large table.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from enumerable_models import Exact, all_prompts, drawn, enumerate_exactly, lettered_model
from forgetmap.overlap.estimate import OverlapSettings, estimate_table
from forgetmap.overlap.result import OverlapEstimates

pytestmark = pytest.mark.needs_torch

NAMES = {
    "overlap": "overlap",
    "forward_kl": "forward_kl",
    "reverse_kl": "reverse_kl",
    "misassigned_before": "misassigned",
}
DOUBTS = {"few terms", "leaning", "heavy weights"}


@cache
def population(step: float, scale: float) -> list[Exact]:
    before = lettered_model(1, scale=scale)
    after = lettered_model(2, near=1, step=step, scale=scale)
    return [enumerate_exactly(before, after, prompt) for prompt in all_prompts()]


def coverage(
    known: list[Exact], prompts: int, samples: int, repetitions: int, *, whole: bool = True
) -> tuple[Counter[str], Counter[str], int]:
    """How often intervals over prompts and of a prompt contain the truth; how often it warns."""
    random = np.random.default_rng(11)
    over, within, warned = Counter[str](), Counter[str](), 0
    for number in range(repetitions):
        chosen = [known[place] for place in random.integers(0, len(known), prompts)]
        table = drawn(chosen, samples, random, whole=whole)
        result = estimate_table(table, settings=OverlapSettings(seed=number))
        total, one = result.groups[0], result.prompts[0]
        first = chosen[int(one.prompt)]
        for name, exact in NAMES.items():
            over[name] += holds(total, name, float(np.mean([getattr(e, exact) for e in known])))
            within[name] += holds(one, name, getattr(first, exact))
        within["kl_limit"] += (one.kl_limit or 0.0) >= first.forward_kl
        within["withheld"] += one.forward_kl.low is None
        warned += bool(DOUBTS & {notice.kind for notice in result.notices})
    return over, within, warned


def holds(found: OverlapEstimates, name: str, truth: float) -> bool:
    each = getattr(found, name)
    return each.low is not None and each.low <= truth <= each.high


@pytest.mark.slow
def test_intervals_hold_what_they_promise() -> None:
    repetitions = 200
    over, within, warned = coverage(population(0.4, 0.2), 20, 12, repetitions)
    # Five in a hundred may miss; of 200, three standard errors are four in a hundred.
    for name in NAMES:
        assert 0.91 <= over[name] / repetitions <= 0.99, (name, over)
        assert 0.91 <= within[name] / repetitions <= 0.99, (name, within)
    assert within["kl_limit"] / repetitions >= 0.91
    assert warned / repetitions < 0.1


def test_four_samples_of_models_far_apart_raise_doubts_and_certify_little() -> None:
    repetitions = 60
    _, within, warned = coverage(population(0.9, 0.6), 6, 4, repetitions, whole=False)
    assert warned / repetitions > 0.95
    assert within["withheld"] / repetitions > 0.3


def test_a_rare_disaster_is_missed_unless_drawn_and_then_warned_of() -> None:
    """One prompt in twenty moved far. Without it the interval is short, wrong, and looks sound."""
    near, far = population(0.2, 0.2)[:19], population(0.9, 0.6)[0]
    truth = float(np.mean([each.forward_kl for each in (*near, far)]))
    random = np.random.default_rng(2)
    without = estimate_table(drawn(near, 16, random))
    assert not holds(without.groups[0], "forward_kl", truth)
    assert not DOUBTS & {notice.kind for notice in without.notices}
    seen = estimate_table(drawn([*near, far], 16, random))
    assert holds(seen.groups[0], "forward_kl", truth)
    assert "leaning" in {notice.kind for notice in seen.notices}
