"""Safe files: locks between processes, atomic replacement, lines with checksums."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from clocks import change_at_the_same_time
from forgetmap import _disk
from forgetmap._disk import (
    checksum_of,
    exchange,
    in_use,
    make_line,
    only_writer,
    read_line,
    remove_unused,
    stamp_of,
    sync_tree,
    take_turn,
)
from forgetmap.errors import OutputError

HOLDER = """
import sys, time
from pathlib import Path
from forgetmap._disk import only_writer
with only_writer(Path(sys.argv[1]), of=Path("run")):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_writes_and_takes_over_when_it_dies(tmp_path: Path) -> None:
    lock = tmp_path / ".run.lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(
                OutputError, match=rf"run is already being written \(process {holder.pid}"
            ),
            only_writer(lock, of=Path("run")),
        ):
            pytest.fail("two at once")
        holder.kill()
    with only_writer(lock, of=Path("run")):
        assert str(os.getpid()) in lock.read_text()
    assert not lock.exists()


def test_a_lock_file_that_was_removed_in_between_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened, and gone before the lock is had: another process may have made a new one."""
    lock, opened = tmp_path / "lock", []
    flock = fcntl.flock

    def remove_first(handle: int, how: int) -> None:
        flock(handle, how)
        opened.append(handle)
        if len(opened) == 1:
            lock.unlink()

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with only_writer(lock, of=lock):
        assert lock.exists()
    assert len(opened) == 2


def test_a_file_system_without_locks_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / "left").mkdir()
    with only_writer(tmp_path / "lock", of=tmp_path), in_use(tmp_path / "left") as is_ours:
        assert is_ours
    remove_unused(tmp_path / "left")
    assert (tmp_path / "left").exists()


def test_a_lock_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="cannot write run: "),
        only_writer(tmp_path / "no" / "lock", of=Path("run")),
    ):
        pytest.fail("no lock")


def test_names_are_exchanged_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "file").read_text() == "b"
    assert not exchange(tmp_path / "a", tmp_path / "missing")


def test_a_folder_in_use_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with in_use(folder) as is_ours:
        assert is_ours
        remove_unused(folder)
        assert folder.exists()
        with in_use(folder) as is_theirs:
            assert not is_theirs
    remove_unused(folder)
    assert not folder.exists()
    with in_use(folder) as is_ours:
        assert not is_ours


def test_files_are_synced_before_the_folder_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_text("x")
    order: list[Path] = []
    monkeypatch.setattr(_disk, "sync", order.append)
    sync_tree(tmp_path)
    assert order == [tmp_path / "deep" / "file", tmp_path / "deep", tmp_path]


def test_a_checksum_is_of_all_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    content = bytearray(os.urandom(_disk.READ_BYTES + 3))
    file.write_bytes(content)
    before = checksum_of(file)
    content[-1] ^= 1
    file.write_bytes(content)
    assert checksum_of(file) != before


def test_every_bit_of_a_line_counts() -> None:
    line = make_line({"item": "ä \ud800 \u2028", "score": 1.0}, "run")
    assert read_line(line, "run") == {"item": "ä \ud800 \u2028", "score": 1.0}
    assert read_line(line, "another run") is None
    for place in range(len(line)):
        for bit in range(8):
            damaged = bytearray(line)
            damaged[place] ^= 1 << bit
            assert read_line(bytes(damaged), "run") is None


@pytest.mark.parametrize("raw", [b"", b"\n", b"[1]\n", b"{}\n", b"[" * 100_000])
def test_what_is_no_line_of_ours_is_none(raw: bytes) -> None:
    assert read_line(raw) is None


def test_a_file_that_changed_has_another_stamp_whatever_the_clock_says(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")
    before = stamp_of(file)
    assert stamp_of(file) == before
    change_at_the_same_time(file, b"after!")
    assert stamp_of(file) != before


class LongAgo(datetime):
    """A clock that was set back to when there were no computers of ours."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> LongAgo:
        return cls(1970, 1, 1, tzinfo=tz)


def test_a_clock_that_was_set_back_neither_breaks_nor_opens_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.write_text('{"process": 1, "since": "2999-01-01"}')  # left behind by one that is gone
    with only_writer(lock, of=Path("run")):
        monkeypatch.setattr(_disk, "datetime", LongAgo)
        with pytest.raises(OutputError, match="since 20"), only_writer(lock, of=Path("run")):
            pytest.fail("two at once")
    with only_writer(lock, of=Path("run")):
        assert "1970-01-01" in lock.read_text()


def test_nothing_is_written_through_a_link_in_the_place_of_a_lock(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with (
        pytest.raises(OutputError, match="cannot write run: "),
        only_writer(tmp_path / "lock", of=Path("run")),
    ):
        pytest.fail("no lock")
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    "content", [b"[" * 1_000, b'{"process": 1e999, "since": ""}', b"", b"\xff"]
)
def test_a_lock_that_says_nothing_of_use_still_locks(tmp_path: Path, content: bytes) -> None:
    lock = tmp_path / "lock"
    with only_writer(lock, of=Path("run")):
        lock.write_bytes(content)
        with (
            pytest.raises(OutputError, match=r"run is already being written\nHint"),
            only_writer(lock, of=Path("run")),
        ):
            pytest.fail("two at once")


def test_a_turn_is_taken_after_the_other(tmp_path: Path) -> None:
    order: list[str] = []
    first, inside = threading.Event(), threading.Event()

    def wait_for_it() -> None:
        first.wait(60)
        inside.set()
        with take_turn(tmp_path / "lock"):
            order.append("second")

    other = threading.Thread(target=wait_for_it)
    other.start()
    with take_turn(tmp_path / "lock"):
        first.set()
        inside.wait(60)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_a_turn_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where nothing is held."""
    monkeypatch.setattr(_disk, "fcntl", None)
    with take_turn(tmp_path / "lock"), take_turn(tmp_path / "lock"):
        assert (tmp_path / "lock").exists()
