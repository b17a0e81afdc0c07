"""Files that survive: locks between processes, exchanged names, lines with checksums."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forgetmap import _disk
from forgetmap._disk import (
    checksum_of,
    exchange,
    in_use,
    make_line,
    only_writer,
    read_line,
    remove_unused,
    sync_tree,
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
                OutputError, match=rf"run is being written already \(process {holder.pid}"
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
