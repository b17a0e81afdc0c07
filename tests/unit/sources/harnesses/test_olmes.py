"""OLMES and olmo-eval: companions of a file of predictions, and broken files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened, write_lines

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs"
OLMES = FIXTURES / "olmes" / "0.1" / "log"
LAKES = OLMES / "task-000-lakes-predictions.jsonl"


def results(run: Run, metric: str = "acc_raw") -> dict[tuple[str, str], float | None]:
    rows = run.scores.collect().rows(named=True)
    return {(row["task"], row["item"]): row["score"] for row in rows if row["metric"] == metric}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_is_described() -> None:
    info = opened(OLMES).info
    assert (info.model.name, info.model.revision) == ("acme-7b", "step100")
    assert info.created == "2025-03-01T10:00:00"
    assert info.decoding["temperature"] == 0.0
    task = info.tasks["lakes:rc::olmes"]
    assert (task.n_shot, task.version, task.main_metric) == (5, "0", "acc_per_char")
    assert info.tasks["lakes:mc::olmes"].main_metric == "acc_raw"


def test_main_metric_of_olmo_eval_names_its_scorer() -> None:
    info = opened(FIXTURES / "olmo-eval" / "2026" / "log").info
    assert info.model.name == "acme/olm-1"
    task = info.tasks["lakes:mc"]
    assert (task.main_metric, task.main_scorer, task.n_shot) == ("accuracy", "logprob", 5)


def test_metrics_are_found_by_their_hashes(tmp_path: Path) -> None:
    for number, file in enumerate(sorted(OLMES.iterdir())):
        shutil.copy(file, tmp_path / f"file{number}")
    run = opened(tmp_path)
    assert set(run.info.tasks) == {"lakes:rc::olmes", "lakes:mc::olmes", "sums::tulu"}
    assert results(run) == results(opened(OLMES))


def test_predictions_alone_are_enough(tmp_path: Path) -> None:
    shutil.copy(LAKES, tmp_path / LAKES.name)
    run = opened(tmp_path / LAKES.name)
    assert results(run) == {("lakes", "L7"): 0.0, ("lakes", "L9"): 1.0}
    assert run.info.tasks["lakes"].main_metric == "acc_per_char"


def test_all_metrics_in_one_file(tmp_path: Path) -> None:
    shutil.copy(LAKES, tmp_path / LAKES.name)
    totals = [json.loads(path.read_text()) for path in sorted(OLMES.glob("*-metrics.json"))]
    write_lines(tmp_path / "metrics-all.jsonl", totals)
    assert set(opened(tmp_path).info.tasks) == {"lakes:rc::olmes"}


def test_items_that_share_an_id_are_both_kept(tmp_path: Path) -> None:
    rows = lines(LAKES)
    rows[1]["native_id"] = "L7"
    for order in (rows, rows[::-1]):
        found = results(opened(write_lines(tmp_path / "a.jsonl", order)))
        assert found == {("a", "L7"): 0.0, ("a", "L7#1"): 1.0}


def test_what_measures_no_answer_is_no_score() -> None:
    metrics = set(opened(OLMES).scores.collect()["metric"])
    assert metrics == {"acc_raw", "acc_per_char", "exact_match"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("doc_id", None),
        ("doc_id", {"a": 1}),
        ("doc_id", -4),
        ("metrics", None),
        ("metrics", [1]),
        ("metrics", {}),
    ],
)
def test_row_without_number_or_metrics_is_a_problem(
    tmp_path: Path, field: str, value: object
) -> None:
    rows = lines(LAKES)
    rows[1][field] = value
    run = opened(write_lines(tmp_path / "a.jsonl", rows))
    assert results(run) == {("a", "L7"): 0.0}
    assert [problem.line for problem in run.problems] == [2]


@pytest.mark.parametrize("value", [None, 7, "x", [], [None], {"a": []}])
@pytest.mark.parametrize("field", ["model_output", "label", "native_id"])
def test_wrong_types_harm_no_other_row(tmp_path: Path, field: str, value: object) -> None:
    rows = lines(LAKES)
    rows[1][field] = value
    assert results(opened(write_lines(tmp_path / "a.jsonl", rows)))["a", "L7"] == 0.0


@pytest.mark.parametrize("value", [None, 7, "x", [], {"query": [], "choices": 3}])
def test_broken_requests_leave_the_scores(tmp_path: Path, value: object) -> None:
    shutil.copy(LAKES, tmp_path / LAKES.name)
    source = OLMES / "task-000-lakes-requests.jsonl"
    rows = [lines(source)[0], *({**row, "doc": value} for row in lines(source)[1:])]
    write_lines(tmp_path / source.name, rows)
    assert results(opened(tmp_path)) == {("lakes", "L7"): 0.0, ("lakes", "L9"): 1.0}


def test_other_rows_with_numbers_are_not_claimed(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"doc_id": 0, "doc": {}, "metrics": ["acc"], "acc": 1.0}])
    assert not [log for log in recognise(tmp_path) if log.adapter == "olmes"]


def test_two_runs_of_one_model_are_not_mixed(tmp_path: Path) -> None:
    """Hashes of task and model are the same in both; the newer run counts."""
    metrics = json.loads((OLMES / "task-000-lakes-metrics.json").read_text())
    for day, value in ((1, 1.0), (2, 0.0)):
        folder = tmp_path / f"run{day}"
        folder.mkdir()
        rows = lines(LAKES)
        for row in rows:
            row["metrics"] |= {"acc_raw": value}
        write_lines(folder / LAKES.name, rows)
        dated = metrics | {"current_date": f"2025-03-0{day} 10:00:00 UTC"}
        write_lines(folder / "task-000-lakes-metrics.json", [dated])
    run = opened(tmp_path)
    assert set(results(run).values()) == {0.0}
    assert (run.info.created, run.problem_count) == ("2025-03-02T10:00:00", 0)
    assert "2025-03-01" in run.notices[0]
