"""Intervals contain the enumerated truth at their nominal rate; benchmarks/overlap_coverage.py has
the large table.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from enumerable_models import Exact, all_prompts, drawn, enumerate_exactly, lettered_model
from forgetmap.overlap.estimate import Asked, estimate_table

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
        result = estimate_table(table, asked=Asked(seed=number))
        for name, exact in NAMES.items():
            found, one = getattr(result.groups[0], name), getattr(result.prompts[0], name)
            first = chosen[int(result.prompts[0].prompt)]
            over[name] += found.low <= np.mean([getattr(e, exact) for e in known]) <= found.high
            within[name] += one.low <= getattr(first, exact) <= one.high
        limit = result.prompts[0].kl_limit or 0.0
        within["kl_limit"] += limit >= chosen[int(result.prompts[0].prompt)].forward_kl
        warned += bool(DOUBTS & {notice.kind for notice in result.notices})
    return over, within, warned


def test_intervals_hold_what_they_promise() -> None:
    repetitions = 200
    over, within, warned = coverage(population(0.4, 0.2), 20, 12, repetitions)
    # Five in a hundred may miss; of 200, three standard errors are four in a hundred.
    for name in NAMES:
        assert 0.91 <= over[name] / repetitions <= 0.99, (name, over)
        assert 0.91 <= within[name] / repetitions <= 0.99, (name, within)
    assert within["kl_limit"] / repetitions >= 0.91
    assert warned / repetitions < 0.1


def test_where_they_do_not_the_output_warns() -> None:
    repetitions = 60
    over, _, warned = coverage(population(0.9, 0.6), 6, 4, repetitions, whole=False)
    assert min(over[name] for name in NAMES) / repetitions < 0.92
    assert warned / repetitions > 0.95
