"""`plot`, `to_latex` and `to_frame` of every result that has figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

import forgetmap as fm
from drifting_runs import drifted
from forgetmap.errors import UsageError
from forgetmap.results import Presentable
from forgetmap.study import published_detail
from merged_runs import sweep_mixtures
from reports import two_runs

COUNTS = {"a": {"n11": 40, "n10": 12, "n01": 6, "n00": 10}, "b": {"n11": 30, "n01": 20}}


def comparison(folder: Path) -> fm.Comparison:
    return fm.compare(*two_runs(folder, COUNTS))


def fan_out(folder: Path) -> fm.FanOut:
    base, tuned = two_runs(folder, COUNTS)
    (folder / "other.jsonl").write_text(tuned.read_text())
    return fm.compare(base, tuned, folder / "other.jsonl")


def chain(folder: Path) -> fm.Chain:
    base, tuned = two_runs(folder, COUNTS)
    (folder / "last.jsonl").write_text(base.read_text())
    return fm.chain(base, tuned, folder / "last.jsonl")


RESULTS: dict[str, tuple[Callable[[Path], Presentable], str, int]] = {
    "comparison": (comparison, "forgetting", 4),
    "fan_out": (fan_out, "forgetting", 8),
    "chain": (chain, "forgetting", 8),
    "drift": (lambda _: drifted(2).result, "value", 0),
    "sweep": (lambda folder: sweep_mixtures(folder, [0.5]), "forgetting", 3),
    "study": (lambda _: published_detail(), "forgetting", 310),
}
"""Result -> a column of its frame, and how many rows that has; 0 is any number."""


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_a_figure_a_table_and_a_frame(name: str, tmp_path: Path) -> None:
    make, column, rows = RESULTS[name]
    result = make(tmp_path)
    svg = result.plot()._repr_svg_()  # as notebooks call it
    assert ET.fromstring(svg).tag.endswith("svg")  # ours
    latex = result.to_latex()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") > 0
    assert r"\toprule" in latex
    frame = result.to_frame()
    assert column in frame.column_names
    assert frame.num_rows == rows or not rows
    assert frame.num_rows > 0


def test_values_are_those_of_the_result(tmp_path: Path) -> None:
    result = comparison(tmp_path)
    frame = result.to_frame().to_pylist()
    assert [row["n10"] for row in frame] == [12, 12, 12, 0]
    assert frame[0]["loss_high"] == pytest.approx(result.result.total.loss.high)
    assert "all items" in result.to_latex(caption="What was lost & gained", label="tab:x")
    assert r"What was lost \& gained" in result.to_latex(caption="What was lost & gained")


def test_dataframes_stay_in_their_library(tmp_path: Path) -> None:
    base, tuned = (pd.read_json(path, lines=True) for path in two_runs(tmp_path, COUNTS))
    assert isinstance(fm.compare(base, tuned).to_frame(), pd.DataFrame)


def test_figures_by_name_and_as_files(tmp_path: Path) -> None:
    result = comparison(tmp_path)
    picture = result.plot("cells")
    assert picture.save(tmp_path / "cells.png").read_bytes().startswith(b"\x89PNG")
    assert repr(picture).startswith(picture.figure.title)
    assert picture.to_frame().num_rows > 0
    with pytest.raises(UsageError, match="no figure 'nonsense'") as error:
        result.plot("nonsense")
    assert "cells" in error.value.hint


def test_a_notebook_shows_each_result_once(tmp_path: Path) -> None:
    from IPython.core.formatters import DisplayFormatter

    formats: Any = DisplayFormatter().format
    for result in (comparison(tmp_path), comparison(tmp_path).plot()):
        data, _ = formats(result)
        rich = {kind for kind in data if kind != "text/plain"}
        assert len(rich) == 1, rich
