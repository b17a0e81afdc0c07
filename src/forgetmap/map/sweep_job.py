"""Build merges, evaluate them, compare them with both parents, and choose the best."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import (
    Settings,
    Step,
    Suite,
    find_style,
    load_suite,
    model_labels,
    open_model,
    refuse_own_settings,
    run_model,
    run_names,
)
from forgetmap.merge import WeightDrift, drift_between
from forgetmap.records import ModelInfo, is_run_folder, read_run, writable
from forgetmap.report import write_sweep
from forgetmap.sweep import (
    DEFAULT_BUDGET,
    DEFAULT_DENSITY,
    Merge,
    MergedPath,
    Sweep,
    Weights,
    compare_runs,
    merges_of,
    recipe_of,
)

if TYPE_CHECKING:
    from forgetmap.merge import Checkpoint

MARK = "sweep.txt"
"""File that identifies the merge in a folder of weights."""
ALIKE = "a sweep evaluates all models with the same settings"
Report = Callable[[str, Step], None]
"""Called with the name of a run and its progress."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a sweep.

    Attributes:
        base: the model at weight 0.
        tuned: the models at weight 1.
        merges: merges with each tuned model.
        suite: the suite.
        targets: tasks that the tuned models were trained for.
        density: share of changes that sparse methods keep.
        seed: seed of random methods.
        keep_weights: keep the weights of evaluated merges.
    """

    base: str
    tuned: tuple[str, ...]
    merges: tuple[Merge, ...]
    suite: Suite
    targets: tuple[str, ...]
    density: float
    seed: int
    keep_weights: bool

    @property
    def folders(self) -> list[str]:
        """Names of the run folders of the parents."""
        return run_names([self.base, *self.tuned])

    @property
    def labels(self) -> list[str]:
        """Display names of the parents."""
        return model_labels([self.base, *self.tuned])


def merge_sweep(  # noqa: PLR0913
    base: str | Path,
    tuned: str | Path,
    /,
    *more: str | Path,
    suite: str | Path | Suite,
    out: str | Path,
    methods: Sequence[str] = ("linear",),
    weights: Weights = "0:1:0.1",
    target: Sequence[str] = (),
    target_suite: str | Path | Suite | None = None,
    budget: float = DEFAULT_BUDGET,
    density: float = DEFAULT_DENSITY,
    seed: int = 0,
    keep_weights: bool = False,
    drift: bool = True,
    settings: Settings | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **loading: Any,
) -> Sweep:
    """Build and evaluate merges of two models, and find the best one.

    Existing results are kept. All models are evaluated on the same items with the same settings.

    Args:
        base: the model before: a folder with safetensors, a hub id, or `BASE+ADAPTER`.
        tuned: the model after.
        more: further models tuned from base, to test whether merging helps more where the weights
            moved less.
        suite: name of a suite, a file of items, a hub data set, or a `Suite`.
        out: folder for `runs/`, `compared/`, `sweep.json`, `report.md` and `report.html`.
        methods: merge methods, such as `linear` and `slerp`.
        weights: shares of the tuned model: `START:STOP:STEP`, or numbers; or one such text per
            method.
        target: tasks that tuned was trained for, with wildcards: gains are counted there,
            forgetting elsewhere; by default both everywhere.
        target_suite: items of such tasks that are not in `suite`.
        budget: maximum forgetting of the best merge, as a share of what tuned forgot.
        density: share of changes that sparse methods keep.
        seed: random seed of methods that draw.
        keep_weights: keep every merge in `weights/`.
        drift: measure the weight difference.
        settings: settings of the evaluation of all models.
        overwrite: start again even if there is an earlier result.
        report: called after every answer.
        loading: dtype, device and so on, as for `open_model`.

    Example:
        >>> import forgetmap as fm
        >>> fm.merge_sweep("base", "tuned", suite="basics", out="sweep")  # doctest: +SKIP
    """
    check_asking((base, tuned, *more), settings)
    chosen, targets = joined_suite(suite, target, target_suite)
    plan = Plan(
        base=str(base),
        tuned=tuple(map(str, (tuned, *more))),
        merges=tuple(merges_of(methods, weights)),
        suite=chosen,
        targets=targets,
        density=_share("density", density),
        seed=seed,
        keep_weights=keep_weights,
    )
    _share("budget", budget)
    asking = _Asking(Path(out), chosen, settings, overwrite, report, loading)
    return _run(plan, asking, budget=budget, drift=drift)


def check_asking(models: Sequence[str | Path], settings: Settings | None) -> None:
    """Refuse settings that would evaluate the models of a sweep differently, before any is loaded.

    Raises:
        UsageError: a setting applies to one model only, or the prompt style of all is unknown.
    """
    refuse_own_settings(models, ALIKE)
    find_style(settings or Settings(), "a model of the sweep", alike=True)


def _run(plan: Plan, asking: _Asking, *, budget: float, drift: bool) -> Sweep:
    out = asking.out
    opened = _checked(plan)
    models = (plan.base, *plan.tuned)
    for number, run in enumerate(zip(plan.folders, plan.labels, strict=True)):
        asking.ask(models[number], run, salt=str(number + 1))
    base, *tuned = plan.folders
    paths, drifts = [], []
    for number, name in enumerate(tuned):
        runs = {}
        for merge in plan.merges:
            reused = {"base": base, "tuned": name}.get(merge.parent or "")
            runs[merge] = reused or _evaluate_merge(plan, number, merge, asking)
        paths.append(MergedPath(plan.tuned[number], name, runs))
        if drift:
            file = out / "drift" / f"{name}.json"
            drifts.append(_drift(file, opened[0], opened[number + 1]))
    sweep = compare_runs(
        out / "runs", (plan.base, base), paths,
        suite=plan.suite.name, targets=plan.targets, budget=budget, drifts=drifts,
    )  # fmt: skip
    write_sweep(sweep, out)
    return sweep


def _checked(plan: Plan) -> list[Checkpoint]:
    """Open the parents; refuse what cannot be merged before anything is evaluated."""
    from forgetmap.merge import (
        Checkpoint,
        prepare,  # torch
    )

    base, *tuned = opened = [Checkpoint.open(model) for model in (plan.base, *plan.tuned)]
    for model, checkpoint in zip(plan.tuned, tuned, strict=True):
        models = {plan.base: base, model: checkpoint}
        for merge in {merge.method: merge for merge in plan.merges}.values():
            recipe = recipe_of(merge, plan.base, model, density=plan.density, seed=plan.seed)
            prepare(recipe, models)
    return opened


def joined_suite(
    suite: str | Path | Suite, target: Sequence[str], extra: str | Path | Suite | None
) -> tuple[Suite, tuple[str, ...]]:
    """Return the joined suite, and the tasks in it that tuned was trained for."""
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    names = [task.name for task in chosen.tasks]
    targets = [name for name in names if any(fnmatchcase(name, glob) for glob in target)]
    for pattern in target:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"no task matches {pattern!r}",
                hint=f"the tasks are {', '.join(sorted(names)[:8])}, ...",
            )
    if extra is None:
        return chosen, tuple(targets)
    added = extra if isinstance(extra, Suite) else load_suite(extra)
    doubled = sorted({task.name for task in added.tasks} & set(names))
    if doubled:
        raise UsageError(f"{doubled[0]!r} is in both suites", hint="remove --target-suite.")
    targets += [task.name for task in added.tasks]
    return replace(chosen, tasks=(*chosen.tasks, *added.tasks)), tuple(targets)


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {value:g}", hint="give a share between 0 and 1.")
    return value


@dataclass(frozen=True, slots=True)
class _Asking:
    """Settings of the evaluation of every model of the sweep."""

    out: Path
    suite: Suite
    settings: Settings | None
    overwrite: bool
    report: Report | None
    loading: dict[str, Any]

    def ask(
        self, model: str, run: tuple[str, str], *, salt: str, recipe: tuple[str, str] | None = None
    ) -> None:
        """Evaluate a model; a merge is identified by its recipe, not by files that will be deleted.

        Args:
            model: path or hub id.
            run: its folder, and its display name.
            salt: separates the random numbers of this run from those of other models.
            recipe: name and revision of a merge.
        """
        folder, label = run
        backend, identity = open_model(model, name=label, salt=salt, **self.loading)
        if recipe is not None:
            info = ModelInfo(name=recipe[0], revision=recipe[1])
            identity = replace(identity, info=info, stamp=recipe[1])
        on_progress = None if self.report is None else partial(self.report, label)
        run_model(
            backend,
            self.suite,
            self.out / "runs" / folder,
            identity,
            self.settings,
            overwrite=self.overwrite,
            on_progress=on_progress,
        )
        del backend
        gc.collect()


def _evaluate_merge(plan: Plan, number: int, merge: Merge, asking: _Asking) -> str:
    """Return the run folder of a merge, which is evaluated unless it exists."""
    from forgetmap.merge import apply_recipe  # torch

    out, parent = asking.out, plan.folders[number + 1]
    name = f"{parent}-{merge.name}"
    recipe = recipe_of(merge, plan.base, plan.tuned[number], density=plan.density, seed=plan.seed)
    mark = _mark(out, [plan.folders[0], parent], recipe.as_yaml())
    weights = out / "weights" / name
    done = not asking.overwrite and _is_done(out / "runs" / name, mark)
    if (not done or plan.keep_weights) and _mark_of(weights) != mark:
        apply_recipe(recipe, weights, overwrite=True)
        (weights / MARK).write_text(mark, encoding="utf-8")
    if not done:
        label = f"{merge.method} {merge.weight:g}"
        model = f"{label} of {plan.base} and {plan.tuned[number]}"
        run = (name, f"{label} of {plan.labels[number + 1]}")
        asking.ask(str(weights), run, salt=name, recipe=(model, mark))
    if not plan.keep_weights:
        shutil.rmtree(weights, ignore_errors=True)
    return name


def _mark(out: Path, parents: Sequence[str], recipe: str) -> str:
    """Return a hash of the parents, their items and settings, and the recipe."""
    fingerprints = [read_run(out / "runs" / name).info.fingerprint for name in parents]
    return hashlib.sha256(json.dumps([fingerprints, recipe]).encode()).hexdigest()[:16]


def _mark_of(weights: Path) -> str | None:
    """Return the mark of a folder of weights; an interrupted merge has none."""
    file = weights / MARK
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _is_done(folder: Path, mark: str) -> bool:
    if not is_run_folder(folder):
        return False
    if read_run(folder).info.model.revision == mark:
        return True
    raise OutputError(
        f"{folder} belongs to another merge, suite or setting",
        hint="choose another --out, or add --overwrite.",
    )


def _drift(path: Path, base: Checkpoint, tuned: Checkpoint) -> WeightDrift:
    """Measure the weight difference, or read it if it was measured for the same files."""
    stamps = [base.stamp, tuned.stamp]
    if path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.get("stamps") == stamps:
            return WeightDrift.model_validate(known["drift"])
    drift = drift_between(base, tuned)
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"stamps": stamps, "drift": drift.model_dump()})
        path.write_text(text, encoding="utf-8")
    return drift
