"""every_eval_ever instances: round trip, requirements of its schema, broken rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forgetmap.records.export.every_eval_ever import ExportCounts, write_instances
from forgetmap.records.frames import run_from_frame
from forgetmap.records.run import Run
from forgetmap.records.schema import SCORE_NAMES, TEXT_NAMES
from log_writers import opened

TEXT, TEXTS = str, list
REQUIRED = {
    "schema_version": TEXT,
    "evaluation_id": TEXT,
    "model_id": TEXT,
    "evaluation_name": TEXT,
    "sample_id": TEXT,
    "interaction_type": TEXT,
    "input": dict,
    "output": dict,
    "answer_attribution": list,
    "evaluation": dict,
}
OPTIONAL = {
    "evaluation_result_id": TEXT,
    "sample_hash": TEXT,
    "token_usage": dict,
    "error": TEXT,
    "metadata": dict,
}


def require_valid(row: dict[str, Any]) -> None:
    """What the published JSON schema demands of a single-turn instance."""
    assert row.keys() >= REQUIRED.keys()
    assert row.keys() <= REQUIRED.keys() | OPTIONAL.keys()
    for name, value in row.items():
        assert type(value) is (REQUIRED | OPTIONAL)[name], name
    assert row["interaction_type"] == "single_turn"
    asked, said, marked = row["input"], row["output"], row["evaluation"]
    assert isinstance(asked["raw"], str)
    assert isinstance(asked["formatted"], str | None)
    assert all(isinstance(each, str) for each in asked["reference"] + (asked["choices"] or []))
    assert all(isinstance(each, str) for each in said["raw"])
    assert type(marked["score"]) in {int, float}
    assert type(marked["is_correct"]) is bool
    for each in row["answer_attribution"]:
        assert isinstance(each["extracted_value"], str)
        assert each.keys() >= {"turn_idx", "source", "extraction_method", "is_terminal"}
    assert all(type(count) is int for count in row.get("token_usage", {}).values())
    assert all(isinstance(value, str) for value in row["metadata"].values())


def result(item: str, score: float | None, **other: Any) -> dict[str, Any]:
    blank = dict.fromkeys([*SCORE_NAMES, *TEXT_NAMES])
    hashes = [name for name in blank if name.endswith("_hash")]
    for name in hashes:
        del blank[name]
    own = {"task": "towns", "item": item, "repeat": 0, "metric": "acc", "scorer": "default"}
    return {**blank, **own, "score": score, "k": None, **other}


RESULTS = [
    result("1", 1.0, question="Which?", options=["x", "x", "B"], gold="x", gold_index=1, k=3),
    result("1", 0.5, metric="f1", question="Which?", options=["x", "x", "B"], gold="x", k=3),
    result("1", 0.0, repeat=1, question="Which?", options=["x", "x", "B"], gold="x", k=3),
    result("2", 0.0, outcome="refused", response="No.", prompt="Q?", answer="none", category="c"),
    result("2", 1.0, scorer="flexible", outcome="correct", response="No.", prompt="Q?"),
    result("ü/3", 1.0, tokens_in=3, tokens_out=5, seed=7, logprob_gold=-0.1, choice="a", k=4),
    result("4", 0.0, tokens_out=5, tags="a;b", cluster="p1", finish_reason="stop", response=""),
]


def made(rows: list[dict[str, Any]]) -> Run:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return run_from_frame(frame.drop([n for n in frame.columns if frame[n].dtype == pl.Null]))


def records(run: Run) -> list[dict[str, Any]]:
    assert run.texts is not None
    texts = run.texts.collect().to_polars()
    scores = run.scores.collect().to_polars()
    table = scores.join(texts, on=["task", "item", "repeat"], how="left")
    return sorted(table.to_dicts(), key=lambda row: json.dumps(row, default=str))


def test_there_and_back_again(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    assert write_instances(made(RESULTS), path) == ExportCounts(len(RESULTS), 0)
    found = {tuple(row[name] for name in KEY): row for row in records(opened(path))}
    expected = {tuple(row[name] for name in KEY): row for row in RESULTS}
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            if value is not None:
                assert found[key][name] == value, (key, name)


KEY = ("task", "item", "repeat", "metric", "scorer")


def test_written_rows_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "new" / "samples.jsonl"
    write_instances(made(RESULTS), path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(RESULTS)
    for row in rows:
        require_valid(row)
    right = {(r["sample_id"], r["evaluation_result_id"]): r["evaluation"] for r in rows}
    assert right["2", "towns/acc/flexible"] == {"score": 1.0, "is_correct": True}
    assert right["2", "towns/acc/default"] == {"score": 0.0, "is_correct": False}
    assert right["1", "towns/f1/default"] == {"score": 0.5, "is_correct": False}


def test_second_time_gives_the_same_records(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    write_instances(made(RESULTS), once)
    first = opened(once)
    write_instances(first, twice)
    assert records(opened(twice)) == records(first)


def test_results_without_score_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    rows = [result("1", 1.0, question="a"), result("2", None, outcome="error", question="b")]
    assert write_instances(made(rows), path) == ExportCounts(1, 1)
    assert [row["item"] for row in records(opened(path))] == ["1"]


def instance(sample: str, score: object, **other: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "home/tiny/1750000000",
        "model_id": "lab/tiny",
        "evaluation_name": "towns",
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {"raw": f"Which is {sample}?", "reference": ["x"]},
        "output": {"raw": ["x"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": bool(score)},
        **other,
    }


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_is_known_about_the_run(tmp_path: Path) -> None:
    run = opened(write(tmp_path / "x.jsonl", [instance("1", 1.0)]))
    assert run.info.model.name == "lab/tiny"
    assert run.info.created == "2025-06-15T15:06:40+00:00"
    assert run.info.tasks["towns"].main_metric == "score"


def test_result_ids_name_the_metric_and_equal_rows_are_repeats(tmp_path: Path) -> None:
    rows = [
        instance("1", score, evaluation_result_id=f"towns:{metric}")
        for score, metric in [(1.0, "em"), (0.4, "f1"), (0.0, "em")]
    ]
    found = records(opened(write(tmp_path / "x.jsonl", rows)))
    got = {(row["metric"], row["repeat"]): row["score"] for row in found}
    assert got == {("em", 0): 1.0, ("f1", 0): 0.4, ("em", 1): 0.0}


@pytest.mark.parametrize(
    ("broken", "score"),
    [
        ({"evaluation": {"score": [1], "is_correct": True}}, 1.0),
        ({"evaluation": 5}, None),
        ({"input": "text"}, 1.0),
        ({"input": {"raw": 4, "reference": [{}]}}, 1.0),
        ({"metadata": [1]}, 1.0),
        ({"metadata": {"forgetmap_repeat": "-1"}}, 1.0),
        ({"metadata": {"lm_eval_metrics": "{"}}, None),
        ({"token_usage": {"input_tokens": "many"}}, 1.0),
        ({"output": {"raw": {"a": 1}}}, 1.0),
    ],
)
def test_field_of_another_type_is_a_problem(
    tmp_path: Path, broken: dict[str, Any], score: float | None
) -> None:
    rows = [instance("1", 0.0), instance("2", 1.0, **broken)]
    run = opened(write(tmp_path / "x.jsonl", rows))
    found = {row["item"]: row["score"] for row in records(run)}
    assert found == {"1": 0.0, "2": score}
    assert {p.line for p in run.problems} == {2}


def test_rows_of_another_model_or_without_id_are_left_out(tmp_path: Path) -> None:
    rows = [instance("1", 1.0), instance("2", 1.0, model_id="other"), instance("", 1.0)]
    run = opened(write(tmp_path / "x.jsonl", rows))
    assert [row["item"] for row in records(run)] == ["1"]
    assert [p.line for p in run.problems] == [2, 3]
