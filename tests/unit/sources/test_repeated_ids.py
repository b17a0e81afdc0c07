"""Ids in several rows: repeats, items of a group, or a mistake."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from forgetmap.errors import DuplicateKeyError
from forgetmap.records.run import Run
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run


def opened(folder: Path, rows: str, head: str = "id,score", kind: str = "csv") -> Run:
    path = folder / f"t.{kind}"
    (folder / "t.csv").write_text(f"{head}\n{rows.replace(' ', chr(10))}\n")
    if kind == "parquet":
        pq.write_table(pyarrow.csv.read_csv(folder / "t.csv"), path)
    run = open_run(path)
    check_run(run, unique=True)
    return run


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_every_id_as_often_is_repeats_in_the_order_of_the_file(kind: str, tmp_path: Path) -> None:
    run = opened(tmp_path, "a,1 b,0 a,0 b,1 a,1 b,1", kind=kind)
    rows = run.scores.select("item", "repeat", "score").collect().rows()
    assert sorted(rows) == [
        ("a", 0, 1.0), ("a", 1, 0.0), ("a", 2, 1.0), ("b", 0, 0.0), ("b", 1, 1.0), ("b", 2, 1.0),
    ]  # fmt: skip
    assert run.notices == (
        "score = score, item = id, 6 rows.",
        "every id occurs 3 times: read as 3 repeats, in the order of the file.",
    )


def test_ids_of_groups_give_items_in_a_cluster(tmp_path: Path) -> None:
    run = opened(tmp_path, "a,1 a,0 b,0 b,1 b,1 c,1")
    rows = run.scores.select("item", "cluster", "score").collect().rows()
    assert sorted(rows) == [
        ("a#1", "a", 1.0), ("a#2", "a", 0.0),
        ("b#1", "b", 0.0), ("b#2", "b", 1.0), ("b#3", "b", 1.0), ("c#1", "c", 1.0),
    ]  # fmt: skip
    assert "2 of 3 ids occur several times" in run.notices[1]


def test_texts_stay_with_their_repeat(tmp_path: Path) -> None:
    run = opened(tmp_path, "a,1,x b,0,y a,0,z b,1,w", head="id,score,response")
    assert run.texts is not None
    rows = run.texts.select("item", "repeat", "response").collect().rows()
    assert sorted(rows) == [("a", 0, "x"), ("a", 1, "z"), ("b", 0, "y"), ("b", 1, "w")]


def test_column_of_repeats_says_it_all(tmp_path: Path) -> None:
    run = opened(tmp_path, "a,1,5 a,0,7", head="id,score,repeat")
    assert run.notices == ("score = score, item = id, 2 rows.",)
    assert sorted(run.scores.collect()["repeat"].to_list()) == [0, 1]


@pytest.mark.parametrize(
    "rows",
    [
        "a,1 b,0 c,1 d,1 a,1",  # one id again
        "a,1 b,0 a,1 b,0",  # the whole file again
        "a,1 a,0",  # nothing but one id
    ],
)
def test_mistakes_are_refused(rows: str, tmp_path: Path) -> None:
    with pytest.raises(DuplicateKeyError):
        opened(tmp_path, rows)


def test_other_questions_under_one_id_are_other_items(tmp_path: Path) -> None:
    run = opened(tmp_path, "t,a,1,x t,a,0,y t,b,1,z", head="task,item,score,question")
    assert run.notices == ()
    assert sorted(run.scores.collect()["item"].to_list()) == ["a", "a", "b"]
