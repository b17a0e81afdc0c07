"""Means, differences and trends over the pairs of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from forgetmap.results import Estimate
from forgetmap.stats import Contrast, Reals, clustered_contrast, fixed_contrast
from forgetmap.study.pair_table import TOTAL, Effect, Flags, StudyTable

METHOD = "least squares over pairs, CR2 by lineage"
OF_THESE = "mean of these pairs, items resampled"


def mean_effect(
    table: StudyTable, effect: Effect, rows: Flags, category: str = TOTAL, level: float = 0.95
) -> Contrast | None:
    """Return the mean over the population of such pairs; None if no pair has a value."""
    rows = rows & ~np.isnan(table.values(effect, category))
    if not rows.any():
        return None
    design = np.ones((int(rows.sum()), 1))
    return _contrast(table, effect, rows, category, design, [1.0], level=level)


def mean_of_these(
    table: StudyTable, effect: Effect, rows: Flags, category: str = TOTAL, level: float = 0.95
) -> Contrast | None:
    """Return the mean over exactly these pairs; None if items are unknown."""
    covariance = table.covariance.get((effect, category))
    rows = rows & ~np.isnan(table.values(effect, category))
    if covariance is None or not rows.any():
        return None
    places = np.flatnonzero(rows)
    values = table.values(effect, category)[places]
    weights = np.full(len(places), 1 / len(places))
    return fixed_contrast(values, weights, covariance[np.ix_(places, places)], level=level)


def difference(
    table: StudyTable,
    effect: Effect,
    rows: tuple[Flags, Flags],
    *,
    category: str = TOTAL,
    within: Sequence[object] | None = None,
    level: float = 0.95,
) -> tuple[Contrast, tuple[Flags, Flags]] | None:
    """Return the difference of the means over two sets of pairs, and the pairs that count.

    Args:
        table: values of all pairs.
        effect: the effect.
        rows: the first and the second set of pairs.
        category: the category.
        within: label of each pair: differences are taken within equal labels, and pairs without a
            counterpart do not count.
        level: confidence level of the interval.

    Returns:
        None if one of the sets has no pair to compare.
    """
    known = ~np.isnan(table.values(effect, category))
    first, second = rows[0] & known, rows[1] & known & ~rows[0]
    labels = np.asarray([str(label) for label in within or [""] * len(known)])
    both = set(labels[first]) & set(labels[second])
    taken = (first | second) & np.isin(labels, sorted(both))
    if not taken.any():
        return None
    blocks = labels[taken][:, None] == np.asarray(sorted(both))
    design = np.column_stack([first[taken], blocks]).astype(float)
    weights = [1.0, *[0.0] * len(both)]
    sides = first[taken].tolist()
    contrast = _contrast(table, effect, taken, category, design, weights, sides, level=level)
    return contrast, (first & taken, second & taken)


def size_trend(
    table: StudyTable, effect: Effect, category: str = TOTAL, level: float = 0.95
) -> tuple[Contrast, Flags] | None:
    """Return the change of an effect per doubling of size within series, and the pairs used.

    A series is a set of similar models of one group; each has its own intercept.
    """
    known = ~np.isnan(table.values(effect, category))
    names = [
        (fact.series, fact.group) if fact.series is not None and fact.size is not None else None
        for fact in table.facts
    ]
    sizes: dict[object, set[float | None]] = {}
    for name, fact, is_known in zip(names, table.facts, known, strict=True):
        if is_known and name is not None:
            sizes.setdefault(name, set()).add(fact.size)
    series = [name for name, values in sizes.items() if len(values) > 1]
    rows = known & np.asarray([name in series for name in names])
    if not rows.any():
        return None
    places = np.flatnonzero(rows)
    taken = [names[place] for place in places]
    doublings = np.log2([table.facts[place].size or 1.0 for place in places])
    design = np.column_stack([doublings, *[[name == one for name in taken] for one in series]])
    weights = [1.0, *[0.0] * len(series)]
    return _contrast(table, effect, rows, category, design, weights, taken, level=level), rows


def as_share(contrast: Contrast | None, method: str = METHOD) -> Estimate:
    """Return a mean of shares, with bounds clipped to [0, 1] unless the mean is below 0."""
    estimate = as_estimate(contrast, method)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    low = estimate.low if estimate.value < 0 else max(estimate.low, 0.0)
    return replace(estimate, low=low, high=min(estimate.high, 1.0))


def possible(contrast: Contrast) -> Contrast:
    """Clip the bounds of a change of shares to [-1, 1], which few lineages can exceed."""
    return replace(
        contrast, low=np.maximum(contrast.low, -1.0), high=np.minimum(contrast.high, 1.0)
    )


def as_estimate(contrast: Contrast | None, method: str = METHOD) -> Estimate:
    """Return a contrast as an estimate with an interval, or the reason why there is none."""
    if contrast is None:
        return Estimate.missing(method, "no pair has a value")
    if np.isnan(contrast.error):
        return Estimate(
            value=contrast.value,
            method=method,
            reason="a single lineage does not show the variation between lineages",
        )
    return Estimate(value=contrast.value, low=contrast.low, high=contrast.high, method=method)


def lineages(table: StudyTable, rows: Flags) -> int:
    """Return the number of lineages among these pairs."""
    return len({fact.lineage for fact, is_in in zip(table.facts, rows, strict=True) if is_in})


def _contrast(
    table: StudyTable,
    effect: Effect,
    rows: Flags,
    category: str,
    design: Reals,
    weights: Sequence[float],
    groups: Sequence[object] | None = None,
    *,
    level: float,
) -> Contrast:
    places = np.flatnonzero(rows)
    covariance = table.covariance.get((effect, category))
    contrast = clustered_contrast(
        table.values(effect, category)[places],
        design,
        weights,
        [table.facts[place].lineage for place in places],
        item_covariance=None if covariance is None else covariance[np.ix_(places, places)],
        groups=groups,
        level=level,
    )
    return contrast if effect == "drift" else possible(contrast)
