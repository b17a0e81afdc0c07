"""Renaming of the only task of a run, so that two sides with different names match."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw

from forgetmap.errors import UsageError
from forgetmap.records.run import Frame, Run
from forgetmap.records.validate import reading

MAX_NAMES = 6


def name_only_task(run: Run, name: str) -> Run:
    """Rename the only task of a run.

    Raises:
        UsageError: the run has several tasks.
    """

    def named(frame: Frame) -> Frame:
        return frame.with_columns(task=nw.lit(name))

    with reading(run):
        tasks = sorted(map(str, run.scores.select("task").unique().collect()["task"].to_list()))
    if len(tasks) > 1:
        more = f" and {len(tasks) - MAX_NAMES} more" if len(tasks) > MAX_NAMES else ""
        raise UsageError(
            f"--task {name} names a single task, but {run.name} has {len(tasks)}: "
            f"{', '.join(tasks[:MAX_NAMES])}{more}",
            hint="remove --task; the results already have task names.",
        )
    infos = [info for task, info in run.info.tasks.items() if task in tasks]
    return replace(
        run,
        scores=named(run.scores),
        texts=None if run.texts is None else named(run.texts),
        info=run.info.model_copy(update={"tasks": {name: infos[0]} if infos else {}}),
        contradictions=tuple(replace(one, task=name) for one in run.contradictions),
    )
