"""Real Spark: the same numbers, its own frames back, and nothing collected but counts.

In one file, so that one worker has one session for all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import forgetmap as fm
from backends import as_frame, counted, dumped, foretold, rows_of
from effort import examples
from estimator_runs import compare_in
from estimator_runs import said_by_polars as estimates_by_polars
from example_runs import DATA, rows_for
from forgetmap.comparison.comparison import Comparison
from forgetmap.records.content import ContentDeriver
from forgetmap.records.frames import _travelling_code
from generated_runs import Pair, pairs_of_runs
from oracle import Row, expect, paths_through
from spy import Spy

pytestmark = [
    pytest.mark.needs_java,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
]


def compare(runs: tuple[list[Row], list[Row]], spark: Any) -> Comparison:
    before, after = (as_frame(rows, "spark", Path(), spark) for rows in runs)
    return fm.compare(before, after, min_paired=1e-9)


def said_by_polars(runs: tuple[list[Row], list[Row]]) -> dict[str, Any]:
    before, after = (as_frame(rows, "polars", Path()) for rows in runs)
    return dumped(fm.compare(before, after, min_paired=1e-9).result)


def test_everything_is_counted_and_listed(spark: Any) -> None:
    comparison = compare(rows_for("repeats"), spark)
    expected = foretold(expect(*rows_for("repeats")), ("forgotten",))
    assert counted(comparison, ("forgotten",)) == expected
    assert {type(frame) for frame in (comparison.flips(), comparison.tasks)} == {
        type(spark.range(1))
    }


@pytest.mark.parametrize(
    "name", [pytest.param("twins, other ids", marks=pytest.mark.slow), "conflicts"]
)
def test_content_is_hashed_by_the_workers(name: str, spark: Any) -> None:
    comparison = compare(rows_for(name), spark)
    assert dumped(comparison.result) == said_by_polars(rows_for(name))
    flips = rows_of(comparison.flips("gained", texts=True))
    found = {(row["task"], row["item"], row["item_after"], row["repeat"]) for row in flips}
    assert found == expect(*rows_for(name)).flips("gained")
    assert all(row["question"] for row in flips)


@pytest.mark.slow
@examples(5)
@given(runs=pairs_of_runs(("none", "own")))
def test_any_runs_are_counted_as_in_polars(spark: Any, runs: Pair) -> None:
    assert dumped(compare(runs, spark).result) == said_by_polars(runs)


@pytest.mark.slow
def test_a_chain_is_followed(spark: Any) -> None:
    runs = [DATA["bare"](seed) for seed in (0, 1, 2)]
    chain = fm.compare(
        *(as_frame(rows, "spark", Path(), spark) for rows in runs), chain=True, min_paired=0.1
    )
    histories = paths_through(runs)
    assert {path.path: path.n for path in chain.paths} == Counter(histories.values())
    found = {(row["task"], row["item"]): row["path"] for row in rows_of(chain.histories())}
    assert found == histories


def test_only_counts_are_collected(monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    sides = [as_frame(rows, "spark", Path(), spark) for rows in rows_for("content and repeats")]
    spy = Spy(monkeypatch)
    for name in ("collect", "toArrow", "toPandas", "_collect_as_arrow"):
        spy.watch(type(sides[0]), name)
    items = len(rows_for("content and repeats")[0])
    comparison = fm.compare(sides[0], sides[1], min_paired=0.1)
    # Counts by task, labels, options and letters: of so few items nearly as many as these.
    assert 1 <= spy.highest < items
    comparison.before.scores.collect()
    assert spy.highest == items


UNPACK = """
import sys
sys.modules["forgetmap"] = None
import json, pickle, pyarrow as pa
deriver = pickle.load(open(sys.argv[1], "rb"))
print(deriver(pa.RecordBatch.from_pydict(json.loads(sys.argv[2])))["question_hash"][0])
"""


def test_spark_workers_need_not_have_forgetmap(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    columns = {"task": ["t"], "item": ["a"], "score": [1.0], "question": ["Why?"]}
    deriver = ContentDeriver(tuple(columns), origin="rows")
    with _travelling_code():
        (tmp_path / "code").write_bytes(cloudpickle.dumps(deriver))  # type: ignore[no-untyped-call]
    done = subprocess.run(
        [sys.executable, "-c", UNPACK, str(tmp_path / "code"), json.dumps(columns)],
        capture_output=True,
        text=True,
        check=True,
    )
    here = deriver.table(pa.table(columns))
    assert int(done.stdout) == here["question_hash"][0].as_py()


def test_every_estimator_says_the_same(tmp_path: Path, spark: Any) -> None:
    name = "repeats and noise"
    assert compare_in(name, "spark", tmp_path, spark) == estimates_by_polars(name)
