"""One model of a table of several: `TABLE#NAME`, by column, by row, in matrices without header."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.comparison.api import open_all
from forgetmap.errors import ColumnError, FieldError, ForgetmapError, PairingError
from forgetmap.pairing.matching import match, prepare
from forgetmap.records.run import Run
from forgetmap.sources.open import open_run

WIDE = "task,item,base,tuned\nt,a,1,0\nt,b,1,1\nu,a,0,1\n"
NAMELESS = "base,tuned\n1,0\n1,1\n0,\n"
LONG = "task,item,model,score\nt,a,base,1\nt,b,base,0\nt,b,tuned,1\nt,a,tuned,0\n"
MATRIX = "1,0,1\n1,1,0\n0,0,1\n0,1,1\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def results(run: Run) -> list[tuple[str, str, float | None]]:
    rows = run.scores.select("task", "item", "score").collect().rows(named=True)
    return sorted((row["task"], row["item"], row["score"]) for row in rows)


def cells(before: str, after: str, pair_by: str = "auto") -> list[tuple[int | None, int | None]]:
    """States of both sides, item by item."""
    sides = [prepare(run) for run in open_all([before, after], column_map=None, task=None)]
    assert pair_by in ("auto", "id")
    pairs = match(*sides, correct_at=1.0, pair_by="id" if pair_by == "id" else "auto")
    rows = pairs.frame.select("state_before", "state_after").collect().rows()
    return sorted((row[0], row[1]) for row in rows)


def test_column_of_a_wide_table(tmp_path: Path) -> None:
    path = write(tmp_path / "w.csv", WIDE)
    run = open_run(f"{path}#tuned")
    assert run.name == "tuned"
    assert results(run) == [("t", "a", 0.0), ("t", "b", 1.0), ("u", "a", 1.0)]
    assert cells(f"{path}#base", f"{path}#tuned") == [(0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_column_of_a_wide_table_in_other_formats(kind: str, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "x": 1, "y": 0}, {"task": "t", "item": "b", "x": 0, "y": 1}]
    path = tmp_path / f"w.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "json":
        write(path, json.dumps(rows))
    else:
        write(path, "".join(json.dumps(row) + "\n" for row in rows))
    assert results(open_run(f"{path}#y")) == [("t", "a", 0.0), ("t", "b", 1.0)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_of_a_long_table(kind: str, tmp_path: Path) -> None:
    header, *lines = (line.split(",") for line in LONG.splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    path = write(tmp_path / f"long.{kind}", LONG)
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        write(path, "".join(json.dumps(row) + "\n" for row in rows))
    assert results(open_run(f"{path}#tuned")) == [("t", "a", 0.0), ("t", "b", 1.0)]
    assert cells(f"{path}#base", f"{path}#tuned") == [(0, 1), (1, 0)]


def test_fault_in_a_chosen_row_is_found_and_others_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "long.csv", LONG.replace("t,a,tuned,0", "t,a,tuned,oops"))
    assert len(results(open_run(f"{path}#base"))) == 2
    with pytest.raises(FieldError) as caught:
        prepare(open_run(f"{path}#tuned"))
    assert (caught.value.line, caught.value.field) == (5, "score")


def test_table_of_evalstats(tmp_path: Path) -> None:
    text = "template,input,score,run,evaluator\np,q1,1,0,e\np,q1,0,1,e\np,q2,1,0,e\nr,q1,0,0,e\n"
    path = write(tmp_path / "e.csv", text)
    rows = open_run(f"{path}#p").scores.collect().rows(named=True)
    found = sorted((r["task"], r["item"], r["repeat"], r["scorer"], r["score"]) for r in rows)
    assert found == [
        ("all", "q1", 0, "e", 1.0),
        ("all", "q1", 1, "e", 0.0),
        ("all", "q2", 0, "e", 1.0),
    ]


def test_table_without_items_counts_by_place_within_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "n.csv", NAMELESS)
    assert results(open_run(f"{path}#tuned")) == [
        ("all", "1", 0.0),
        ("all", "2", 1.0),
        ("all", "3", None),
    ]
    assert cells(f"{path}#base", f"{path}#tuned") == [(0, 2), (1, 0), (1, 1)]


def test_places_in_two_files_are_no_ids_unless_said(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, NAMELESS) for name in ("one.csv", "two.csv")]
    with pytest.raises(PairingError, match="have no item ids"):
        cells(f"{paths[0]}#base", f"{paths[1]}#base")
    assert cells(f"{paths[0]}#base", f"{paths[1]}#base", "id") == [(0, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize("mark", [",", "\t", ";", "|", " ", "   "])
def test_matrix_without_header(mark: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.txt", MATRIX.replace(",", mark))
    assert [score for *_, score in results(open_run(f"{path}#3"))] == [1.0, 0.0, 1.0, 1.0]
    assert cells(f"{path}#1", f"{path}#2") == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_matrix_with_a_row_per_model(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", "1,0,1,1\n0,0,1,1\n")
    assert [score for *_, score in results(open_run(f"{path}#row2"))] == [0.0, 0.0, 1.0, 1.0]
    assert [score for *_, score in results(open_run(f"{path}#col2"))] == [0.0, 0.0]
    with pytest.raises(ColumnError, match="whether the rows are items or models") as caught:
        open_run(f"{path}#2")
    assert "#row2" in caught.value.hint


@pytest.mark.parametrize("model", ["0", "4", "row5", "x", "row", "99999999999999999999"])
def test_place_that_a_matrix_does_not_have(model: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", MATRIX)
    with pytest.raises(ColumnError, match="4 rows and 3 columns"):
        open_run(f"{path}#{model}")


def test_matrix_as_a_whole_is_no_run(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", MATRIX)
    with pytest.raises(ColumnError, match="no header") as caught:
        open_run(path)
    assert "m.csv#col1" in caught.value.hint


@pytest.mark.parametrize(("text", "line"), [("1,0\n1\n", 2), ("1,0\n1,x\n0,1\n", 2)])
def test_broken_matrix_says_where(text: str, line: int, tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", text)
    with pytest.raises(FieldError) as caught:
        open_run(f"{path}#2")
    assert caught.value.line == line


def test_unknown_model_lists_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "long.csv", LONG)
    with pytest.raises(ColumnError, match="the choices are base, tuned"):
        open_run(f"{path}#other")


def test_file_whose_name_has_a_number_sign(tmp_path: Path) -> None:
    path = write(tmp_path / "run#1.csv", "task,item,score\nt,a,1\n")
    assert results(open_run(path)) == [("t", "a", 1.0)]
    with pytest.raises(ForgetmapError, match="does not exist"):
        open_run(tmp_path / "none.csv#1")


@pytest.mark.parametrize(
    "text",
    [
        "prompt_id,score\na,1\nb,0\n",
        "benchmark,question_id,correct\nall,a,1\nall,b,0\n",
        "task,id,is_correct\nall,a,True\nall,b,False\n",
    ],
)
def test_names_that_others_give(text: str, tmp_path: Path) -> None:
    run = open_run(write(tmp_path / "t.csv", text))
    assert results(run) == [("all", "a", 1.0), ("all", "b", 0.0)]


def test_of_two_ids_the_one_with_the_same_content_is_meant(tmp_path: Path) -> None:
    """A number of each row is on both sides, too, but with another question."""
    rows = [(f"q{n}", f"What is {n} and {n}?", n % 2) for n in range(6)]
    for name, order in (("a.csv", rows), ("b.csv", rows[::-1])):
        lines = [f"{n},{item},{text},{score}\n" for n, (item, text, score) in enumerate(order)]
        write(tmp_path / name, "".join(["id,key,question,passed\n", *lines]))
    assert cells(str(tmp_path / "a.csv"), str(tmp_path / "b.csv")) == [(0, 0)] * 3 + [(1, 1)] * 3
