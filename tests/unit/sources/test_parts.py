"""Distribution of logs to worker processes, and their cache."""

from __future__ import annotations

import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from zipfile import ZipFile

from forgetmap.sources.adapter import Log
from forgetmap.sources.files import LogFile, find_files
from forgetmap.sources.parts import (
    MAX_BYTES_OF_RANGE,
    MIN_BYTES_OF_RANGE,
    PartOptions,
    _balance,
    _bounds,
    share_out,
)


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


def test_archives_of_their_own_are_shared_out_and_one_archive_is_not(tmp_path: Path) -> None:
    options = PartOptions(tmp_path, texts=False, scores=None)
    for name in ("one", "two"):
        with ZipFile(tmp_path / f"{name}.eval", "w") as archive:
            archive.writestr("a.json", "{}")
    files = find_files(tmp_path)
    assert [file.member for file in files] == [None, "a.json", None, "a.json"]
    logs = [Log("inspect", (file,), tasks=(file.name,)) for file in files]
    assert not share_out(logs, options, 2)
    parts = share_out([logs[0], logs[2]], options, 2)
    copies = [file for part in pickle.loads(pickle.dumps(parts)) for file in part.logs[0][1].files]
    assert [copy.archive.read("a.json") for copy in copies] == [b"{}", b"{}"]


def test_ranges_become_shorter_towards_the_end() -> None:
    gib = 1 << 30
    lengths = [end - start for start, end in pairwise([*_bounds(gib, gib, 8), gib])]
    assert sum(lengths) == gib
    assert lengths[0] == gib // 8
    assert lengths[:-1] == sorted(lengths[:-1], reverse=True)
    assert min(lengths) >= MIN_BYTES_OF_RANGE
    assert lengths[-1] < 2 * MIN_BYTES_OF_RANGE
    # Of a very long file no range is so long that progress seems to stop.
    bounds = _bounds(100 * gib, 100 * gib, 8)
    assert max(end - start for start, end in pairwise(bounds)) == MAX_BYTES_OF_RANGE
    # A file that others follow is split less finely.
    assert len(_bounds(gib, 4 * gib, 8)) < len(_bounds(gib, gib, 8))


def test_a_process_that_reads_a_range_does_without_pydantic() -> None:
    code = (
        "import sys, forgetmap._workers, forgetmap.sources.gather, "
        "forgetmap.sources.harnesses.lm_eval.adapter; sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
