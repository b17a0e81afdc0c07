"""Every estimator in every dataframe library, through chains, roll-ups and the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator

import estimator_oracle as oracle
import forgetmap as fm
from command_line import call, json_of, write
from estimator_oracle import Item, Row, Shape
from estimator_runs import CASES, as_table, compare_in, rows_of, said_by_polars
from forgetmap.comparison import compare
from forgetmap.comparison.result import ComparisonResult, GroupResult, RolledUpResult
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
    assert "clustered" in full["total"]["forgetting"]["method"]
    for name in ("matched", "excess", "net"):
        assert full["total"][name]["forgetting"]["value"] is not None
    assert noisy["total"]["excess_before"]["value"] is not None
    assert len(full["tasks"]) == 3
    assert full["categories"]
    assert full["tags"]


def limits(group: GroupResult) -> dict[str, Any]:
    """Everything of a group but its name."""
    return group.model_dump(exclude={"name", "q_lost"})


def followed(runs: list[list[Row]]) -> list[list[Row]]:
    """Only what every run answered."""
    keys = [{(row["task"], row["item"], row["repeat"]) for row in rows} for rows in runs]
    whole = set.intersection(*keys)
    return [
        [row for row in rows if (row["task"], row["item"], row["repeat"]) in whole] for rows in runs
    ]


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(clusters=True),
        Shape(repeats=3, missing=0.2, items=20),
        Shape(ks=(2,)),
    ],
)
def test_stages_of_a_chain_are_comparisons_of_what_is_followed(shape: Shape) -> None:
    runs = [rows_of(side, shape)[place:] for place, side in enumerate(("base", "sft", "rl"))]
    chain = fm.chain(*map(as_table, runs))
    base, sft, rl = map(as_table, followed(runs))
    first, last = chain.stages
    assert limits(first.against_previous) == limits(fm.compare(base, sft).result.total)
    assert first.against_previous.n < len(runs[0])
    assert limits(last.against_previous) == limits(fm.compare(sft, rl).result.total)
    assert limits(last.against_first) == limits(fm.compare(base, rl).result.total)


def test_a_chain_as_a_whole_is_the_comparison_of_its_ends() -> None:
    base, sft, rl = (as_table(rows_of(side)) for side in ("base", "sft", "rl"))
    chain = fm.chain(base, sft, rl).result.model_dump(exclude={"stages", "paths", "after"})
    alone = fm.compare(base, rl).result.model_dump(exclude={"stages", "paths", "after"})
    for name in ("total", "total_macro", "tasks", "categories", "tags"):
        assert chain[name] == alone[name]


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
    result = fm.compare(as_table(before), as_table(after), rollup="post-forget", **options).result
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
    result = fm.compare(as_table(before), as_table(after), task_table="corrected").result
    found = {task.name.split("|")[1]: task.known_before for task in result.tasks}
    for name, k in zip(NAMES, (3, 4, math.inf, math.inf), strict=True):
        right = fmean(row["score"] for row in before if f"|{name}|" in row["task"])
        scale = 1.0 if math.isinf(k) else k / (k - 1)
        assert found[name] == pytest.approx(scale * (right - 1 / k))


def test_one_seed_has_no_deviation_and_the_default_has_no_such_averages() -> None:
    before, after = suite("before", 1), suite("after", 1)
    found = rolled_up(before, after, task_table="corrected")
    assert {each.deviation["forgetting"] for each in found.values()} == {None}
    assert fm.compare(as_table(before), as_table(after)).result.rolled_up is None


def test_tasks_that_the_study_ignored_do_not_enter() -> None:
    before, after = suite("before"), suite("after")
    more = [
        [*rows, *(row | {"task": "truthfulqa:mc2"} for row in rows if "piqa" in row["task"])]
        for rows in (before, after)
    ]
    assert rolled_up(*more, task_table="as-run") == rolled_up(before, after, task_table="as-run")


@pytest.mark.parametrize("option", [{"task_table": "mine"}, {"rollup": "mine"}])
def test_unknown_tables_and_roll_ups(option: dict[str, Any]) -> None:
    both = as_table(suite("before", 1))
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
        before, after, "--noise", again, "--estimator", "raw", "--rollup", "post-forget",
        "--task-table", "corrected",
    )  # fmt: skip
    expected = fm.compare(
        before, after, noise=again, estimator="raw", rollup="post-forget", task_table="corrected"
    ).result
    assert found == json.loads(expected.to_json())
    Draft202012Validator(ComparisonResult.model_json_schema()).validate(found)
    assert ComparisonResult.model_validate(found) == expected


@pytest.mark.parametrize(
    "option",
    [("--estimator", "best"), ("--rollup", "mine"), ("--task-table", "x"), ("--noise", "missing")],
)
def test_bad_options_are_refused(files: tuple[Path, Path, Path], option: tuple[str, str]) -> None:
    done = call("compare", *files[:2], *option)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_what_is_printed_names_the_headline(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, again = files
    results: list[ComparisonResult] = []

    def noted(*runs: str, **options: Any) -> Any:
        comparison = compare(*runs, **options)
        results.append(comparison.result)
        return comparison

    monkeypatch.setattr("forgetmap.comparison.compare", noted)
    for flags in ((), ("--noise", again)):
        printed = " ".join(call("compare", before, after, *flags, columns=300).out.split())
        assert f"estimator {results[-1].total.headline.estimator}" in printed
    assert len(results) == 2


def test_frames_hold_the_numbers_of_the_result() -> None:
    before, after = (pl.DataFrame(as_table(rows_of(side))) for side in ("before", "after"))
    comparison = fm.compare(before, after)
    for row, task in zip(comparison.tasks.to_dicts(), comparison.result.tasks, strict=True):
        assert row["net"] == task.net.forgetting.value
        assert row["excess_low"] == task.excess.forgetting.low
        assert (row["q_lost"], row["words"]) == (task.q_lost, task.headline.words)


def test_items_of_the_oracle_are_those_compared() -> None:
    """The oracle and the program look at the same pairs."""
    runs = [rows_of(side) for side in ("before", "after")]
    items: list[Item] = oracle.items_of(*runs)
    total = fm.compare(as_table(runs[0]), as_table(runs[1])).result.total
    assert total.n == sum(len(item.pairs) for item in items)
    assert total.items == len(items)
