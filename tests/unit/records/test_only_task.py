"""Renaming the only task of a run."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from forgetmap.errors import UsageError
from forgetmap.records import RunInfo, TaskInfo, build_run, name_only_task, run_from_frame


def test_scores_texts_and_manifest_are_renamed() -> None:
    columns: dict[str, list[Any]] = {
        "task": ["t"], "item": ["a"], "repeat": [0], "score": [1.0], "question": ["q"],
    }  # fmt: skip
    info = RunInfo(tasks={"t": TaskInfo(version="2")})
    run = name_only_task(build_run(columns, info, "r"), "u")
    assert run.scores.collect()["task"].to_list() == ["u"]
    assert run.texts is not None
    assert run.texts.collect()["task"].to_list() == ["u"]
    assert run.info.tasks == {"u": TaskInfo(version="2")}


def test_several_tasks_are_refused() -> None:
    frame = pl.DataFrame({"task": list("abcdefgh"), "item": ["a"] * 8, "score": [1.0] * 8})
    with pytest.raises(UsageError, match="has 8: a, b, c, d, e, f and 2 more"):
        run_from_frame(frame, task="t")


def test_frame_without_tasks_gets_one() -> None:
    frame = pl.DataFrame({"item": ["a"], "score": [1.0]})
    assert run_from_frame(frame, task="t").scores.collect()["task"].to_list() == ["t"]
