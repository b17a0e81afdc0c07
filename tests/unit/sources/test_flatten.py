"""Scores nested in columns of a table, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import ColumnError, FieldError
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run
from table_writers import as_json, as_jsonl, as_parquet, found

NESTED: list[dict[str, Any]] = [
    {"id": "a", "scores": {"pass@1": 1, "n": 3}, "trials": [{"r": 1}, {"r": 0}]},
    {"id": "b", "scores": {"pass@1": 0, "n": 4}, "trials": [{"r": 1}, {"r": 1}]},
]
FORMATS = {"jsonl": as_jsonl, "json": as_json, "parquet": as_parquet}


@pytest.mark.parametrize("kind", FORMATS)
def test_path_of_a_score(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(FORMATS[kind](NESTED))
    options = {"column_map": {"score": "scores.pass@1"}}
    assert found(tmp_path / "t", **options) == [("all", "a", 1.0), ("all", "b", 0.0)]
    assert found(f"{tmp_path / 't'}#scores.pass@1") == [("all", "a", 1.0), ("all", "b", 0.0)]  # type: ignore[arg-type]


def test_json_in_the_cells_of_a_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,scores\na,"{""em"": 1}"\nb,"{""em"": 0}"\n')
    options = {"column_map": {"score": "scores.em"}}
    assert found(tmp_path / "t.csv", "item", "score", **options) == [("a", 1.0), ("b", 0.0)]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_element_is_a_repeat(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(FORMATS[kind](NESTED))
    rows = found(tmp_path / "t", "item", "repeat", "score", column_map={"score": "trials.*.r"})
    assert rows == [("a", 0, 1.0), ("a", 1, 0.0), ("b", 0, 1.0), ("b", 1, 1.0)]


def test_one_element_is_chosen_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(as_jsonl(NESTED))
    rows = found(tmp_path / "t", "item", "score", column_map={"score": "trials.-1.r"})
    assert rows == [("a", 0.0), ("b", 1.0)]


def test_path_that_leads_nowhere_names_those_with_numbers(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(as_jsonl(NESTED))
    with pytest.raises(ColumnError, match="all values are empty") as caught:
        open_run(tmp_path / "t", column_map={"score": "scores.pas@1"})
    assert "scores.pass@1" in caught.value.hint


def test_fault_below_a_column_is_named_with_its_line(tmp_path: Path) -> None:
    rows = [*NESTED, {"id": "c", "scores": {"pass@1": 9}}]
    (tmp_path / "t").write_bytes(as_jsonl(rows))
    with pytest.raises(FieldError) as caught:
        check_run(open_run(tmp_path / "t", column_map={"score": "scores.pass@1"}))
    assert (caught.value.line, caught.value.field) == (3, "score")


def test_texts_and_missing_scores_survive(tmp_path: Path) -> None:
    rows = [{"id": "a", "s": {"x": None}, "response": "é\n"}, {"id": "b", "s": {"x": 0.25}}]
    (tmp_path / "t").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = open_run(tmp_path / "t", column_map={"score": "s.x"})
    assert sorted(run.scores.select("item", "score").collect().rows()) == [("a", None), ("b", 0.25)]
    assert run.texts is not None
    assert run.texts.select("response").collect().rows()[0] == ("é\n",)


def test_column_whose_name_has_a_dot_needs_no_path(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,s.x\na,1\n")
    assert found(tmp_path / "t.csv", "score", column_map={"score": "s.x"}) == [(1.0,)]


def test_wide_csv_has_no_limit(tmp_path: Path) -> None:
    names = ",".join(f"m{n}" for n in range(12_000))
    rows = "\n".join(f"{item},{','.join(str((n + item) % 2) for n in range(12_000))}"
                     for item in range(2))  # fmt: skip
    (tmp_path / "t.csv").write_text(f"id,{names}\n{rows}\n")
    assert found(f"{tmp_path / 't.csv'}#m11999", "item", "score") == [("0", 1.0), ("1", 0.0)]  # type: ignore[arg-type]
