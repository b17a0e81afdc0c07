"""NeMo Evaluator results: bundles, doubled answers, and fields of the wrong type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened, write_lines

BUNDLE = {
    "run_id": "eval-20260102T030405Z-towns",
    "sdk_version": "0.5.0",
    "timestamp": "2026-01-02T03:04:05+00:00",
    "config": {"model": "lab/tiny", "temperature": 0.0, "seed": 11, "system_prompt": None},
    "benchmark": {"name": "towns", "samples": 2},
}


def answer(problem: object, reward: object, **other: Any) -> dict[str, Any]:
    return {
        "problem_idx": problem,
        "repeat": 0,
        "reward": reward,
        "prompt": f"Where is {problem}?",
        "model_response": "There.",
        "extracted_answer": "There",
        "expected_answer": "Here",
        "scoring_details": {},
        "metadata": {},
        **other,
    }


def rewards(run: Run) -> dict[tuple[str, int], float | None]:
    table = run.scores.collect().select("item", "repeat", "score")
    return {(item, repeat): score for item, repeat, score in table.iter_rows()}


def test_bundle_is_found_by_content(tmp_path: Path) -> None:
    write_lines(tmp_path / "one", [answer(0, 1.0)])
    (tmp_path / "two").write_text(json.dumps(BUNDLE, indent=2))
    run = opened(tmp_path)
    assert run.info.model.name == "lab/tiny"
    assert (run.info.harness.version, run.info.created) == ("0.5.0", BUNDLE["timestamp"])
    assert (run.info.decoding["temperature"], run.info.seeds) == (0.0, [11])
    assert run.info.tasks["towns"].main_metric == "reward"


def test_without_bundle_the_folder_names_the_task(tmp_path: Path) -> None:
    write_lines(tmp_path / "towns" / "results.jsonl", [answer(0, 1.0)])
    assert recognise(tmp_path)[0].tasks == ("towns",)


def test_last_of_doubled_answers_counts_and_other_questions_stay(tmp_path: Path) -> None:
    rows = [answer(0, 0.0), answer(0, 0.5, prompt="Where else?"), answer(0, 1.0)]
    run = opened(write_lines(tmp_path / "x.jsonl", rows))
    assert sorted(filter(None, rewards(run).values())) == [0.5, 1.0]
    assert len(rewards(run)) == 2
    assert run.problem_count == 0


def test_reward_above_zero_stays_what_it_is(tmp_path: Path) -> None:
    run = opened(write_lines(tmp_path / "x.jsonl", [answer(0, 0.125), answer(1, 1.0)]))
    assert rewards(run) == {("0", 0): 0.125, ("1", 0): 1.0}
    assert run.scores.collect()["outcome"].to_list() == [None, None]


def test_failed_answer_is_missing_but_a_wrong_program_is_wrong(tmp_path: Path) -> None:
    failed = {"error": "timeout", "error_category": "infra_error"}
    rows = [
        answer(0, 0.0, scoring_details=failed),
        answer(1, 0.0, scoring_details={"error": "SyntaxError"}),
        answer(2, 0.0, scoring_details={"error_category": "infra_error"}),
    ]
    found = rewards(opened(write_lines(tmp_path / "x.jsonl", rows)))
    assert found == {("0", 0): None, ("1", 0): 0.0, ("2", 0): None}


def test_a_run_without_bundle_does_not_borrow_that_of_another(tmp_path: Path) -> None:
    write_lines(tmp_path / "tiny" / "results.jsonl", [answer(0, 1.0)])
    write_lines(tmp_path / "tiny" / "eval-1.json", [BUNDLE])
    write_lines(tmp_path / "tuned" / "results.jsonl", [answer(0, 0.0)])
    assert {log.info.model.name for log in recognise(tmp_path)} == {"lab/tiny", None}


@pytest.mark.parametrize(
    ("broken", "field", "score"),
    [
        ({"reward": "1"}, "reward", None),
        ({"repeat": -1}, "repeat", 1.0),
        ({"metadata": [1]}, "metadata", 1.0),
        ({"scoring_details": "x"}, None, 1.0),
        ({"scorer_rewards": 4}, "scorer_rewards", 1.0),
        ({"model_response": {}}, "model_response", 1.0),
        ({"prompt": [{"role": "user"}]}, None, 1.0),
        ({"expected_answer": {"a": 1}}, None, 1.0),
        ({"metadata": {"choices": [1, {}], "question": 4}}, None, 1.0),
    ],
)
def test_wrong_types(
    tmp_path: Path, broken: dict[str, Any], field: str | None, score: float | None
) -> None:
    path = write_lines(tmp_path / "x.jsonl", [answer(0, 0.0), {**answer(1, 1.0), **broken}])
    run = opened(path)
    assert rewards(run) == {("0", 0): 0.0, ("1", 0): score}
    places = [(p.file, p.line, p.field) for p in run.problems]
    assert places == ([(str(path), 2, field)] if field else [])


def test_row_without_problem_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    write_lines(path, [answer(0, 1.0), answer(None, 1.0)])
    path.write_text(path.read_text() + "{broken\n")
    run = opened(path)
    assert rewards(run) == {("0", 0): 1.0}
    assert [p.line for p in run.problems] == [2, 3]


OPTIONS = ["Lima", "Quito", "Sucre", "B"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"choices": OPTIONS},
        {"options": [*OPTIONS, *[""] * 6]},
        dict(zip("ABCDEFGHIJ", [*OPTIONS, *[""] * 6], strict=True)),
    ],
)
@pytest.mark.parametrize(
    ("extracted", "reward", "choice", "outcome"),
    [
        ("A", 1.0, "Lima", "correct"),
        ("B", 0.0, "Quito", "incorrect"),
        ("Sucre", 0.0, "Sucre", "incorrect"),
        ("J", 0.0, None, "no_answer"),
        (None, 0.0, None, "no_answer"),
        ("", 0.0, None, "no_answer"),
    ],
)
def test_letters_name_options_and_padding_is_none(
    tmp_path: Path,
    metadata: dict[str, Any],
    extracted: str | None,
    reward: float,
    choice: str | None,
    outcome: str,
) -> None:
    row = answer(0, reward, expected_answer="A", extracted_answer=extracted, metadata=metadata)
    scores = opened(write_lines(tmp_path / "x.jsonl", [row])).scores.collect()
    fields = ("k", "gold_index", "gold", "choice", "outcome")
    assert [scores[name].to_list()[0] for name in fields] == [4, 0, "Lima", choice, outcome]


def test_options_of_a_wrong_type_are_none(tmp_path: Path) -> None:
    row = answer(0, 0.0, metadata={"choices": [1, 2]}, extracted_answer="A")
    scores = opened(write_lines(tmp_path / "x.jsonl", [row])).scores.collect()
    assert [scores[name].to_list()[0] for name in ("k", "choice", "gold_index")] == [None] * 3


def test_stated_mean_is_checked(tmp_path: Path) -> None:
    write_lines(tmp_path / "results.jsonl", [answer(0, 1.0), answer(1, 0.0)])
    scores = {"scores": {"mean_reward": {"value": 0.9}}}
    bundle = BUNDLE | {"benchmark": {"name": "towns"} | scores}
    (tmp_path / "eval.json").write_text(json.dumps(bundle))
    (notice,) = opened(tmp_path).notices
    assert "mean_reward 0.9, but these records give 0.5" in notice
