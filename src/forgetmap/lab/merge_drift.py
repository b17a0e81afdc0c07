"""`lab merge-drift`: merging with the start model when drift is small.

Models learn from a few to all of the new examples, so that they drift from little to much. Each is
merged with the start model at ten weights. Compensation is the share of the loss that the best
merge undoes while it keeps 95 % of the gain on the new examples. One half of the items chooses the
merge and the other half measures it, and vice versa: on the same items, the best of ten would look
better the fewer items were forgotten, so small drift would win by chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.lab.arms import require_convergence
from forgetmap.lab.folder import kept_result, open_lab
from forgetmap.lab.measure import StartDivergence
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.result import MergeDriftResult, MergeLevel, MergePoint
from forgetmap.lab.seeds import reported_seeds
from forgetmap.lab.summary import head_by_sign, over_seeds
from forgetmap.lab.training import (
    StopAtScore,
    are_right,
    load_start,
    share_right,
    supervised_trainer,
)
from forgetmap.results import Estimate
from forgetmap.stats import rank_correlation
from forgetmap.text import counted, percent
from forgetmap.train import TokenExample, read_examples

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
WEIGHTS = tuple(number / 10 for number in range(1, 10))
KEPT_GAIN = 0.95
FEWEST_LEVELS = 4
FEWEST_LOST = 5
"""Minimum number of forgotten items: with fewer, compensation cannot be measured."""

OnLevel = Callable[[MergeLevel], None]
"""Callback that receives each finished level."""


def merge_under_drift(
    recipe: LabRecipe,
    out: Path,
    *,
    shares: Sequence[float] = SHARES,
    seeds: int = 3,
    rate: float | None = None,
    on_level: OnLevel | None = None,
) -> MergeDriftResult:
    """Train models with increasing drift, merge each with the start model, and test for a trend.

    Args:
        recipe: start model, data and settings.
        out: folder of the models; finished levels are not trained again.
        shares: share of the new examples at each level.
        seeds: number of models per level.
        rate: learning rate; by default the lowest of the recipe.
        on_level: called after each model.

    Raises:
        UsageError: there are too few levels or seeds.
        ConvergenceError: a training diverged.
        EmptyInputError: the start model answers no evaluation item correctly.
    """
    reported = reported_seeds(seeds)
    if len(set(shares)) < FEWEST_LEVELS:
        raise UsageError(
            f"{counted(len(set(shares)), 'level')} of drift cannot show a trend",
            hint=f"give at least {FEWEST_LEVELS} levels.",
        )
    if not all(0 < share <= 1 for share in shares):
        raise UsageError(
            "a level must be a share of the new examples", hint="give numbers above 0 and up to 1."
        )
    rate = recipe.single_rate if rate is None else rate
    levels = []
    with open_lab(recipe, out, reported):
        for seed in reported:
            for share in sorted(set(shares)):
                levels.append(_level(recipe, out, share, seed, rate))
                if on_level is not None:
                    on_level(levels[-1])
    return summarise_levels(recipe.name, levels)


def _level(recipe: LabRecipe, out: Path, share: float, seed: int, rate: float) -> MergeLevel:
    file = out / f"share{share:g}-rate{rate:g}-seed{seed}.json"
    return kept_result(file, MergeLevel, lambda: _train_level(recipe, out, share, seed, rate))


def _train_level(recipe: LabRecipe, out: Path, share: float, seed: int, rate: float) -> MergeLevel:
    part = replace(recipe, new_rows=partial(_first_rows, recipe.new_rows, share))
    model, tokenizer = load_start(recipe.start)
    start = {name: weight.clone() for name, weight in model.state_dict().items()}
    known = _known_examples(model, read_examples(recipe.old_rows, tokenizer, eos=False))
    new = read_examples(part.new_rows(seed), tokenizer, eos=False)
    before = share_right(model, new)
    divergence = StartDivergence(model, recipe.old_rows, tokenizer)
    trainer = supervised_trainer(part, model, tokenizer, rate=rate, seed=seed, folder=out)
    trainer.add_callback(StopAtScore(new, recipe.target))
    require_convergence(trainer, f"the model of level {share:g}, seed {seed}")
    after = {name: weight.clone() for name, weight in model.state_dict().items()}
    _, reverse = divergence.measure(model)
    points = []
    for weight in (*WEIGHTS, 1.0):
        _mix_into(model, start, after, weight)
        points.append(_measure(model, known, new, weight))
    recovered, best = compensation(points, before, len(known))
    return MergeLevel(
        share=share, seed=seed, distance=_distance(start, after), kl_old_reverse=reverse,
        lost=points[-1].lost, score=points[-1].score, points=points, recovered=recovered,
        weight=best,
    )  # fmt: skip


def _known_examples(model: Any, old: Sequence[TokenExample]) -> list[TokenExample]:
    known = [one for one, is_right in zip(old, are_right(model, old), strict=True) if is_right]
    if len(known) < 2:
        raise EmptyInputError(
            "the start model answers fewer than two near and far questions right, word by word, "
            "so nothing can be lost",
            hint="use a trained start model, or another `question_template`.",
        )
    return known


def _first_rows(rows: Callable[[int], Sequence[Row]], share: float, seed: int) -> Sequence[Row]:
    """Return a share of the new examples, drawn with the seed."""
    everything = list(rows(seed))
    count = max(1, round(share * len(everything)))
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(seed))
    return [everything[at] for at in order[:count].tolist()]


def _measure(
    model: Any, known: Sequence[TokenExample], new: Sequence[TokenExample], weight: float
) -> MergePoint:
    right = are_right(model, known)
    return MergePoint(
        weight=weight,
        lost=1 - fmean(right),
        halves=(1 - fmean(right[::2]), 1 - fmean(right[1::2])),
        score=share_right(model, new),
    )


@torch.no_grad()
def _mix_into(
    model: Any, start: dict[str, torch.Tensor], after: dict[str, torch.Tensor], weight: float
) -> None:
    model.load_state_dict({name: torch.lerp(start[name], after[name], weight) for name in start})


def _distance(start: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> float:
    moved = sum(float((after[name] - start[name]).double().square().sum()) for name in start)
    return math.sqrt(moved / sum(float(value.double().square().sum()) for value in start.values()))


def compensation(
    points: Sequence[MergePoint], before: float, known: int
) -> tuple[float | None, float | None]:
    """Return the share of loss undone by the best merge that keeps 95 % of the gain; its weight.

    Each half of the items measures the merge chosen by the other half; the weight is chosen on all
    items. None if too few items were forgotten. The last point is the trained model itself.
    """
    whole = points[-1]
    if round(whole.lost * known) < FEWEST_LOST or not sum(whole.halves):
        return None, None
    kept = [point for point in points if point.score - before >= KEPT_GAIN * (whole.score - before)]
    first, second = (min(kept, key=lambda point: point.halves[half]) for half in (0, 1))
    still_lost = first.halves[1] + second.halves[0]
    best = min(kept, key=lambda point: point.lost)
    return 1 - still_lost / sum(whole.halves), best.weight


def summarise_levels(recipe: str, levels: Sequence[MergeLevel]) -> MergeDriftResult:
    """Return the trend over levels, and the comparison of small with large drift."""
    seeds = sorted({level.seed for level in levels})
    shares = sorted({level.share for level in levels})
    smaller = set(shares[: len(shares) // 2])
    halves = {
        name: [
            _mean_recovered(
                [x for x in levels if x.seed == seed and (x.share in smaller) == is_small]
            )
            for seed in seeds
        ]
        for name, is_small in (("small", True), ("large", False))
    }
    difference = over_seeds(
        [
            one - other
            for one, other in zip(halves["small"], halves["large"], strict=True)
            if one is not None and other is not None
        ]
    )
    trend = _trend(levels)
    return MergeDriftResult(
        recipe=recipe,
        seeds=seeds,
        levels=list(levels),
        trend=trend,
        small=over_seeds(halves["small"]),
        large=over_seeds(halves["large"]),
        difference=difference,
        headline=_headline(over_seeds(halves["small"]), over_seeds(halves["large"]), difference),
        notices=_notices(levels),
    )


def _mean_recovered(levels: Sequence[MergeLevel]) -> float | None:
    values = [level.recovered for level in levels if level.recovered is not None]
    return fmean(values) if values else None


def _trend(levels: Sequence[MergeLevel]) -> Estimate:
    """Return the trend over levels; each is the mean of its seeds, which are not independent."""
    points = []
    for share in sorted({level.share for level in levels}):
        same = [level for level in levels if level.share == share]
        recovered = _mean_recovered(same)
        if recovered is not None:
            points.append((fmean(level.distance for level in same), recovered))
    name = "Spearman's rank correlation over levels"
    if len(points) < FEWEST_LEVELS:
        return Estimate.missing(name, f"only {len(points)} levels lost enough to measure repair")
    correlation = rank_correlation(*zip(*points, strict=True))
    if correlation is None:
        return Estimate.missing(name, "all levels are equal")
    return Estimate(
        value=correlation.value, low=correlation.low, high=correlation.high, method=name
    )


def _headline(small: Estimate, large: Estimate, difference: Estimate) -> str:
    if small.value is None or large.value is None or difference.value is None:
        return (
            "Cannot tell whether merging compensates better with small drift: too little was lost."
        )
    figures = (
        f"with small drift a merge undid {percent(small.value)} of the loss at 95 % of the gain, "
        f"with large drift {percent(large.value)}"
    )
    head = head_by_sign(
        difference,
        "Merging compensates better when drift is small",
        "Merging compensates less when drift is small",
        "Cannot tell whether the size of the drift matters",
    )
    return f"{head}: {figures}."


def _notices(levels: Sequence[MergeLevel]) -> list[str]:
    silent = sum(level.recovered is None for level in levels)
    if not silent:
        return []
    notice = (
        f"{silent} of {len(levels)} models lost fewer than {FEWEST_LOST} known items; they are "
        "left out of the repair measurement."
    )
    return [notice]
