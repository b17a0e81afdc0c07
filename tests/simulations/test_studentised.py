"""The studentised bootstrap covers means of skewed terms."""

from __future__ import annotations

import numpy as np

from forgetmap.stats.studentised import TermGroup, studentised_bootstrap


def coverage(size: int, repetitions: int) -> tuple[float, float]:
    """Of the mean of exponential terms: ours, and the plain percentile bootstrap."""
    random = np.random.default_rng(5)
    ours = plain = 0
    for number in range(repetitions):
        terms = random.exponential(size=size)
        found = studentised_bootstrap([TermGroup(terms[None])], seed=number, resamples=800)
        ours += found.low[0] <= 1 <= found.high[0]
        means = terms[random.integers(0, size, (800, size))].mean(1)
        low, high = np.quantile(means, [0.025, 0.975])
        plain += low <= 1 <= high
    return ours / repetitions, plain / repetitions


def test_skewed_means_are_covered_where_a_percentile_bootstrap_is_not() -> None:
    ours, plain = coverage(10, 400)
    assert 0.92 <= ours <= 0.98
    assert plain < 0.9
