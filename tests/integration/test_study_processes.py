"""Studies in several processes, with several servers: killed, resumed, failing in part."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from command_line import call, write
from forgetmap._workers import WorkerProcess
from forgetmap.errors import UsageError
from forgetmap.evaluation import Traffic
from forgetmap.study import (
    RunLimits,
    find_servers,
    parallel,
    plan_runs,
    read_study,
    run_study,
    study_status,
)
from forgetmap.study.single_run import RunOptions
from scripted_server import scripted_server, usual

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
ITEMS = 5
PATIENT, DEADLINE_S = 240.0, 180.0
HASTY = Traffic(attempts=2, pause=0.01, longest_pause=0.01, concurrency=1)


class GatedServer:
    """Answers so many questions and holds the next ones until it is let go.

    Attributes:
        asked: (model, question) -> how often.
        held: set once a question waits.
    """

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self.held = threading.Event()
        self._gate = threading.Event()
        self._lock = threading.Lock()
        self.hold_after(10**9)

    def hold_after(self, answers: int) -> None:
        """Let whoever waits go, then answer so many."""
        gate, self._gate = self._gate, threading.Event()
        self._left = answers
        self.held.clear()
        gate.set()

    def __call__(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        question = re.search(r"Say \d+", str(body))
        if question is not None:
            with self._lock:
                self.asked[body["model"], question[0]] += 1
                self._left -= 1
                is_held, gate = self._left < 0, self._gate
            if is_held:
                self.held.set()
                gate.wait(PATIENT)
        return usual(path, body, headers)


@pytest.fixture
def server() -> Iterator[tuple[GatedServer, str]]:
    server = GatedServer()
    with scripted_server(server) as address:
        yield server, address
        server.hold_after(10**9)


def write_study(folder: Path, **sources: str) -> Path:
    """Models by where they are; each but the first is made from the first."""
    rows = [
        {"question": f"Say {n}", "gold": "yes", "task": "t", "id": str(n)} for n in range(ITEMS)
    ]
    write(folder / "items.jsonl", rows)
    parts = ['name = "served"\nsuite = "items.jsonl"\n[protocol]\nstyle = "plain"']
    first = next(iter(sources))
    for name, source in sources.items():
        parts.append(f'[[model]]\nid = "{name}"\n{source}\nfamily = "f"\nsize = "1B"')
        parts += [] if name == first else [f'stage = "tuning"\nparent = "{first}"']
    (folder / "study.toml").write_text("\n".join(parts))
    return folder / "study.toml"


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return list(psutil.Process(process.pid).children())


def test_a_killed_study_goes_on_and_evaluates_every_model_once(
    server: tuple[GatedServer, str], tmp_path: Path
) -> None:
    gated, address = server
    other = GatedServer()
    with scripted_server(other) as second:
        file = write_study(
            tmp_path,
            one=f'server = "{address}#yes"',
            two=f'server = "{address}#also"',
            three=f'server = "{second}#yes"',
        )
        command = [
            sys.executable, "-m", "forgetmap", "study", "run", str(file), "--out",
            str(tmp_path / "runs"), "--concurrency", "1",
        ]  # fmt: skip
        gated.hold_after(4)
        other.hold_after(2)
        with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as first:
            assert gated.held.wait(DEADLINE_S)
            assert other.held.wait(DEADLINE_S)  # both servers are asked at the same time
            workers = workers_of(first)
            assert len(workers) == 2
            first.kill()
        _, alive = psutil.wait_procs(workers, DEADLINE_S)
        assert not alive, "a worker outlived its parent"
        kept = {
            run.model: run.answers for run in study_status(read_study(file), tmp_path / "runs").runs
        }
        assert (kept["one"] + kept["two"], kept["three"]) == (4, 2)

        gated.hold_after(1)
        other.hold_after(10**9)
        with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as again:
            assert gated.held.wait(DEADLINE_S)
            for worker in workers_of(again):
                worker.kill()
            gated.hold_after(10**9)
            assert again.wait(DEADLINE_S) == 0
        asked = gated.asked.total() + other.asked.total()
        # What was under way at a kill is asked again: at most one question of each model.
        assert max([*gated.asked.values(), *other.asked.values()]) <= 3
        assert asked <= 3 * ITEMS + 2 * 2
        done = call("study", "run", file, "--out", tmp_path / "runs")
        assert "3 of 3 models are evaluated" in done.out
        assert gated.asked.total() + other.asked.total() == asked


def test_one_model_that_fails_does_not_stop_the_others(
    server: tuple[GatedServer, str], tmp_path: Path
) -> None:
    _, address = server
    file = write_study(
        tmp_path,
        good=f'server = "{address}#yes"',
        down='server = "http://127.0.0.1:9/v1#yes"',
        gone='path = "models/gone"',
        unknown=f'server = "{address}#nobody"',
    )
    study, out = read_study(file), tmp_path / "runs"
    runs = run_study(study, out, parallel=2, traffic=HASTY)
    assert (runs.done, set(runs.failed)) == (("good",), {"down", "gone", "unknown"})
    gone = runs.failed["gone"]
    assert str(gone).startswith(
        f"{file}, line 19: 'gone' does not exist: no folder or file models/gone"
    )
    states = {run.model: run for run in study_status(study, out).runs}
    assert {name: run.state for name, run in states.items()} == {
        "good": "done", "down": "failed", "gone": "failed", "unknown": "failed",
    }  # fmt: skip
    assert "127.0.0.1:9" in states["down"].reason
    assert "no model nobody" in states["unknown"].reason
    assert states["down"].next.endswith(f"--out {out} --only down")
    shown = call("study", "status", file, "--runs", out, columns=200).out
    assert "FAILED" in shown
    assert states["gone"].reason in " ".join(shown.split())
    (tmp_path / "study.toml").write_text(file.read_text().replace("#nobody", "#also"))
    again = run_study(read_study(file), out, only=["unknown"], parallel=1, traffic=HASTY)
    assert again.done == ("unknown",)
    assert study_status(read_study(file), out).runs[3].state == "done"


def test_a_model_whose_process_dies_is_tried_twice(
    server: tuple[GatedServer, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated, address = server
    file = write_study(tmp_path, one=f'server = "{address}#yes"', two=f'server = "{address}#also"')
    opened: list[int] = []

    class DyingWorker(WorkerProcess):
        """Ends as soon as it is called, but for the last."""

        def call(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
            opened.append(self.pid)
            if len(set(opened)) <= 2:
                os.kill(self.pid, signal.SIGKILL)
            return super().call(*args, **options)

    monkeypatch.setattr(parallel, "WorkerProcess", DyingWorker)
    runs = run_study(read_study(file), tmp_path / "runs", parallel=1, traffic=HASTY)
    assert runs.done == ("two",)
    assert "a worker process ended unexpectedly (exit code -9)" in str(runs.failed["one"])
    assert len(set(opened)) == 3
    assert {model for model, _ in gated.asked} == {"also"}


def test_a_limit_stops_before_the_model_that_exceeds_it(
    server: tuple[GatedServer, str], tmp_path: Path
) -> None:
    _, address = server
    file = write_study(
        tmp_path,
        one=f'server = "{address}#yes"',
        two=f'server = "{address}#also"',
        three=f'server = "{address}#yes"',
    )
    out = tmp_path / "runs"
    done = call("study", "run", file, "--out", out, "--max-items", 2 * ITEMS + 1, columns=200)
    assert done.code == 0, done.err
    assert (
        "three would take about 5 answers, but 1 of 11 are left. 1 model left: three." in done.out
    )
    assert f"To resume: forgetmap study run {file} --out {out} --max-items 11" in done.out
    assert [plan.state for plan in plan_runs(read_study(file), out)] == ["done", "done", "missing"]
    runs = run_study(read_study(file), out, limits=RunLimits(items=1))
    assert (runs.done, runs.left) == (("one", "two"), ("three",))


def test_servers_are_found_by_what_they_serve(
    server: tuple[GatedServer, str], tmp_path: Path
) -> None:
    _, address = server
    file = write_study(tmp_path, a='hub = "yes"', b='path = "models/b"')
    study = read_study(file)
    servers = find_servers(study, [address, f"b={address}#also"])
    assert servers == {"a": f"{address}#yes", "b": f"{address}#also"}
    with pytest.raises(UsageError, match="has no model of served, only also, yes"):
        find_servers(read_study(write_study(tmp_path, a='hub = "x/y"', b='hub = "x/z"')), [address])
    runs = run_study(study, tmp_path / "runs", servers=servers, traffic=HASTY)
    assert runs.done == ("a", "b")
    # Where it was asked does not make it another model.
    assert {plan.state for plan in plan_runs(study, tmp_path / "runs")} == {"done"}


def test_processes_share_processors_and_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    options = RunOptions(None, False, {"device": "auto"})
    shares = [parallel._environment(place, 2, options) for place in range(2)]
    assert [share["CUDA_VISIBLE_DEVICES"] for share in shares] == ["4,6", "5"]
    assert "OMP_NUM_THREADS" not in shares[0]
    assert parallel._environment(3, 4, options)["CUDA_VISIBLE_DEVICES"] == "4"
    own = RunOptions(None, False, {"device": "cuda:1"}, threads=2)
    assert parallel._environment(0, 2, own) == {"OMP_NUM_THREADS": "2"}
