"""Every dataframe library gives the same numbers, and gives frames back in its own kind."""

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
from backends import LIBRARIES, as_frame, counted, dumped, foretold, on_spark, rows_of
from forgetmap.transitions.comparison import Comparison
from oracle import Row, expect

KINDS = {
    "pandas": pd.DataFrame,
    "pandas-arrow": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": pa.Table,
    "duckdb": duckdb.DuckDBPyRelation,
    "parquet": pa.Table,
}
OUTCOMES = ("incorrect", "no_answer", "refused", "truncated", "degenerate", None)


def spark_frame() -> Any:
    from pyspark.sql import DataFrame

    return DataFrame


def bare_rows(seed: int) -> list[Row]:
    """Two tasks; a few items are unscored, and each side lacks a few."""
    dice = random.Random(seed)
    return [
        {"task": task, "item": f"{task}-{item}", "score": dice.choice([0.0, 1.0, 0.3, 0.7, None])}
        for task in ("arc", "gsm8k")
        for item in range(40)
        if dice.random() > 0.05
    ]


def labelled(seed: int) -> list[Row]:
    """The same with everything that describes an item, and with reasons."""
    rows = []
    for place, row in enumerate(bare_rows(seed)):
        dice = random.Random(f"{row['task']} {row['item']}")
        described: Row = {
            "category": dice.choice(["science", "maths", None]),
            "tags": dice.choice(["hard;long", "hard; easy ;hard", None]),
            "k": dice.choice([2, 4, None]),
            "choice": dice.choice(["Paris", "Rome", None]),
        }
        right = row["score"] is not None and row["score"] >= 0.5
        outcome = None if row["score"] is None else OUTCOMES[place % len(OUTCOMES)]
        rows.append(row | described | {"outcome": "correct" if right else outcome})
    return rows


def repeated(seed: int) -> list[Row]:
    """Three seeds of each item, not in their order; some answers are missing."""
    dice = random.Random(seed)
    return [
        row | {"repeat": label, "score": dice.choice([0.0, 1.0, 1.0, None])}
        for row in labelled(seed)
        for label in (11, 42, 7)
        if dice.random() > 0.1
    ]


def asked(seed: int) -> list[Row]:
    """With content; ids that say nothing, options in another order on each side."""
    rows = []
    for row in labelled(seed):
        number = int(row["item"].rpartition("-")[2])
        options = [f"city {number}", "Rome", "Oslo"]
        random.Random(f"{seed} {number}").shuffle(options)
        gold = "ABC"[options.index(f"city {number}")] if seed else f"city {number}"
        text = {"question": f"Where  is {number}?", "options": options, "gold": gold}
        rows.append(row | text | {"item": f"{seed}-{number}"})
    return rows


def twins(seed: int, *, same_ids: bool) -> list[Row]:
    """Items that share their whole content, in pairs and threes."""
    rows = []
    for row in asked(0 if same_ids else seed):
        number = int(row["item"].rpartition("-")[2])
        score = random.Random(f"{seed} {number}").choice([0.0, 1.0, None])
        text = {"question": f"group {number // 3}", "options": None, "gold": "yes"}
        rows.append(row | text | {"score": score, "outcome": None})
    return rows[:-2] if seed else rows


def conflicted(seed: int) -> list[Row]:
    """The same ids on both sides, but for some another question."""
    rows = [row | {"item": row["item"][2:]} for row in asked(seed)]
    for row in rows[:6]:
        row["question"] += f" {seed}"
    return rows


DATA: dict[str, Callable[[int], list[Row]]] = {
    "bare": bare_rows,
    "labelled": labelled,
    "repeats": repeated,
    "repeats on one side": lambda seed: repeated(seed) if seed else labelled(seed),
    "content": asked,
    "content and repeats": lambda seed: [
        row | {"repeat": label} for row in asked(seed) for label in (3, 1)
    ],
    "content on one side": lambda seed: [
        row | ({"question": row["item"]} if seed else {}) for row in labelled(seed)
    ],
    "conflicts": conflicted,
    "twins, same ids": lambda seed: twins(seed, same_ids=True),
    "twins, other ids": lambda seed: twins(seed, same_ids=False),
}


@cache
def rows_for(name: str) -> tuple[list[Row], list[Row]]:
    return DATA[name](0), DATA[name](1)


@cache
def said_by_polars(name: str) -> dict[str, Any]:
    """The whole result in one library, to hold all others against."""
    return dumped(compare(name, "polars", Path()).result)


def compare(name: str, library: str, folder: Path, spark: Any = None) -> Comparison:
    before, after = rows_for(name)
    return fm.compare(
        as_frame(before, library, folder / "before.parquet", spark),
        as_frame(after, library, folder / "after.parquet", spark),
        min_paired=0.01,
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", DATA)
def test_every_library_counts_what_plain_python_counts(
    name: str, library: str, tmp_path: Path
) -> None:
    comparison = compare(name, library, tmp_path)
    assert counted(comparison) == foretold(expect(*rows_for(name)))
    assert dumped(comparison.result) == said_by_polars(name)


def test_the_data_has_in_it_what_it_is_named_for() -> None:
    found = {name: expect(*rows_for(name)).pairing for name in DATA}
    assert all(each["unscored"] and each["only_before"] for each in found.values())
    assert found["conflicts"]["conflicts"] > 1
    assert found["content"]["paired"] > found["conflicts"]["paired"]
    for name in ("twins, same ids", "twins, other ids"):
        assert found[name]["duplicates"] > found[name]["paired"] / 2
    assert found["repeats"]["items"] < found["repeats"]["paired"] / 2


@on_spark
@pytest.mark.parametrize("name", ["repeats", "twins, other ids"])
def test_spark_counts_what_plain_python_counts(name: str, tmp_path: Path, spark: Any) -> None:
    comparison = compare(name, "spark", tmp_path, spark)
    assert counted(comparison, ("forgotten",)) == foretold(expect(*rows_for(name)), ("forgotten",))
    assert dumped(comparison.result) == said_by_polars(name)
    assert isinstance(comparison.flips(), spark_frame())
    assert isinstance(comparison.tasks, spark_frame())


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_come_back_in_the_callers_library(library: str, tmp_path: Path) -> None:
    comparison = compare("content and repeats", library, tmp_path)
    for frame in (comparison.flips(), comparison.flips(texts=True), comparison.unpaired()):
        assert isinstance(frame, KINDS[library])
    small = pl.DataFrame if library == "polars-lazy" else KINDS[library]
    for frame in (comparison.tasks, comparison.summary):
        assert isinstance(frame, small)
    assert [row["name"] for row in rows_of(comparison.tasks)] == ["arc", "gsm8k"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_flips_bring_scores_and_texts_along(library: str, tmp_path: Path) -> None:
    before, after = (
        {(row["task"], row["item"]): row for row in rows}
        for rows in rows_for("content and repeats")
    )
    comparison = compare("content and repeats", library, tmp_path)
    rows = rows_of(comparison.flips("gained", texts=True))
    assert rows == sorted(rows, key=lambda row: (row["task"], row["item"], row["repeat"]))
    for row in rows:
        was, now = before[row["task"], row["item"]], after[row["task"], row["item_after"]]
        assert (row["score_before"], row["score_after"]) == (was["score"], now["score"])
        assert (row["outcome_before"], row["outcome_after"]) == (was["outcome"], now["outcome"])
        assert (row["k"], row["category"]) == (was["k"] or 3, was["category"])
        assert (row["question"], row["options"]) == (was["question"], was["options"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_fan_outs_and_chains_are_the_same_everywhere(library: str, tmp_path: Path) -> None:
    check_three_checkpoints(library, tmp_path)


@on_spark
def test_fan_outs_and_chains_are_the_same_in_spark(tmp_path: Path, spark: Any) -> None:
    check_three_checkpoints("spark", tmp_path, spark)


def check_three_checkpoints(library: str, folder: Path, spark: Any = None) -> None:
    runs = [labelled(seed) for seed in (0, 1, 2)]
    frames = [
        as_frame(rows, library, folder / f"{place}.parquet", spark)
        for place, rows in enumerate(runs)
    ]
    fan = fm.compare(*frames)
    assert [each.result.total.n10 for each in fan] == [
        expect(runs[0], later).total.n10 for later in runs[1:]
    ]
    chain = fm.compare(*frames, chain=True)
    right = [{(row["task"], row["item"]): row["score"] for row in rows} for rows in runs]
    whole = [key for key in right[0] if all(scores.get(key) is not None for scores in right)]
    paths = {key: "".join(str(int(scores[key] >= 0.5)) for scores in right) for key in whole}
    assert {path.path: path.n for path in chain.paths} == Counter(paths.values())
    histories = rows_of(chain.histories())
    assert {(row["task"], row["item"]): row["path"] for row in histories} == paths


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
            for row in bare_rows(seed)
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
