"""Effect sizes on scales that can be averaged.

The effect of a count, such as the length of an answer, is that of its typical value: the mean of
its logarithm. A mean of lengths is ruled by the few answers that never end, and no interval of it
holds before one of them was seen.

Relative change depends on which complement was stored and grows without bound near zero; these do
not: every effect is bounded, changes its sign if before and after are exchanged, and for shares
also if right and wrong are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.capabilities.bootstrap import (
    compact,
    generator,
    limits,
    resampled_sums,
    shared_sums,
    sum_groups,
    two_sided_p,
    widening,
)
from forgetmap.capabilities.taxonomy import Metric, Taxonomy
from forgetmap.stats import Reals

MAX_EFFECT = math.pi
"""The largest effect: from none to all. Ratios beyond e^pi, about 23, count as this."""


def effect(metric: Metric, before: ArrayLike, after: ArrayLike) -> Reals:
    """Return the effect of a changed mean; positive is better, or more for polarity `both`."""
    sign = -1.0 if metric.polarity == "down" else 1.0
    scale = metric.range
    if scale.high is None:
        return sign * log_ratio(before, after)
    if (scale.low, scale.high) == (0.0, 1.0):
        return sign * cohens_h(before, after)
    change = np.asarray(after, float) - np.asarray(before, float)
    return np.asarray(sign * change / (scale.high - scale.low))


def cohens_h(before: ArrayLike, after: ArrayLike) -> Reals:
    """Return the difference of two shares in angles: 2 asin sqrt(after) - 2 asin sqrt(before).

    References:
        Cohen, Statistical power analysis for the behavioral sciences, 1988, chapter 6.
    """
    first, second = (np.clip(np.asarray(share, float), 0.0, 1.0) for share in (before, after))
    return np.asarray(2 * np.arcsin(np.sqrt(second)) - 2 * np.arcsin(np.sqrt(first)))


def log_ratio(before: ArrayLike, after: ArrayLike) -> Reals:
    """Return the logarithm of the ratio of two non-negative means, clipped at `MAX_EFFECT`."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(after) - np.log(before)
    neither = (before == 0) & (after == 0)
    return np.asarray(np.clip(np.where(neither, 0.0, ratio), -MAX_EFFECT, MAX_EFFECT))


def relative_change(
    before: float, after: float, *, error: float, chance: float, low: float = 0.0
) -> float | None:
    """Return the change in percent of the value before; None if that is within noise around chance.

    Args:
        before: mean before.
        after: mean after.
        error: standard error of the mean before.
        chance: value of guessing.
        low: smallest possible value of the metric.
    """
    nothing = max(chance, low)
    if before == 0 or before - nothing <= 2 * error:
        return None
    return 100 * (after - before) / before


PSEUDO_UNIT_WEIGHT = 0.5
"""Weight of a lost and of a gained unit in every draw, so that a task without flips has no interval
of width zero (Agresti and Min 2005)."""
ENOUGH_CLUSTERS = 20
"""Number of clusters with a loss from which their spread is trusted."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one metric before and after, item by item; nan if one is missing.

    Attributes:
        metric: the metric.
        before: values before.
        after: values after, of the same items in the same order.
    """

    metric: Metric
    before: Reals
    after: Reals

    @property
    def known(self) -> NDArray[np.bool_]:
        """Items with a value on both sides."""
        return np.asarray(~np.isnan(self.before) & ~np.isnan(self.after))

    @property
    def parts(self) -> tuple[Series, ...]:
        """The values, and the logarithms of counts."""
        if self.metric.range.high is not None:
            return (self,)
        return self, Series(self.metric, np.log1p(self.before), np.log1p(self.after))


@dataclass(frozen=True, slots=True)
class Means:
    """Mean before and after, of all items and in each draw.

    Attributes:
        n: number of items.
        before: mean before.
        after: mean after.
        before_draws: mean before in each draw.
        after_draws: mean after in each draw.
        widening: factor by which an interval must be wider than the draws; None for a single unit.
        logs: the same of the logarithms of counts; None for other metrics.
    """

    n: int
    before: float
    after: float
    before_draws: Reals
    after_draws: Reals
    widening: float | None = 1.0
    logs: Means | None = None

    @property
    def point_draws(self) -> Reals:
        """Change of the mean in each draw."""
        return self.widen(self.after_draws - self.before_draws)

    def widen(self, draws: Reals) -> Reals:
        """Spread the draws by the factor for few units."""
        if self.widening is None or np.isnan(draws).all():
            return np.full_like(draws, np.nan)
        centre = np.nanmean(draws)
        return np.asarray(centre + self.widening * (draws - centre))


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect and its draws.

    Attributes:
        value: the effect.
        draws: draws of the bootstrap.
    """

    value: float
    draws: Reals

    @property
    def std(self) -> float:
        """Standard error."""
        return float(np.nanstd(self.draws)) if not np.isnan(self.draws).all() else float("nan")

    @property
    def limits(self) -> tuple[float, float] | None:
        """95 % interval; None with too few items."""
        return limits(self.draws)

    @property
    def p(self) -> float:
        """Two-sided p-value of no effect; from the same draws as the interval."""
        return two_sided_p(self.draws)


def task_means(
    task: str,
    series: Sequence[Series],
    cluster: NDArray[np.intp] | None,
    *,
    seed: int,
    draws: int,
    shared: NDArray[np.uint64] | None = None,
) -> list[Means]:
    """Return the means of all series of one task under the same weights.

    Args:
        task: name of the task, which determines its random numbers.
        series: values of its metrics.
        cluster: cluster of each item; None if every item is a unit of its own.
        seed: random seed.
        draws: number of draws.
        shared: for each item, the key of its unit if other tasks share it, else 0.
    """
    rng = generator(seed, task)
    parts = [part for values in series for part in values.parts]
    rows = np.column_stack([_columns(values) for values in parts])
    total = rows.sum(axis=0)
    units = rows if cluster is None else sum_groups(rows, cluster)
    keys = np.zeros(len(units), np.uint64) if shared is None else _unit_keys(shared, cluster)
    own = keys == 0
    drawn = resampled_sums(*compact(units[own], rng), rng, draws)
    drawn += shared_sums(units[~own], keys[~own], seed, draws)
    pseudo = np.vstack([_pseudo_unit(parts, cluster, lost=lost) for lost in (True, False)])
    drawn += resampled_sums(pseudo, np.full(2, PSEUDO_UNIT_WEIGHT), rng, draws)
    means = iter(
        _means(total[at : at + 3], drawn[:, at : at + 3], widening(units[:, at]))
        for at in range(0, 3 * len(parts), 3)
    )
    return [
        next(means) if len(values.parts) == 1 else replace(next(means), logs=next(means))
        for values in series
    ]


def _unit_keys(shared: NDArray[np.uint64], cluster: NDArray[np.intp] | None) -> NDArray[np.uint64]:
    """Return the key of each unit; for a cluster that of its first item."""
    return shared if cluster is None else shared[np.unique(cluster, return_index=True)[1]]


def _columns(series: Series) -> Reals:
    """Return whether each item counts, and its values before and after."""
    known = series.known
    values = [np.where(known, values, 0.0) for values in (series.before, series.after)]
    return np.column_stack([known.astype(float), *values])


def _pseudo_unit(
    series: Sequence[Series], cluster: NDArray[np.intp] | None, *, lost: bool
) -> Reals:
    """Return a unit that goes from right to wrong, or back, in all metrics between 0 and 1."""
    cells: list[float] = []
    for values in series:
        scale = values.metric.range
        size = float((scale.low, scale.high) == (0.0, 1.0))
        if size and cluster is not None:
            size = _pseudo_size(values, cluster, lost=lost)
        cells += [size, size * lost, size * (not lost)]
    return np.asarray([cells])


def _pseudo_size(series: Series, cluster: NDArray[np.intp], *, lost: bool) -> float:
    """Return the size of a pseudo cluster: a whole cluster if none has a loss, later one item.

    Few clusters with a loss hardly show how unequal losses are: with a single pseudo item the
    interval missed the drift of 10 to 60 clusters of 20 items in up to .22 of all cases.
    """
    flipped = series.before > series.after if lost else series.before < series.after
    hit = np.unique(cluster[flipped]).size
    items = np.bincount(cluster[series.known])
    if hit >= ENOUGH_CLUSTERS or not items.any():
        return 1.0
    return float(1 + ((items @ items) / items.sum() - 1) / (1 + hit))


def _means(total: Reals, drawn: Reals, wider: float | None) -> Means:
    n = int(total[0])
    with np.errstate(invalid="ignore", divide="ignore"):
        before, after = total[1:] / total[0]
        draws = drawn[:, 1:] / drawn[:, :1]
    return Means(n, float(before), float(after), draws[:, 0], draws[:, 1], wider)


def metric_effect(metric: Metric, means: Means) -> Effect:
    """Return the effect of a metric, in all draws."""
    if means.logs is not None:
        sign, logs = -1.0 if metric.polarity == "down" else 1.0, means.logs
        draws = np.clip(logs.after_draws - logs.before_draws, -MAX_EFFECT, MAX_EFFECT)
        value = min(max(logs.after - logs.before, -MAX_EFFECT), MAX_EFFECT)
        return Effect(sign * value, logs.widen(sign * draws))
    return Effect(
        float(effect(metric, means.before, means.after)),
        means.widen(effect(metric, means.before_draws, means.after_draws)),
    )


def average(effects: Sequence[tuple[Effect, float]]) -> Effect | None:
    """Return the weighted mean, draw by draw; None without effects."""
    total = sum(weight for _, weight in effects)
    if not total:
        return None
    return Effect(
        sum(part.value * weight for part, weight in effects) / total,
        np.asarray(sum(part.draws * weight for part, weight in effects) / total),
    )


def size(effects: Sequence[tuple[Effect, float]]) -> float | None:
    """Return the root mean square of effects, with their noise subtracted.

    None without effects, and if the noise of one is not known.
    """
    total = sum(weight for _, weight in effects)
    if not total or any(np.isnan(part.std) for part, _ in effects):
        return None
    squares = sum(weight * (part.value**2 - part.std**2) for part, weight in effects)
    return float(max(squares / total, 0.0) ** 0.5)


@dataclass(frozen=True, slots=True)
class Levels:
    """Effects of all levels.

    Attributes:
        metrics: effects of the metrics that have a value.
        capabilities: effects of the capabilities that have a value.
        groups: effects of the groups that have a value.
    """

    metrics: Mapping[str, Effect]
    capabilities: Mapping[str, Effect]
    groups: Mapping[str, Effect]


def levels(taxonomy: Taxonomy, metrics: Mapping[str, Effect]) -> Levels:
    """Average metrics by weight into capabilities, and capabilities into groups."""
    capabilities: dict[str, Effect] = {}
    for capability in taxonomy.capabilities:
        mean = average(weighted_effects(taxonomy, capability.id, metrics))
        if mean is not None:
            capabilities[capability.id] = mean
    by_group: dict[str, list[tuple[Effect, float]]] = defaultdict(list)
    for capability in taxonomy.capabilities:
        if capability.id in capabilities:
            by_group[capability.group].append((capabilities[capability.id], 1.0))
    groups = {name: mean for name, effects in by_group.items() if (mean := average(effects))}
    return Levels(metrics, capabilities, groups)


def weighted_effects(
    taxonomy: Taxonomy, capability: str, metrics: Mapping[str, Effect]
) -> list[tuple[Effect, float]]:
    """Return the effects of the metrics of a capability, with their weights."""
    return [
        (metrics[metric.id], metric.weight)
        for metric in taxonomy.metrics_of(capability)
        if metric.id in metrics and metric.weight
    ]
