"""verifiers results: companions, repeats, and fields of the wrong type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened, write_lines


def rollout(example: object, reward: object, **other: Any) -> dict[str, Any]:
    return {
        "example_id": example,
        "prompt": [{"role": "user", "content": f"Question {example}?"}],
        "completion": [{"role": "assistant", "content": "So."}],
        "answer": "So",
        "reward": reward,
        **other,
    }


METADATA = {
    "env_id": "riddles",
    "model": "lab/tiny",
    "num_examples": 2,
    "rollouts_per_example": 2,
    "sampling_args": {"temperature": 0.5, "stop": ["x"]},
    "date": "2026-01-02T03:04:05",
    "version_info": {"vf_version": "0.2.0"},
}


def rewards(run: Run) -> dict[tuple[str, int], float | None]:
    rows = run.scores.collect().to_polars().filter(metric="reward")
    return {(item, repeat): score for item, repeat, score in _triples(rows)}


def _triples(table: Any) -> Any:
    return table.select("item", "repeat", "score").iter_rows()


def test_renamed_metadata_is_found_by_content(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.txt", [rollout(0, 1.0), rollout(0, 0.0), rollout(1, 0.5)])
    write_lines(tmp_path / "b.txt", [METADATA])
    run = opened(tmp_path)
    assert rewards(run) == {("0", 0): 1.0, ("0", 1): 0.0, ("1", 0): 0.5}
    assert (run.info.model.name, run.info.harness.version) == ("lab/tiny", "0.2.0")
    assert run.info.decoding == {"temperature": 0.5}
    assert run.info.created == METADATA["date"]
    assert run.info.tasks["riddles"].main_metric == "reward"


def test_without_metadata_the_folder_gives_names(tmp_path: Path) -> None:
    write_lines(tmp_path / "riddles--lab--tiny" / "1f" / "results.jsonl", [rollout(0, 1.0)])
    (log,) = recognise(tmp_path)
    assert (log.tasks, log.info.model.name) == (("riddles",), "lab/tiny")
    assert recognise(write_lines(tmp_path / "x.jsonl", [rollout(0, 1.0)]))[0].tasks == (
        "verifiers",
    )


def test_newest_of_two_runs_counts(tmp_path: Path) -> None:
    for name, day, reward in (("old", "01", 1.0), ("new", "02", 0.0)):
        write_lines(tmp_path / name / "results.jsonl", [rollout(0, reward)])
        write_lines(tmp_path / name / "metadata.json", [METADATA | {"date": f"2026-01-{day}"}])
    run = opened(tmp_path)
    assert rewards(run) == {("0", 0): 0.0}
    assert "2026-01-01" in run.notices[0]


def test_a_run_without_metadata_does_not_borrow_those_of_another(tmp_path: Path) -> None:
    write_lines(tmp_path / "riddles--lab--tiny" / "1f" / "results.jsonl", [rollout(0, 1.0)])
    write_lines(tmp_path / "riddles--lab--tiny" / "1f" / "metadata.json", [METADATA])
    write_lines(tmp_path / "riddles--lab--tuned" / "2f" / "results.jsonl", [rollout(0, 0.0)])
    models = {log.info.model.name for log in recognise(tmp_path)}
    assert models == {"lab/tiny", "lab/tuned"}


def test_an_empty_error_is_none(tmp_path: Path) -> None:
    rows = [rollout(0, 1.0, error=""), rollout(1, 0.0, error=None), rollout(2, 0.0, error="late")]
    run = opened(write_lines(tmp_path / "x.jsonl", rows))
    assert rewards(run) == {("0", 0): 1.0, ("1", 0): 0.0, ("2", 0): None}


def test_a_metric_called_reward_is_not_the_reward(tmp_path: Path) -> None:
    run = opened(write_lines(tmp_path / "x.jsonl", [rollout(0, 0.25, metrics={"reward": 1.0})]))
    assert rewards(run) == {("0", 0): 0.25}


def test_lists_and_texts_are_no_metrics(tmp_path: Path) -> None:
    extra = {"won": True, "notes": "1", "parts": [1, 2], "total_ms": 5.0, "odd": None}
    run = opened(write_lines(tmp_path / "x.jsonl", [rollout(0, 1.0, **extra)]))
    assert set(run.scores.collect()["metric"].to_list()) == {"reward", "won"}


@pytest.mark.parametrize(
    ("broken", "field", "score"),
    [
        ({"reward": "high"}, "reward", None),
        ({"reward": [1]}, "reward", None),
        ({"metrics": [1]}, "metrics", 1.0),
        ({"task": {}}, "task", 1.0),
        ({"token_usage": 3}, "token_usage", 1.0),
        ({"prompt": 7}, None, 1.0),
        ({"prompt": [{"role": "user", "content": {"a": 1}}]}, None, 1.0),
        ({"completion": {"a": 1}}, None, 1.0),
        ({"answer": {"a": [1]}}, None, 1.0),
    ],
)
def test_wrong_types(
    tmp_path: Path, broken: dict[str, Any], field: str | None, score: float | None
) -> None:
    path = write_lines(tmp_path / "x.jsonl", [rollout(0, 0.0), {**rollout(1, 1.0), **broken}])
    run = opened(path)
    assert rewards(run) == {("0", 0): 0.0, ("1", 0): score}
    places = [(p.file, p.line, p.field) for p in run.problems]
    assert places == ([(str(path), 2, field)] if field else [])


def test_row_without_identity_is_left_out(tmp_path: Path) -> None:
    rows = [rollout(0, 0.0), rollout({}, 1.0, prompt=None)]
    run = opened(write_lines(tmp_path / "x.jsonl", rows))
    assert rewards(run) == {("0", 0): 0.0}
    assert {p.line for p in run.problems} == {2}


def test_nan_is_missing(tmp_path: Path) -> None:
    run = opened(write_lines(tmp_path / "x.jsonl", [rollout(0, float("nan")), rollout(1, 1.0)]))
    assert rewards(run) == {("0", 0): None, ("1", 0): 1.0}
    assert run.problem_count == 0


def episode(key: object, **other: Any) -> dict[str, Any]:
    trace = {
        "agent": {"config": {"model": "lab/tiny"}, "name": "agent"},
        "nodes": [{"message": {"role": "assistant", "content": "So."}, "sampled": True}],
        "rewards": {"right": {"score": 1.0, "weight": 0.5}},
        "ok": True,
    }
    task = {"key": key, "data": {"prompt": f"Question {key}?"}}
    return {"env": {"id": "riddles"}, "task": task, "traces": [trace], "ok": True, **other}


@pytest.mark.parametrize(
    ("broken", "score"),
    [
        ({"traces": 5}, None),
        ({"traces": [None, 3]}, None),
        ({"traces": [{"rewards": [1], "ok": False}]}, None),
        ({"traces": [{"rewards": {"right": 1.0}, "metrics": {"a": "b"}}]}, None),
        ({"traces": [{"rewards": {"right": {"score": 2.0}}, "nodes": [1]}]}, 2.0),
        ({"traces": [{"rewards": {"right": {"score": 1.0}, "short": {"score": None}}}]}, None),
        ({"traces": [{"rewards": {"right": {"score": 1.0}}, "metrics": {"reward": 0.0}}]}, 1.0),
        ({"errors": "many", "ok": False}, 0.5),
        ({"env": "riddles"}, 0.5),
    ],
)
def test_broken_episodes(tmp_path: Path, broken: dict[str, Any], score: float | None) -> None:
    rows = [episode("a"), {**episode("b"), **broken}]
    run = opened(write_lines(tmp_path / "traces.jsonl", rows))
    assert run.info.model.name == "lab/tiny"
    assert rewards(run) == {("a", 0): 0.5, ("b", 0): score}
    assert {p.line for p in run.problems} <= {2}
