"""A run on disk is complete or absent."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clocks import change_at_the_same_time
from forgetmap.errors import ChecksumError, InputError, OutputError, UnreadableError
from forgetmap.records import folder
from forgetmap.records.folder import complete_folder, read_run, write_run
from forgetmap.records.run import Run
from forgetmap.records.schema import scores_schema, texts_schema
from forgetmap.records.tables import write_table
from forgetmap.sources.open import open_run
from run_folders import on_disk, results, run_of, write

RUN = run_of(results([1, 0, 0.5, None], response="said"))


def test_a_path_may_be_a_text(tmp_path: Path) -> None:
    assert write_run(RUN, str(tmp_path / "run")) == tmp_path / "run"


def names(path: Path) -> list[str]:
    return sorted(child.name for child in path.iterdir())


@pytest.fixture
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose scores can be read, but whose responses break off in the middle."""
    path = tmp_path_factory.mktemp("damaged") / "table.parquet"
    rows = [row | {"response": f"r{n**3}"} for n, row in enumerate(results([1] * 5000))]
    write_table(run_of(rows), path)
    content = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(0)
    chunks = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    place = chunks["response"].data_page_offset + 40
    content[place : place + 40] = bytes(40)
    path.write_bytes(content)
    return open_run(path)


def test_a_run_folder_has_three_files_of_the_schema(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run")
    assert names(tmp_path / "run") == ["manifest.json", "scores.parquet", "texts.parquet"]
    assert pq.read_schema(tmp_path / "run/scores.parquet").names == scores_schema().names
    assert pq.read_schema(tmp_path / "run/texts.parquet").names == texts_schema().names
    assert json.loads((tmp_path / "run/manifest.json").read_text())["schema_version"] == 1


@pytest.mark.parametrize("name", ["task=x", "*", "run[1]"])
def test_the_name_of_a_folder_changes_nothing(name: str, tmp_path: Path) -> None:
    write(tmp_path / "run1", results([0, 0, 0]))
    run = read_run(write(tmp_path / name, results([1, 0])))
    found = run.scores.select("task", "item", "score").collect().rows()
    assert sorted(found) == [("t", "i0", 1.0), ("t", "i1", 0.0)]


def test_without_texts_there_is_no_file_of_texts(tmp_path: Path) -> None:
    write(tmp_path / "run", results([1, 0]))
    assert names(tmp_path / "run") == ["manifest.json", "scores.parquet"]
    assert read_run(tmp_path / "run").texts is None


def test_what_nobody_recorded_gets_its_default(tmp_path: Path) -> None:
    write(tmp_path / "run", results([1, 0, 0.5, None]))
    rows = on_disk(tmp_path / "run", "scores")
    assert {(row["repeat"], row["metric"], row["scorer"], row["k"]) for row in rows} == {
        (0, "score", "default", None)
    }
    assert {row["outcome"] for row in rows} == {None}


def test_a_recorded_outcome_is_kept_and_none_is_made_up(tmp_path: Path) -> None:
    write(tmp_path / "run", results([0], outcome="refused") + results([1], "u", outcome=None))
    assert [row["outcome"] for row in on_disk(tmp_path / "run", "scores")] == ["refused", None]


@pytest.mark.parametrize("target", ["run", "run.csv", "run.jsonl", "run.parquet"])
def test_a_failure_while_writing_leaves_nothing(target: str, damaged: Run, tmp_path: Path) -> None:
    write_to = write_run if target == "run" else write_table
    with pytest.raises(UnreadableError):
        write_to(damaged, tmp_path / target)
    assert names(tmp_path) == []


def test_a_failure_while_replacing_leaves_the_old_one(damaged: Run, tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run")
    before = {name: (tmp_path / "run" / name).read_bytes() for name in names(tmp_path / "run")}
    with pytest.raises(UnreadableError):
        write_run(damaged, tmp_path / "run", overwrite=True)
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before
    assert names(tmp_path) == ["run"]


def test_any_exception_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with complete_folder(tmp_path / "out") as partial:
            (partial / "half").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert names(tmp_path) == []


def test_a_run_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / "run")
    write_run(replace(RUN, texts=None), tmp_path / "run", overwrite=True)
    assert names(tmp_path / "run") == ["manifest.json", "scores.parquet"]
    assert names(tmp_path) == ["run"]


def test_the_old_one_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(RUN, tmp_path / "run")
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if ".partial-" in path.name:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(folder, "exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OutputError, match="No space left"):
        write_run(replace(RUN, texts=None), tmp_path / "run", overwrite=True)
    assert names(tmp_path) == ["run"]
    assert "texts.parquet" in names(tmp_path / "run")


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    for name, write_to in (("run", write_run), ("run.csv", write_table)):
        write_to(RUN, tmp_path / name)
        with pytest.raises(OutputError, match="already exists"):
            write_to(RUN, tmp_path / name)


def make_file(path: Path) -> None:
    path.write_text("precious")


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "precious").touch()


def make_extension(path: Path) -> None:
    make_folder(path)
    (path / "manifest.json").write_text('{"manifest_version": 3, "name": "an extension"}')


def make_broken(path: Path) -> None:
    make_folder(path)
    (path / "comparison.json").write_text("{")


@pytest.mark.parametrize("make", [make_file, make_folder, make_extension, make_broken])
def test_what_is_not_ours_is_never_replaced(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match="not written by forgetmap"):
        write_run(RUN, tmp_path / "mine", overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_run(RUN, tmp_path / "run", overwrite=True)
    assert "scores.parquet" in names(tmp_path / "run")


@pytest.mark.parametrize("write_to", [write_run, write_table])
@pytest.mark.parametrize("place", ["file/run.csv", f"{'a' * 300}.csv"])
def test_a_place_that_cannot_be_written(
    place: str, write_to: Callable[[Run, Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_to(RUN, tmp_path / place)
    assert names(tmp_path) == ["file"]


def test_a_table_says_its_format_by_its_ending(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot tell the format from the name"):
        write_table(RUN, tmp_path / "run.xlsx")
    assert names(tmp_path) == []


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    for kind in ("partial", "old"):
        (tmp_path / f".run.{kind}-left" / "deep").mkdir(parents=True)
    (tmp_path / ".run2.partial-other").mkdir()

    def write_twice() -> None:
        with complete_folder(tmp_path / "run") as first:
            assert names(tmp_path) == sorted([".run2.partial-other", first.name])
            write_run(RUN, tmp_path / "run")  # another is quicker
            assert first.exists()

    with pytest.raises(OutputError, match="not empty"):
        write_twice()
    assert names(tmp_path) == [".run2.partial-other", "run"]
    assert read_run(tmp_path / "run").texts is not None


def test_a_result_that_was_put_aside_when_a_process_died_comes_back(tmp_path: Path) -> None:
    write_run(RUN, tmp_path / ".run.old-left" / "run")
    with pytest.raises(OutputError, match="already exists"):
        write_run(RUN, tmp_path / "run")
    assert read_run(tmp_path / "run").texts is not None


def test_a_folder_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(folder, "sync_tree", lambda _: steps.append("files"))
    monkeypatch.setattr(folder, "sync", lambda _: steps.append(f"names {names(tmp_path)}"))
    write_run(RUN, tmp_path / "run")
    assert steps[0] == "files"
    assert steps[1].startswith("names ")
    assert "'run'" in steps[1]


def test_there_is_a_result_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are renamed by one call of the system, so a reader sees the old or the new one."""
    write_run(RUN, tmp_path / "run")

    def refuse(path: Path, target: Path) -> Path:
        raise AssertionError("renamed step by step")

    monkeypatch.setattr(Path, "rename", refuse)
    write_run(replace(RUN, texts=None), tmp_path / "run", overwrite=True)
    assert names(tmp_path) == ["run"]
    assert read_run(tmp_path / "run").texts is None


def test_no_bit_that_flips_in_a_run_folder_is_silent(tmp_path: Path) -> None:
    """An error, a warning, or nothing that is used is changed."""
    path = write_run(RUN, tmp_path / "run")
    draw = random.Random(2)
    for name in ("scores.parquet", "texts.parquet", "manifest.json"):
        whole = (path / name).read_bytes()
        for _ in range(40):
            content = bytearray(whole)
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            (path / name).write_bytes(content)
            try:
                noticed = bool(read_run(path).notices)
            except InputError:
                noticed = True
            assert noticed
        (path / name).write_bytes(whole)
        assert not read_run(path).notices


def test_scores_that_were_changed_are_a_typed_error_unless_the_manifest_lets_them_be(
    tmp_path: Path,
) -> None:
    path = write_run(RUN, tmp_path / "run")
    other = write_run(run_of(results([0, 1, 0.5, None])), tmp_path / "other")
    (path / "scores.parquet").write_bytes((other / "scores.parquet").read_bytes())
    with pytest.raises(
        ChecksumError, match="changed after it was written: its checksum differs"
    ) as raised:
        read_run(path)
    assert raised.value.file == str(path / "scores.parquet")
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["files"], manifest["checksum"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert read_run(path).notices == ()


def test_a_manifest_that_was_edited_is_said_so(tmp_path: Path) -> None:
    path = write_run(RUN, tmp_path / "run")
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"stage": null', '"stage": "sft"'))
    run = read_run(path)
    assert run.info.stage == "sft"
    assert run.notices == (folder.CHANGED,)


def test_a_copy_of_a_run_has_checksums_of_its_own(tmp_path: Path) -> None:
    run = read_run(write_run(RUN, tmp_path / "run"))
    copy = write_run(replace(run, texts=None), tmp_path / "copy")
    assert json.loads((copy / "manifest.json").read_text())["files"].keys() == {"scores.parquet"}


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from forgetmap.errors import OutputError
from forgetmap.records.folder import write_run
from run_folders import results, run_of

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
rows = [row | {"response": f"{n**7}"} for n, row in enumerate(results([1] * 5_000))]
try:
    write_run(run_of(rows), Path(sys.argv[1]), overwrite=True)
except OutputError as error:
    print(error)
"""


def test_a_disk_that_is_full_while_a_run_is_replaced_leaves_the_old_one(tmp_path: Path) -> None:
    path = write_run(RUN, tmp_path / "run")
    before = {name: (path / name).read_bytes() for name in names(path)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert f"cannot write {path}" in done.stdout
    assert names(tmp_path) == ["run"]
    assert {name: (path / name).read_bytes() for name in names(path)} == before


def test_a_file_that_changed_while_the_clock_was_set_back_is_noticed(tmp_path: Path) -> None:
    path = write_run(RUN, tmp_path / "run")
    read_run(path)
    scores = (path / "scores.parquet").read_bytes()
    middle = len(scores) // 2
    changed = scores[:middle] + bytes([scores[middle] ^ 1]) + scores[middle + 1 :]
    change_at_the_same_time(path / "scores.parquet", changed)
    with pytest.raises(ChecksumError):
        read_run(path)


@pytest.mark.parametrize("kind", ["partial", "old"])
def test_what_only_looks_left_over_is_no_obstacle(kind: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / f".run.{kind}-notes").write_text("a file")
    (tmp_path / f".run.{kind}-link").symlink_to(kept)
    write_run(RUN, tmp_path / "run")
    assert (tmp_path / f".run.{kind}-notes").read_text() == "a file"
    assert names(kept) == ["file"]


def test_leftovers_of_another_user_are_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / ".run.partial-theirs"
    theirs.mkdir()
    opened = os.open

    def refuse(path: Path | str, *how: int) -> int:
        if str(path) == str(theirs):
            raise PermissionError(13, "Permission denied")
        return opened(path, *how)

    monkeypatch.setattr(os, "open", refuse)
    write_run(RUN, tmp_path / "run")
    assert theirs.exists()


def test_a_name_that_no_file_can_have_is_missing(tmp_path: Path) -> None:
    path = write_run(RUN, tmp_path / "run")
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["files"]["a" * 5_000] = {"bytes": 1, "xxh3": "0"}
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert folder.check_files(path)["a" * 5_000] == "missing"
