"""A run that is written as a table is read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forgetmap.records.folder import read_run, write_run
from forgetmap.records.tables import write_table
from forgetmap.sources.open import open_run
from run_folders import ENDINGS, Row, both_tables, on_disk, results, run_of

RICH: list[Row] = [
    {
        "task": task,
        "item": f"i{n}",
        "repeat": repeat,
        "metric": metric,
        "scorer": "strict",
        "score": None if n == 2 else (n + repeat) / 3,
        "outcome": "error" if n == 2 else "partial",
        "k": 2,
        "category": "c",
        "tags": "a;b",
        "cluster": "passage 1",
        "gold": "Rome",
        "answer": 'he said "Rome",\nthen left',
        "choice": "Rome",
        "seed": 2**62 + repeat,
        "tokens_in": 10,
        "tokens_out": 2**31 - 1,
        "finish_reason": "stop",
        "logprob_answer": -1 / 3,
        "logprob_gold": -1e-300,
        "question": f"Where\tis\r\n{n}?",
        "options": ["Rome", 'O"slo, "'],
        "prompt": json.dumps([{"role": "user", "content": "Hi"}]),
        "response": "  blanks, = formulas, 'quotes', é\u2028 ",
        "error": "boom" if n == 2 else None,
    }
    for task in ("t", "u")
    for n in range(3)
    for repeat in range(2)
    for metric in ("acc", "f1")
]  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_field_survives(ending: str, tmp_path: Path) -> None:
    first = write_run(run_of(RICH), tmp_path / "first")
    table = write_table(read_run(first), tmp_path / f"table.{ending}")
    second = write_run(open_run(table), tmp_path / "second")
    assert both_tables(second) == both_tables(first)
    assert len(on_disk(second, "scores")) == len(RICH)


def test_a_run_folder_survives_itself(tmp_path: Path) -> None:
    first = write_run(run_of(RICH, run_id="r", seeds=[3]), tmp_path / "first")
    second = write_run(read_run(first), tmp_path / "second")
    assert both_tables(second) == both_tables(first)
    assert read_run(second).info == read_run(first).info


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_without_texts_survives(ending: str, tmp_path: Path) -> None:
    table = write_table(run_of(results([1, None, 0.1])), tmp_path / f"table.{ending}")
    again = open_run(table)
    assert again.texts is None
    assert sorted(again.scores.select("item", "score").collect().rows()) == [
        ("i0", 1.0),
        ("i1", None),
        ("i2", 0.1),
    ]
