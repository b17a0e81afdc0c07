"""Intervals of effects of capabilities over many simulated evaluations."""

from __future__ import annotations

import numpy as np

from drifting_models import estimate, truth
from forgetmap.capabilities.bootstrap import distance


def test_intervals_of_all_levels_cover_the_truth() -> None:
    """Nominally 95 %; with 150 evaluations of 33 cells the mean is known to about one point."""
    known = truth()
    rng = np.random.default_rng(20_261_116)
    levels = ("metrics", "capabilities", "groups")
    hits: dict[str, list[bool]] = {level: [] for level in levels}
    for _ in range(150):
        found = estimate(rng, draws=400)
        for level in levels:
            for name, each in getattr(found, level).items():
                low, high = each.limits
                hits[level].append(low <= getattr(known, level)[name].value <= high)
    for level in levels:
        assert 0.93 <= np.mean(hits[level]) <= 0.97, (level, np.mean(hits[level]))


def test_distance_of_noise_is_not_significant() -> None:
    ps = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        item = rng.normal(5, 1, 100)
        sides = item + rng.normal(0, 0.3, (2, 100))
        ps.append(distance(sides[0], sides[1], seed=seed, name="m", draws=200).p)
    assert 0.3 < np.mean(ps) < 0.7
    assert np.mean(np.array(ps) < 0.05) <= 0.15
