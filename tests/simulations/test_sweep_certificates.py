"""At most one of 40 sweeps certifies a merge that exceeds the budget.

The items that a merge forgets are drawn from given losses along the path, of any shape; items that
the tuned model forgot change first or last, or independently.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from forgetmap.stats import ClusterDesign
from forgetmap.sweep.analyse import PathPoint, analyse_pair, certified_merges, over_limits
from forgetmap.sweep.states import States

WEIGHTS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MERGES = [PathPoint("linear", weight, place, "m") for place, weight in enumerate(WEIGHTS, 2)]
TUNED_LOST = 0.2
PATHS = {
    # Losses along the path; half of what tuned lost (.10) is allowed.
    "bump": [0.02, 0.06, 0.1001, 0.14, 0.1001, 0.06, 0.04, 0.08, 0.1001],
    "zigzag": [0.03, 0.101, 0.03, 0.101, 0.03, 0.101, 0.03, 0.101, 0.03],
    "all at the budget": [0.1001] * 9,
    "rising": [0.01, 0.03, 0.06, 0.09, 0.101, 0.12, 0.15, 0.17, 0.19],
}
Flags = NDArray[np.bool_]


def lost_items(
    path: str, items: int, random: np.random.Generator, *, cluster: int = 1, shared: bool = True
) -> tuple[Flags, Flags]:
    """Items that tuned lost, and those that each merge lost; clusters are lost as a whole."""
    groups = items // cluster
    turn = random.random(groups)
    tuned = turn < TUNED_LOST
    draws = turn if shared else random.random((len(WEIGHTS), groups))
    lost = draws < np.array(PATHS[path])[:, None]
    return np.repeat(tuned, cluster), np.repeat(lost, cluster, axis=1)


def false_rate(path: str, items: int, sweeps: int, *, cluster: int = 1, shared: bool) -> float:
    random = np.random.default_rng(5)
    design = ClusterDesign(np.repeat(np.arange(items // cluster), cluster)) if cluster > 1 else None
    beyond = {place for place, loss in enumerate(PATHS[path]) if loss > TUNED_LOST / 2}
    false = 0
    for _ in range(sweeps):
        tuned, lost = lost_items(path, items, random, cluster=cluster, shared=shared)
        over = lost - 0.5 * tuned
        limits = over_limits(over, design or ClusterDesign(), MERGES)
        false += bool(certified_merges(MERGES, limits) & beyond)
    return false / sweeps


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("shared", [True, False])
def test_false_certificates_are_rare(path: str, shared: bool) -> None:
    # Three standard errors of 2.5 % of 600.
    assert false_rate(path, 300, 600, shared=shared) <= 0.025 + 0.019


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("items", "cluster"), [(60, 1), (300, 1), (2000, 1), (300, 5), (1000, 20)])
def test_false_certificates_are_rare_in_many_worlds(
    path: str, shared: bool, items: int, cluster: int
) -> None:
    assert false_rate(path, items, 4000, cluster=cluster, shared=shared) <= 0.03


def states_of(path: str, items: int, random: np.random.Generator, *, gains_kept: float) -> States:
    """Every fifth item is new: base has it wrong, tuned right, merges a share of them."""
    tuned, lost = lost_items(path, items, random)
    new = np.arange(items) % 5 == 0
    kept = random.random((len(WEIGHTS), items)) < gains_kept
    right = np.array([~new, new | ~tuned, *np.where(new, kept, ~lost)])
    nothing = np.zeros(items)
    return States(right, np.full(items, "A"), new, ClusterDesign(), nothing, None, 0)


def test_no_merge_is_recommended_that_keeps_none_of_the_gains() -> None:
    random = np.random.default_rng(6)
    for gains_kept, helps in ((0.01, False), (0.4, True)):
        states = states_of("rising", 2000, random, gains_kept=gains_kept)
        points = [
            PathPoint("linear", 0.0, 0, "base"), *MERGES, PathPoint("linear", 1.0, 1, "tuned")
        ]  # fmt: skip
        pair = analyse_pair(states, points, names=("t", "t"), compared={}, drift=None)
        assert [point.within for point in pair.points[1:4]] == ["surely"] * 3
        assert (pair.best.point is not None) == helps
        assert ("No merge helps" in pair.best.words) != helps
