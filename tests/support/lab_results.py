"""Invented results of the lab and histories of trainings, for tests of reports."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean, stdev

from forgetmap.lab import (
    Divergences,
    LabCategory,
    LabCell,
    LabDifference,
    LabResult,
    LabRun,
    MergeDriftResult,
    MergeLevel,
    MergePoint,
    MethodResult,
    RepairResult,
    RepairRun,
    RepairSummary,
)
from forgetmap.overlap import ModelRow, fit_bridge
from forgetmap.results import Estimate
from forgetmap.sweep import SweepResult
from forgetmap.train import WatchAlarm, WatchGap, WatchGroup, WatchHistory, WatchLook, WatchRule

SNAPSHOTS = Path(__file__).parent.parent / "snapshots" / "sweep"
SEEDS = [1, 2, 3]
RATES = [1e-4, 2e-4, 4e-4, 8e-4]
T = 4.303
"""Quantile of t for a 95 % interval of three seeds."""
CATEGORIES = {
    "near": ["Common Sense", "Culture", "Knowledge", "Safety", "Science/Tech"],
    "far": ["Language", "Liberal Arts", "Logic", "Math"],
}
METHODS = {
    # name: title, needs, strengths, name of the strength, share lost, compute
    "sft": ("plain fine-tuning", "nothing", (0.0,), "", 0.24, 1.0),
    "forward-kl": ("forward KL to the start", "prompts", (1.0, 4.0), "weight", 0.08, 3.4),
    "reverse-kl": ("reverse KL to the start", "prompts", (1.0, 4.0), "weight", 0.10, 3.5),
    "margin": ("1->0 penalty", "prompts", (1.0, 4.0), "weight", 0.14, 3.6),
    "margin-kl": ("1->0 penalty with KL", "prompts", (1.0, 4.0), "weight", 0.075, 3.9),
    "replay": ("replay", "examples", (0.25, 0.5), "share", 0.13, 1.3),
    "synthetic-replay": ("synthetic replay", "nothing", (0.25, 0.5), "share", 0.12, 1.4),
    "l2sp": ("L2-SP", "nothing", (0.01, 0.1), "weight", 0.15, 1.35),
    "ewc": ("EWC", "prompts", (10.0, 100.0), "weight", 0.19, 1.1),
    "lora": ("LoRA", "nothing", (2.0, 8.0, 32.0), "rank", 0.17, 2.2),
    "ema": ("average of weights", "nothing", (0.9, 0.98), "decay", 0.21, 1.2),
    "projection": ("gradient projection", "prompts", (0.0,), "", 0.18, 2.9),
}


def over(values: list[float]) -> Estimate:
    """Return mean and t interval of three seeds; no interval for a single seed."""
    middle = fmean(values)
    if len(values) < 2:
        return Estimate(value=middle, method="mean over seeds, t")
    half = T * stdev(values) / math.sqrt(len(values))
    return Estimate(
        value=middle, low=middle - half, high=middle + half, method="mean over seeds, t"
    )


def lab_result(names: list[str] | None = None) -> LabResult:
    """Return a comparison of methods; the first seed chose the settings."""
    draw = random.Random(4)
    names = names or list(METHODS)
    runs = [run for name in names for run in _runs(name, draw)]
    chosen = {name: METHODS[name][2][-1] for name in names}
    best = {name: [r for r in runs if r.method == name and r.seed and r.strength == chosen[name]
                   and r.rate == RATES[1]] for name in names}  # fmt: skip
    methods = [_method(name, best[name], best["sft"]) for name in names]
    methods.sort(key=lambda method: method.lost_near.value or 0)
    rows = [
        ModelRow(method=run.method, model=run.folder, forgetting=_lost(run),
                 divergences={"kl_old": run.kl.old_forward, "reverse_kl_old": run.kl.old_reverse,
                              "kl_new": run.kl.new_forward, "reverse_kl_new": run.kl.new_reverse})
        for run in runs
        if run.kl is not None
    ]  # fmt: skip
    least, plain = methods[0], next(m for m in methods if m.method == "sft")
    return LabResult(
        recipe="tiny", target=0.95, seeds=SEEDS, development_seed=0, parameters=651_520,
        start_score=0.041, known_near=955, known_far=1388, items_near=1124, items_far=1587,
        methods=methods, runs=runs, bridge=fit_bridge(rows) if len(names) > 2 else None,
        headline=f"{least.title} lost {least.lost_near.value:.1%} near and "
        f"{least.lost_far.value:.1%} far; plain fine-tuning lost {plain.lost_near.value:.1%} near "
        f"and {plain.lost_far.value:.1%} far at 95.0% of the new task.",
        notices=["EWC: not every seed reached 95.0%, so the losses are not comparable."],
    )  # fmt: skip


def _lost(run: LabRun) -> float:
    return fmean(run.lost(part) or 0 for part in CATEGORIES)


def _runs(name: str, draw: random.Random) -> list[LabRun]:
    strengths = METHODS[name][2]
    tried = [(0, s, rate) for s in strengths for rate in RATES]
    repeated = [(seed, strengths[-1], RATES[1]) for seed in SEEDS]
    if name == "sft":
        repeated = [(seed, 0.0, rate) for seed in SEEDS for rate in RATES]
    return [_run(name, *setting, draw) for setting in (*tried, *repeated)]


def _run(name: str, seed: int, strength: float, rate: float, draw: random.Random) -> LabRun:
    *_, lost, compute = METHODS[name]
    weak = 1.25 if strength != METHODS[name][2][-1] else 1.0
    share = min(0.9, lost * weak * (rate / RATES[1]) ** 0.35 * draw.uniform(0.93, 1.07))
    reached = rate > RATES[0] or name in ("sft", "replay")
    cells = [
        _cell(part, category, share * (1.15 if part == "near" else 0.9) * draw.uniform(0.6, 1.4))
        for part, categories in CATEGORIES.items()
        for category in categories
    ]
    kl = share * 6
    return LabRun(
        method=name, strength=strength, rate=rate, seed=seed,
        score=draw.uniform(0.95, 0.958) if reached else draw.uniform(0.55, 0.94),
        reached=reached, steps=int(200 * RATES[1] / rate), compute=int(1e6 * compute),
        seconds=9.0, cells=cells,
        kl=Divergences(old_forward=kl * draw.uniform(0.5, 1.8), old_reverse=kl,
                       new_forward=kl * draw.uniform(0.3, 3), new_reverse=kl * 2),
        peak=min(1.0, share * 1.6), peak_step=40, folder=f"{name}/{strength}-{rate}-{seed}",
    )  # fmt: skip


def _cell(part: str, category: str, share: float) -> LabCell:
    known = 190 if part == "near" else 340
    forgotten = round(known * min(share, 1))
    return LabCell(part=part, category=category, items=known + 40, known=known,
                   forgotten=forgotten, gained=round(40 * share / 3))  # fmt: skip


def _method(name: str, runs: list[LabRun], plain: list[LabRun]) -> MethodResult:
    title, needs, strengths, strength_of, _, compute = METHODS[name]
    kl = Divergences(**{field: fmean(getattr(run.kl, field) for run in runs)
                        for field in Divergences.model_fields})  # fmt: skip
    differences = [
        _difference(baseline, part, runs, plain, cheaper)
        for baseline, cheaper in (("best learning rate", 1.0), ("equal compute", 0.85))
        for part in CATEGORIES
    ]
    return MethodResult(
        method=name, title=title, needs=needs, strength=strengths[-1], strength_of=strength_of,
        rate=RATES[1], seeds=3, reached=2 if name == "ewc" else 3,
        score=over([run.score or 0 for run in runs]),
        lost_near=over([run.lost("near") or 0 for run in runs]),
        lost_far=over([run.lost("far") or 0 for run in runs]),
        compute=compute, steps=200, kl=kl, peak=fmean(run.peak or 0 for run in runs),
        peak_step=40, differences=[] if name == "sft" else differences,
        categories=_categories(runs), bound=min(1, math.sqrt(kl.old_reverse / 2)),
        is_efficient=name in ("sft", "replay", "synthetic-replay", "forward-kl", "margin-kl"),
    )  # fmt: skip


def _difference(
    baseline: str, part: str, runs: list[LabRun], plain: list[LabRun], cheaper: float
) -> LabDifference:
    pairs = [(a.lost(part) or 0, (b.lost(part) or 0) * cheaper)
             for a, b in zip(runs, plain, strict=True)]  # fmt: skip
    return LabDifference(
        baseline=baseline, rate=RATES[1], part=part,
        ratio=sum(a for a, _ in pairs) / sum(b for _, b in pairs),
        difference=over([a - b for a, b in pairs]),
    )  # fmt: skip


def _categories(runs: list[LabRun]) -> list[LabCategory]:
    places = range(len(runs[0].cells))
    return [
        LabCategory(
            part=runs[0].cells[k].part, category=runs[0].cells[k].category,
            forgetting=over([run.cells[k].forgotten / run.cells[k].items for run in runs]),
            backward_transfer=over([run.cells[k].gained / run.cells[k].items for run in runs]),
        )
        for k in places
    ]  # fmt: skip


def repair_result() -> RepairResult:
    """Return a result in which targeted replay recovers more in its target domains."""
    draw = random.Random(5)
    shares = {"targeted": (0.78, 0.31), "random": (0.52, 0.45), "none": (0.08, 0.07)}
    runs = [
        _repair_run(kind, seed, targeted + draw.uniform(-0.05, 0.05),
                    untouched + draw.uniform(-0.05, 0.05))
        for kind, (targeted, untouched) in shares.items()
        for seed in SEEDS
    ]  # fmt: skip
    summaries = [_repair_summary(kind, [r for r in runs if r.kind == kind]) for kind in shares]
    return RepairResult(
        recipe="tiny", seeds=SEEDS, domains=["Knowledge", "Culture"],
        lost_before=over([0.22, 0.24, 0.21]), rows=200, summaries=summaries,
        targeted_less_random=Estimate(value=0.26, low=0.11, high=0.41, method="t"),
        untouched_difference=Estimate(value=-0.14, low=-0.25, high=-0.02, method="t"),
        runs=runs,
        headline="Targeted replay recovered 78.0% of what was forgotten in Knowledge and Culture, "
        "random replay of the same size 52.0%.",
        notices=[],
    )  # fmt: skip


def _repair_run(kind: str, seed: int, targeted: float, untouched: float) -> RepairRun:
    return RepairRun(
        kind=kind, seed=seed, rows=0 if kind == "none" else 200, score_before=0.954,
        score=0.954 - 0.002 * seed * (kind != "none"), steps=100, compute=10**6,
        forgotten_targeted=120, recovered_targeted=round(120 * targeted),
        forgotten_untouched=200, recovered_untouched=round(200 * untouched),
        lost_targeted=0.3 * (1 - targeted), lost_untouched=0.2 * (1 - untouched),
    )  # fmt: skip


def _repair_summary(kind: str, runs: list[RepairRun]) -> RepairSummary:
    return RepairSummary(
        kind=kind,
        recovered_targeted=over([run.recovered_targeted / 120 for run in runs]),
        recovered_untouched=over([run.recovered_untouched / 200 for run in runs]),
        lost_targeted=over([run.lost_targeted or 0.0 for run in runs]),
        lost_untouched=over([run.lost_untouched or 0.0 for run in runs]),
        score=over([run.score or 0 for run in runs]),
        score_change=over([run.score - run.score_before for run in runs]),
    )


def merge_drift_result() -> MergeDriftResult:
    """Return a result in which merges recover more if drift is small."""
    draw = random.Random(6)
    shares = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    levels = [_level(share, seed, draw) for share in shares for seed in SEEDS]
    small = over([le.recovered for le in levels[:9] if le.recovered is not None])
    large = over([le.recovered for le in levels[9:] if le.recovered is not None])
    return MergeDriftResult(
        recipe="tiny", seeds=SEEDS, levels=levels, small=small, large=large,
        trend=Estimate(value=-0.8, low=-0.95, high=-0.4, method="Spearman"),
        difference=Estimate(value=0.37, low=0.15, high=0.6, method="t"),
        headline=f"Merging compensates more when drift is small: it undoes {small.value:.1%} of "
        f"the loss there, and {large.value:.1%} where drift is large.",
        notices=["At 5.0% of the new examples one seed lost nothing: there was nothing to undo."],
    )  # fmt: skip


def _level(share: float, seed: int, draw: random.Random) -> MergeLevel:
    lost = 0.28 * share**0.5 * draw.uniform(0.9, 1.1)
    recovered = min(1.0, 0.85 - 0.55 * share + draw.uniform(-0.08, 0.08))
    points = [
        MergePoint(weight=k / 10, lost=lost * (k / 10) ** 2, halves=(lost * (k / 10) ** 2,) * 2,
                   score=0.04 + 0.91 * share * (1 - (1 - k / 10) ** 2.5))
        for k in range(11)
    ]  # fmt: skip
    nothing = share == 0.05 and seed == 1
    return MergeLevel(
        share=share, seed=seed, distance=0.02 + 0.1 * share * draw.uniform(0.9, 1.1),
        kl_old_reverse=lost * 5, lost=0.0 if nothing else lost, score=points[-1].score,
        points=points, recovered=None if nothing else recovered,
        weight=None if nothing else 0.7,
    )  # fmt: skip


def sweep_result() -> SweepResult:
    """Return a sweep of merges, from a snapshot."""
    return SweepResult.model_validate_json((SNAPSHOTS / "target.json").read_text("utf-8"))


def watch_history(*, most: float = 0.32, alarm: bool = True) -> WatchHistory:
    """Return a history in which forgetting peaks early and partly reverses; one probe fails.

    Args:
        most: share forgotten at the peak.
        alarm: whether there was an alarm.
    """
    steps = (0, 10, 20, 30, 45, 60, 80, 120, 160, 200)
    looks = [_look(number, step, most) for number, step in enumerate(steps)]
    groups = ["total", "Science/Tech", "Safety"]
    alarms = [WatchAlarm(step=30, look=3, groups=groups, action="logged")] if alarm else []
    return WatchHistory(
        suite="tiny-old", asked="a1", tokens="b2",
        rule=WatchRule(cost=0.05, every=None, margin=0.1, noise_floor=0.01, alpha=0.05,
                       on_alarm="log", keep_best=False),
        items=400, items_of_suite=1124, max_steps=200, looks=looks, alarms=alarms,
        gaps=[WatchGap(step=100, kind="probe", message="the probe failed: out of memory"),
              WatchGap(step=160, kind="logger", message="TensorBoard did not answer")],
    )  # fmt: skip


def _look(number: int, step: int, most: float) -> WatchLook:
    names = CATEGORIES["near"]
    groups = {name: _group(step, most * (0.5 + 0.25 * k), 80) for k, name in enumerate(names)}
    return WatchLook(
        look=number, step=step, epoch=step / 100, learning_rate=4e-4, loss=2 - step / 150,
        run=f"step-{step:06d}", total=_group(step, most, 400), categories=groups,
        probe_seconds=0.6, probed_seconds=0.6 * (number + 1), trained_seconds=2.0 + step,
    )  # fmt: skip


def _group(step: int, most: float, items: int) -> WatchGroup:
    forgotten = min(
        0.8, most * (1 - math.exp(-step / 12)) * (0.55 + 0.45 * math.exp(-step / 70)) * 1.3
    )
    least = max(0.0, forgotten - 1.2 / math.sqrt(items) - 0.01)
    gained = 0.03 * (1 - math.exp(-step / 60))
    return WatchGroup(
        items=items, missing=0, accuracy=0.85 - forgotten + gained, forgotten=forgotten,
        lost_at_least=least if step else 0.0, gained=gained, kl_to_start=forgotten * 4,
        kl_from_start=forgotten * 3, alarm=step >= 30 and least > 0.1,
    )  # fmt: skip
