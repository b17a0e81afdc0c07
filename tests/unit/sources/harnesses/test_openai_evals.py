"""OpenAI evals: events joined by sample, metrics without match, totals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from log_writers import opened, write_lines

SPEC = {"spec": {"completion_fns": ["bee"], "eval_name": "sums.dev.v0", "base_eval": "sums"}}


def event(number: int, sample: object, kind: str, **data: Any) -> dict[str, Any]:
    return {"run_id": "r", "event_id": number, "sample_id": sample, "type": kind, "data": data}


def write(path: Path, events: list[dict[str, Any]], **report: float) -> Path:
    return write_lines(path, [SPEC, *events, {"final_report": report}])


def test_metrics_are_scores_where_there_is_no_match(tmp_path: Path) -> None:
    events = [
        event(0, "s.0", "metrics", choice="B", score=0.5),
        event(1, "s.1", "metrics", choice="A", score=1),
    ]
    run = opened(write(tmp_path / "x.jsonl", events))
    rows = run.scores.collect().select("item", "metric", "score").rows()
    assert rows == [("s.0", "score", 0.5), ("s.1", "score", 1.0)]
    assert (run.info.model.name, list(run.info.tasks)) == ("bee", ["sums"])


def test_stated_accuracy_is_checked(tmp_path: Path) -> None:
    events = [event(n, f"s.{n}", "match", correct=n == 0, expected="4") for n in range(4)]
    assert opened(write(tmp_path / "x.jsonl", events, accuracy=0.25)).notices == ()
    (notice,) = opened(write(tmp_path / "y.jsonl", events, accuracy=0.5)).notices
    assert "final_report.accuracy 0.5, but these records give 0.25" in notice


def test_a_stated_accuracy_of_0_is_a_statement(tmp_path: Path) -> None:
    events = [event(0, "s.0", "match", correct=True, expected="4")]
    (notice,) = opened(write(tmp_path / "x.jsonl", events, accuracy=0.0)).notices
    assert "final_report.accuracy 0, but these records give 1" in notice
