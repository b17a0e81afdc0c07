"""Processes of harnesses: output, exit, and locks on folders."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgetmap.errors import OutputError
from forgetmap.harness_runs import process
from forgetmap.harness_runs.process import OUTPUT, claimed, follow, last_lines

PROGRAM = str(Path(__file__).parents[1] / "support" / "small_harness.py")


def run(what: str, work: Path, shown: list[str] | None = None) -> int:
    said: list[str] = [] if shown is None else shown
    with claimed(work, "f", overwrite=False) as lock:
        return follow([sys.executable, PROGRAM, what, str(work)], {}, work, lock, said.append)


def test_all_that_is_printed_is_shown_and_kept(tmp_path: Path) -> None:
    shown: list[str] = []
    assert run("letters", tmp_path, shown) == 0
    assert "".join(shown) == "naïve\n10%\r100%\r\n"
    assert (tmp_path / OUTPUT).read_bytes() == "naïve\n10%\r100%\r\n".encode()
    assert last_lines(tmp_path) == ("naïve", "100%")


def test_a_second_attempt_adds_to_what_was_printed(tmp_path: Path) -> None:
    assert run("fail", tmp_path) == 3
    assert run("fail", tmp_path) == 0
    assert last_lines(tmp_path) == ("working", "the disk \x1b[31m is on fire", "asking")


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("what", ["wait", "stubborn"])
def test_a_program_ends_with_us(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE", 2.0)
    with (
        pytest.raises(KeyboardInterrupt),
        claimed(tmp_path, "f", overwrite=False) as lock,
    ):
        follow([sys.executable, PROGRAM, what, str(tmp_path)], {}, tmp_path, lock, interrupt)
    assert (tmp_path / "ended").exists() == (what == "wait")
    assert run("letters", tmp_path) == 0, "nobody works there any more"


def run_when_free(work: Path) -> None:
    """A program keeps the lock it was handed to its end, and so does all that it starts."""
    deadline = time.monotonic() + 120
    while True:
        try:
            assert run("letters", work) == 0
        except OutputError:
            assert time.monotonic() < deadline, "somebody still works there"
            time.sleep(0.05)
        else:
            return


def test_a_program_ends_when_we_are_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from forgetmap.harness_runs.process import *\n"
        f"work = Path({str(tmp_path)!r})\n"
        "with claimed(work, 'f', overwrite=False) as lock:\n"
        f"    command = [sys.executable, {PROGRAM!r}, 'stubborn', str(work)]\n"
        "    follow(command, {}, work, lock, print)\n"
    )
    with subprocess.Popen([sys.executable, "-u", "-c", script], stdout=subprocess.PIPE) as we:
        assert we.stdout is not None
        assert we.stdout.readline() == b"ready\n"
        we.kill()
    run_when_free(tmp_path)


def test_what_a_killed_program_started_ends_too(tmp_path: Path) -> None:
    shown: list[str] = []
    assert run("killed", tmp_path, shown) == -signal.SIGKILL
    assert shown == ["ready\n"]
    run_when_free(tmp_path)


def test_two_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with (
        claimed(tmp_path, "f", overwrite=False),
        pytest.raises(OutputError, match="is still running in"),
    ):
        run("letters", tmp_path)


def test_a_folder_of_another_run_is_left_alone(tmp_path: Path) -> None:
    assert run("log", tmp_path) == 0
    with pytest.raises(OutputError, match="another model"), claimed(tmp_path, "g", overwrite=False):
        pass
    assert list(tmp_path.glob("samples_*"))
    with claimed(tmp_path, "g", overwrite=True):
        assert {each.name for each in tmp_path.iterdir()} == {"lock", "fingerprint"}
