"""Worlds with a known loss, for benchmarks/verdicts.py and gate.py. numpy only, no forgetmap.

A world gives every item two probabilities, p and q: that the model before and the model after
answer it right. A run draws the answers. The loss is the mean of max(p - q, 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Rng = np.random.Generator
PairRates = Callable[[Rng, int], tuple[Array, Array]]
"""Draws p and q of so many items."""
MMLU = (
    100, 135, 152, 100, 265, 144, 100, 100, 100, 173, 102, 100, 235, 114, 145, 378, 126, 100, 310,
    203, 100, 165, 198, 193, 390, 270, 238, 151, 545, 216, 204, 237, 223, 131, 121, 108, 163, 112,
    103, 234, 100, 783, 346, 895, 306, 311, 324, 282, 1534, 272, 612, 110, 245, 201, 100, 166, 171,
)  # fmt: skip
"""Items of the 57 tasks of MMLU."""


class Class(NamedTuple):
    """Items with the same probabilities, and their share."""

    share: float
    p: float
    q: float


@dataclass(frozen=True, slots=True)
class World:
    """How the items of one task are drawn.

    Attributes:
        items: number of items.
        rates: draws p and q.
        loss: mean of max(p - q, 0) over the population of items.
        net: mean of p - q over the population.
        cluster: number of items per cluster; 0 for none.
        tied: probability that an item has the p and q of its cluster.
    """

    items: int
    rates: PairRates
    loss: float
    net: float
    cluster: int = 0
    tied: float = 1.0


@dataclass(frozen=True, slots=True)
class Items:
    """Items of one data set, with their truth.

    Attributes:
        p: probability of each item to be answered right before.
        q: the same after.
        worlds: the world of each task.
        task: index of the task of each item.
        weights: weight of each task; they add up to 1.
        cluster: index of the cluster of each item; None without clusters.
        mood: probability that a cluster is answered by one throw of the dice in a run.
        is_macro: whether tasks have equal weights.
    """

    p: Array
    q: Array
    worlds: tuple[World, ...]
    task: Integers
    weights: Array
    cluster: Integers | None = None
    mood: float = 0.0
    is_macro: bool = False

    @property
    def item_weights(self) -> Array:
        """Weight of each item; they add up to 1."""
        sizes = np.bincount(self.task, minlength=self.weights.size)
        return np.asarray((self.weights / sizes)[self.task])

    @property
    def loss(self) -> float:
        """Loss of the population of items."""
        return float(self.weights @ [world.loss for world in self.worlds])

    @property
    def net(self) -> float:
        """Drop in accuracy on the population of items."""
        return float(self.weights @ [world.net for world in self.worlds])

    @property
    def own_loss(self) -> float:
        """Loss of these items."""
        return float(self.item_weights @ np.maximum(self.p - self.q, 0.0))

    @property
    def own_net(self) -> float:
        """Drop in accuracy on these items."""
        return float(self.item_weights @ (self.p - self.q))

    def answer(self, rng: Rng, rates: Array, repeats: int | Integers = 1) -> Array:
        """Return how many answers to each item are right in a new run."""
        most = int(np.max(repeats))
        luck = rng.random((most, rates.size))
        if self.cluster is not None and self.mood:
            size = (most, int(self.cluster.max()) + 1)
            shared = (rng.random(size) < self.mood)[:, self.cluster]
            luck = np.where(shared, rng.random(size)[:, self.cluster], luck)
        asked = np.arange(most)[:, None] < repeats
        return np.asarray(((luck < rates) & asked).sum(axis=0), float)


def draw(
    rng: Rng,
    *worlds: World,
    mood: float = 0.0,
    is_macro: bool = False,
    across: int = 0,
) -> Items:
    """Draw the items of some tasks.

    Args:
        rng: random generator.
        worlds: one for each task.
        mood: see `Items`.
        is_macro: whether tasks have equal weights.
        across: number of items of clusters that go across tasks; 0 for those of the worlds.
    """
    drawn = [_draw_task(rng, world) for world in worlds]
    p, q = (np.concatenate([part[place] for part in drawn]) for place in (0, 1))
    sizes = np.array([world.items for world in worlds])
    weights = np.full(sizes.size, 1 / sizes.size) if is_macro else sizes / sizes.sum()
    cluster = None
    if across:
        cluster = rng.permutation(sizes.sum()) // across
    elif any(world.cluster for world in worlds):
        firsts = np.cumsum([0, *(part[2].max() + 1 for part in drawn)])
        cluster = np.concatenate(
            [part[2] + first for part, first in zip(drawn, firsts, strict=False)]
        )
    task = np.repeat(np.arange(sizes.size), sizes)
    return Items(p, q, worlds, task, weights, cluster, mood, is_macro)


def _draw_task(rng: Rng, world: World) -> tuple[Array, Array, Integers]:
    p, q = world.rates(rng, world.items)
    cluster = np.arange(world.items) // max(world.cluster, 1)
    if world.cluster:
        of_cluster = world.rates(rng, int(cluster[-1]) + 1)
        tied = rng.random(world.items) < world.tied
        p, q = (
            np.where(tied, common[cluster], own)
            for own, common in zip((p, q), of_cluster, strict=True)
        )
    return p, q, cluster


def mix(items: int, *classes: Class, cluster: int = 0, tied: float = 1.0) -> World:
    """Return items of some classes; what their shares leave is never answered right."""
    shares = [one.share for one in classes]
    table = np.array([*((one.p, one.q) for one in classes), (0.0, 0.0)])
    steps = np.cumsum(shares)

    def rates(rng: Rng, n: int) -> tuple[Array, Array]:
        p, q = table[np.searchsorted(steps, rng.random(n), side="right")].T
        return p, q

    change = table[:-1, 0] - table[:-1, 1]
    loss, net = float(np.maximum(change, 0) @ shares), float(change @ shares)
    return World(items, rates, loss, net, cluster, tied)


def choices(
    items: int,
    lost: float = 0.0,
    gained: float = 0.0,
    *,
    k: float = 4,
    known: float = 0.6,
    cluster: int = 0,
    tied: float = 1.0,
) -> World:
    """Return items with k options: a model knows them, or guesses anew in every run.

    `lost` and `gained` are shares of right answers: more items change, since some are guessed.
    """
    luck = 1 / k
    gone, new = lost / (1 - luck), gained / (1 - luck)
    never = 1 - known - new
    classes = (
        Class(known - gone, 1.0, 1.0), Class(gone, 1.0, luck), Class(new, luck, 1.0),
        Class(never, luck, luck),
    )  # fmt: skip
    return mix(items, *classes, cluster=cluster, tied=tied)


def open_items(
    items: int,
    lost: float = 0.0,
    gained: float = 0.0,
    *,
    known: float = 0.7,
    flips: float = 0.0,
    cluster: int = 0,
    tied: float = 1.0,
) -> World:
    """Return items that cannot be guessed; noise flips a share of them one way in every run."""
    brink = 4 * flips
    kept = (1 - brink) * known - lost
    classes = (
        Class(kept, 1.0, 1.0), Class(lost, 1.0, 0.0), Class(gained, 0.0, 1.0),
        Class(brink, 0.5, 0.5),
    )  # fmt: skip
    return mix(items, *classes, cluster=cluster, tied=tied)


def sampled(
    items: int,
    hit: float = 0.0,
    by: float = 1.0,
    *,
    a: float = 0.7,
    b: float = 0.4,
    gained: bool = False,
    cluster: int = 0,
    tied: float = 1.0,
) -> World:
    """Return items answered at a temperature: p is beta-distributed.

    Args:
        items: number of items.
        hit: share of items whose p is lowered.
        by: part of p that they lose.
        a: shape of the beta distribution.
        b: shape of the beta distribution.
        gained: whether as many other items gain as much.
        cluster: see `World`.
        tied: see `World`.
    """

    def rates(rng: Rng, n: int) -> tuple[Array, Array]:
        p, luck = rng.beta(a, b, n), rng.random(n)
        q = np.where(luck < hit, p * (1 - by), p)
        if not gained:
            return p, q
        turned = (luck >= hit) & (luck < 2 * hit)
        return np.where(turned, p * (1 - by), p), np.where(turned, p, q)

    loss = hit * by * a / (a + b)
    return World(items, rates, loss, 0.0 if gained else loss, cluster, tied)


def latent_trait(items: int, *, noise: float = 0.3, k: int = 4) -> World:
    """Return items answered by the largest of k noisy logits (IRT); nothing changes.

    With Gumbel noise the probability of an option is its softmax.
    """

    def rates(rng: Rng, n: int) -> tuple[Array, Array]:
        logits = rng.standard_normal((n, k))
        logits[:, 0] += 1 - rng.normal(0, 1.2, n)
        weights = np.exp((logits - logits.max(axis=1, keepdims=True)) / noise)
        p = weights[:, 0] / weights.sum(axis=1)
        return p, p

    return World(items, rates, 0.0, 0.0)


def frozen_guesses(items: int, lost: float = 0.0, *, k: int = 4, known: float = 0.6) -> World:
    """Return items with k options; a guess is the same in all runs of a model, not of both.

    A lucky answer that became another one for good counts as lost, although no knowledge is.
    """
    hit, miss = 1 / k, 1 - 1 / k
    never = 1 - known
    gone = lost / miss
    return mix(
        items,
        Class(known - gone + gone * hit + never * hit * hit, 1.0, 1.0),
        Class(gone * miss + never * hit * miss, 1.0, 0.0),
        Class(never * hit * miss, 0.0, 1.0),
    )


def moved_habit(items: int, *, known: float = 0.6) -> World:
    """Return items with two options; guesses move from A in .9 to B in .9, gold is balanced."""
    half = (1 - known) / 2
    return mix(items, Class(known, 1.0, 1.0), Class(half, 0.9, 0.1), Class(half, 0.1, 0.9))


def checkpoints(rng: Rng, items: Items, number: int, lost: float) -> list[Array]:
    """Return q of several checkpoints, each of which lost its own share of the same items."""
    share = lost / max(float(items.p.mean()), lost)
    return [np.where(rng.random(items.p.size) < share, 0.0, items.p) for _ in range(number)]
