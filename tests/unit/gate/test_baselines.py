"""Stored baselines: written as a whole, verified when read, on disk or remote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import forgetmap as fm
from forgetmap.errors import (
    ChecksumError,
    MissingInputError,
    OutputError,
    UnreadableError,
    UsageError,
)
from forgetmap.gate import accept_run, read_baseline, read_history, run_gate, summarize_history
from forgetmap.gate.history import record_result
from forgetmap.gate.store import BaselineStore
from releases import BAD, CLOSE, GOOD, Cells, one_task
from small_runs import run as named


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder, and a place that only fsspec knows."""
    MemoryFileSystem.store.clear()
    yield str(tmp_path / "store") if request.param == "disk" else "memory://team/baselines"
    MemoryFileSystem.store.clear()


def runs(cells: Cells, name: str) -> tuple[fm.Run, fm.Run]:
    before, after = one_task(cells)
    return named(before, "base", run_id="base"), named(after, name, run_id=name)


def test_a_candidate_is_held_against_the_baseline_of_a_name(store: str) -> None:
    base, good = runs(GOOD, "good")
    _, bad = runs(BAD, "bad")
    baseline = accept_run(base, "main", store, by="ada", note="first")
    assert (baseline.by, baseline.note, baseline.gate) == ("ada", "first", None)
    assert read_baseline("main", store) == baseline
    for after, status in ((good, "PASS"), (bad, "FAIL")):
        result = run_gate("baseline:main", after, store=store)
        assert result.status == status
        assert result.before is not None
        assert result.before.run_id == "base"


def test_the_newest_counts_and_the_older_ones_are_kept(store: str) -> None:
    base, good = runs(GOOD, "good")
    first = accept_run(base, "main", store)
    run_gate("baseline:main", good, store=store)
    second = accept_run(good, "main", store)
    assert read_baseline("main", store) == second
    assert second.gate == "PASS"
    names = BaselineStore(store).list_names("baselines/main")
    assert {first.version, f"{first.version}.json", second.version, "current.json"} <= set(names)


def test_what_was_changed_since_is_an_error(tmp_path: Path) -> None:
    base, good = runs(GOOD, "good")
    baseline = accept_run(base, "main", tmp_path)
    folder = tmp_path / "baselines" / "main"
    scores = folder / baseline.version / "scores.parquet"
    content = scores.read_bytes()
    scores.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(ChecksumError, match=r"scores\.parquet"):
        run_gate("baseline:main", good, store=tmp_path)
    scores.write_bytes(content)
    pointer = folder / "current.json"
    facts = json.loads(pointer.read_text())
    pointer.write_text(json.dumps({**facts, "by": "mallory"}))
    with pytest.raises(ChecksumError, match=r"current\.json"):
        run_gate("baseline:main", good, store=tmp_path)


def test_a_baseline_appears_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, good = runs(GOOD, "good")
    first = accept_run(base, "main", tmp_path)

    def fail(*_: object) -> None:
        raise OutputError("no room", hint="make room.")

    with monkeypatch.context() as patch:
        patch.setattr(BaselineStore, "put_folder", fail)
        with pytest.raises(OutputError):
            accept_run(good, "main", tmp_path)
    assert read_baseline("main", tmp_path) == first


def test_names_are_those_of_folders_everywhere(tmp_path: Path) -> None:
    base, _ = runs(GOOD, "good")
    for name in ("", "../up", "a/b", ".hidden", "ä"):
        with pytest.raises(UsageError):
            accept_run(base, name, tmp_path)
    with pytest.raises(MissingInputError, match="existing baselines: none; create one"):
        run_gate("baseline:main", base, store=tmp_path)
    with pytest.raises(UsageError, match="no store"):
        run_gate("baseline:main", base)


def test_looks_are_counted_by_the_store(store: str) -> None:
    from forgetmap.gate import GatePolicy, GateRule

    base, close = runs(CLOSE, "close")
    policy = GatePolicy(rule=(GateRule(),), looks=2)

    def look(lost: int) -> int:
        after = runs(Cells(kept=1400 - lost, lost=lost, never=600), "close")[1]
        return run_gate(base, after, policy=policy, store=store).look.number

    assert [look(lost) for lost in (36, 35, 34)] == [1, 2, 3]
    last = read_history(store)[-1]
    assert last.status == "INCONCLUSIVE"
    assert "look 3 exceeds the 2 planned looks" in last.headline
    assert look(34) == 3  # the same answers again are no further look
    assert run_gate(base, close, store=store).look.number == 1  # under another policy
    other = runs(CLOSE, "other")[1]
    assert run_gate(base, other, policy=policy, store=store, record=False).look.number == 1


def test_a_rerun_after_an_open_decision_is_a_further_look(store: str) -> None:
    base, _ = runs(CLOSE, "close")

    def look(cells: Cells, **options: Any) -> tuple[int, str]:
        result = run_gate(base, runs(cells, "close")[1], store=store, **options)
        return result.look.number, result.status

    more = Cells(kept=1365, lost=35, never=600)
    assert look(CLOSE) == (1, "INCONCLUSIVE")
    assert look(CLOSE) == (1, "INCONCLUSIVE")  # the same answers
    flips = tuple(table.slice(1364, 36) for table in one_task(CLOSE))
    assert look(CLOSE, confirm=flips) == (1, "INCONCLUSIVE")  # only flips are new
    assert look(more) == (2, "INCONCLUSIVE")
    assert look(GOOD) == (3, "PASS")
    assert look(more) == (1, "INCONCLUSIVE")  # a look that decides is the last


def test_the_history_shows_what_came_back_and_what_got_through(store: str) -> None:
    base, _ = runs(GOOD, "good")
    accept_run(base, "main", store)
    for name, cells in (("one", BAD), ("two", GOOD), ("three", BAD), ("two", BAD)):
        run_gate("baseline:main", runs(cells, name)[1], store=store)
    accept_run(runs(BAD, "three")[1], "main", store)
    history = summarize_history(store)
    statuses = [(release.after, release.status) for release in history.releases]
    assert statuses == [("one", "FAIL"), ("two", "PASS"), ("three", "FAIL"), ("two", "FAIL")]
    assert history.releases[0].used["loss"] == pytest.approx(5.7, abs=0.3)
    (recurring,) = history.recurring
    assert (recurring.check, recurring.releases) == ("loss", ["one", "three", "two"])
    escaped = {release.release: release.reason for release in history.escaped}
    assert escaped["three"] == "accepted after FAIL"
    assert "passed on" in escaped["two"]


def test_a_store_without_anything_has_no_history(store: str) -> None:
    assert summarize_history(store).releases == []


def test_decisions_of_the_same_moment_are_all_kept(store: str) -> None:
    base, good = runs(GOOD, "good")
    result = run_gate(base, good)
    with pytest.MonkeyPatch.context() as patch:
        # Two processes that looked before either wrote.
        patch.setattr(BaselineStore, "list_names", lambda *_: [])
        record_result(result, store)
        record_result(result, store)
    assert len(read_history(store)) == 2


def test_an_entry_of_another_baseline_or_of_other_paths_is_an_error(tmp_path: Path) -> None:
    base, good = runs(GOOD, "good")
    baseline = accept_run(base, "main", tmp_path)
    kept = BaselineStore(str(tmp_path))
    kept.write_json("baselines/other/current.json", asdict(baseline))
    with pytest.raises(UnreadableError, match="baseline 'main', not to 'other'"):
        run_gate("baseline:other", good, store=tmp_path)
    for change in ({"files": {"../up": "0"}}, {"version": "../up"}, {"files": None}):
        kept.write_json("baselines/main/current.json", {**asdict(baseline), **change})
        with pytest.raises(UnreadableError, match="not a baseline"):
            run_gate("baseline:main", good, store=tmp_path)


def test_a_result_says_which_version_it_was_held_against(store: str) -> None:
    base, good = runs(GOOD, "good")
    version = accept_run(base, "main", store).version
    result = run_gate("baseline:main", good, store=store)
    assert result.before is not None
    assert result.before.origin == f"baseline:main, version {version}"
    assert read_history(store) == [result]


def test_the_first_of_every_name_did_not_escape(store: str) -> None:
    base, good = runs(GOOD, "good")
    for name in ("flash", "pro"):
        accept_run(base, name, store)
    assert summarize_history(store).escaped == []
    accept_run(good, "pro", store)
    (escaped,) = summarize_history(store).escaped
    assert (escaped.release, escaped.reason) == ("good", "accepted without a gate")


def test_a_decision_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="FAIL: loss"):
        run_gate(*runs(BAD, "bad"), store=tmp_path / "file")


def test_files_that_are_no_decisions_are_left_alone(tmp_path: Path) -> None:
    run_gate(*runs(GOOD, "good"), store=tmp_path)
    (tmp_path / "history" / "README.md").write_text("ours", encoding="utf-8")
    assert len(read_history(tmp_path)) == 1
