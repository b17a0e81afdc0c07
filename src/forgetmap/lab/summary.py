"""Summary of the runs: each method over its seeds, compared with both baselines, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean

from forgetmap.errors import ConvergenceError
from forgetmap.lab.arms import StartFacts
from forgetmap.lab.methods import find_method
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import (
    Divergences,
    LabCategory,
    LabDifference,
    LabResult,
    LabRun,
    MethodResult,
)
from forgetmap.overlap import BridgeResult, ModelRow, fit_bridge
from forgetmap.results import Estimate
from forgetmap.stats import between_interval
from forgetmap.text import counted, listed, percent

BASELINE = "sft"
PARTS = ("near", "far")
SLACK = 1.1
"""A baseline of equal compute may use a tenth more than the method."""
OVER_SEEDS = "mean over seeds, t"
FEWEST_METHODS = 3
MATCHED = 0.01
"""Scores on the new examples that differ by less count as equal."""


def choose(runs: Sequence[LabRun]) -> LabRun:
    """Return the run that reached the target and forgot least, else the one that learned most."""
    reached = [run for run in runs if run.reached]
    if reached:
        return min(reached, key=mean_lost)
    return max(runs, key=lambda run: -1.0 if run.score is None else run.score)


def mean_lost(run: LabRun) -> float:
    """Return the mean of the shares forgotten near and far, of a run that did not diverge."""
    return fmean(lost for part in PARTS if (lost := run.lost(part)) is not None)


def summarise(
    recipe: LabRecipe,
    runs: Sequence[LabRun],
    *,
    seeds: Sequence[int],
    development_seed: int,
    start: StartFacts,
) -> LabResult:
    """Summarise the runs."""
    reported = [run for run in runs if run.seed in seeds]
    tried = [run for run in runs if run.seed == development_seed]
    names = list(dict.fromkeys(run.method for run in tried))
    best = {name: choose([run for run in tried if run.method == name]) for name in names}
    baselines = _Baselines(reported, best[BASELINE].rate)
    settled = {name: _at(reported, best[name]) for name in names}
    lost = [name for name in names if all(run.diverged for run in settled[name])]
    if BASELINE in lost:
        raise ConvergenceError(
            "plain fine-tuning diverged at every seed of its best learning rate",
            hint="use lower `rates` in the recipe.",
        )
    methods = [_method(name, settled[name], baselines) for name in names if name not in lost]
    methods = _mark_efficient(sorted(methods, key=_order))
    one = next(run for run in runs if not run.diverged)
    return LabResult(
        recipe=recipe.name,
        target=recipe.target,
        seeds=list(seeds),
        development_seed=development_seed,
        parameters=start.parameters,
        start_score=start.score,
        known_near=_total(one, "near", "known"),
        known_far=_total(one, "far", "known"),
        items_near=_total(one, "near", "items"),
        items_far=_total(one, "far", "items"),
        methods=methods,
        runs=list(runs),
        bridge=_bridge(runs),
        headline=_headline(methods, recipe.target),
        notices=[*_diverged(runs, lost), *_notices(methods, recipe.target)],
    )


def _diverged(runs: Sequence[LabRun], lost: Sequence[str]) -> list[str]:
    notices = []
    names = [run.folder for run in runs if run.diverged]
    if names:
        notices.append(
            f"{counted(len(names), 'run')} diverged and {'is' if len(names) == 1 else 'are'} "
            f"excluded from the means: {listed(names)}."
        )
    if lost:
        titles = [find_method(name).title for name in lost]
        notices.append(f"{listed(titles)}: diverged at every seed, and excluded.")
    return notices


def _order(method: MethodResult) -> tuple[bool, float]:
    """Sort key: methods that reached the target first, then by forgetting."""
    return method.reached < method.seeds, (method.lost_near.value or 0) + (
        method.lost_far.value or 0
    )


def _at(runs: Iterable[LabRun], setting: LabRun) -> list[LabRun]:
    """Return the runs of one method at one setting, by seed."""
    same = [
        run
        for run in runs
        if (run.method, run.strength, run.rate) == (setting.method, setting.strength, setting.rate)
    ]
    return sorted(same, key=lambda run: run.seed)


class _Baselines:
    """Plain fine-tuning at its best rate, and at the best rate within a given compute."""

    def __init__(self, runs: Sequence[LabRun], best_rate: float) -> None:
        plain = sorted((run for run in runs if run.method == BASELINE), key=lambda run: run.rate)
        self.by_rate = {
            rate: sorted(group, key=lambda run: run.seed)
            for rate, group in groupby(plain, key=lambda run: run.rate)
        }
        self.best = self.by_rate[best_rate]

    @property
    def compute(self) -> float:
        return _compute(self.best)

    def of_equal_compute(self, compute: float) -> list[LabRun]:
        """Return runs of the rate that forgot least within that compute, else of the cheapest."""
        whole = [runs for runs in self.by_rate.values() if not any(run.diverged for run in runs)]
        reached = [runs for runs in whole if all(run.reached for run in runs)]
        candidates = reached or whole or [self.best]
        affordable = [runs for runs in candidates if _compute(runs) <= SLACK * compute]
        if not affordable:
            return min(candidates, key=_compute)
        return min(affordable, key=lambda runs: fmean(map(mean_lost, _finite(runs))))


def _finite(runs: Sequence[LabRun]) -> list[LabRun]:
    """Return the runs that did not diverge; the others have no measurements."""
    return [run for run in runs if not run.diverged]


def _compute(runs: Sequence[LabRun]) -> float:
    """Return the mean compute of the runs that did not diverge."""
    return fmean(run.compute for run in _finite(runs))


def _method(name: str, runs: Sequence[LabRun], baselines: _Baselines) -> MethodResult:
    method = find_method(name)
    compute = _compute(runs)
    peaks = [(run.peak, run.peak_step) for run in runs if run.peak is not None]
    kl = _mean_kl(runs)
    return MethodResult(
        method=name,
        title=method.title,
        needs=method.needs,
        strength=runs[0].strength,
        strength_of=method.strength_of,
        rate=runs[0].rate,
        seeds=len(runs),
        reached=sum(run.reached for run in runs),
        diverged=sum(run.diverged for run in runs),
        score=over_seeds([run.score for run in runs]),
        lost_near=over_seeds([run.lost("near") for run in runs]),
        lost_far=over_seeds([run.lost("far") for run in runs]),
        compute=compute / baselines.compute,
        steps=fmean(run.steps for run in _finite(runs)),
        kl=kl,
        peak=fmean(peak for peak, _ in peaks if peak is not None) if peaks else None,
        peak_step=fmean(step for _, step in peaks if step is not None) if peaks else None,
        differences=[] if name == BASELINE else _differences(runs, compute, baselines),
        categories=_categories(runs),
        bound=min(1.0, math.sqrt(max(kl.old_reverse, 0.0) / 2)),  # rounding may give -1e-9
        is_efficient=False,
    )


def over_seeds(values: Sequence[float | None]) -> Estimate:
    """Return the mean with a t interval; seeds are a sample of all possible ones."""
    known = [value for value in values if value is not None]
    if not known:
        return Estimate.missing(OVER_SEEDS, "no item was known before")
    interval = between_interval(known)
    low, high = float(interval.low), float(interval.high)
    return Estimate(
        value=float(interval.value),
        low=None if math.isnan(low) else low,
        high=None if math.isnan(high) else high,
        method=OVER_SEEDS,
    )


def _differences(
    runs: Sequence[LabRun], compute: float, baselines: _Baselines
) -> list[LabDifference]:
    pairs = {
        "best learning rate": baselines.best,
        "equal compute": baselines.of_equal_compute(compute),
    }
    return [
        paired_difference(name, runs, plain, part)
        for name, plain in pairs.items()
        for part in PARTS
    ]


def paired_difference(
    name: str, runs: Sequence[LabRun], plain: Sequence[LabRun], part: str
) -> LabDifference:
    """Return the share forgotten by a method minus that of a baseline, paired by seed."""
    others = {run.seed: run.lost(part) for run in plain}
    pairs = [
        (own, other)
        for run in runs
        if (own := run.lost(part)) is not None and (other := others.get(run.seed)) is not None
    ]
    total = sum(other for _, other in pairs)
    return LabDifference(
        baseline=name,
        rate=plain[0].rate,
        part=part,
        ratio=sum(own for own, _ in pairs) / total if total else None,
        difference=over_seeds([own - other for own, other in pairs]),
    )


def _mean_kl(runs: Sequence[LabRun]) -> Divergences:
    """Return the mean KL of the runs that did not diverge."""
    known = [run.kl for run in runs if run.kl is not None]
    return Divergences(
        **{name: fmean(getattr(kl, name) for kl in known) for name in Divergences.model_fields}
    )


def _categories(runs: Sequence[LabRun]) -> list[LabCategory]:
    names = sorted({(cell.part, cell.category) for run in runs for cell in run.cells})
    categories = []
    for part, category in names:
        cells = [
            cell
            for run in runs
            for cell in run.cells
            if (cell.part, cell.category) == (part, category)
        ]
        categories.append(
            LabCategory(
                part=part,
                category=category,
                forgetting=over_seeds([cell.forgotten / cell.items for cell in cells]),
                backward_transfer=over_seeds([cell.gained / cell.items for cell in cells]),
            )
        )
    return categories


def _mark_efficient(methods: Sequence[MethodResult]) -> list[MethodResult]:
    """Mark methods that no other beats both in compute and in forgetting."""

    def cost(method: MethodResult) -> tuple[float, float]:
        return method.compute, (method.lost_near.value or 0) + (method.lost_far.value or 0)

    complete = [method for method in methods if method.reached == method.seeds]

    def is_beaten(method: MethodResult) -> bool:
        return any(
            all(theirs <= own for theirs, own in zip(cost(other), cost(method), strict=True))
            and cost(other) != cost(method)
            for other in complete
        )

    return [
        method.model_copy(update={"is_efficient": method in complete and not is_beaten(method)})
        for method in methods
    ]


def _bridge(runs: Sequence[LabRun]) -> BridgeResult | None:
    """Relate forgetting to each divergence, with each method left out in turn."""
    rows = [
        ModelRow(
            method=run.method,
            model=run.folder,
            forgetting=mean_lost(run),
            divergences={
                "kl_old": run.kl.old_forward,
                "reverse_kl_old": run.kl.old_reverse,
                "kl_new": run.kl.new_forward,
                "reverse_kl_new": run.kl.new_reverse,
            },
        )
        for run in runs
        if run.kl is not None
    ]
    return fit_bridge(rows) if len({row.method for row in rows}) >= FEWEST_METHODS else None


def _total(run: LabRun, part: str, field: str) -> int:
    return sum(getattr(cell, field) for cell in run.cells if cell.part == part)


def head_by_sign(difference: Estimate, above: str, below: str, unsure: str) -> str:
    """Return the beginning of a headline, by the side of 0 on which the whole interval lies."""
    if difference.low is not None and difference.low > 0:
        return above
    if difference.high is not None and difference.high < 0:
        return below
    return unsure


def _headline(methods: Sequence[MethodResult], target: float) -> str:
    plain = next(method for method in methods if method.method == BASELINE)
    best = methods[0]
    if plain.reached < plain.seeds:
        return (
            f"No comparison possible: plain fine-tuning reached {percent(target)} of the new "
            f"task at only {plain.reached} of {counted(plain.seeds, 'seed')}."
        )
    share = f"plain fine-tuning lost {_shares(plain)} at {percent(target)} of the new task"
    if best.method == BASELINE:
        return f"No method lost less than plain fine-tuning: {share}."
    return f"{best.title} lost {_shares(best)}; {share}."


def _shares(method: MethodResult) -> str:
    near, far = method.lost_near.value, method.lost_far.value
    return " and ".join(
        f"{percent(value)} {part}"
        for part, value in (("near", near), ("far", far))
        if value is not None
    )


def _notices(methods: Sequence[MethodResult], target: float) -> list[str]:
    notices = []
    short = [method.title for method in methods if method.reached < method.seeds]
    if short:
        notices.append(
            f"{', '.join(short)}: not every seed reached {percent(target)} of the new task, so "
            "the losses are not comparable."
        )
    scores = [
        method.score.value
        for method in methods
        if method.reached == method.seeds and method.score.value is not None
    ]
    if scores and max(scores) - min(scores) > MATCHED:
        notices.append(
            f"Scores on the new task differ by more than one point: {percent(min(scores))} to "
            f"{percent(max(scores))}."
        )
    return notices
