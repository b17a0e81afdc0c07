"""Groups that were selected: what is claimed of them errs at its level."""

from __future__ import annotations

import numpy as np
from scipy import stats as scipy_stats

from forgetmap.stats import select_in_family


def test_selected_limits_miss_at_their_level_and_agree_with_the_test() -> None:
    """100 groups of which 10 lost something: plain limits of the selected miss far too often."""
    rng = np.random.default_rng(0)
    truth = np.r_[np.full(10, 2.0), np.zeros(90)]
    missed: dict[str, list[float]] = {"plain": [], "selected": []}
    for _ in range(400):
        z = rng.normal(truth)
        q, count = select_in_family(np.minimum(1, 2 * scipy_stats.norm.sf(z)))
        chosen = q <= 0.05
        assert count == chosen.sum()
        for name, alpha in (("plain", 0.025), ("selected", 0.025 * max(count, 1) / 100)):
            low = z - scipy_stats.norm.isf(alpha)
            missed[name].append((low > truth)[chosen].mean() if count else 0.0)
            if name == "selected" and count:
                assert (low[chosen] > 0).all()
    assert np.mean(missed["selected"]) <= 0.04
    assert np.mean(missed["plain"]) > 0.08
