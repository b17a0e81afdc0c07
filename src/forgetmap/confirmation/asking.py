"""Models are asked again, as the manifests of their runs say, with a fresh seed and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetmap.comparison import Comparison
from forgetmap.confirmation.flips import FlipPlan
from forgetmap.confirmation.listing import SIDES, flip_rows, fresh_seed
from forgetmap.errors import ModelError, NetworkError, UsageError
from forgetmap.evaluation import (
    Backend,
    ModelIdentity,
    Settings,
    Step,
    Suite,
    find_model,
    load_suite,
    make_jobs,
    open_model,
    resolve,
    run_model,
    split_model,
    suite_part,
)
from forgetmap.records import AskedInfo, Run, is_run_folder
from forgetmap.text import counted

OTHER_ROWS = 24
"""Responses generated at a time: another number than the default, as batches decide ties."""
OnConfirmProgress = Callable[[str, Step], None]
"""Called with the name of the run and its progress."""
_Open = Callable[[], tuple[Backend, ModelIdentity]]


@dataclass(frozen=True, slots=True)
class Asking:
    """How models are asked again.

    Attributes:
        models: the models, if they are not where they were.
        suite: the suite, if it is not where it was.
        data_root: folder with local copies of hub data sets.
        loading: dtype, device and so on, as for `open_model`.
        overwrite: ask again even if there are answers.
        on_progress: called after every answer.
    """

    models: Sequence[str | None] = (None, None)
    suite: str | Path | Suite | None = None
    data_root: Path | None = None
    loading: Mapping[str, Any] | None = None
    overwrite: bool = False
    on_progress: OnConfirmProgress | None = None

    def load(self, asked: AskedInfo) -> Suite:
        """Return the whole suite of a run."""
        if isinstance(self.suite, Suite):
            return self.suite
        columns = asked.columns or None
        return load_suite(self.suite or str(asked.suite), column_map=columns, root=self.data_root)


def ask_again(
    comparison: Comparison, plan: FlipPlan, out: Path, asking: Asking
) -> tuple[tuple[Path, Path], list[str]]:
    """Write the fresh answers of both models, and return their folders and what to know.

    Existing answers of an interrupted attempt are kept.

    Raises:
        UsageError: a run does not say how it was asked, or its prompts cannot be made again.
    """
    runs = (comparison.before, comparison.after)
    folders = (out / SIDES[0], out / SIDES[1])
    open_sides = [
        index
        for index, folder in enumerate(folders)
        if asking.overwrite or not is_run_folder(folder)
    ]
    rows = flip_rows(comparison, plan)
    notices = []
    for index, model in _find_models(runs, open_sides, asking).items():
        side, run, asked = SIDES[index], runs[index], _asked(runs[index])
        settings = _settings(asked, plan, fresh_seed(comparison), run.name)
        part = _part(asking.load(asked), plan.ids(side), run.name)
        backend, identity = model()
        if asking.models[index] is not None:  # the same model, at another place
            identity = replace(identity, info=run.info.model)
        elif _weights(identity) != asked.weights:
            words = f"the files of {asked.model} were written again since {run.name} was made."
            notices.append(words)
        prompts = {
            (item.task, getattr(item, side)): rows[item.task, item.before].get(f"prompt_{side}")
            for item in plan.items
        }
        _require_same_prompts(backend, part, settings, prompts, run.name)
        progress = None
        if asking.on_progress is not None:
            progress = partial(asking.on_progress, f"{run.name} again")
        run_model(
            backend, part, folders[index], identity, settings,
            overwrite=asking.overwrite, on_progress=progress, again=True,
        )  # fmt: skip
        del backend
    return folders, notices


def _asked(run: Run) -> AskedInfo:
    if run.info.asked is None:
        raise UsageError(
            f"{run.name} does not say how it was asked",
            hint="add --items-only to write the items, and ask them yourself.",
        )
    return run.info.asked


def _find_models(runs: Sequence[Run], indices: Sequence[int], asking: Asking) -> dict[int, _Open]:
    """Find all models before the first is asked; servers are reached, local models opened later.

    Raises:
        UsageError: the given models are exchanged.
        ForgetmapError: a model is not where it was.
    """
    names = {index: asking.models[index] or _asked(runs[index]).model for index in indices}
    found: dict[int, _Open] = {}
    infos = {}
    for index, name in names.items():
        run = runs[index]
        given = dict(asking.loading or {})
        given["rows"] = given.get("rows") or OTHER_ROWS
        try:
            source = find_model(split_model(name).model)
            found[index] = partial(
                open_model, source, name=run.name, salt=f"confirm {SIDES[index]}", **given
            )
            if source.via == "server":
                opened = found[index]()
                found[index] = lambda opened=opened: opened  # type: ignore[misc]
        except (ModelError, NetworkError) as error:
            error.hint += f" If the model of {run.name} has moved, add --models BEFORE AFTER."
            raise
        infos[index] = (source.base, source.revision, source.adapter)
    first = [(one.name, one.revision, one.adapter) for one in (run.info.model for run in runs)]
    if len(infos) == len(first) and first[0] != first[1] and [infos[1], infos[0]] == first:
        raise UsageError(
            "--models are exchanged", hint="give the model before first, then the model after."
        )
    return found


def _weights(identity: ModelIdentity) -> str | None:
    return sha256(identity.stamp.encode()).hexdigest()[:16] if identity.stamp else None


def _settings(asked: AskedInfo, plan: FlipPlan, seed: int, run: str) -> Settings:
    """Return the settings of the first answers with another seed."""
    try:
        first = Settings(**asked.settings)
    except TypeError as error:
        raise UsageError(
            f"{run} was asked with settings that this forgetmap does not have: {error}",
            hint="use the forgetmap that wrote it, or add --items-only to write the items.",
        ) from error
    return replace(first, seed=seed, repeats=plan.repeats)


def _part(suite: Suite, chosen: Mapping[str, Sequence[str]], run: str) -> Suite:
    """Return the chosen items, in an order of their own: batches must differ."""

    def missing(message: str, task: str, item: str | None) -> UsageError:
        del task, item
        return UsageError(
            f"{message}, but {run} does",
            hint="the suite has changed: give the one of the run with --suite.",
        )

    part = suite_part(suite, chosen, "confirm", missing)
    tasks = [
        replace(task, load=partial(tuple, sorted(task.load(), key=lambda item: _place(item.id))))
        for task in part.tasks
    ]
    return replace(part, tasks=tuple(tasks))


def _place(item: str) -> bytes:
    return sha256(item.encode()).digest()


def _require_same_prompts(
    backend: Backend,
    part: Suite,
    settings: Settings,
    prompts: Mapping[tuple[str, str], object],
    run: str,
) -> None:
    """Refuse prompts that differ from those of the first answers; second turns always do.

    Raises:
        UsageError: a prompt has changed.
    """
    jobs = make_jobs(part, resolve(replace(settings, repeats=None), backend), backend, "")
    changed = [
        job
        for job in jobs
        if not job.task.follows
        and isinstance(first := prompts.get(job.key[:2]), str)
        and first != job.prompt
    ]
    if changed:
        names = f"item {changed[0].item.id!r} of task {changed[0].task.name!r}"
        raise UsageError(
            f"{counted(len(changed), 'prompt')} would differ from {run}, such as {names}",
            hint="the suite or the chat template has changed: give the suite of the run with "
            "--suite, or evaluate both models again.",
        )
