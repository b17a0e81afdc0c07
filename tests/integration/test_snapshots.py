"""JSON output and report payloads equal the snapshots, case by case.

To accept a change, run `python tools/snapshots.py --write` and read the diff.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snapshot_cases import Case, all_cases
from snapshot_store import (
    MAX_DIFFERENCES,
    MAX_TEXT,
    SNAPSHOTS,
    as_text,
    difference,
    normalise,
    path_of,
    read,
)

CASES = all_cases()


LONG = {("sweep", "several")}
"""Another sweep shows the same in a third of the time."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=f"{case.command}-{case.name}",
            marks=pytest.mark.slow if (case.command, case.name) in LONG else (),
        )
        for case in CASES
    ],
)
def test_output_is_that_of_the_snapshot(case: Case, tmp_path: Path) -> None:
    found = difference(read(path_of(case.command, case.name)), case.run(tmp_path))
    assert not found, f"JSON path: old -> new\n{found}"


def test_every_snapshot_has_a_case() -> None:
    known = {path_of(case.command, case.name) for case in CASES}
    assert len(known) == len(CASES)
    assert set(SNAPSHOTS.rglob("*")) - set(SNAPSHOTS.iterdir()) == known


@pytest.fixture
def payload() -> Any:
    return read(path_of("payload", "example-labelled"))


def test_what_is_altered_is_reported_by_its_path(payload: Any) -> None:
    altered = read(path_of("payload", "example-labelled"))
    total = altered["comparisons"][0]["total"]
    old, total["items"] = total["items"], -1
    del altered["title"]
    total["rest"]["detectable"] += 1e-6
    altered["items"][0]["columns"]["task"].append("one more")
    lines = difference(payload, altered).splitlines()
    assert f"$.comparisons[0].total.items: {old} -> -1" in lines
    assert '$.title: "after against before" -> (missing)' in lines
    assert any(line.startswith("$.comparisons[0].total.rest.detectable: ") for line in lines)
    assert any(line.startswith("$.items[0].columns.task: length ") for line in lines)
    assert len(lines) == 4


def test_a_number_is_not_a_text_nor_a_whole_number_a_fraction() -> None:
    assert difference({"a": 1}, {"a": 1.0}) == "$.a: 1 -> 1.0"
    assert difference({"a": 1}, {"a": True}) == "$.a: 1 -> true"
    assert difference([0.5], [None]) == "$[0]: 0.5 -> null"
    assert not difference([0.1234567891], [0.1234567892])
    assert difference([0.1234567], [0.1234568])


def test_only_the_first_differences_are_shown() -> None:
    lines = difference([0] * 50, [1] * 50).splitlines()
    assert len(lines) == MAX_DIFFERENCES + 1
    assert lines[-1] == "... and 30 more differences"


def test_what_differs_between_two_runs_is_taken_out(tmp_path: Path) -> None:
    value = {
        "origin": str(tmp_path / "runs" / "base"),
        "folder": f"nothing in {tmp_path}.",
        "made": "2026-01-01",
        "version": "9.9",
        "seconds": 0.04,
        "value": 0.1 + 0.2,
        "left": 1e-17,
    }
    assert normalise(value, tmp_path) == {
        "origin": "runs/base",
        "folder": "nothing in FOLDER.",
        "made": "DATE",
        "version": "VERSION",
        "seconds": "SECONDS",
        "value": 0.3,
        "left": 0.0,
    }
    one, other = (normalise("x" * (MAX_TEXT + 1) + end, tmp_path) for end in "ab")
    assert one != other
    assert max(len(one), len(other)) < MAX_TEXT


def test_the_form_of_a_file_is_json(payload: Any, tmp_path: Path) -> None:
    path = tmp_path / "again.json"
    path.write_text(as_text(payload), encoding="utf-8")
    assert read(path) == payload
