"""Dumps of verl, TRL and OpenRLHF: repeats by prompt, steps, rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading, recognise
from forgetmap.sources.open import open_run
from log_writers import opened, write_lines


def rollout(prompt: str, score: object, step: int, **other: Any) -> dict[str, Any]:
    return {"input": prompt, "output": "so", "gts": "4", "score": score, "step": step} | other


def scores(run: Run) -> list[float | None]:
    return run.scores.collect()["score"].to_list()


def test_the_last_step_counts_unless_another_is_chosen(tmp_path: Path) -> None:
    for step in (20, 100):
        write_lines(tmp_path / f"{step}.jsonl", [rollout("2 and 2?", step / 100, step)])
    run = opened(tmp_path)
    assert scores(run) == [1.0]
    assert run.info.training is not None
    assert run.info.training.step == 100
    assert "evaluated 2 times" in run.notices[0]
    chosen = open_run(tmp_path, reading=Reading(cached=False, run="20.jsonl"))
    assert scores(chosen) == [0.2]


def test_sources_of_data_are_tasks_and_other_numbers_metrics(tmp_path: Path) -> None:
    rows = [
        rollout("a?", 1.0, 5, data_source="gsm8k", acc=True, pred="4", uid="u1"),
        rollout("b?", -1.0, 5, data_source="math", acc=False, pred="5", uid="u2"),
    ]
    run = opened(write_lines(tmp_path / "5.jsonl", rows))
    found = run.scores.collect().select("task", "metric", "score").rows()
    assert found == [
        ("gsm8k", "score", 1.0),
        ("gsm8k", "acc", 1.0),
        ("math", "score", -1.0),
        ("math", "acc", 0.0),
    ]
    assert run.info.tasks["math"].main_metric == "acc"


def test_rows_without_prompt_are_problems_and_without_score_unscored(tmp_path: Path) -> None:
    rows = [rollout("a?", 1.0, 5), rollout("", 1.0, 5), rollout("b?", "high", 5)]
    run = opened(write_lines(tmp_path / "5.jsonl", rows))
    assert scores(run) == [1.0, None]
    assert [p.line for p in run.problems] == [2]


def test_completions_without_rewards_are_no_log(tmp_path: Path) -> None:
    table = {"step": [1, 1], "prompt": ["a", "b"], "completion": ["x", "y"]}
    pq.write_table(pa.table(table), tmp_path / "completions_00001.parquet")
    assert recognise(tmp_path) == []
    rewarded = table | {"accuracy_reward": [1.0, 0.0]}
    pq.write_table(pa.table(rewarded), tmp_path / "completions_00001.parquet")
    assert scores(opened(tmp_path)) == [1.0, 0.0]


def test_rows_with_more_than_a_reward_are_not_taken_for_openrlhf(tmp_path: Path) -> None:
    row = {"input": "a", "output": "b", "reward": 1.0}
    assert recognise(write_lines(tmp_path / "x.jsonl", [row])) != []
    assert recognise(write_lines(tmp_path / "y.jsonl", [row | {"price": 3}])) == []
