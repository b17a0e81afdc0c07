"""Cells that a spreadsheet would execute are escaped, and read back unchanged."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from forgetmap.records.tables import quote_formulas, unquote_formula, unquoted_sql, write_table
from forgetmap.sources.open import open_run
from run_folders import run_of

RISKY = ["=1+1", "+cmd|x", "-x", "@SUM(1)", "\t=1", "\r=1", "'=1", "''-5", "- a list", "-5-3"]
PLAIN = ["-5", "+3.25", "-1e-3", "a=b", "'tis", "'", "", "1=1", " =1", "-.5"]


@pytest.mark.parametrize("text", RISKY)
def test_formula_gets_a_quote_and_loses_it_again(text: str) -> None:
    (quoted,) = quote_formulas(pa.table({"x": [text]}))
    assert quoted.to_pylist() == [f"'{text}"]
    assert unquote_formula(f"'{text}") == text


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_and_numbers_stay(text: str) -> None:
    (same,) = quote_formulas(pa.table({"x": [text]}))
    assert same.to_pylist() == [text]
    assert unquote_formula(text) == text


def test_numbers_and_gaps_stay() -> None:
    table = pa.table({"x": [-1.5, None], "y": pa.array([None, "=1"], pa.string())})
    assert [each.to_pylist() for each in quote_formulas(table)] == [[-1.5, None], [None, "'=1"]]


def test_engine_takes_the_quote_off_like_python() -> None:
    texts = [*RISKY, *PLAIN, *(f"'{text}" for text in RISKY + PLAIN)]
    given = pa.table({"x": texts, "place": range(len(texts))})
    found = duckdb.connect().execute(f"SELECT {unquoted_sql('x')} FROM given ORDER BY place")
    assert [text for (text,) in found.fetchall()] == list(map(unquote_formula, texts))
    assert given.num_rows == len(texts)


def test_table_holds_no_formula_and_is_read_back(tmp_path: Path) -> None:
    rows = [
        {"task": "=t", "item": text, "score": -0.5, "answer": text, "question": f"{text}?"}
        for text in RISKY
    ]
    path = write_table(run_of(rows), tmp_path / "t.csv")
    with path.open(newline="", encoding="utf-8") as stream:
        written = list(csv.DictReader(stream))
    assert all(row["item"].startswith("'") and row["task"] == "'=t" for row in written)
    assert {row["score"] for row in written} == {"-0.5"}
    read = open_run(path).scores.select("task", "item", "answer").collect().rows()
    assert sorted(read) == sorted(("=t", text, text) for text in RISKY)
