"""Real Spark: the same numbers, its own frames back, and nothing collected but counts.

In one file, so that one worker has one session for all of them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import forgetmap as fm
from backends import as_frame, counted, dumped, foretold, rows_of
from effort import examples
from estimator_runs import compare_in, said_by_polars
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


Runs = Sequence[list[Row]]
"""The model before, the model after, and maybe a repeat of the model before."""


def compare(runs: Runs, spark: Any = None) -> Comparison:
    """On Spark, or without a session in Polars."""
    library = "polars" if spark is None else "spark"
    before, after, *again = (as_frame(rows, library, Path(), spark) for rows in runs)
    return fm.compare(before, after, noise=again[0] if again else None, min_paired=1e-9)


TAGS = {"hard;long": "hard", "hard; easy ;hard": "hard; hard", None: None}
"""One tag in two lists: every further tag takes Spark seconds."""


def everything(seed: int, scores: int) -> list[Row]:
    """Questions that change under their id, passages, and repeats of which some are missing."""
    dice, luck = random.Random(seed), random.Random(scores)
    rows = []
    for row in DATA["conflicts"](seed):
        number = int(row["item"])
        cluster = f"passage {number // 4}" if number % 8 < 4 else None
        known = {"cluster": cluster, "k": 3, "outcome": None, "tags": TAGS[row["tags"]]}
        rows += [
            row | known | {"repeat": repeat, "score": score, "choice": choice}
            for repeat in (3, 1)
            for score in [luck.choice([0.0, 1.0, None])]
            for choice in [f"city {number}" if score else luck.choice(["Rome", "Oslo"])]
            if dice.random() > 0.1
        ]
    return rows


def check(comparison: Comparison, runs: Runs) -> None:
    """Counts, lists and the whole result are those of plain Python and of Polars."""
    expected = expect(runs[0], runs[1])
    assert counted(comparison, ("forgotten",)) == foretold(expected, ("forgotten",))
    assert dumped(comparison.result) == dumped(compare(runs).result)
    flips = rows_of(comparison.flips("gained", texts=True))
    found = {(row["task"], row["item"], row["item_after"], row["repeat"]) for row in flips}
    assert found == expected.flips("gained")
    if "question" in runs[0][0]:
        assert all(row["question"] for row in flips)


def test_everything_is_counted_and_only_counts_are_collected(
    monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    """Of all that a comparison looks at; content is hashed by the workers."""
    runs = (everything(0, 0), everything(1, 1), everything(0, 2))
    spy = Spy(monkeypatch)
    for name in ("collect", "toArrow", "toPandas", "_collect_as_arrow"):
        spy.watch(type(spark.range(1)), name)
    comparison = compare(runs, spark)
    # Counts by task, labels, options and letters: of so few items nearly as many as these.
    assert 1 <= spy.highest < len(runs[0])
    check(comparison, runs)
    assert {type(frame) for frame in (comparison.flips(), comparison.tasks)} == {
        type(spark.range(1))
    }
    comparison.before.scores.collect()
    assert spy.highest == len(runs[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["repeats", "twins, other ids", "conflicts", "content and repeats"]
)
def test_every_run_is_counted_and_listed(name: str, spark: Any) -> None:
    check(compare(rows_for(name), spark), rows_for(name))


@pytest.mark.slow
@examples(5)
@given(runs=pairs_of_runs(("none", "own")))
def test_any_runs_are_counted_as_in_polars(spark: Any, runs: Pair) -> None:
    assert dumped(compare(runs, spark).result) == dumped(compare(runs).result)


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


@pytest.mark.slow
def test_every_estimator_says_the_same(tmp_path: Path, spark: Any) -> None:
    name = "repeats and noise"
    assert compare_in(name, "spark", tmp_path, spark) == said_by_polars(name)
