"""Scores on another scale than 0 to 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import MetricInfo, RunInfo, build_run, write_run
from forgetmap.records.validate import check_run
from forgetmap.sources.logs import Reading
from forgetmap.sources.maps import ScoreRange, parse_range
from forgetmap.sources.open import open_run


def scores(source: object, scale: str, **options: object) -> list[float | None]:
    reading = Reading(score_range=parse_range(scale))
    run = open_run(source, reading=reading, **options)  # type: ignore[arg-type]
    check_run(run)
    return sorted(run.scores.collect()["score"].to_list())


def table(path: Path, *values: object) -> Path:
    path.write_text("task,item,score\n" + "".join(f"t,{n},{v}\n" for n, v in enumerate(values)))
    return path


@pytest.mark.parametrize(
    ("scale", "values", "shares"),
    [
        ("1:10", (1, 10, 5.5), [0.0, 0.5, 1.0]),
        ("1:2", (1, 2, 1.25), [0.0, 0.25, 1.0]),
        ("2:1", (1, 2), [0.0, 1.0]),
        ("percent", (0, 100, 30), [0.0, 0.3, 1.0]),
        ("-1:1", (-1, 0), [0.0, 0.5]),
    ],
)
def test_scores_become_shares(
    scale: str, values: tuple[float, ...], shares: list[float], tmp_path: Path
) -> None:
    assert scores(table(tmp_path / "t.csv", *values), scale) == pytest.approx(shares)


def test_matrix_and_dataframe(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("100,0\n50,NA\n25,0\n")
    assert scores(f"{tmp_path / 'm.csv'}#col1", "0:100") == [0.25, 0.5, 1.0]
    frame = pl.DataFrame({"task": ["t", "t"], "item": ["a", "b"], "score": [1.0, 10.0]})
    assert scores(frame, "1:10") == [0.0, 1.0]


@pytest.mark.parametrize("name", ["t.csv", "t.csv#score"])
def test_score_off_the_scale_is_named(name: str, tmp_path: Path) -> None:
    table(tmp_path / "t.csv", 1, 11)
    with pytest.raises(FieldError, match="score is 11, outside of --range 1:10") as caught:
        scores(f"{tmp_path / name}", "1:10")
    assert (caught.value.line, caught.value.field) == (3, "score")


@pytest.mark.parametrize("text", ["", "1", "1:1", "a:b", "0:inf", "nan:1"])
def test_what_is_no_scale(text: str) -> None:
    with pytest.raises(UsageError, match="not a scale"):
        parse_range(text)


def test_only_metrics_beyond_0_and_1_of_a_run_are_rescaled(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "task": ["t"] * 2, "item": ["a", "a"], "repeat": [0, 0], "metric": ["judge", "acc"],
        "scorer": ["default"] * 2, "score": [10.0, 1.0],
    }  # fmt: skip
    info = RunInfo(metrics={"judge": MetricInfo(low=10.0, high=10.0), "acc": MetricInfo()})
    folder = write_run(build_run(columns, info, "r"), tmp_path / "run")
    assert scores(folder, "1:10") == [1.0, 1.0]
    run = open_run(folder, reading=Reading(score_range=ScoreRange(1, 10)))
    assert "judge: 1:10 is read as 0 to 1." in run.notices
    with pytest.raises(UsageError, match="is 10 to 10, outside"):
        scores(folder, "1:5")


def test_scale_that_is_not_needed_is_refused(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"task": ["t"], "item": ["a"], "repeat": [0], "metric": ["acc"],
               "scorer": ["default"], "score": [1.0]}  # fmt: skip
    folder = write_run(build_run(columns, RunInfo(), "r"), tmp_path / "run")
    with pytest.raises(UsageError, match="not needed") as caught:
        scores(folder, "1:10")
    assert caught.value.hint == "remove --range."
