"""How logs are shared out among processes, and kept in the cache."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import forgetmap as fm
from forgetmap.sources.adapter import Log
from forgetmap.sources.files import LogFile
from forgetmap.sources.parts import PartOptions, _balance, share_out


def test_logs_of_the_same_task_stay_in_one_process(tmp_path: Path) -> None:
    options = PartOptions(tmp_path, texts=True, scores=None)
    logs = [Log("lm-eval", (), tasks=tasks) for tasks in (("a",), ("b",), ("a",))]
    parts = share_out(logs, options, 4)
    assert sorted(len(part.logs) for part in parts) == [1, 2]
    overlapping = [*logs, Log("lm-eval", (), tasks=("a", "b"))]
    assert not share_out(overlapping, options, 4)
    for processes in (None, 1):
        assert not share_out(logs, options, processes)


def test_work_is_spread_evenly() -> None:
    files = [cast("LogFile", SimpleNamespace(size=n, head=b"")) for n in range(1, 9)]
    logs = [Log("lm-eval", (file,), tasks=(str(file.size),)) for file in files]
    groups = _balance(logs, 3)
    assert [sum(f.size for log in group for f in log.files) for group in groups] == [13, 12, 11]
    assert len(_balance(logs, 20)) == 8


def test_two_models_of_one_file_are_two_runs_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of one model must not be taken for the other, by #NAME or by --run."""
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    ratings = {"base": [10, 10, 1, 1], "tuned": [10, 1, 10, 1]}
    rows = [
        {"question_id": place, "model": model, "judge": ["gpt-4", "single-v1"], "score": score,
         "turn": 1, "user_prompt": "?", "judgment": f"[[{score}]]", "tstamp": 1.0}
        for model, scores in ratings.items()
        for place, score in enumerate(scores)
    ]  # fmt: skip
    file = tmp_path / "gpt-4_single.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = fm.compare(f"{file}#base", f"{file}#tuned").result.total
    chosen = fm.compare(file, file, run=["base", "tuned"]).result.total
    for total in (named, chosen):
        assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)
