"""Simultaneous bounds cover all points at the stated rate."""

from __future__ import annotations

import numpy as np

from forgetmap.stats.simultaneous import (
    joint_quantile,
    mean_limits,
)


def test_all_means_are_covered_at_once_as_often_as_stated() -> None:
    source = np.random.default_rng(3)
    mix = np.tril(np.ones((8, 8)))
    truth = np.linspace(-1, 1, 8)
    held = 0
    for _ in range(150):
        scores = truth[:, None] + mix @ source.standard_normal((8, 80))
        found = mean_limits(scores, joint_quantile(scores))
        held += bool(found.contains(truth).all())
    # 150 times 0.95 less three standard deviations.
    assert held >= 150 * 0.95 - 3 * np.sqrt(150 * 0.95 * 0.05)
