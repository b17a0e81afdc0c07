"""Evaluation of one model or merge of a study, resumed after an interruption."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from forgetmap.errors import ForgetmapError, OutputError
from forgetmap.evaluation import Step, Suite, load_suite, open_model, run_model
from forgetmap.records import writable
from forgetmap.study.declaration import Study
from forgetmap.study.plan import PlannedRun, beside, model_source, require_source
from forgetmap.study.run_files import FinishedRun, RunEffort, run_folder, write_finished
from forgetmap.sweep import DEFAULT_DENSITY, Merge, recipe_of

OnStudyProgress = Callable[[str, Step], None]
"""Callback that receives the id of a model and the progress of its run."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the evaluation of all models.

    Attributes:
        data_root: a folder with local copies of hub data sets.
        keep_weights: keep merges in `weights/` after their evaluation.
        loading: dtype, device and so on, as for `open_model`.
        threads: CPU threads of each process; None is an equal share.
    """

    data_root: Path | None
    keep_weights: bool
    loading: Mapping[str, Any]
    threads: int | None = None


def evaluate_plan(
    study: Study,
    plan: PlannedRun,
    out: Path,
    options: RunOptions,
    on_progress: OnStudyProgress | None = None,
) -> RunEffort:
    """Evaluate one model, and record that it is done.

    Raises:
        ForgetmapError: it cannot be evaluated.
    """
    require_source(study, plan)
    name, stamp = beside(study, study.suite or ""), plan.stamp.rpartition("|")[2]
    suite = _load_suite(name, plan.limit, options.data_root, stamp)
    meter = _EffortMeter(plan.id, on_progress)
    try:
        source = plan.source or _make_merge(study, plan, out)
        # Two models must not share random numbers, or they would agree by chance.
        backend, identity = open_model(source, name=plan.id, salt=plan.id, **options.loading)
        if plan.merge is not None:
            # A merge that is built again is the same one, whatever the time of its files.
            identity = replace(identity, stamp=f"{plan.mark}|{plan.stamp}")
        run_model(backend, suite, plan.folder, identity, plan.settings, on_progress=meter.count)
    except ForgetmapError as error:
        _remove_weights(plan, out, options)
        raise _explain(error, plan) from None
    del backend
    gc.collect()
    write_finished(out, plan.id, FinishedRun(plan.mark, plan.stamp, meter.effort))
    _remove_weights(plan, out, options)
    return meter.effort


class _EffortMeter:
    """Measures the cost of this attempt, and passes on its progress."""

    def __init__(self, name: str, on_progress: OnStudyProgress | None) -> None:
        self._name = name
        self._on_progress = on_progress
        self._before = 0
        self.effort = RunEffort()

    def count(self, step: Step) -> None:
        if not self.effort.answers:
            self._before = step.done - 1
        self.effort = RunEffort(step.done - self._before, step.tokens, step.written, step.seconds)
        if self._on_progress is not None:
            self._on_progress(self._name, step)


@lru_cache(maxsize=4)
def _load_suite(name: str, limit: int | None, root: Path | None, stamp: str) -> Suite:
    """Load a suite once for all models of a process, and again if its file changes."""
    del stamp
    return load_suite(name, limit=limit, root=root)


def _explain(error: ForgetmapError, plan: PlannedRun) -> ForgetmapError:
    """Add a hint to the error about a run of another model or setting, which is not replaced."""
    journal = plan.folder.parent / f".{plan.folder.name}.journal.jsonl"
    path = error.occupied if isinstance(error, OutputError) else None
    if path not in (plan.folder, journal):
        return error
    hint = f"remove {path} to evaluate {plan.id} again, or choose another --out."
    return OutputError(error.message, hint=hint, occupied=path)


def _make_merge(study: Study, plan: PlannedRun, out: Path) -> str:
    from forgetmap.merge import apply_recipe, read_recipe  # torch

    assert plan.merge is not None  # noqa: S101  # only merges have no source
    merge, weights = plan.merge, _weights(out, plan.id)
    kept, content = weights.parent / f".{weights.name}.merge", f"{plan.mark}|{plan.stamp}"
    if weights.is_dir() and kept.is_file() and kept.read_text(encoding="utf-8") == content:
        return str(weights)
    if merge.recipe is not None:
        recipe = read_recipe(beside(study, merge.recipe))
    else:
        earlier, later = (model_source(study, study.model(name)) or name for name in merge.models)
        path = Merge(merge.method or "", merge.weight or 0.0)
        recipe = recipe_of(path, earlier, later, density=DEFAULT_DENSITY, seed=study.protocol.seed)
    apply_recipe(recipe, weights, overwrite=True)
    with writable(kept):
        kept.write_text(content, encoding="utf-8")
    return str(weights)


def _remove_weights(plan: PlannedRun, out: Path, options: RunOptions) -> None:
    if plan.merge is None or options.keep_weights:
        return
    weights = _weights(out, plan.id)
    (weights.parent / f".{weights.name}.merge").unlink(missing_ok=True)
    shutil.rmtree(weights, ignore_errors=True)


def _weights(out: Path, name: str) -> Path:
    return out / "weights" / run_folder(out, name).name
