"""The plan of a study: every model and merge once, with its settings and its status."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import (
    ModelSource,
    Settings,
    is_address,
    served_models,
    split_address,
    weights_stamp,
)
from forgetmap.records import is_run_folder
from forgetmap.study.declaration import AskedAs, Study, StudyMerge, StudyModel
from forgetmap.study.read import model_line
from forgetmap.study.run_files import read_finished, run_folder

RunState = Literal["logs", "done", "missing"]
"""Has logs; was evaluated by an earlier call; is still to be evaluated."""
BYTES_PER_PARAMETER = 2


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One model or merge with its settings.

    Attributes:
        id: id in the study.
        source: folder, hub id or address; None for a merge, which is built first, and for logs.
        merge: the merge, if it is one.
        settings: settings of the evaluation.
        limit: maximum number of items per task.
        folder: its run folder, which may not exist yet.
        state: status of the run.
        weight_bytes: size of the weights at two bytes per parameter, if known.
        stage: stage of the model, if declared.
        mark: fingerprint of model, suite and settings.
        stamp: text that changes with the files of the model or the suite.
    """

    id: str
    source: str | None
    merge: StudyMerge | None
    settings: Settings
    limit: int | None
    folder: Path
    state: RunState
    weight_bytes: float | None
    stage: str | None = None
    mark: str = ""
    stamp: str = ""

    @property
    def server(self) -> str | None:
        """Address of its server, without the model; None without a server."""
        if self.source is None or not is_address(self.source):
            return None
        return split_address(self.source)[0]

    @property
    def billions(self) -> float | None:
        """Its number of parameters in billions, if known."""
        return None if self.weight_bytes is None else self.weight_bytes / BYTES_PER_PARAMETER / 1e9


def plan_runs(
    study: Study,
    out: Path,
    only: Sequence[str] = (),
    *,
    servers: Mapping[str, str] | None = None,
) -> list[PlannedRun]:
    """Return a plan for every model, then for every merge.

    Args:
        study: the study.
        out: folder with one run folder per model.
        only: ids of models; by default all.
        servers: id -> address of a server with the model, instead of the declared source.

    Raises:
        UsageError: the study has no suite, or no model of a name in `only` or `servers`.
    """
    if study.suite is None:
        raise UsageError(
            f"{study.name} has no suite",
            hint=f'add suite = "basics" to {study.origin}.',
        )
    names = [model.id for model in study.models] + [merge.id for merge in study.merges]
    for name in [*only, *(servers or {})]:
        if name not in names:
            raise UsageError(f"there is no model {name!r}", hint=f"choose from {', '.join(names)}.")
    plans = [_plan_model(study, model, out, servers or {}) for model in study.models]
    plans += [_plan_merge(study, merge, out) for merge in study.merges]
    return [plan for plan in plans if not only or plan.id in only]


def find_servers(study: Study, addresses: Sequence[str]) -> dict[str, str]:
    """Return id -> address with model name, for the models that these servers have.

    Args:
        study: the study; models are matched by hub id, by id, and by the name of their folder.
        addresses: `http://HOST/v1`, which lists its models, or `ID=http://HOST/v1#NAME`.

    Raises:
        ModelError: a server cannot be reached.
        UsageError: a server has no model of the study.
    """
    sources: dict[str, str] = {}
    for entry in addresses:
        name, equals, address = entry.partition("=")
        if equals and not is_address(name):
            sources[name] = address
            continue
        served = set(served_models(entry))
        here = {model.id: each for model in study.models for each in _names(model) & served}
        if not here:
            raise UsageError(
                f"{entry} has no model of {study.name}, only {', '.join(sorted(served)) or 'none'}",
                hint=f"specify it with --server ID={entry}#NAME.",
            )
        base, _ = split_address(entry)
        sources |= {model: f"{base}#{each}" for model, each in here.items()}
    return sources


def _names(model: StudyModel) -> set[str]:
    """Return the possible names of a model on a server."""
    return {name for name in (model.id, model.hub, model.path) if name is not None}


def require_source(study: Study, plan: PlannedRun) -> None:
    """Refuse a model whose folder does not exist, before the hub is searched.

    Raises:
        FieldError: the folder does not exist; the error names the line of the model.
    """
    model = next((one for one in study.models if one.id == plan.id), None)
    if model is None or model.path is None or plan.server is not None:
        return
    if not study.is_missing(model.path):
        return
    raise FieldError(
        f"{plan.id!r} does not exist: no folder or file {model.path}",
        file=study.origin or None,
        line=model_line(study, plan.id, "path"),
        hint="correct the path, restore the model, or add its `logs`.",
    )


def beside(study: Study, name: str) -> str:
    """Return a path relative to the study file if it exists, else the name unchanged."""
    path = study.folder / name
    return str(path) if path.exists() else name


def model_source(study: Study, model: StudyModel) -> str | None:
    """Return folder, hub id or address of a model."""
    if model.path is not None:
        return beside(study, model.path)
    return model.hub or model.server


def _plan_model(
    study: Study, model: StudyModel, out: Path, servers: Mapping[str, str]
) -> PlannedRun:
    settings, limit = _settings(study, model), model.limit or study.protocol.limit
    declared = model_source(study, model)
    # As declared: another server, or a deleted folder, does not make it another model.
    mark = _mark(study, model.path or model.hub or model.server, None, settings, limit)
    stamp = f"{_stamp(declared)}|{_suite_stamp(study)}"
    return PlannedRun(
        id=model.id,
        source=servers.get(model.id, declared),
        merge=None,
        settings=settings,
        limit=limit,
        folder=run_folder(out, model.id),
        state="logs" if model.logs else _state(out, model.id, mark, stamp),
        weight_bytes=_weight_bytes(model),
        stage=model.stage,
        mark=mark,
        stamp=stamp,
    )


def _plan_merge(study: Study, merge: StudyMerge, out: Path) -> PlannedRun:
    """Return the plan of a merge; it has the settings of the later of its models."""
    like = study.model(merge.compared_with[-1])
    settings, limit = _settings(study, like), like.limit or study.protocol.limit
    mark = _mark(study, None, merge, settings, limit)
    files = [model_source(study, study.model(name)) for name in merge.models]
    files += [beside(study, merge.recipe)] if merge.recipe is not None else []
    stamp = "|".join([*map(_stamp, files), _suite_stamp(study)])
    return PlannedRun(
        id=merge.id,
        source=None,
        merge=merge,
        settings=settings,
        limit=limit,
        folder=run_folder(out, merge.id),
        state="logs" if merge.logs else _state(out, merge.id, mark, stamp),
        weight_bytes=_weight_bytes(like),
        stage=like.stage,
        mark=mark,
        stamp=stamp,
    )


def _weight_bytes(model: StudyModel) -> float | None:
    return None if model.billions is None else model.billions * 1e9 * BYTES_PER_PARAMETER


def _settings(study: Study, model: AskedAs) -> Settings:
    """Return the protocol of the study, overridden by settings of this model."""
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


def _stamp(name: str | None) -> str:
    """Return a text that changes when local files are rewritten; empty for remote ones."""
    path = None if name is None else Path(name).expanduser()
    if path is None or is_address(str(name)) or not path.exists():
        return ""
    if path.is_dir():
        return weights_stamp(ModelSource(str(path)))
    stat = path.stat()
    return f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}"


def _suite_stamp(study: Study) -> str:
    return _stamp(beside(study, study.suite or ""))


def _state(out: Path, name: str, mark: str, stamp: str) -> RunState:
    """Return the status; a run stays done if its model is deleted, but not if files change."""
    kept = read_finished(out, name)
    if kept is None or kept.mark != mark or not is_run_folder(run_folder(out, name)):
        return "missing"
    both = zip(kept.stamp.split("|"), stamp.split("|"), strict=False)
    return "done" if all(old == new or not new for old, new in both) else "missing"


def _mark(
    study: Study,
    source: str | None,
    merge: StudyMerge | None,
    settings: Settings,
    limit: int | None,
) -> str:
    recipe = None if merge is None else merge.model_dump(mode="json")
    content = [study.suite, source, recipe, asdict(settings), limit]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
