"""`lab repair`: restore a model that forgot, by replay of texts from the start model.

Training of the model that forgot continues with equal parts of new and old examples. The old ones
are questions that the start model generated and answered, without evaluation questions. Targeted
replay uses those that are similar to the forgotten items of the worst domains (`forgetmap export
replay`), random replay as many of all; as a control, training continues with the new examples only.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from forgetmap.comparison import compare
from forgetmap.errors import ConvergenceError
from forgetmap.evaluation import Suite, evaluate
from forgetmap.export import write_replay
from forgetmap.lab.arms import MODEL, RUN, Arm, Bench, finished_model, require_convergence
from forgetmap.lab.folder import kept_result, open_lab
from forgetmap.lab.measure import right_items, run_items
from forgetmap.lab.recipe import LabRecipe, Row
from forgetmap.lab.result import LabCell, LabRun, RepairResult, RepairRun, RepairSummary
from forgetmap.lab.seeds import DEVELOPMENT_SEED, reported_seeds
from forgetmap.lab.start_texts import make_pool
from forgetmap.lab.summary import BASELINE, head_by_sign, over_seeds
from forgetmap.lab.training import (
    ComputeCounter,
    load_start,
    share_right,
    supervised_trainer,
)
from forgetmap.results import Estimate
from forgetmap.text import listed, percent
from forgetmap.train import Replay, protect, read_examples

REPAIRS = ("targeted", "random", "none")
"""Kinds of replay; `none` uses the new examples only."""
DOMAINS = 3
WRITTEN = 4000
"""Number of questions that the start model generates."""
PER_ITEM = 3
SHARE = 0.5
"""Share of old rows in the training rows."""
STEPS = 150

OnRepair = Callable[[RepairRun], None]
"""Callback that receives each finished run."""


@dataclass(frozen=True)
class RepairPlan:
    """Parameters of a repair.

    Attributes:
        rows: number of old examples in a replay set.
        steps: number of training steps.
        rate: learning rate; by default the lowest of the recipe.
        domains: number of worst categories that are targeted.
        written: number of questions that the start model generates.
    """

    rows: int = 200
    steps: int = STEPS
    rate: float | None = None
    domains: int = DOMAINS
    written: int = WRITTEN


def repair_model(
    recipe: LabRecipe,
    out: Path,
    *,
    plan: RepairPlan | None = None,
    seeds: int = 3,
    on_run: OnRepair | None = None,
) -> RepairResult:
    """Fine-tune, then repair with targeted, random and no replay, on several seeds.

    Args:
        recipe: start model, data and settings.
        out: folder of all runs; finished ones are not repeated.
        plan: sizes and rates.
        seeds: number of models that are fine-tuned and repaired.
        on_run: called after each repair.

    Raises:
        UsageError: there are fewer than 2 seeds.
        EmptyInputError: the start model generated no usable question.
        ConvergenceError: a training diverged.
    """
    reported = reported_seeds(seeds)
    plan = plan or RepairPlan()
    rate = recipe.single_rate if plan.rate is None else plan.rate
    bench = Bench(recipe, out)
    runs = []
    with open_lab(recipe, out, (DEVELOPMENT_SEED, *reported)):
        forgotten = [
            _forgotten_model(bench, Arm(BASELINE, 0.0, rate, seed))
            for seed in (DEVELOPMENT_SEED, *reported)
        ]
        domains = worst_domains(forgotten[0].cells, plan.domains)
        for model in forgotten[1:]:
            repair = ModelRepair(bench, plan, rate, domains, model)
            for kind in REPAIRS:
                runs.append(repair.run(kind))
                if on_run is not None:
                    on_run(runs[-1])
    return summarise_repairs(recipe.name, domains, forgotten[1:], runs, plan.rows)


def _forgotten_model(bench: Bench, arm: Arm) -> LabRun:
    run = bench.run(arm)
    if run.diverged:
        raise ConvergenceError(
            f"{run.folder} diverged, so there is nothing to repair",
            hint="use lower `rates` in the recipe, or another --rate.",
        )
    return run


def worst_domains(cells: Sequence[LabCell], count: int) -> list[str]:
    """Return the categories that lost the largest share of the known items.

    They are chosen on the development seed, so that no repair is evaluated on the loss that chose
    it.
    """
    shares: dict[str, tuple[int, int]] = {}
    for cell in cells:
        forgotten, known = shares.get(cell.category, (0, 0))
        shares[cell.category] = forgotten + cell.forgotten, known + cell.known
    ranked = sorted(shares, key=lambda name: -shares[name][0] / max(shares[name][1], 1))
    return ranked[:count]


@dataclass(frozen=True)
class ModelRepair:
    """One model that forgot, and the means of repair."""

    bench: Bench
    plan: RepairPlan
    rate: float
    domains: Sequence[str]
    forgotten: LabRun

    @property
    def folder(self) -> Path:
        """Folder of the model that forgot."""
        return self.bench.out / self.forgotten.folder

    @property
    def pool_file(self) -> Path:
        """File of the texts of the start model; the same for all repairs."""
        return self.bench.out / f"pool-{self.plan.written}.jsonl"

    def run(self, kind: str) -> RepairRun:
        """Repair with one kind of replay, or read the result of an earlier attempt."""
        plan = self.plan
        name = f"repair-{kind}-{plan.rows}-{plan.steps}-{len(self.domains)}-{plan.written}"
        return kept_result(
            self.folder / f"{name}.json", RepairRun, lambda: self._train(kind, self.folder / name)
        )

    def _train(self, kind: str, folder: Path) -> RepairRun:
        shutil.rmtree(folder, ignore_errors=True)
        recipe, seed = self.bench.recipe, self.forgotten.seed
        model, tokenizer = load_start(self.folder / MODEL)
        examples = read_examples(recipe.new_rows(seed), tokenizer, eos=False)
        before = share_right(model, examples)
        counter = ComputeCounter(model)
        short = replace(recipe, max_steps=self.plan.steps)
        trainer = supervised_trainer(
            short, model, tokenizer, rate=self.rate, seed=seed, folder=folder
        )
        rows = self._rows(kind, folder)
        if rows:
            protect(trainer, Replay(rows, share=SHARE, eos=False, seed=seed))
        require_convergence(trainer, f"the repair of {self.forgotten.folder}")
        with counter.paused():
            model = finished_model(trainer.model)
            score = share_right(model, examples)
            run = run_items(recipe, model, tokenizer, folder / RUN)
        return RepairRun(
            kind=kind, seed=seed, rows=len(rows), score_before=before, score=score,
            steps=self.plan.steps, compute=counter.tokens, **self._recovered(run),
        )  # fmt: skip

    def _rows(self, kind: str, folder: Path) -> list[Row]:
        if kind == "none":
            return []
        pool = make_pool(self.bench.recipe, self.pool_file, self.plan.written)
        if kind == "targeted":
            return self._targeted_rows(folder)
        count = self.run("targeted").rows  # fewer than requested if few texts are similar
        return random.Random(self.forgotten.seed).sample(pool, count)  # noqa: S311

    def _targeted_rows(self, folder: Path) -> list[Row]:
        """Return texts of the pool that are similar to forgotten items of the targeted domains."""
        recipe = self.bench.recipe
        tasks = tuple(
            task
            for task in (*recipe.near.tasks, *recipe.far.tasks)
            if task.category in self.domains
        )
        suite = Suite(f"{recipe.name}-targeted", tasks)
        before, after = (
            self._ask(suite, start, folder / f"domains-{name}")
            for name, start in (("start", recipe.start), ("forgotten", self.folder / MODEL))
        )
        comparison = compare(before, after)
        if not comparison.result.total.n10:
            return []
        out = folder / "replay.jsonl"
        write_replay(
            comparison, out, pool=[self.pool_file],
            row_format="prompt-completion", per_item=PER_ITEM, limit=self.plan.rows, overwrite=True,
        )  # fmt: skip
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]

    def _ask(self, suite: Suite, model: str | Path, out: Path) -> Path:
        loaded, tokenizer = load_start(model)
        return evaluate(
            loaded, suite, out, tokenizer=tokenizer, settings=self.bench.recipe.settings
        )

    def _recovered(self, run: Path) -> dict[str, Any]:
        """Count forgotten and recovered items in targeted and other domains."""
        recipe = self.bench.recipe
        tasks = (*recipe.near.tasks, *recipe.far.tasks)
        targeted = {task.name for task in tasks if task.category in self.domains}
        paths = item_paths(self.bench.start_run, self.folder / RUN, run)
        counts: dict[str, Any] = {}
        for name, is_targeted in (("targeted", True), ("untouched", False)):
            known = [path for task, path in paths if (task in targeted) == is_targeted]
            lost = [path for path in known if path[1] == "0"]
            counts[f"forgotten_{name}"] = len(lost)
            counts[f"recovered_{name}"] = sum(path[2] == "1" for path in lost)
            counts[f"lost_{name}"] = fmean(path[2] == "0" for path in known) if known else None
        return counts


def item_paths(*runs: Path) -> list[tuple[str, str]]:
    """Return task and path of each item that the first run has right; a digit per run, 1 is right.

    An item without a score in one of the runs is left out.
    """
    first, *later = map(right_items, runs)
    return [
        (key[0], "1" + "".join("01"[side[key]] for side in later))
        for key, is_right in first.items()
        if is_right and all(key in side for side in later)
    ]


def summarise_repairs(
    recipe: str,
    domains: Sequence[str],
    forgotten: Sequence[LabRun],
    runs: Sequence[RepairRun],
    rows: int,
) -> RepairResult:
    """Summarise each kind of replay over seeds, and compare targeted with random replay."""
    summaries = [_summary(kind, [run for run in runs if run.kind == kind]) for kind in REPAIRS]
    targeted_less_random, untouched = (
        _difference(runs, part) for part in ("targeted", "untouched")
    )
    lost = over_seeds([run.lost() for run in forgotten])
    return RepairResult(
        recipe=recipe,
        seeds=[run.seed for run in forgotten],
        domains=list(domains),
        lost_before=lost,
        rows=rows,
        summaries=summaries,
        targeted_less_random=targeted_less_random,
        untouched_difference=untouched,
        runs=list(runs),
        headline=_headline(summaries, targeted_less_random, domains),
        notices=_notices(runs, rows),
    )


def _summary(kind: str, runs: Sequence[RepairRun]) -> RepairSummary:
    return RepairSummary(
        kind=kind,
        recovered_targeted=over_seeds([_share(run, "targeted") for run in runs]),
        recovered_untouched=over_seeds([_share(run, "untouched") for run in runs]),
        lost_targeted=over_seeds([run.lost_targeted for run in runs]),
        lost_untouched=over_seeds([run.lost_untouched for run in runs]),
        score=over_seeds([run.score for run in runs]),
        score_change=over_seeds([run.score - run.score_before for run in runs]),
    )


def _share(run: RepairRun, part: str) -> float | None:
    forgotten = getattr(run, f"forgotten_{part}")
    return getattr(run, f"recovered_{part}") / forgotten if forgotten else None


def _difference(runs: Sequence[RepairRun], part: str) -> Estimate:
    """Return the difference of targeted and random replay, paired by seed."""
    by_kind = {
        kind: {run.seed: _share(run, part) for run in runs if run.kind == kind} for kind in REPAIRS
    }
    pairs = [
        (share, by_kind["random"].get(seed)) for seed, share in sorted(by_kind["targeted"].items())
    ]
    return over_seeds(
        [one - other for one, other in pairs if one is not None and other is not None]
    )


def _headline(
    summaries: Sequence[RepairSummary], difference: Estimate, domains: Sequence[str]
) -> str:
    targeted, chance, _ = (summary.recovered_targeted.value for summary in summaries)
    if targeted is None or chance is None or difference.value is None:
        return "Nothing was forgotten in the targeted domains, so there is nothing to repair."
    figures = (
        f"targeted replay recovered {percent(targeted)} of what {listed(list(domains))} had "
        f"forgotten, random replay of the same size {percent(chance)}"
    )
    head = head_by_sign(
        difference, "Targeting helps", "Targeting does harm", "Cannot tell whether targeting helps"
    )
    return f"{head}: {figures}."


def _range(values: Collection[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _notices(runs: Sequence[RepairRun], rows: int) -> list[str]:
    notices = []
    sizes = {run.rows for run in runs if run.kind != "none"}
    if min(sizes) < rows:
        notices.append(
            f"Replay sets have {_range(sizes)} rows instead of {rows}, because fewer texts were "
            "similar to the forgotten items. Random replay has the same number for each seed."
        )
    worst = min(run.score - run.score_before for run in runs)
    if worst < -0.01:
        notices.append(f"One repair cost {percent(-worst)} of the new task.")
    return notices
