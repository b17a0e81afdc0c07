"""Every model of a study evaluated once, whatever the number of its pairs."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from forgetmap.errors import ForgetmapError, UsageError
from forgetmap.evaluation import Settings, Step, Suite, load_suite, open_model, run_model
from forgetmap.records import is_run_folder, writable
from forgetmap.study.compare import run_folder
from forgetmap.study.declaration import AskedAs, Study, StudyMerge, StudyModel
from forgetmap.sweep import DEFAULT_DENSITY, Merge, recipe_of

RunState = Literal["logs", "done", "missing"]
"""Logs are taken as they are; done by an earlier call; still to be evaluated."""
OnStudyProgress = Callable[[str, Step], None]
"""Called with the id of the model and how far its run is."""
_BYTES_PER_PARAMETER = 2


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One model or merge, and how it is asked.

    Attributes:
        id: as the study calls it.
        source: folder, hub id or address; None of a merge, which is made first, and of logs.
        merge: the merge, if it is one.
        settings: how it is asked.
        limit: most items of a task.
        folder: where its run is, or will be.
        state: whether it is there.
        weight_bytes: of its weights in two bytes each, where its size is known.
    """

    id: str
    source: str | None
    merge: StudyMerge | None
    settings: Settings
    limit: int | None
    folder: Path
    state: RunState
    weight_bytes: float | None


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """What a call did.

    Attributes:
        done: models that were evaluated, or were already.
        failed: model -> why it could not be; the others went on.
    """

    done: tuple[str, ...]
    failed: dict[str, ForgetmapError]


def plan_runs(study: Study, out: Path, only: Sequence[str] = ()) -> list[PlannedRun]:
    """Every model once, then every merge.

    Args:
        study: which models.
        out: holds a run folder per model.
        only: ids; all without it.

    Raises:
        UsageError: the study has no suite, or no model of a name in `only`.
    """
    if study.suite is None:
        raise UsageError(
            f"{study.name} has no suite, so that nobody knows what to ask",
            hint=f'add suite = "basics" to {study.origin}.',
        )
    names = [model.id for model in study.models] + [merge.id for merge in study.merges]
    for name in only:
        if name not in names:
            raise UsageError(f"there is no model {name!r}", hint=f"choose from {', '.join(names)}.")
    plans = [_plan_model(study, model, out) for model in study.models]
    plans += [_plan_merge(study, merge, out) for merge in study.merges]
    return [plan for plan in plans if not only or plan.id in only]


def run_study(
    study: Study,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    data_root: Path | None = None,
    keep_weights: bool = False,
    on_progress: OnStudyProgress | None = None,
    **loading: Any,
) -> StudyRuns:
    """Evaluate every model that has no run yet; go on where an earlier call ended.

    A model that fails does not stop the others.

    Args:
        study: which models, and how they are asked.
        out: gets a run folder per model.
        only: ids; all without it.
        data_root: a folder with local copies of hub data sets.
        keep_weights: keep merges in `weights/` after their evaluation.
        on_progress: called after every answer.
        loading: dtype, device and the like, as for `open_model`.
    """
    out = Path(out)
    done, failed = [], {}
    suites: dict[int | None, Suite] = {}
    for plan in plan_runs(study, out, only):
        if plan.state == "missing":
            if plan.limit not in suites:
                suites[plan.limit] = load_suite(
                    _beside(study, study.suite or ""), limit=plan.limit, root=data_root
                )
            try:
                _run(study, plan, suites[plan.limit], out, on_progress, loading)
            except ForgetmapError as error:
                failed[plan.id] = error
                continue
            finally:
                if plan.merge is not None and not keep_weights:
                    shutil.rmtree(_weights(out, plan.id), ignore_errors=True)
        done.append(plan.id)
    return StudyRuns(tuple(done), failed)


def _run(
    study: Study,
    plan: PlannedRun,
    suite: Suite,
    out: Path,
    on_progress: OnStudyProgress | None,
    loading: dict[str, Any],
) -> None:
    source = plan.source or _make_merge(study, plan, out)
    # Two models must not share random numbers, or they would agree by chance.
    backend, identity = open_model(source, name=plan.id, salt=plan.id, **loading)
    progress = None if on_progress is None else lambda step: on_progress(plan.id, step)
    run_model(backend, suite, plan.folder, identity, plan.settings, on_progress=progress)
    del backend
    gc.collect()
    mark = _mark_path(out, plan.id)
    with writable(mark):
        mark.write_text(_mark(study, plan.source, plan.merge, plan.settings, plan.limit))


def _make_merge(study: Study, plan: PlannedRun, out: Path) -> str:
    from forgetmap.merge import apply_recipe, read_recipe  # torch

    assert plan.merge is not None  # noqa: S101  # only merges have no source
    merge, weights = plan.merge, _weights(out, plan.id)
    if merge.recipe is not None:
        recipe = read_recipe(_beside(study, merge.recipe))
    else:
        earlier, later = (_source(study, study.model(name)) or name for name in merge.models)
        path = Merge(merge.method or "", merge.weight or 0.0)
        recipe = recipe_of(path, earlier, later, density=DEFAULT_DENSITY, seed=study.protocol.seed)
    return str(apply_recipe(recipe, weights, overwrite=True))


def _plan_model(study: Study, model: StudyModel, out: Path) -> PlannedRun:
    settings, limit = _settings(study, model), model.limit or study.protocol.limit
    folder, source = run_folder(out, model.id), _source(study, model)
    mark = _mark(study, source, None, settings, limit)
    state: RunState = "logs" if model.logs else _state(out, model.id, mark)
    billions = model.billions
    size = None if billions is None else billions * 1e9 * _BYTES_PER_PARAMETER
    return PlannedRun(model.id, source, None, settings, limit, folder, state, size)


def _plan_merge(study: Study, merge: StudyMerge, out: Path) -> PlannedRun:
    """A merge is asked like the later of its models."""
    like = study.model(merge.compared_with[-1])
    settings, limit = _settings(study, like), like.limit or study.protocol.limit
    mark = _mark(study, None, merge, settings, limit)
    state: RunState = "logs" if merge.logs else _state(out, merge.id, mark)
    size = None if like.billions is None else like.billions * 1e9 * _BYTES_PER_PARAMETER
    folder = run_folder(out, merge.id)
    return PlannedRun(merge.id, None, merge, settings, limit, folder, state, size)


def _settings(study: Study, model: AskedAs) -> Settings:
    """The protocol of the study, with what is set for this model alone in its place."""
    protocol = study.protocol
    own = {
        name: getattr(protocol, name) if getattr(model, name) is None else getattr(model, name)
        for name in ("shots", "temperature", "top_p", "max_new_tokens")
    }
    style = model.style or protocol.style
    return Settings(
        protocol=protocol.name,
        scoring=protocol.scoring,
        chat=None if style is None else style == "chat",
        stage=None if style is None else "tuned" if style == "chat" else "base",
        repeats=protocol.repeats,
        seed=protocol.seed,
        **own,
    )


def _source(study: Study, model: StudyModel) -> str | None:
    if model.path is not None:
        return _beside(study, model.path)
    return model.hub or model.server


def _beside(study: Study, name: str) -> str:
    """A path beside the file of the study where there is one, else the name as it is."""
    path = study.folder / name
    return str(path) if path.exists() else name


def _state(out: Path, name: str, mark: str) -> RunState:
    kept = _mark_path(out, name)
    is_same = kept.is_file() and kept.read_text() == mark
    return "done" if is_same and is_run_folder(run_folder(out, name)) else "missing"


def _mark(
    study: Study,
    source: str | None,
    merge: StudyMerge | None,
    settings: Settings,
    limit: int | None,
) -> str:
    """The same for the same model, suite and way of asking: what is done is not loaded again."""
    recipe = None if merge is None else merge.model_dump(mode="json")
    content = [study.suite, source, recipe, asdict(settings), limit]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _mark_path(out: Path, name: str) -> Path:
    folder = run_folder(out, name)
    return folder.parent / f".{folder.name}.study"


def _weights(out: Path, name: str) -> Path:
    return out / "weights" / run_folder(out, name).name
