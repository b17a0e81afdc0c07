"""Cached files, and which are removed when the cache is full."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from forgetmap import _cache
from forgetmap._cache import cached_folder

HOUR = 3_600.0


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with no room for two files, and two of them, used a day and two days ago."""
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path))
    monkeypatch.setattr(_cache, "MAX_BYTES", 15)
    root = tmp_path / "imports"
    for days, name in enumerate(("older", "newer")):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_bytes(bytes(10))
        os.utime(root / name, times=(time.time() - (48 - 24 * days) * HOUR,) * 2)
    return root


def test_what_was_not_used_for_longest_goes_first(kept: Path) -> None:
    cached_folder("new")
    assert [path.name for path in kept.iterdir()] == ["newer"]


def test_a_clock_that_was_set_back_removes_nothing_that_may_be_in_use(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 1_000 * HOUR)
    cached_folder("new")
    assert len(list(kept.iterdir())) == 2


def test_another_process_may_make_room_at_the_same_time(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(path: Path) -> bool:
        path.unlink()
        return True

    monkeypatch.setattr(Path, "is_file", vanish)
    assert cached_folder("new") == kept / "new"


def test_a_folder_of_another_user_is_used_all_the_same(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert cached_folder("newer") == kept / "newer"
