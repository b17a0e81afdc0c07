"""Two processes that write the same run at once, and folders without write permission."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import write
from scripted_server import scripted_server, usual

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


class SlowServer:
    """Answers the first question only when it is told to.

    Attributes:
        asked: set once the first question is there.
        go_on: to be set for the answers.
    """

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        if "Say " in str(body):
            self.asked.set()
            self.go_on.wait(60)
        return usual(path, body, headers)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[tuple[SlowServer, list[str]]]:
    rows = [{"question": f"Say {n}", "gold": "yes", "task": "t", "id": str(n)} for n in range(5)]
    suite = write(tmp_path / "questions.jsonl", rows)
    server = SlowServer()
    with scripted_server(server) as address:
        yield server, [
            sys.executable, "-m", "forgetmap", "run", f"{address}#yes", "--no-chat",
            "--suite", str(suite), "--out", str(tmp_path / "runs" / "a"), "--concurrency", "1",
        ]  # fmt: skip
        server.go_on.set()


def test_the_second_of_two_processes_is_told_who_runs(
    command: tuple[SlowServer, list[str]], tmp_path: Path
) -> None:
    server, words = command
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as first:
        assert server.asked.wait(60)
        second = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        server.go_on.set()
        _, said = first.communicate(timeout=60)
    assert second.returncode == 2, second.stderr
    told = " ".join(second.stderr.split())
    assert re.search(rf"already being written \(process {first.pid}, since 20\d\d-", told), told
    assert "Traceback" not in second.stderr
    assert first.returncode == 0, said
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a"]
    scores = fm.open_run(tmp_path / "runs" / "a").scores.collect()
    assert set(scores["item"].to_list()) == {"0", "1", "2", "3", "4"}


READ_ONLY = """
import os, sys
from pathlib import Path
from forgetmap._disk import only_writer
from forgetmap.errors import OutputError
from forgetmap.evaluation.journal import Answer, Journal
from forgetmap.records.folder import write_run
from run_folders import results, run_of

place, run = Path(sys.argv[1]), run_of(results([1, 0]))
write_run(run, place / "run")
place.chmod(0o555)
if os.geteuid() == 0:  # who may write everywhere
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)

def lock():
    with only_writer(place / ".run.lock", of=place / "run"):
        print("locked")

for write in (
    lambda: write_run(run, place / "new"),
    lambda: write_run(run, place / "run", overwrite=True),
    lambda: write_run(run, place / "deep" / "er"),
    lambda: Journal(place / "journal", "run", Answer),
    lock,
):
    try:
        write()
    except OutputError as error:
        print(error.message)
"""


def test_a_folder_that_is_read_only_gives_typed_errors_and_nothing_is_torn(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    command = [sys.executable, "-c", READ_ONLY, str(place)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    names = ("new", "run", "deep/er", "journal", "run")
    assert done.stdout.splitlines() == [
        f"cannot write {place / name}: Permission denied" for name in names
    ]
    assert [path.name for path in place.iterdir()] == ["run"]
    assert fm.open_run(place / "run").scores.collect()["score"].to_list() == [1.0, 0.0]
