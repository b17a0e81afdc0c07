"""Parallel trainings: how their processes end, and the message for one that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from forgetmap.errors import UsageError, WorkerError
from forgetmap.lab import LabRun, read_recipe
from forgetmap.lab.arms import Arm
from forgetmap.lab.workers import run_arms
from tiny_lab import RECIPE, write_lab

pytestmark = [pytest.mark.needs_torch, pytest.mark.slow]
SECONDS = 180.0
ARMS = [Arm("sft", 0.0, rate, 0) for rate in (0.003, 0.004, 0.005, 0.006)]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lab(tmp_path_factory.mktemp("small-lab"), RECIPE)


def test_an_error_in_a_process_is_raised_with_its_type(recipe: Path, tmp_path: Path) -> None:
    wrong = Arm("nothing", 0.0, 0.003, 0)
    with pytest.raises(UsageError, match="there is no method 'nothing'"):
        run_arms(read_recipe(recipe), tmp_path, [wrong, *ARMS], workers=2)
    assert not active_children()


def test_a_process_that_was_killed_is_an_error_and_what_is_finished_is_kept(
    recipe: Path, tmp_path: Path
) -> None:
    finished: list[LabRun] = []

    def kill(run: LabRun) -> None:
        finished.append(run)
        for child in active_children():
            if child.pid is not None:
                os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(WorkerError, match="ended without a result"):
        run_arms(read_recipe(recipe), tmp_path, ARMS, workers=2, on_arm=kill)
    assert not active_children()
    again = run_arms(read_recipe(recipe), tmp_path, ARMS)
    assert finished[0] in again


def members_of(group: int) -> list[int]:
    """Processes of a group that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks the system of Linux")
def test_ctrl_c_ends_all_processes(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "forgetmap", "lab", "compare", recipe, "--methods", "lora",
        "--workers", "2", "--out", out,
    ]  # fmt: skip
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    ) as process:
        until = time.monotonic() + SECONDS
        while not list(out.glob("*/result.json")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "Stopped. All finished runs are kept;" in err
    assert "Traceback" not in err
    while members_of(process.pid):
        assert time.monotonic() < until
        time.sleep(0.02)
