"""Progress of a study: finished, interrupted and failed models, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from forgetmap.study.compare import find_runs, study_gaps
from forgetmap.study.declaration import Study
from forgetmap.study.read import model_line
from forgetmap.study.result import ModelStatus, StudyStatus
from forgetmap.study.run_files import answers_so_far, read_failure


def study_status(study: Study, folder: Path | None = None) -> StudyStatus:
    """Return which models have runs, why others have none, and how many pairs can be compared.

    Args:
        study: the study.
        folder: folder with one run folder per model.
    """
    runs = find_runs(study, folder)
    pairs = [*study.pairs, *study.merge_pairs]
    names = [model.id for model in study.models] + [merge.id for merge in study.merges]
    states = [_model_status(study, name, runs, folder) for name in names]
    return StudyStatus(
        study=study.name,
        models=len(names),
        with_runs=len(runs),
        pairs=len(pairs),
        ready=sum(pair.before in runs and pair.after in runs for pair in pairs),
        gaps=study_gaps(study, runs),
        runs=states,
        next=_next_command(study, states, folder),
    )


def _model_status(
    study: Study, name: str, runs: Mapping[str, Sequence[str]], folder: Path | None
) -> ModelStatus:
    logs = {model.id: model.logs for model in study.models}
    logs |= {merge.id: merge.logs for merge in study.merges}
    if name in runs:
        return ModelStatus(model=name, state="logs" if logs[name] else "done")
    if logs[name] or folder is None:
        return ModelStatus(model=name, state="missing")
    failure, answers = read_failure(folder, name), answers_so_far(folder, name)
    if failure is not None:
        return ModelStatus(
            model=name,
            state="failed",
            line=model_line(study, name),
            answers=answers,
            reason=failure.reason,
            hint=failure.hint,
            next=run_command(study, folder, only=[name]),
        )
    return ModelStatus(model=name, state="stopped" if answers else "missing", answers=answers)


def _next_command(study: Study, states: Sequence[ModelStatus], folder: Path | None) -> str:
    if any(status.state in ("missing", "stopped", "failed") for status in states):
        return run_command(study, folder or Path("runs"))
    runs = "" if folder is None else f" --runs {shlex.quote(str(folder))}"
    return f"forgetmap study compare {_file(study)}{runs}"


def run_command(study: Study, folder: Path, *, only: Sequence[str] = ()) -> str:
    """Return the command that resumes a study, or some of its models."""
    names = f" --only {shlex.quote(','.join(only))}" if only else ""
    return f"forgetmap study run {_file(study)} --out {shlex.quote(str(folder))}{names}"


def _file(study: Study) -> str:
    return shlex.quote(study.origin or "study.toml")
