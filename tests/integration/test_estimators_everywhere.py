"""Every number in every dataframe library, with roll-ups and by the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from command_line import call, json_of, write
from estimator_oracle import Item, Row, Shape
from estimator_runs import CASES, compare_in, rows_of, said_by_polars
from forgetmap.comparison import ComparisonResult
from forgetmap.comparison.phrases import sentence
from forgetmap.comparison.result import RolledUpResult
from forgetmap.errors import UsageError

LIBRARIES = ("pandas", "pandas-arrow", "polars-lazy", "pyarrow", "duckdb", "parquet")
"""All but Polars, which the others are held against."""
QUICK = {
    "repeats and noise": LIBRARIES,
    "noise": ("pandas-arrow", "pyarrow", "duckdb"),
    "published averages": ("pandas", "polars-lazy", "parquet"),
}
"""Every library has the case with everything in it and one of the others; all have all if slow."""


def everywhere() -> list[Any]:
    """Every case in every library."""
    return [
        pytest.param(name, each, marks=[] if each in QUICK[name] else [pytest.mark.slow])
        for name in CASES
        for each in LIBRARIES
    ]


@pytest.mark.parametrize(("name", "library"), everywhere())
def test_every_library_says_the_same(name: str, library: str, tmp_path: Path) -> None:
    assert compare_in(name, library, tmp_path) == said_by_polars(name)


def test_the_data_has_in_it_what_the_estimators_need() -> None:
    full, noisy = said_by_polars("repeats and noise"), said_by_polars("noise")
    assert full["total"]["clusters"] is not None
    for name in ("leave_one_out", "excess", "latent"):
        assert full["total"]["estimators"][name]["forgetting"]["value"] is not None
    assert noisy["total"]["noise_floor"]["value"] is not None
    assert noisy["total"]["estimators"]["excess"]["forgetting"]["value"] is None
    assert len(full["tasks"]) == 3
    assert full["categories"]
    assert full["tags"]


NAMES = ("piqa:main", "arc:easy", "bbh:object_counting", "something else")
KS = {
    "as-run": (4, 4, 19, math.inf),
    "as-released": (4, 4, 19, math.inf),
    "corrected": (2, 4, math.inf, math.inf),
}
BUCKETS = {
    "as-run": ("Common Sense", "Missing", "Knowledge", "Missing"),
    "as-released": ("Common Sense", "Logic", "Knowledge", "Missing"),
    "corrected": ("Common Sense", "Logic", "Knowledge", "Missing"),
}


def suite(side: str, repeats: int = 3, **columns: Any) -> list[Row]:
    """Tasks of the published study and one that is not in it; no k, no category."""
    rows = []
    for name in NAMES:
        for row in oracle.random_run(3, Shape(repeats=repeats, items=15), f"{name} {side}"):
            if row["task"] == "arc":
                kept = {part: row[part] for part in ("item", "repeat", "score")}
                rows.append({"task": f"community|{name}|0", **kept, **columns})
    return rows


def by_seed(before: list[Row], after: list[Row], name: str, seed: int, k: float) -> float:
    """Clipped published forgetting of one task and seed."""
    scores = [
        [row["score"] for row in rows if f"|{name}|" in row["task"] and row["repeat"] == seed]
        for rows in (before, after)
    ]
    lost = fmean(b > a for b, a in zip(*scores, strict=True))
    wrong = [1 - fmean(side) for side in scores]
    return max(lost - wrong[0] * wrong[1] / (k - 1), 0)


def rolled_up(before: list[Row], after: list[Row], **options: Any) -> dict[str, RolledUpResult]:
    result = fm.compare(as_arrow(before), as_arrow(after), rollup="post-forget", **options).result
    assert result.rolled_up is not None
    return {each.name: each for each in result.rolled_up}


@pytest.mark.parametrize("table", KS)
def test_published_averages_with_the_tables_that_are_shipped(table: str) -> None:
    before, after = suite("before"), suite("after")
    found = rolled_up(before, after, task_table=table)
    totals: list[float] = []
    means: dict[str, list[float]] = {name: [] for name in BUCKETS[table]}
    for seed in range(3):
        buckets: dict[str, list[float]] = {}
        for name, k, bucket in zip(NAMES, KS[table], BUCKETS[table], strict=True):
            buckets.setdefault(bucket, []).append(by_seed(before, after, name, seed, k))
        for bucket, values in buckets.items():
            means[bucket].append(fmean(values))
        totals.append(fmean(map(fmean, buckets.values())))
    means["Total"] = totals
    assert found.keys() == means.keys()
    for name, values in means.items():
        assert found[name].mean["forgetting"] == pytest.approx(fmean(values), abs=1e-12)
        assert found[name].deviation["forgetting"] == pytest.approx(stdev(values), abs=1e-12)


def test_columns_of_the_data_win_over_a_table() -> None:
    before, after = (suite(side, k=3, category="Mine") for side in ("before", "after"))
    found = rolled_up(before, after, task_table="as-run")
    assert found.keys() == {"Mine", "Total"}
    expected = [fmean(by_seed(before, after, name, seed, 3) for name in NAMES) for seed in range(3)]
    assert found["Mine"].mean["forgetting"] == pytest.approx(fmean(expected))
    assert found == rolled_up(before, after)


def test_a_table_fills_only_what_is_null() -> None:
    before, after = (
        [row | {"k": 3 if "piqa" in row["task"] else None} for row in suite(side)]
        for side in ("before", "after")
    )
    comparison = fm.compare(as_arrow(before), as_arrow(after), task_table="corrected")
    found = {
        name.split("|")[1]: {*evidence.kinds.k}
        for name, evidence in comparison.grounds.evidence.by("task").items()
    }
    assert found == {name: {k} for name, k in zip(NAMES, (3, 4, math.inf, math.inf), strict=True)}


def test_one_seed_has_no_deviation_and_the_default_has_no_such_averages() -> None:
    before, after = suite("before", 1), suite("after", 1)
    found = rolled_up(before, after, task_table="corrected")
    assert {each.deviation["forgetting"] for each in found.values()} == {None}
    assert fm.compare(as_arrow(before), as_arrow(after)).result.rolled_up is None


def test_tasks_that_the_study_ignored_do_not_enter() -> None:
    before, after = suite("before"), suite("after")
    more = [
        [*rows, *(row | {"task": "truthfulqa:mc2"} for row in rows if "piqa" in row["task"])]
        for rows in (before, after)
    ]
    assert rolled_up(*more, task_table="as-run") == rolled_up(before, after, task_table="as-run")


@pytest.mark.parametrize("option", [{"task_table": "mine"}, {"rollup": "mine"}])
def test_unknown_tables_and_roll_ups(option: dict[str, Any]) -> None:
    both = as_arrow(suite("before", 1))
    with pytest.raises(UsageError):
        fm.compare(both, both, **option)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    shape = Shape(items=30)
    before, after, again = (
        write(tmp_path / f"{side}.jsonl", rows_of(side, shape))
        for side in ("before", "after", "again")
    )
    return before, after, again


def test_options_of_the_command_are_those_of_the_function(files: tuple[Path, Path, Path]) -> None:
    before, after, again = files
    found = json_of(
        before, after, "--noise", again, "--estimator", "upper", "--rollup", "post-forget",
        "--task-table", "corrected",
    )  # fmt: skip
    expected = fm.compare(
        before, after, noise=again, estimator="upper", rollup="post-forget", task_table="corrected"
    ).result
    assert found == json.loads(expected.to_json())
    Draft202012Validator(TypeAdapter(ComparisonResult).json_schema()).validate(found)
    assert ComparisonResult.from_json(json.dumps(found)) == expected


@pytest.mark.parametrize(
    "option",
    [("--estimator", "best"), ("--rollup", "mine"), ("--task-table", "x"), ("--noise", "missing")],
)
def test_bad_options_are_refused(files: tuple[Path, Path, Path], option: tuple[str, str]) -> None:
    done = call("compare", *files[:2], *option)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_frames_hold_the_numbers_of_the_result() -> None:
    before, after = (pl.DataFrame(as_arrow(rows_of(side))) for side in ("before", "after"))
    comparison = fm.compare(before, after)
    for row, task in zip(comparison.tasks.to_dicts(), comparison.result.tasks, strict=True):
        assert row["excess_low"] == task.estimators["excess"].forgetting.low
        assert (row["loss_low"], row["loss_q"]) == (task.loss.low, task.loss.q)
        assert (row["verdict"], row["sentence"]) == (task.verdict, sentence(task))


def test_items_of_the_oracle_are_those_compared() -> None:
    """The oracle and the program look at the same pairs."""
    runs = [rows_of(side) for side in ("before", "after")]
    items: list[Item] = oracle.items_of(runs[0], runs[1])
    total = fm.compare(as_arrow(runs[0]), as_arrow(runs[1])).result.total
    assert total.n == sum(len(item.pairs) for item in items)
    assert total.items == len(items)
