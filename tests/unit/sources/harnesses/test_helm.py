"""HELM: which files belong together, which statistics are scores, and broken files."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs" / "helm"


def scores(run: Run, metric: str = "exact_match") -> dict[tuple[str, str, int], float | None]:
    rows = run.scores.collect().rows(named=True)
    return {
        (row["task"], row["item"], row["repeat"]): row["score"]
        for row in rows
        if row["metric"] == metric
    }


@pytest.fixture
def rivers(tmp_path: Path) -> Path:
    """A copy of a run folder that may be spoilt."""
    return Path(shutil.copytree(FIXTURES / "0.5" / "log" / "rivers", tmp_path / "rivers"))


def entries(folder: Path, name: str = "per_instance_stats.json") -> Any:
    return json.loads((folder / name).read_text())


def put(folder: Path, value: object, name: str = "per_instance_stats.json") -> None:
    (folder / name).write_text(json.dumps(value, indent=1))


def test_run_is_described(rivers: Path) -> None:
    info = opened(rivers).info
    assert info.model.name == "acme/small-1"
    assert info.harness.name == "helm"
    assert info.decoding["temperature"] == 0.0
    assert info.decoding["max_new_tokens"] == 1
    assert info.decoding["stop"] == ["\n"]
    assert info.created == "2025-06-15T15:06:40+00:00"
    task = info.tasks["rivers:subject=deltas"]
    assert (task.n_shot, task.main_metric) == (2, "exact_match")


def test_main_metric_is_that_of_the_schema() -> None:
    info = opened(FIXTURES / "website" / "log").info
    assert info.tasks["narrative_qa"].main_metric == "f1_score"


def test_all_files_of_a_run_are_claimed_once(rivers: Path) -> None:
    (log,) = recognise(rivers)
    assert {Path(file.name).name for file in log.files} == {
        "run_spec.json",
        "scenario.json",
        "scenario_state.json",
        "per_instance_stats.json",
        "stats.json",
    }
    assert log.tasks == ("rivers:subject=deltas",)


def test_names_do_not_matter(rivers: Path) -> None:
    before = scores(opened(rivers))
    for number, file in enumerate(sorted(rivers.iterdir())):
        if number % 2:
            (rivers / f"x{number}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
        else:
            file.rename(rivers / f"{9 - number}")
    renamed = opened(rivers)
    assert scores(renamed) == before
    assert renamed.info.model.name == "acme/small-1"


def test_split_statistics_are_united(rivers: Path) -> None:
    before = scores(opened(rivers))
    rows = entries(rivers)
    put(rivers, rows[3:][::-1])
    put(rivers, rows[:3], "more.json")
    assert scores(opened(rivers)) == before


def test_statistics_alone_are_enough(tmp_path: Path) -> None:
    folder = tmp_path / "rivers-subject=deltas,method=multiple_choice_joint,model=acme_small-1"
    folder.mkdir()
    shutil.copy(FIXTURES / "0.5" / "log" / "rivers" / "per_instance_stats.json", folder / "a")
    run = opened(folder)
    assert run.info.model.name == "acme_small-1"
    found = scores(run)
    assert found["rivers:subject=deltas", "id1", 0] == 1.0
    assert found["rivers:subject=deltas", "id2", 1] == 1.0
    assert run.problem_count == 0


def test_suite_has_a_task_per_run(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "0.5" / "log", tmp_path / "runs" / "v1")
    shutil.copytree(FIXTURES / "0.1" / "log", tmp_path / "runs" / "v1" / "bridges")
    run = opened(tmp_path)
    assert set(run.info.tasks) == {
        "rivers:subject=deltas",
        "bridges:method=multiple_choice_separate_calibrated",
    }


def test_only_what_measures_answers_is_a_score(rivers: Path) -> None:
    metrics = set(opened(rivers).scores.collect()["metric"])
    assert metrics == {"exact_match", "quasi_exact_match"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("instance_id", {"a": 1}),
        ("instance_id", None),
        ("train_trial_index", "x"),
        ("train_trial_index", -1),
        ("perturbation", "typos"),
        ("perturbation", {"name": []}),
    ],
)
def test_entry_without_key_is_a_problem(rivers: Path, field: str, value: object) -> None:
    expected = scores(opened(rivers))
    del expected["rivers:subject=deltas", "id2", 0]
    rows = entries(rivers)
    rows[2][field] = value
    put(rivers, rows)
    run = opened(rivers)
    assert scores(run) == expected
    text = (rivers / "per_instance_stats.json").read_text().split("\n")
    begins = [number for number, line in enumerate(text, 1) if line == " {"]
    (problem,) = run.problems
    assert (Path(problem.file).name, problem.line) == ("per_instance_stats.json", begins[2])


def test_newest_of_two_suites_counts(rivers: Path) -> None:
    older = Path(shutil.copytree(rivers, rivers.parent / "runs" / "v1"))
    newer = Path(shutil.copytree(rivers, rivers.parent / "runs" / "v2"))
    rows, state = entries(newer), entries(newer, "scenario_state.json")
    rows[0]["stats"][-1]["mean"] = 0.0
    state["request_states"][0]["result"]["request_datetime"] += 86_400
    put(newer, rows)
    put(newer, state, "scenario_state.json")
    run = opened(older.parent)
    assert scores(run)["rivers:subject=deltas", "id1", 0] == 0.0
    assert "2025-06-15" in run.notices[0]


@pytest.mark.parametrize("stats", [None, {"exact_match": "x"}, "x", [3], [{"name": "exact_match"}]])
def test_broken_statistics_give_no_score(rivers: Path, stats: object) -> None:
    rows = entries(rivers)
    rows[2]["stats"] = stats
    put(rivers, rows)
    found = scores(opened(rivers))
    assert found.get(("rivers:subject=deltas", "id2", 0)) is None
    assert found["rivers:subject=deltas", "id1", 0] == 1.0


def test_mean_that_is_no_number_is_missing(rivers: Path) -> None:
    rows = entries(rivers)
    rows[2]["stats"][0]["mean"] = "NaN"
    put(rivers, rows)
    run = opened(rivers)
    assert scores(run)["rivers:subject=deltas", "id2", 0] is None
    assert [problem.field for problem in run.problems] == ["stats"]


def test_second_value_of_an_instance_is_a_problem(rivers: Path) -> None:
    rows = entries(rivers)
    rows[4]["instance_id"] = "id2"
    rows[4]["stats"][0]["mean"] = 1.0
    put(rivers, rows)
    run = opened(rivers)
    assert scores(run)["rivers:subject=deltas", "id2", 0] == 0.0
    assert "duplicate value of exact_match" in run.problems[0].message


@pytest.mark.parametrize(
    "broken", [b'{"request_states": [{"instance": {"id"', b'{"request_states": 7}']
)
def test_broken_requests_leave_the_scores(rivers: Path, broken: bytes) -> None:
    before = scores(opened(rivers))
    (rivers / "scenario_state.json").write_bytes(broken)
    run = opened(rivers)
    found = scores(run)
    failed = ("rivers:subject=deltas", "id3", 0)
    assert found.pop(failed) == 0.0
    assert before.pop(failed) is None
    assert found == before
    assert run.problem_count == 1


@pytest.mark.parametrize("value", [7, None, [], {"text": []}, "x"])
@pytest.mark.parametrize("field", ["input", "references", "perturbation"])
def test_wrong_types_in_an_instance_harm_no_other(rivers: Path, field: str, value: object) -> None:
    before = scores(opened(rivers))
    state = entries(rivers, "scenario_state.json")
    state["request_states"][0]["instance"][field] = value
    put(rivers, state, "scenario_state.json")
    assert scores(opened(rivers)) == before


def test_other_files_are_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"id": 1, "input": "x", "references": []}]')
    (tmp_path / "b.json").write_text('{"name": "x", "description": "y", "tags": []}')
    assert not [log for log in recognise(tmp_path) if log.adapter == "helm"]
