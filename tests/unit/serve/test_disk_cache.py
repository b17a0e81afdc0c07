"""Cached tables that are reused, and those that must not be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clocks import change_at_the_same_time
from forgetmap.records.engine import connection
from forgetmap.serve.disk_cache import DiskCache
from forgetmap.serve.runs import find_runs
from served_runs import AFTER, BEFORE, results, write_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Writes one number, and counts how often it had to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, name: str) -> None:
        self.times += 1
        connection().execute(f"CREATE TABLE {name}.t AS SELECT 42 AS n")


def read(name: str) -> int:
    return int(connection().execute(f"SELECT n FROM {name}.t").fetchall()[0][0])


def test_the_same_is_made_once_also_for_the_next_server(cache: Path) -> None:
    make, disk_cache = Maker(), DiskCache(connection(), persistent=True)
    names = [disk_cache.open(("x", 1), make) for _ in range(2)]
    assert names[0] == names[1]
    disk_cache.close(names[0])
    again = DiskCache(connection(), persistent=True)
    name = again.open(("x", 1), make)
    assert (read(name), make.times) == (42, 1)
    other = again.open(("x", 2), make)
    assert make.times == 2
    for each in (name, other):
        again.close(each)
    assert len(list(cache.rglob("*.duckdb"))) == 2


def test_what_cannot_be_told_or_kept_is_not_found_again(cache: Path) -> None:
    make = Maker()
    for disk_cache, key in (
        (DiskCache(connection(), persistent=True), None),
        (DiskCache(connection(), persistent=False), 1),
    ):
        for name in [disk_cache.open(key, make) for _ in range(2)]:
            assert read(name) == 42
            disk_cache.close(name)
    assert make.times == 4
    assert not list(cache.rglob("*.duckdb"))


def test_a_broken_file_is_made_again(cache: Path) -> None:
    make, disk_cache = Maker(), DiskCache(connection(), persistent=True)
    disk_cache.close(disk_cache.open("x", make))
    [file] = cache.rglob("*.duckdb")
    file.write_bytes(b"no database")
    name = disk_cache.open("x", make)
    assert (read(name), make.times) == (42, 2)
    disk_cache.close(name)


def test_a_failure_leaves_nothing_behind(cache: Path) -> None:
    def fail(name: str) -> None:
        connection().execute(f"CREATE TABLE {name}.t AS SELECT 42 AS n")
        raise OverflowError

    disk_cache = DiskCache(connection(), persistent=True)
    with pytest.raises(OverflowError):
        disk_cache.open("x", fail)
    assert not [path for path in cache.rglob("*") if path.is_file()]
    name = disk_cache.open("x", Maker())
    assert read(name) == 42
    disk_cache.close(name)


def test_the_stamp_of_a_run_changes_with_its_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", results(BEFORE))
    first, again = (find_runs([str(folder)])[0].stamp for _ in range(2))
    assert first == again is not None
    os.utime(folder / "scores.parquet", ns=(1, 1))
    assert find_runs([str(folder)])[0].stamp != first
    other = write_folder(tmp_path / "other", results(AFTER))
    assert find_runs([str(other)])[0].stamp != first


def test_the_stamp_of_a_run_changes_though_the_clock_was_set_back(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", results(BEFORE))
    first = find_runs([str(folder)])[0].stamp
    manifest = (folder / "manifest.json").read_bytes()
    change_at_the_same_time(folder / "manifest.json", manifest)
    assert find_runs([str(folder)])[0].stamp != first


@pytest.mark.parametrize(("persistent", "times"), [(True, 1), (False, 2)])
def test_a_text_is_made_once_where_it_may_be_kept(
    cache: Path, *, persistent: bool, times: int
) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("text")
        return "a cell"

    for _ in range(2):
        kept = DiskCache(connection(), persistent=persistent)
        assert kept.text(("cell", "x"), make) == "a cell"
    assert len(made) == times
    assert len(list(cache.rglob("text.json"))) == persistent
