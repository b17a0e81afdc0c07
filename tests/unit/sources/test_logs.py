"""How logs are shared out among processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from forgetmap.sources.adapter import Log
from forgetmap.sources.files import LogFile
from forgetmap.sources.logs import Reading, _balance, _parts


def test_logs_of_the_same_task_stay_in_one_process(tmp_path: Path) -> None:
    logs = [Log("lm-eval", (), tasks=tasks) for tasks in (("a",), ("b",), ("a",))]
    parts = _parts(logs, tmp_path, Reading(processes=4))
    assert sorted(len(part.logs) for part in parts) == [1, 2]
    overlapping = [*logs, Log("lm-eval", (), tasks=("a", "b"))]
    assert len(_parts(overlapping, tmp_path, Reading(processes=4))) == 1
    for reading in (Reading(), Reading(processes=1), Reading(processes=4, strict=True)):
        assert len(_parts(logs, tmp_path, reading)) == 1


def test_work_is_spread_evenly() -> None:
    files = [cast("LogFile", SimpleNamespace(size=n, head=b"")) for n in range(1, 9)]
    logs = [Log("lm-eval", (file,), tasks=(str(file.size),)) for file in files]
    groups = _balance(logs, 3)
    assert [sum(f.size for log in group for f in log.files) for group in groups] == [13, 12, 11]
    assert len(_balance(logs, 20)) == 8
