"""evalchemy's chat benchmarks: answers graded again, counts compared, broken examples."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.scoring.extract import maths
from forgetmap.sources.logs import recognise
from log_writers import opened


def example(name: object, answers: object, **other: Any) -> dict[str, Any]:
    return {
        "id": name,
        "problem": f"Problem {name}?",
        "expected_answer": "7",
        "model_outputs": ["..."] * (len(answers) if isinstance(answers, list) else 1),
        "model_answers": answers,
        **other,
    }


def write(path: Path, examples: object, **other: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"examples": examples, **other}
    path.write_text(json.dumps({"results": {"AIME24": result}, "date": 1.7e9}))
    return path


def scores(run: Run) -> dict[tuple[str, int], float | None]:
    table = run.scores.collect().select("item", "repeat", "score")
    return {(item, repeat): score for item, repeat, score in table.iter_rows()}


def test_one_log_per_benchmark_and_lm_eval_results_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    task = {"examples": [example(1, ["7"])]}
    top = {"results": {"A": task, "B": task, "arc": {"acc,none": 0.5}}, "date": 1.7e9}
    path.write_text(json.dumps(top | {"config": {"model_args": "pretrained=lab/tiny,dtype=x"}}))
    logs = recognise(path)
    assert [log.tasks for log in logs] == [("A",), ("B",)]
    assert {log.info.model.name for log in logs} == {"lab/tiny"}
    assert {log.stamp for log in logs} == {"2023-11-14T22:13:20+00:00"}
    path.write_text(json.dumps({"results": {"arc": {"acc,none": 0.5}}, "date": 1.7e9}))
    assert recognise(path) == []


@pytest.mark.parametrize(
    ("gold", "answer", "score"),
    [
        ("7", "7.0", 1.0),
        ("7", "8", 0.0),
        ("7", "", 0.0),
        ("7", None, 0.0),
        (7, "7", 1.0),
        ("B", "B", 1.0),
        ("B", "(B)", 0.0),
        ("x + 1", "x + 1", 1.0),
    ],
)
def test_answers_are_judged_again(
    tmp_path: Path, gold: object, answer: object, score: float
) -> None:
    path = write(tmp_path / "x.json", [example(1, [answer], expected_answer=gold)])
    assert scores(opened(path)) == {("1", 0): score}


@pytest.mark.skipif(find_spec("math_verify") is None, reason="needs math-verify")
def test_formulas_are_compared_by_value(tmp_path: Path) -> None:
    given = [example(1, ["\\frac{2}{4}", "\\frac{1}{3}"], expected_answer="\\frac{1}{2}")]
    assert scores(opened(write(tmp_path / "x.json", given))) == {("1", 0): 1.0, ("1", 1): 0.0}


def test_without_math_verify_formulas_are_unscored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maths._verifier.cache_clear()
    monkeypatch.setitem(sys.modules, "math_verify", None)
    given = [example(1, ["1+x"], expected_answer="x+1"), example(2, ["7"])]
    run = opened(write(tmp_path / "x.json", given))
    assert scores(run) == {("1", 0): None, ("2", 0): 1.0}
    assert "pip install" in run.problems[0].message


def test_other_counts_of_the_benchmark_are_reported(tmp_path: Path) -> None:
    given = [example(1, ["7", "8"]), example(2, ["7", "9"])]
    stats = [{"num_solved": 2}, {"num_solved": 1}]
    run = opened(write(tmp_path / "x.json", given, run_stats=stats))
    differs, _ = run.notices
    assert "AIME24, repetition 2: the log states num_solved 1, but these records give 0" in differs


def test_examples_without_id_are_known_by_their_question(tmp_path: Path) -> None:
    given = [example(1, ["7"]), example(2, ["8"])]
    for each in given:
        del each["id"]
    first = scores(opened(write(tmp_path / "x.json", given)))
    assert first == scores(opened(write(tmp_path / "y.json", given[::-1])))
    assert sorted(first.values(), key=str) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("broken", "score"),
    [
        ({"expected_answer": {"a": 1}}, None),
        ({"model_answers": {"a": 1}}, 0.0),
        ({"model_outputs": 5}, 1.0),
        ({"label": "yes"}, 1.0),
        ({"problem": [1]}, 1.0),
        ({"type": "Numeric"}, None),
        ({"answer_type": "exactMatch"}, None),
    ],
)
def test_wrong_types_and_own_rules(
    tmp_path: Path, broken: dict[str, Any], score: float | None
) -> None:
    given = [example(1, ["8"]), example(2, ["7"], **broken)]
    assert scores(opened(write(tmp_path / "x.json", given))) == {("1", 0): 0.0, ("2", 0): score}


def test_example_without_identity_is_a_problem(tmp_path: Path) -> None:
    code = {"content": "print(1)", "correctness": True}
    path = write(tmp_path / "x.json", [example(1, ["7"]), code, "text"])
    run = opened(path)
    assert scores(run) == {("1", 0): 1.0}
    assert [(p.file, p.field) for p in run.problems] == [(str(path), "AIME24")] * 2
