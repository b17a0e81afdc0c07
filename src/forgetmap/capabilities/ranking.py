"""Ranking of models by drift with its uncertainty, and recovery by a later training.

The size of a drift is the root mean square of the effects of capabilities, without their noise. A
draw of the bootstrap scatters around an estimated effect that scatters itself, so that the square
of a draw contains the noise twice: both are subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from forgetmap.capabilities.bootstrap import limits
from forgetmap.capabilities.effects import Effect, Levels
from forgetmap.capabilities.inputs import DriftPlan
from forgetmap.capabilities.taxonomy import TARGET, Taxonomy
from forgetmap.stats import Reals

CERTAIN = 0.95
"""Probability from which the largest drift is called certain."""


@dataclass(frozen=True, slots=True)
class RankedModel:
    """Overall drift of one model.

    Attributes:
        model: the model after.
        size: root mean square of its effects, in either direction, without their noise.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
        largest: probability that no other model drifted as far.
    """

    model: str
    size: float
    low: float
    high: float
    largest: float


@dataclass(frozen=True, slots=True)
class DriftRanking:
    """Models by the size of their drift, the largest first.

    Attributes:
        models: models with their sizes.
        capabilities: ids of the capabilities with intervals for all models; only these count.
    """

    models: tuple[RankedModel, ...]
    capabilities: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """Whether the first certainly drifted most."""
        return self.models[0].largest >= CERTAIN


@dataclass(frozen=True, slots=True)
class Recovery:
    """Effect of a later step of a chain on the drift of a capability so far.

    Attributes:
        model: the model after the step.
        between: the model before the step.
        id: id of the capability.
        name: title of the capability.
        drift: effect from the first model to the one before the step.
        left: effect from the first model to the one after the step.
        undone: share of the drift that the step undid; below 0 it drifted further.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
    """

    model: str
    between: str
    id: str
    name: str
    drift: float
    left: float
    undone: float
    low: float
    high: float


def rank_drifts(
    taxonomy: Taxonomy, plan: DriftPlan, names: Sequence[str], drifts: Sequence[Levels]
) -> DriftRanking | None:
    """Rank models by the size of their drift; in a chain, by their drift from the first model."""
    start = plan.comparisons[0].before
    return rank_models(
        {
            name: _side_effects(taxonomy, levels)
            for name, levels, compared in zip(names, drifts, plan.comparisons, strict=True)
            if not plan.chain or compared.before == start
        }
    )


def _side_effects(taxonomy: Taxonomy, levels: Levels) -> dict[str, Effect]:
    """Return effects on capabilities that the model was not trained for."""
    return {
        capability.id: levels.capabilities[capability.id]
        for capability in taxonomy.capabilities
        if capability.group != TARGET and capability.id in levels.capabilities
    }


def find_recoveries(
    taxonomy: Taxonomy, plan: DriftPlan, names: Sequence[str], drifts: Sequence[Levels]
) -> Iterator[Recovery]:
    """Return the recovery by later steps of a chain, for capabilities with significant drift."""
    if not plan.chain:
        return
    start = plan.comparisons[0].before
    stages = [
        (name, levels)
        for name, levels, compared in zip(names, drifts, plan.comparisons, strict=True)
        if compared.before == start
    ]
    for (between, so_far), (model, after) in pairwise(stages):
        for capability in taxonomy.capabilities:
            effects = [levels.capabilities.get(capability.id) for levels in (so_far, after)]
            if effects[0] is not None and effects[1] is not None:
                title = capability.title or capability.id
                undone = recovery((between, model), capability.id, title, effects[0], effects[1])
                if undone is not None:
                    yield undone


def rank_models(effects: Mapping[str, Mapping[str, Effect]]) -> DriftRanking | None:
    """Rank models by the size of their drift; None for one model, or without common intervals.

    Args:
        effects: model -> capability -> its effect with the draws of the bootstrap. Draws of the
            same index belong together in all models.
    """
    if len(effects) == 1:
        return None
    by_model = list(effects.values())
    shared = [
        name
        for name in by_model[0]
        if all(name in own and own[name].limits is not None for own in by_model)
    ]
    if not shared:
        return None
    squares = np.array([_mean_square([own[name] for name in shared]) for own in by_model])
    draws = np.array([_drawn_squares([own[name] for name in shared]) for own in by_model])
    known = draws[:, ~np.isnan(draws).any(axis=0)]
    largest = np.bincount(known.argmax(axis=0), minlength=len(by_model)) / max(known.shape[1], 1)
    ranked = [
        RankedModel(model, _root(square), *_root_limits(own), float(share))
        for model, square, own, share in zip(effects, squares, known, largest, strict=True)
    ]
    ranked.sort(key=lambda entry: (-entry.size, -entry.largest))
    return DriftRanking(tuple(ranked), tuple(shared))


def _mean_square(effects: Sequence[Effect]) -> float:
    return float(np.mean([effect.value**2 - effect.std**2 for effect in effects]))


def _drawn_squares(effects: Sequence[Effect]) -> Reals:
    return np.asarray(np.mean([_centred(part) ** 2 - 2 * part.std**2 for part in effects], axis=0))


def _centred(effect: Effect) -> Reals:
    """Centre draws on the effect: with few items, pseudo units pull them towards 0."""
    return np.asarray(effect.draws - np.nanmean(effect.draws) + effect.value)


def _root(square: float) -> float:
    return float(max(square, 0.0) ** 0.5)


def _root_limits(squares: Reals) -> tuple[float, float]:
    low, high = limits(squares) or (0.0, 0.0)
    return _root(low), _root(high)


def recovery(
    names: tuple[str, str], id_: str, title: str, so_far: Effect, after: Effect
) -> Recovery | None:
    """Return the part of the drift that a step undid; None if there was no significant drift.

    Args:
        names: names of the models before and after the step.
        id_: id of the capability.
        title: title of the capability.
        so_far: effect from the first model to the one before the step.
        after: effect from the first model to the one after the step.
    """
    interval = so_far.limits
    if interval is None or interval[0] <= 0 <= interval[1] or after.limits is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = 1 - after.draws / so_far.draws
    low, high = limits(shares) or (float("nan"), float("nan"))
    undone = 1 - after.value / so_far.value
    return Recovery(names[1], names[0], id_, title, so_far.value, after.value, undone, low, high)
