"""Progress of long jobs, as lines if there is no terminal."""

from __future__ import annotations

import signal

import pytest

from forgetmap.cli import progress
from forgetmap.cli.progress import JobProgress, stoppable
from forgetmap.evaluation import Step
from forgetmap.merge import MergeStep


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", -1.0)


def test_answers_are_counted_with_speed_failures_and_the_time_that_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with JobProgress() as bar:
        bar.show_answers("base", Step(done=10, total=40, tokens=500, seconds=5.0, failed=0))
        bar.show_answers("base", Step(done=40, total=40, tokens=900, seconds=9.0, failed=2))
    assert capsys.readouterr().err.splitlines() == [
        "base: 10 of 40 answers, 100 tokens/s, about 15 s left",
        "base: 40 of 40 answers, 100 tokens/s, 2 failed, about 0 s left",
    ]


def test_bytes_are_counted_without_those_of_an_earlier_attempt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with JobProgress() as bar:
        step = MergeStep(done=3 * 10**9, total=5 * 10**9, kept=10**9, seconds=10.0)
        bar.show_bytes("merged", step)
        bar.show_bytes("merged", step)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "merged: 20% done in an earlier attempt"
    assert lines == ["merged: 3.0 of 5.0 GB, 200 MB/s, about 10 s left"] * 2


def test_items_are_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    with JobProgress() as bar:
        bar.show_items("theory", 3, 3, "claims")
    assert capsys.readouterr() == ("", "")


def test_lines_come_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 3600.0)
    with JobProgress() as bar:
        for done in range(1, 6):
            bar.show_answers("base", Step(done=done, total=5, tokens=1, seconds=1.0, failed=0))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_being_terminated_keeps_what_was_done_and_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stop, stoppable("Go on with the same command."):
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "\nGo on with the same command.\n"
    assert signal.getsignal(signal.SIGTERM) is before
