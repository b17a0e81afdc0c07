"""Intervals of drift cover the truth: few items, few clusters, items shared by several tasks.

Answers are drawn independently of the package: every passage has an ability and every item has
luck, part of which both models share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from forgetmap.capabilities.effects import Effect, Series, average, metric_effect, task_means
from forgetmap.capabilities.taxonomy import Metric

COUNT = Metric("m.count", "C", "t", scale="count", polarity="both")
SHARE = Metric("m.share", "C", "t", scale="binary", polarity="up")
DRAWS = 400
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """How items are drawn.

    Attributes:
        clusters: passages, or items where each has one.
        size: items of a passage.
        metric: what is measured.
        tasks: that ask the very same items.
        loops: share of the answers after that are 20 times as long.
    """

    clusters: int
    size: int = 1
    metric: Metric = SHARE
    tasks: int = 1
    loops: float = 0.0


def angle(share: float) -> float:
    return float(2 * np.arcsin(np.sqrt(share)))


def truth(world: World) -> float:
    if world.metric is COUNT:
        return float(np.log(240 / 300) + world.loops * np.log(20))
    return angle(0.6) - angle(0.7)


def draw(world: World, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Values before and after."""
    n = world.clusters * world.size
    ability = np.repeat(random.normal(size=world.clusters), world.size)
    weight = 0.5 if world.size > 1 else 0.0
    common = random.normal(size=n)
    latent = [
        np.sqrt(weight) * ability
        + np.sqrt(1 - weight) * (np.sqrt(0.6) * common + np.sqrt(0.4) * random.normal(size=n))
        for _ in range(2)
    ]
    if world.metric is COUNT:
        before, after = (np.exp(0.6 * z - 0.18) for z in latent)
        return 300 * before, 240 * after * np.where(random.random(n) < world.loops, 20, 1)
    from scipy.stats import norm

    return (norm.cdf(latent[0]) < 0.7).astype(float), (norm.cdf(latent[1]) < 0.6).astype(float)


def interval(world: World, random: np.random.Generator) -> Effect:
    """The mean effect of all tasks; with several, half of the luck of each is its own."""
    cluster = np.repeat(np.arange(world.clusters), world.size) if world.size > 1 else None
    items = world.clusters * world.size
    keys = np.arange(1, items + 1, dtype=np.uint64) if world.tasks > 1 else None
    before, after = draw(world, random)
    seed, effects = int(random.integers(2**31)), []
    for number in range(world.tasks):
        own = random.random(items) < 0.3 * (number > 0)
        other = draw(world, random)
        series = Series(world.metric, *(
            np.where(own, theirs, ours)
            for ours, theirs in zip((before, after), other, strict=True)
        ))  # fmt: skip
        (means,) = task_means(f"t{number}", [series], cluster, seed=seed, draws=DRAWS, shared=keys)
        effects.append((metric_effect(world.metric, means), 1.0))
    mean = average(effects)
    assert mean is not None
    return mean


def coverage(world: World, evaluations: int) -> float:
    random = np.random.default_rng(9)
    inside = 0
    for _ in range(evaluations):
        effect = interval(world, random)
        assert effect.limits is not None
        low, high = effect.limits
        inside += low <= truth(world) <= high
        assert (effect.p <= 0.05) == (not low <= 0 <= high)
    return inside / evaluations


WORLDS = {
    "log-ratio, 20 items": World(20, metric=COUNT),
    "log-ratio, 60 items": World(60, metric=COUNT),
    "shares, 20 items": World(20),
    "5 clusters": World(5, 20),
    "8 clusters": World(8, 10),
    "15 clusters": World(15, 10),
    "log-ratio, 5 clusters": World(5, 20, metric=COUNT),
    "log-ratio, 15 clusters": World(15, 10, metric=COUNT),
    "2 % of 80 answers loop": World(80, metric=COUNT, loops=0.02),
    "2 % of 188 answers loop": World(188, metric=COUNT, loops=0.02),
    "0.5 % of 400 answers loop": World(400, metric=COUNT, loops=0.005),
    "2 tasks share 200 items": World(200, tasks=2),
    "4 tasks share 200 items": World(200, tasks=4),
    "2 tasks share 40 clusters": World(40, 5, tasks=2),
}


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_truth(name: str) -> None:
    # Two standard errors of 93 % of 300.
    assert coverage(WORLDS[name], 300) >= 0.93 - 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_truth_in_many_evaluations(name: str) -> None:
    assert coverage(WORLDS[name], 4000) >= 0.93


RATING = Metric("m.rating", "C", "t", scale="rating", polarity="up")


@pytest.mark.parametrize("judgements", [1, 3])
@pytest.mark.parametrize("items", [30, 120])
def test_what_a_judge_is_unsure_of_is_in_the_interval(judgements: int, items: int) -> None:
    """Ratings by a judge who errs by a point and a half, around ratings that fall by half one."""
    random = np.random.default_rng(10)
    inside, widths = 0, []
    for seed in range(300):
        quality = random.uniform(4, 8, items)
        sides = []
        for fall in (0.0, 0.5):
            noise = random.choice([-1.5, 1.5], (items, judgements)).mean(axis=1)
            sides.append(quality - fall + random.normal(0, 0.3, items) + noise)
        series = Series(RATING, sides[0], sides[1])
        (means,) = task_means("t", [series], None, seed=seed, draws=DRAWS)
        limits = metric_effect(RATING, means).limits
        assert limits is not None
        inside += limits[0] <= -0.5 / 9 <= limits[1]
        widths.append(limits[1] - limits[0])
    assert inside / 300 >= 0.93 - 0.03
    # Of the spread of a change, judge noise is 2 * 2.25 / judgements beside 2 * 0.09.
    expected = 2 * 1.96 * np.sqrt((4.5 / judgements + 0.18) / items) / 9
    assert np.mean(widths) == pytest.approx(expected, rel=0.15)
