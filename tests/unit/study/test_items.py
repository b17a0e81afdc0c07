"""Items behind the numbers: which changed, which are shown, and their texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from forgetmap.study import ItemReader, StudyDetail, examine_study, parse_study, read_study
from forgetmap.study.items import choose_flips, find_flips, shorten_middle
from run_folders import results, run_of
from study_runs import write_told_study


@pytest.fixture(scope="module")
def detail(tmp_path_factory: pytest.TempPathFactory) -> StudyDetail:
    folder = tmp_path_factory.mktemp("told")
    write_told_study(folder, repeats=2)
    return examine_study(read_study(folder / "study.toml"), folder=folder / "runs")


def test_every_change_is_listed_with_both_answers(detail: StudyDetail) -> None:
    reader = ItemReader(detail.answers, detail.pairs, 10)  # type: ignore[arg-type]
    for number, pair in enumerate(detail.pairs):
        rows = reader.table(number).to_pylist()
        assert len(rows) == (pair.total.forgotten or 0) + (pair.total.gained or 0)
        for row in rows:
            right, wrong = row["gold"], "=cmd()"
            answers = (row["answer_before"], row["answer_after"])
            expected = (right, wrong) if row["transition"] == "forgotten" else (wrong, right)
            assert answers == expected
            assert row["item"].startswith(row["task"])
            assert row["task"] in row["question"]


def test_a_page_has_some_of_every_category_with_responses(detail: StudyDetail) -> None:
    reader = ItemReader(detail.answers, detail.pairs, 10)  # type: ignore[arg-type]
    columns = reader.columns(0)
    assert len(columns["item"]) <= 10
    lost = [kind == "forgotten" for kind in columns["transition"]]
    assert set(np.asarray(columns["category"])[lost]) == {"maths", "texts"}
    numbers = [item.rpartition("-")[2] for item in columns["item"]]
    assert columns["response_before"] == [f"base says {n} </script>" for n in numbers]
    assert columns["response_after"] == [f"tuned says {n} </script>" for n in numbers]
    assert {reason for reason, is_lost in zip(columns["reason"], lost, strict=True) if is_lost} == {
        "wrong"
    }


def test_without_texts_only_names_and_outcomes_remain(detail: StudyDetail) -> None:
    reader = ItemReader(detail.answers, detail.pairs, 10, texts=False)  # type: ignore[arg-type]
    names = set(reader.columns(0))
    assert names == {
        "transition", "category", "task", "item", "repeat", "outcome_before", "outcome_after",
        "reason",
    }  # fmt: skip


TWO = """name = "two"
[[model]]
id = "a"
logs = ["a"]
[[model]]
id = "b"
logs = ["b"]
parent = "a"
[[model]]
id = "c"
logs = ["c"]
parent = "a"
"""


def test_items_that_most_pairs_forgot_come_first(tmp_path: Path) -> None:
    runs = {
        "a": [run_of(results([1.0, 1.0, 1.0, 0.0]))],
        "b": [run_of(results([0.0, 1.0, 0.0, 1.0]))],
        "c": [run_of(results([0.0, 1.0, 1.0, 0.0]))],
    }
    detail = examine_study(parse_study(TWO, str(tmp_path / "x")), runs)
    assert detail.answers is not None
    reader = ItemReader(detail.answers, detail.pairs, 5)
    items, counts = reader.lost_items(10)
    assert [(item.item, item.lost, item.known, item.losers) for item in items] == [
        ("i0", 2, 2, (0, 1)),
        ("i2", 1, 2, (0,)),
    ]
    assert items[0].question is None
    assert counts.tolist() == [1, 1, 1]
    flips = find_flips(detail.answers, "a", "b")
    assert flips.places.tolist() == [0, 2, 3]
    assert choose_flips(detail.answers, flips, 2).tolist() == [0, 2]


def test_long_texts_keep_both_ends() -> None:
    assert shorten_middle("abc", 3) == "abc"
    assert shorten_middle("abcdefgh", 4) == "ab\n[... 4 characters left out ...]\ngh"
