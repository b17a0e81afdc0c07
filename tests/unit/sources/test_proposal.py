"""Mappings proposed for tables of unknown shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from forgetmap.errors import UnknownFormatError
from forgetmap.sources.maps import ScoreRange, TableMap
from forgetmap.sources.proposal import MapProposal, propose_map


def proposed(path: Path, rows: Any, known: TableMap | None = None) -> MapProposal:
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    return propose_map(path, known)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((0, 1), None),
        ((True, False), None),
        ((0.2, 0.9), None),
        ((1, 2), ScoreRange(1, 2)),
        ((1, 7), ScoreRange(1, 10)),
        ((0, 7), ScoreRange(0, 10)),
        ((3, 5), ScoreRange(1, 5)),
        ((0, 80.0), ScoreRange(0, 100)),
        ((-1, 1), ScoreRange(-1, 1)),
        ((0, 250), ScoreRange(0, 250)),
    ],
)
def test_scale_by_the_values(
    values: tuple[float, ...], scale: ScoreRange | None, tmp_path: Path
) -> None:
    rows = [{"uid": n, "rating": value} for n, value in enumerate(values)]
    proposal = proposed(tmp_path / "a.json", rows)
    assert proposal.table_map.columns == {"score": "rating", "item": "uid"}
    assert proposal.table_map.score_range == scale
    assert proposal.problem == ""
    assert proposal.run is not None


def test_columns_are_described(tmp_path: Path) -> None:
    rows = [{"id": "a", "s": {"acc": 1}, "n": None, "l": [1]}, {"id": "b", "s": {"acc": 0.5}}]
    columns = {one.path: one for one in proposed(tmp_path / "a.json", rows).columns}
    acc = columns["s.acc"]
    assert (acc.kind, acc.filled, acc.low, acc.high, acc.examples) == (
        "number",
        2,
        0.5,
        1,
        ("1", "0.5"),
    )
    assert columns["id"].different == 2
    assert columns["n"].kind == "empty"
    assert (columns["l"].kind, columns["l.*"].kind) == ("list", "whole number")


def test_document_rows_and_the_id_that_tells_most_rows_apart(tmp_path: Path) -> None:
    rows = [
        {"model": m, "question_id": n // 2, "sample_id": f"s{n}", "Pass@1": 50.0 * n}
        for m in ("x", "y")
        for n in range(3)
    ]
    proposal = proposed(tmp_path / "a.json", {"models": [{"name": "x"}], "performances": rows})
    table_map = proposal.table_map
    assert (table_map.rows, table_map.columns["item"]) == ("performances", "sample_id")
    assert table_map.score_range == ScoreRange(0, 100)
    assert proposal.models == ["x", "y"]
    assert proposal.sources == [f"'{tmp_path}/a.json#x'", f"'{tmp_path}/a.json#y'"]


def test_models_in_objects_of_each_row(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?", "x": {"ok": n == 1}, "y": {"ok": True}} for n in range(3)]
    proposal = proposed(tmp_path / "a.json", rows)
    assert "score" not in proposal.table_map.columns
    assert proposal.models == ["x", "y"]
    assert proposal.run is not None


def test_what_is_known_is_kept(tmp_path: Path) -> None:
    rows = [{"id": n, "key": -n, "acc": 1, "f1": 0.5} for n in range(2)]
    known = TableMap({"item": "key", "score": "f1"}, task="t", score_range=ScoreRange(0, 2))
    proposal = proposed(tmp_path / "a.json", rows, known)
    assert proposal.table_map == known


def test_trials_in_a_list_are_repeats(tmp_path: Path) -> None:
    rows = [{"id": n, "trials": [{"reward": 1}, {"reward": 0}]} for n in range(3)]
    proposal = proposed(tmp_path / "a.json", rows)
    assert proposal.table_map.columns["score"] == "trials.*.reward"
    assert proposal.run is not None
    assert proposal.run.scores.select("repeat").collect()["repeat"].max() == 1


@pytest.mark.parametrize("text", ["1,0,1\n0,0,1\n", "[[1, 0, 1], [0, 0, 1]]"])
def test_matrix_without_header(text: str, tmp_path: Path) -> None:
    proposal = proposed(tmp_path / "a", text)
    assert proposal.models == ["row1", "row2"]
    assert "without header" in proposal.shape


def test_nothing_like_a_score_is_said(tmp_path: Path) -> None:
    proposal = proposed(tmp_path / "a.json", [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}])
    assert "no column looks like a score" in " ".join(proposal.notes)
    assert "'score'" in proposal.problem


def test_document_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="unknown format"):
        proposed(tmp_path / "a.json", {"a": "b"})


def test_random_ids_are_those_of_results_not_of_items(tmp_path: Path) -> None:
    rows = [
        {"uuid": str(UUID(int=number, version=4)), "task_id": f"t{number % 2}", "is_resolved": True}
        for number in range(4)
    ]
    proposal = proposed(tmp_path / "a.json", rows)
    assert proposal.table_map.columns == {"score": "is_resolved", "item": "task_id"}
    alone = proposed(tmp_path / "b.json", [{"uuid": row["uuid"], "passed": 1} for row in rows])
    assert alone.table_map.columns["item"] == "uuid"
