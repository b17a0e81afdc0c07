"""Simulated models with known drift: items are drawn each time, from means that are known.

The metrics stand for all kinds of a taxonomy: shares low and high, graded values, ratings, counts,
tasks of 80 to 400 items, metrics that share their items, and items in clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetmap.capabilities.effects import (
    Effect,
    Levels,
    Series,
    effect,
    levels,
    metric_effect,
    task_means,
)
from forgetmap.capabilities.taxonomy import (
    Capability,
    CapabilityGroup,
    Metric,
    Taxonomy,
    TaxonomyTask,
)
from forgetmap.stats.results import Reals


@dataclass(frozen=True)
class Shift:
    """Means of a metric before and after, and the share of items with equal luck in both."""

    metric: Metric
    before: float
    after: float
    shared: float = 0.6
    items: int = 200
    cluster: int = 1


def binary(cap: str, before: float, after: float, **more: float) -> Shift:
    return _shift(cap, "binary", before, after, **more)


def _shift(cap: str, scale: str, before: float, after: float, **more: float) -> Shift:
    task = f"{cap}.{scale}.{before}.{after}"
    polarity = "both" if scale == "count" else "up"
    metric = Metric(task, cap, task, scale=scale, polarity=polarity)  # type: ignore[arg-type]
    return Shift(metric, before, after, **more)  # type: ignore[arg-type]


SHIFTS = (
    binary("C1", 0.60, 0.55, items=400),
    binary("C1", 0.34, 0.36, items=400),
    binary("C1", 0.95, 0.93, items=200),
    binary("C1", 0.14, 0.20, items=100),
    binary("C2", 0.71, 0.71, items=200),
    _shift("C2", "share", 0.85, 0.80, items=200),
    binary("C3", 0.78, 0.70, items=320, cluster=4),
    binary("C3", 0.88, 0.88, items=200),
    binary("C4", 0.97, 0.95, items=150),
    binary("C5", 0.73, 0.45, items=200),
    binary("C5", 0.50, 0.50, items=200, shared=0.95),
    binary("W1", 0.80, 0.90, items=200),
    _shift("W2", "share", 0.50, 0.40, items=150),
    _shift("W3", "count", 300.0, 240.0, items=80),
    _shift("W3", "count", 380.0, 400.0, items=188),
    binary("W4", 0.60, 0.45, items=80),
    binary("W4", 0.10, 0.12, items=188),
    binary("H1", 0.82, 0.82, items=300),
    binary("H2", 0.995, 0.97, items=300),
    _shift("H4", "rating", 8.5, 8.1, items=80),
    _shift("H4", "rating", 7.0, 7.0, items=155),
)
GROUPS = {"C": "CAN", "W": "WILL", "H": "HOW"}


def taxonomy(shifts: tuple[Shift, ...] = SHIFTS) -> Taxonomy:
    caps = dict.fromkeys(shift.metric.capability for shift in shifts)
    return Taxonomy(
        "simulated",
        "",
        tuple(map(CapabilityGroup, dict.fromkeys(GROUPS[cap[0]] for cap in caps))),
        tuple(Capability(cap, GROUPS[cap[0]]) for cap in caps),
        tuple(TaxonomyTask(shift.metric.task) for shift in shifts),
        tuple(shift.metric for shift in shifts),
    )


def truth(shifts: tuple[Shift, ...] = SHIFTS) -> Levels:
    """Return the true effects, from the means of the distributions."""
    nothing = np.zeros(1)
    metrics = {
        shift.metric.id: Effect(float(effect(shift.metric, shift.before, shift.after)), nothing)
        for shift in shifts
    }
    return levels(taxonomy(shifts), metrics)


def estimate(rng: np.random.Generator, draws: int, shifts: tuple[Shift, ...] = SHIFTS) -> Levels:
    """Return the effects that the code under test estimates from one simulated evaluation."""
    metrics = {}
    for shift in shifts:
        before, after = answers(shift, rng)
        cluster = np.arange(shift.items) // shift.cluster if shift.cluster > 1 else None
        series = [Series(shift.metric, before, after)]
        seed = int(rng.integers(2**31))
        (means,) = task_means(shift.metric.task, series, cluster, seed=seed, draws=draws)
        metrics[shift.metric.id] = metric_effect(shift.metric, means)
    return levels(taxonomy(shifts), metrics)


def answers(shift: Shift, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Draw the values of both models; with probability `shared` an item has equal luck in both."""
    n = shift.items
    units = -(-n // shift.cluster)
    luck = np.repeat(rng.random((units, 2)), shift.cluster, axis=0)[:n]
    if shift.cluster > 1:  # half of the items of a passage share its luck
        own = rng.random(n) < 0.5
        luck = np.where(own[:, None], rng.random((n, 2)), luck)
    same = rng.random(n) < shift.shared
    before, after = luck[:, 0], np.where(same, luck[:, 0], luck[:, 1])
    return _values(shift, shift.before, before), _values(shift, shift.after, after)


def _values(shift: Shift, mean: float, luck: Reals) -> Reals:
    """Return values with this mean, from the inverse of their distribution function."""
    if shift.metric.scale == "binary":
        return (luck < mean).astype(float)
    if shift.metric.scale == "share":  # thirds, binomial
        return _binomial(luck, 3, mean) / 3
    if shift.metric.scale == "rating":
        return 1 + _binomial(luck, 9, (mean - 1) / 9)
    from scipy.special import ndtri

    return np.asarray(mean * np.exp(0.6 * ndtri(luck) - 0.18))


def _binomial(luck: Reals, size: int, p: float) -> Reals:
    from scipy.special import bdtr

    below = np.array([bdtr(k, size, p) for k in range(size)])
    return np.asarray((luck[:, None] > below).sum(axis=1), float)
