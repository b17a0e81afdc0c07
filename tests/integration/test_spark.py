"""Real Spark: the same numbers, results as Spark frames, and only counts collected.

These tests are in one file, so that one worker has one cluster and one session; tests that need a
separate driver are in test-long.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import forgetmap as fm
from backends import as_frame, counted, dumped, foretold, rows_of
from command_line import SCRIPT, call, json_of, process
from effort import examples
from estimator_runs import compare_in, said_by_polars
from example_runs import DATA, rows_for
from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.halves import IDS_READ
from forgetmap.errors import (
    ClusterError,
    ColumnError,
    DuplicateKeyError,
    MissingInputError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from forgetmap.records.content import ContentDeriver
from forgetmap.records.spark import log_path, one_plan, travelling_code
from forgetmap.sources import open_run
from generated_runs import Pair, pairs_of_runs
from oracle import Row, expect, paths_through
from spark_cluster import ExecutorKiller, SparkCluster, running_cluster
from spy import Spy
from study_runs import write_study

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
    monkeypatch.setattr("forgetmap.comparison.halves.IDS_READ", 20)
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
    with travelling_code():
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


ROWS, FEW = 200_000, 4_000
TASKS = 20
SUMS = 1_000
"""Rows that are shuffled to sum them up, at most: by task and partition."""


def write_tables(folder: Path, rows: int, **columns: Any) -> tuple[Path, Path]:
    """Two shuffled tables of the same items, with most of them in one task, as tasks are."""
    paths = (folder / "before.parquet", folder / "after.parquet")
    for seed, path in enumerate(paths):
        dice = np.random.default_rng(seed)
        numbers = dice.permutation(rows)
        tasks = np.where(numbers % 3 == 0, 0, numbers % TASKS)
        table = {
            "task": [f"task {task}" for task in tasks],
            "item": [f"item-{number}" for number in numbers],
            "score": (dice.random(rows) < 0.6).astype(float),
            **{name: [make(int(number)) for number in numbers] for name, make in columns.items()},
        }
        pq.write_table(pa.table(table), path, row_group_size=rows // 4)
    return paths


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tables(tmp_path_factory.mktemp("tables"), FEW)


def test_one_plan_and_nothing_left_behind(
    tables: tuple[Path, Path], spark: Any, spark_cluster: SparkCluster
) -> None:
    """At most six jobs, two reads and a look at some ids; a large task lies in all partitions."""
    names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    settings = [spark.conf.get(name) for name in names]
    results = []
    work = spark_cluster.work(lambda: results.append(fm.compare(*tables, engine=spark)))
    assert work.jobs <= 6
    assert work.stages <= 12  # one job of one stage for the schema of each file
    assert work.rows_read == 2 * 2 * FEW + IDS_READ
    # Key and state of each row once, and its sums.
    assert work.shuffle_rows < 2 * FEW + SUMS
    assert work.shuffle_bytes < 30 * 2 * FEW + 500 * SUMS
    assert work.largest_share < 0.52  # of two partitions
    assert dumped(results[0].result) == dumped(fm.compare(*tables).result)
    assert [spark.conf.get(name) for name in names] == settings
    assert not spark.sparkContext._jsc.getPersistentRDDs()


def test_texts_do_not_travel_and_nothing_stays_kept(
    tmp_path: Path, spark: Any, spark_cluster: SparkCluster
) -> None:
    """A key and a state for a row of two thousand bytes; texts are read once, to hash them."""
    rows = 400
    paths = write_tables(
        tmp_path, rows, question=lambda n: f"{n} " * 400, response=lambda n: f"{n} " * 400,
        k=lambda n: 4 + n % 2, choice=lambda n: f"option {n % 4}",
    )  # fmt: skip
    results = []
    work = spark_cluster.work(lambda: results.append(fm.compare(*paths, engine=spark)))
    assert work.rows_read <= 2 * 2 * rows
    assert work.shuffle_bytes < 200 * 2 * rows * 2
    assert dumped(results[0].result) == dumped(fm.compare(*paths).result)
    assert not spark.sparkContext._jsc.getPersistentRDDs()


def test_doubled_rows_are_refused_before_a_join_multiplies_them(
    tmp_path: Path, spark: Any, spark_cluster: SparkCluster
) -> None:
    paths = []
    for side in ("before", "after"):
        paths.append(tmp_path / f"{side}.parquet")
        columns = {"task": ["t"] * 3_000, "item": ["same"] * 3_000, "score": [1.0] * 3_000}
        pq.write_table(pa.table(columns), paths[-1])

    def compare() -> None:
        with pytest.raises(DuplicateKeyError, match="3000 rows have task 't', item 'same'"):
            fm.compare(*paths, engine=spark)

    assert spark_cluster.work(compare).shuffle_rows < 3_000


def test_an_executor_killed_in_the_join_changes_nothing(
    tmp_path: Path, spark: Any, spark_cluster: SparkCluster
) -> None:
    paths = write_tables(tmp_path, ROWS)
    with ExecutorKiller(spark_cluster, spark) as killer:
        result = fm.compare(*paths, engine=spark).result
    assert killer.killed
    assert dumped(result) == dumped(fm.compare(*paths).result)


def test_every_command_takes_spark(tables: tuple[Path, Path], tmp_path: Path, spark: Any) -> None:
    spark.read.parquet(str(tables[0])).createOrReplaceTempView("evals_before")
    assert json_of("evals_before", tables[1], "--engine", "spark")["total"]["n"] == FEW
    done = call(
        "records", "convert", "evals_before", "--engine", "spark", "--out", tmp_path / "run"
    )
    assert (done.code, done.err) == (0, "")
    assert "4,000 results of 20 tasks" in done.out
    folder = fm.compare(tmp_path / "run", tables[1], engine=spark)
    assert dumped(folder.result) == dumped(fm.compare(tmp_path / "run", tables[1]).result)


@pytest.mark.slow
def test_a_study_reads_with_spark(tmp_path: Path, spark: Any) -> None:
    write_study(tmp_path)
    command = ("study", "compare", tmp_path / "study.toml", "--runs", tmp_path / "runs", "--json")
    assert call(*command, "--engine", "spark").out == call(*command).out


def test_drift_reads_with_spark(demo: Path, spark: Any) -> None:
    command = ("drift", demo / "before", demo / "after", "--taxonomy", "knowledge", "--json")
    here, there = call(*command), call(*command, "--engine", "spark")
    assert (here.code, here.out) == (there.code, there.out)


def test_what_cannot_be_read_is_said_in_one_sentence(
    tables: tuple[Path, Path], tmp_path: Path, spark: Any
) -> None:
    with pytest.raises(MissingInputError, match="there is no such table") as missing:
        fm.compare("evals.no_such_table", tables[1], engine=spark)
    assert "no_such_table" in missing.value.message
    assert "\tat " not in str(missing.value)
    assert str(log_path()) in missing.value.hint
    assert "\tat org.apache.spark" in log_path().read_text(encoding="utf-8")
    with pytest.raises(MissingInputError, match="no such path"):
        fm.compare("file:///no/such/place", tables[1], engine=spark)
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(UnreadableError, match="Spark cannot read this format") as delta:
        fm.compare(tmp_path / "delta", tables[1], engine=spark)
    assert "delta-spark" in delta.value.hint
    (tmp_path / "table.csv").write_text("task,item,score\n")
    with pytest.raises(UnknownFormatError, match="not a Parquet file"):
        fm.compare(tmp_path / "table.csv", tables[1], engine=spark)
    words = tmp_path / "words.parquet"
    pq.write_table(pa.table({"task": ["t"], "item": ["a"], "score": ["right"]}), words)
    with pytest.raises(ColumnError, match="'score' has type String, expected numbers"):
        fm.compare(words, tables[1], engine=spark)
    with pytest.raises(ClusterError, match="already runs"):
        fm.compare(*tables, engine="spark", master="local[1]")
    with pytest.raises(UsageError, match="no engine 'polars'"):
        fm.compare(*tables, engine="polars")
    with pytest.raises(UsageError, match="the engine is not Spark"):
        fm.compare(*tables, master="local[1]")


def test_a_failing_task_is_its_cause(tables: tuple[Path, Path], spark: Any) -> None:
    """A worker that raises, in the middle of a comparison."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError(f"the {len(list(batches))} batches of this worker are made of cheese")

    frame = spark.read.parquet(str(tables[0]))
    broken = frame.mapInArrow(fail, frame.schema)
    with pytest.raises(UnreadableError) as error:
        fm.compare(broken, frame)
    assert "batches of this worker are made of cheese" in error.value.message
    assert "\n" not in error.value.message


def test_other_libraries_have_no_plan_of_spark(tables: tuple[Path, Path]) -> None:
    with one_plan(open_run(tables[0]).scores, 10):
        pass


def test_a_master_that_does_not_answer_is_named(tables: tuple[Path, Path]) -> None:
    done = process("compare", *tables, "--engine", "spark", "--master", "spark://127.0.0.1:1")
    assert done.code == 2
    assert "no Spark master answers at spark://127.0.0.1:1: connection refused" in done.err
    assert "Hint: start it (docs/scale.md)" in done.err


@pytest.mark.slow
def test_ten_million_rows_on_a_cluster_that_loses_an_executor(tmp_path: Path) -> None:
    """As users run it: the script of the cluster, and the command with its address."""
    code = "import compare_speed; print(*compare_speed.make_data(10_000_000))"
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=benchmarks, capture_output=True, text=True, check=True
    )
    paths = made.stdout.split()[-2:]
    with running_cluster(tmp_path, memory="3g") as cluster:
        command = [SCRIPT, "compare", *paths, "--json", "--engine", "spark"]
        settings = "--conf spark.executor.memory=2g pyspark-shell"
        with subprocess.Popen(
            [*map(str, command), "--master", cluster.master],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": settings},
        ) as driver:  # fmt: skip
            killed = _kill_at_work(cluster, driver)
            out, err = driver.communicate()
    assert (driver.returncode, err) == (0, "")
    assert killed
    assert out == process("compare", *paths, "--json").out


def _kill_at_work(cluster: SparkCluster, driver: subprocess.Popen[str]) -> bool:
    """Kill an executor between the sums, which take it 12 s, and the end, at about 35 s."""
    while driver.poll() is None:
        for executor in cluster.executors():
            if executor.cpu_times().user > 20:
                executor.kill()
                return driver.poll() is None
        time.sleep(0.2)
    return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def spark_process(tmp_path: Path, *settings: str) -> subprocess.Popen[str]:
    """A comparison with a driver of its own."""
    paths = write_tables(tmp_path, 400_000)
    confs = " ".join(f"--conf {setting}" for setting in settings)
    return subprocess.Popen(
        [str(SCRIPT), "compare", *map(str, paths), "--engine", "spark", "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{confs} pyspark-shell", "COLUMNS": "500"},
    )


def assert_short(err: str, sentence: str) -> None:
    """One typed error, no stack, and the file that has the rest."""
    assert sentence in err
    assert "\tat " not in err
    assert "Traceback" not in err
    log = Path(err.partition("All that Spark wrote is in ")[2].strip().rstrip("."))
    assert log.is_file()
    log.unlink()


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path, small_disk: Path) -> None:
    with spark_process(tmp_path, f"spark.local.dir={small_disk}") as driver:
        _, err = driver.communicate()
    assert driver.returncode == 2
    assert_short(err, "the disk that Spark shuffles on is full: No space left on device")


@pytest.mark.slow
def test_a_lost_driver_is_said_in_one_sentence(tmp_path: Path) -> None:
    with spark_process(tmp_path) as driver:
        java = None
        while java is None:
            assert driver.poll() is None
            children = psutil.Process(driver.pid).children(recursive=True)
            working = [one for one in children if one.name() == "java"]
            java = next((one for one in working if one.cpu_times().user > 12), None)
            time.sleep(0.1)
        java.send_signal(signal.SIGKILL)
        _, err = driver.communicate()
    assert driver.returncode == 2, err
    assert_short(err, "the driver of Spark is gone")
