"""Matrices of items and models: without names, with a row or a column per model, in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import ColumnError, FieldError
from forgetmap.sources.open import open_run

MAX_COLUMNS = 10_000


def results(source: object) -> dict[str, float | None]:
    rows = open_run(source).scores.select("item", "score").collect().rows()
    return {str(item): score for item, score in rows}


def test_wide_matrix_without_header(tmp_path: Path) -> None:
    """12 models and 41,871 items are real."""
    rows = [[(model * item) % 3 == 0 for item in range(41_871)] for model in range(12)]
    text = "\n".join(",".join(str(float(cell)) for cell in row) for row in rows)
    (tmp_path / "m.csv").write_text(text + "\n")
    found = results(f"{tmp_path / 'm.csv'}#row3")
    assert len(found) == 41_871
    assert found["1"] == 1.0
    assert found["2"] == 0.0
    assert sum(score or 0 for score in found.values()) == sum(rows[2])
    assert results(f"{tmp_path / 'm.csv'}#col2") == {
        str(model + 1): float(rows[model][1]) for model in range(12)
    }


def test_first_line_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    line = ",".join(["0.333333333333333333"] * 60_000)
    (tmp_path / "m.csv").write_text(f"{line}\n{line}\n")
    assert len(results(f"{tmp_path / 'm.csv'}#row2")) == 60_000


def test_row_of_a_model_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("model,q1,q2,q3\nbase,1,0,\ntuned,0,0,1\n")
    assert results(f"{tmp_path / 'm.csv'}#base") == {"q1": 1.0, "q2": 0.0, "q3": None}
    with pytest.raises(ColumnError, match="the choices are base, tuned"):
        open_run(f"{tmp_path / 'm.csv'}#other")


def test_row_of_a_model_among_more_columns_than_the_engine_reads(tmp_path: Path) -> None:
    """A header of 10,001 items."""
    count = MAX_COLUMNS + 1
    names = [f"q{number}" for number in range(count)]
    rows = {"base": ["1"] * count, "tuned": [str(number % 2) for number in range(count)]}
    lines = [",".join(["model", *names])]
    lines += [",".join([model, *cells]) for model, cells in rows.items()]
    path = tmp_path / "wide.txt"
    path.write_text("\n".join(lines) + "\n")
    run = open_run(f"{path}#tuned")
    scores = dict(run.scores.select("item", "score").collect().rows())
    assert (len(scores), scores["q1"], scores["q10000"]) == (count, 1.0, 0.0)


def test_row_of_a_model_in_a_column_without_name(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(",q1,q2\nbase,1,0\ntuned,0,0\n")
    assert results(f"{tmp_path / 'm.csv'}#tuned") == {"q1": 0.0, "q2": 0.0}


def test_cell_that_is_no_score_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("model,date,q1\nbase,today,1\n")
    with pytest.raises(FieldError, match="'today' of 'date' is not a score") as caught:
        open_run(f"{tmp_path / 'm.csv'}#base")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("document", "name", "found"),
    [
        ({"base": {"q1": True, "q2": 0}, "tuned": {"q1": 0, "q2": 1}}, "base", {"q1": 1, "q2": 0}),
        ({"base": [1, 0, None]}, "base", {"1": 1, "2": 0, "3": None}),
        ({"run": {"detail": {"pass@1": {"0": 1.0, "1": 0.0}}}}, "run.detail.pass@1",
         {"0": 1, "1": 0}),
        ([[1, 0], [0, 0], [1, 1]], "col1", {"1": 1, "2": 0, "3": 1}),
        ([[1, 0], [0, 0], [1, 1]], "row3", {"1": 1, "2": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("indent", [None, 1])
def test_matrix_in_json(
    document: Any, name: str, found: dict[str, float], indent: int | None, tmp_path: Path
) -> None:
    (tmp_path / "m.json").write_text(json.dumps(document, indent=indent))
    assert results(f"{tmp_path / 'm.json'}#{name}") == found
