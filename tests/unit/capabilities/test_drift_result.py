"""Display of a drift at the Python prompt and in a notebook."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import pytest

from drifting_runs import drifted
from forgetmap.capabilities.drift_result import describe_cell
from forgetmap.capabilities.result import Cell, MetricCell


def test_python_shows_sentences_and_a_table() -> None:
    lines = repr(drifted(2).result).splitlines()
    assert lines[0].startswith("Drift from ")
    assert "model-1: " in lines[1]
    assert any(line.split() == ["model-1", "model-2"] for line in lines)
    tools = next(line for line in lines if line.startswith("  tools Tool use"))
    assert tools.split()[3:] == ["no", "data", "no", "data"]


def test_notebooks_show_a_table() -> None:
    page = drifted(2).result._repr_html_()
    assert "<th>model-2</th>" in page
    assert "drifted most" in page


@pytest.mark.parametrize(
    ("low", "high", "mark"),
    [(-0.5, -0.1, "*"), (-0.5, 0.1, ""), (-0.1, 0.0, ""), (0.1, 0.2, ""), (None, None, "")],
)
def test_a_star_needs_an_interval_that_agrees(
    low: float | None, high: float | None, mark: str
) -> None:
    cell = drifted(1).result.capabilities[0]
    cell = replace(cell, value=-0.3, low=low, high=high, p=0.001, q=0.001, within_noise=None)
    assert describe_cell(cell).mark == mark


def test_all_cells_as_csv() -> None:
    result = drifted(2).result
    rows = list(csv.DictReader(StringIO(result.to_csv())))
    cells: list[Cell | MetricCell] = [*result.groups, *result.capabilities, *result.metrics]
    assert [(row["model"], row["id"]) for row in rows] == [(cell.model, cell.id) for cell in cells]
    assert {row["base"] for row in rows} == {result.before}
    assert [row["value"] == "" for row in rows] == [cell.value is None for cell in cells]
    assert [row["state"] == "sure" for row in rows] == [
        describe_cell(cell).mark == "*" for cell in cells
    ]
    assert {row["level"] for row in rows} == {"group", "capability", "metric"}


def test_names_that_are_formulas_are_none_in_csv() -> None:
    result = drifted(1).result
    cells = [replace(cell, model="=1+1") for cell in result.groups]
    text = replace(
        result, models=("=1+1",), groups=tuple(cells), capabilities=(), metrics=()
    ).to_csv()
    assert ",=1+1" not in text.replace('"', "")


def test_the_largest_drift_is_named() -> None:
    result = drifted(2).result
    assert result.ranking is not None
    first = result.ranking.models[0]
    assert f"{first.model} " in repr(result)
    assert "drifted most" in result.comparison(result.ranking)
