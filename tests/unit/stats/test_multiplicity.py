"""Levels of intervals for groups that were selected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from forgetmap.stats import false_discovery, selected_level


def test_levels_by_hand() -> None:
    assert selected_level(1, 1) == 0.95
    assert selected_level(57, 57) == 0.95
    assert selected_level(3, 60) == pytest.approx(1 - 0.05 / 20)
    assert selected_level(1, 10, level=0.9) == pytest.approx(0.99)
    assert selected_level(0, 10) == 0.95


def test_selected_intervals_miss_at_their_level_and_agree_with_the_test() -> None:
    """100 groups of which 10 lost something: plain limits of the selected miss far too often."""
    rng = np.random.default_rng(0)
    truth = np.r_[np.full(10, 2.0), np.zeros(90)]
    missed: dict[str, list[float]] = {"plain": [], "selected": []}
    for _ in range(400):
        z = rng.normal(truth)
        chosen = false_discovery(np.minimum(1, 2 * scipy_stats.norm.sf(z))) <= 0.05
        count = int(chosen.sum())
        for name, level in (("plain", 0.95), ("selected", selected_level(count, 100))):
            low = z - scipy_stats.norm.ppf(0.5 + level / 2)
            missed[name].append((low > truth)[chosen].mean() if count else 0.0)
            if name == "selected" and count:
                assert (low[chosen] > 0).all()
    assert np.mean(missed["selected"]) <= 0.04
    assert np.mean(missed["plain"]) > 0.08
