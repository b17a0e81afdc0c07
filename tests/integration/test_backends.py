"""Every dataframe library gives the same numbers, and results are frames of that library."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from backends import LIBRARIES, as_frame, counted, dumped, foretold, rows_of
from example_runs import DATA, rows_for
from forgetmap.comparison.comparison import Comparison
from oracle import Row, expect, paths_through

KINDS = {
    "pandas": pd.DataFrame,
    "pandas-arrow": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": pa.Table,
    "duckdb": duckdb.DuckDBPyRelation,
    "parquet": pa.Table,
}


Compared = Callable[[str, str], Comparison]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Data and library -> their comparison; each is made once."""

    @cache
    def compare(name: str, library: str) -> Comparison:
        folder = tmp_path_factory.mktemp("runs")
        before, after = rows_for(name)
        return fm.compare(
            as_frame(before, library, folder / "before.parquet"),
            as_frame(after, library, folder / "after.parquet"),
            min_paired=0.01,
        )

    return compare


FILES = {"bare", "labelled", "content and repeats"}
"""Also from Parquet; the rest if slow, since DuckDB counts files as it counts its own tables."""


def everywhere() -> list[Any]:
    """Every data set in every library."""
    return [
        pytest.param(
            name, each, marks=[pytest.mark.slow] if each == "parquet" and name not in FILES else []
        )
        for name in DATA
        for each in LIBRARIES
    ]


@pytest.mark.parametrize(("name", "library"), everywhere())
def test_every_library_counts_what_plain_python_counts(
    name: str, library: str, compared: Compared
) -> None:
    comparison = compared(name, library)
    assert counted(comparison) == foretold(expect(*rows_for(name)))
    assert dumped(comparison.result) == dumped(compared(name, "polars").result)


def test_the_data_has_in_it_what_it_is_named_for() -> None:
    found = {
        name: {key: count or 0 for key, count in expect(*rows_for(name)).pairing.items()}
        for name in DATA
    }
    assert all(each["unscored"] and each["only_before"] for each in found.values())
    assert found["conflicts"]["conflicts"] > 1
    assert found["content"]["paired"] > found["conflicts"]["paired"]
    for name in ("twins, same ids", "twins, other ids"):
        assert found[name]["duplicates"] > found[name]["paired"] / 2
    assert found["repeats"]["items"] < found["repeats"]["paired"] / 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_come_back_in_the_callers_library(library: str, compared: Compared) -> None:
    comparison = compared("content and repeats", library)
    for frame in (comparison.flips(), comparison.flips(texts=True), comparison.unpaired()):
        assert isinstance(frame, KINDS[library])
    small = pl.DataFrame if library == "polars-lazy" else KINDS[library]
    for frame in (comparison.tasks, comparison.summary):
        assert isinstance(frame, small)
    assert [row["name"] for row in rows_of(comparison.tasks)] == ["arc", "gsm8k"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_flips_bring_scores_and_texts_along(library: str, compared: Compared) -> None:
    before, after = (
        {(row["task"], row["item"]): row for row in rows}
        for rows in rows_for("content and repeats")
    )
    comparison = compared("content and repeats", library)
    rows = rows_of(comparison.flips("gained", texts=True))
    assert rows == sorted(rows, key=lambda row: (row["task"], row["item"], row["repeat"]))
    for row in rows:
        was, now = before[row["task"], row["item"]], after[row["task"], row["item_after"]]
        assert (row["score_before"], row["score_after"]) == (was["score"], now["score"])
        assert (row["outcome_before"], row["outcome_after"]) == (was["outcome"], now["outcome"])
        assert (row["k"], row["category"]) == (was["k"] or 3, was["category"])
        assert (row["question"], row["options"]) == (was["question"], was["options"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_fan_outs_and_chains(library: str, tmp_path: Path) -> None:
    runs = [DATA["labelled"](seed) for seed in (0, 1, 2)]
    paths = (tmp_path / f"{place}.parquet" for place in range(3))
    frames = [as_frame(rows, library, path) for rows, path in zip(runs, paths, strict=True)]
    fan = fm.compare(*frames, min_paired=0.1)
    chain = fm.compare(*frames, chain=True, min_paired=0.1)
    for each, later in zip(fan, runs[1:], strict=True):
        assert counted(each, ()) == foretold(expect(runs[0], later), ())
    # The totals of a fan-out are a family, those of a chain are not.
    for one, other in zip(chain.comparisons, fan, strict=True):
        ours, theirs = dumped(one.result), dumped(other.result)
        alone = ("total", "headline")
        assert {k: v for k, v in ours.items() if k not in alone} == {
            k: v for k, v in theirs.items() if k not in alone
        }
    histories = paths_through(runs)
    assert {path.path: path.n for path in chain.paths} == Counter(histories.values())
    found = {(row["task"], row["item"]): row["path"] for row in rows_of(chain.histories())}
    assert found == histories


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_of_several_metrics_and_scorers(library: str, tmp_path: Path) -> None:
    """A row that names no metric or scorer has the default one."""
    names: list[Row] = [
        {"metric": "acc", "scorer": None},
        {"metric": "acc", "scorer": "strict"},
        {"metric": None, "scorer": None},
    ]
    sides = [
        [
            row | {"score": dice.choice([0.0, 1.0])} | name
            for row in DATA["bare"](seed)
            for dice in [random.Random(f"{seed} {row}")]
            for name in names
        ]
        for seed in (0, 1)
    ]
    before, after = (
        as_frame(rows, library, tmp_path / f"{place}.parquet") for place, rows in enumerate(sides)
    )
    for metric, name in zip(("acc/default", "acc/strict", "score"), names, strict=True):
        chosen = [[row for row in rows if name.items() <= row.items()] for rows in sides]
        comparison = fm.compare(before, after, metric=metric)
        assert counted(comparison) == foretold(expect(*chosen))
