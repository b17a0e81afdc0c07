"""BFCL: answers and failures joined, either file found from the other, totals compared."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.records import Contradiction
from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened, write_lines


def answer(number: int, category: str = "simple_python") -> dict[str, Any]:
    return {"id": f"{category}_{number}", "result": f"call {number}", "latency": 0.1}


def failure(number: object, category: str = "simple_python", **other: Any) -> dict[str, Any]:
    return {
        "id": f"{category}_{number}",
        "model_name": "bee",
        "test_category": category,
        "valid": False,
        "error": ["wrong"],
        "prompt": {"question": [[{"role": "user", "content": f"Question {number}?"}]]},
    } | other


def write(
    folder: Path, right: int, wrong: int, *, model: str = "bee", category: str = "simple_python"
) -> Path:
    """So many right and wrong answers, the wrong ones first."""
    total = right + wrong
    name = f"{model}/non_live/BFCL_v4_{category}"
    write_lines(
        folder / "result" / f"{name}_result.json", [answer(n, category) for n in range(total)]
    )
    header = {"accuracy": right / total, "correct_count": right, "total_count": total}
    failures = [failure(n, category) for n in range(wrong)]
    write_lines(folder / "score" / f"{name}_score.json", [header, *failures])
    return folder


def scores(run: Run) -> dict[str, float | None]:
    return dict(run.scores.collect().select("item", "score").iter_rows())


def test_answers_that_are_no_failures_are_right(tmp_path: Path) -> None:
    run = opened(write(tmp_path, right=2, wrong=1))
    assert scores(run) == {"simple_python_0": 0.0, "simple_python_1": 1.0, "simple_python_2": 1.0}
    assert run.info.model.name == "bee"
    assert (run.problems, run.notices) == ((), ())


@pytest.mark.parametrize("half", ["result", "score"])
def test_either_half_finds_the_other_beside_it(tmp_path: Path, half: str) -> None:
    write(tmp_path, right=2, wrong=1)
    assert list(scores(opened(tmp_path / half / "bee")).values()) == [0.0, 1.0, 1.0]
    (file,) = (tmp_path / half).rglob("*.json")
    assert list(scores(opened(file)).values()) == [0.0, 1.0, 1.0]


def test_failures_alone_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    shutil.rmtree(write(tmp_path, right=2, wrong=1) / "result")
    with pytest.raises(EmptyInputError, match=r"lists only the failures.*result/ and score/"):
        opened(tmp_path)


def test_answers_alone_are_unscored(tmp_path: Path) -> None:
    shutil.rmtree(write(tmp_path, right=2, wrong=1) / "score")
    run = opened(tmp_path)
    assert set(scores(run).values()) == {None}
    assert "no score file" in run.problems[0].message


def test_two_models_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    write(tmp_path, right=2, wrong=1, model="gpt-20b")
    write(tmp_path, right=1, wrong=2, model="gpt-120b")
    with pytest.raises(UsageError) as raised:
        opened(tmp_path)
    assert "--run gpt-120b" in str(raised.value.hint)
    total = fm.compare(tmp_path, tmp_path, run=["gpt-20b", "gpt-120b"], cached=False).result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 0, 1)


def test_totals_that_differ_are_a_notice_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "score/bee/non_live/BFCL_v4_simple_python_score.json"
    write(tmp_path, right=2, wrong=1)
    header = {"accuracy": 0.33, "correct_count": 1, "total_count": 3}
    write_lines(path, [header, failure(0)])
    run = opened(tmp_path)
    (notice,), (fact,) = run.notices, run.contradictions
    assert "simple_python: the log states correct_count 1, but these records give 2" in notice
    assert (fact.kind, fact.task, fact.field) == (
        "total_contradicted",
        "simple_python",
        "correct_count",
    )
    assert (fact.stated, fact.found, fact.results, fact.message) == (1, 2, 3, notice)


def test_a_category_without_failures_and_renamed_parts(tmp_path: Path) -> None:
    write(tmp_path, right=3, wrong=0)
    folder = tmp_path / "result/bee/non_live"
    write_lines(folder / "f0", [answer(0), answer(2)])
    write_lines(folder / "f1", [answer(1)])
    (folder / "BFCL_v4_simple_python_result.json").unlink()
    assert set(scores(opened(tmp_path)).values()) == {1.0}


def test_a_verdict_on_an_unknown_answer_is_a_problem_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, right=1, wrong=1)
    path = tmp_path / "score/bee/non_live/BFCL_v4_simple_python_score.json"
    header = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    write_lines(path, [header, failure(0), failure(77)])
    (problem,) = opened(tmp_path).problems
    assert (problem.file, problem.line, problem.field) == (str(path), 3, "id")


def test_totals_alone_are_of_no_known_harness(tmp_path: Path) -> None:
    write_lines(tmp_path / "x_score.json", [{"accuracy": 1, "correct_count": 2, "total_count": 2}])
    assert recognise(tmp_path) == []


@pytest.mark.parametrize("has_id", [True, False])
def test_verdicts_of_2024_have_their_id_in_the_prompt(tmp_path: Path, has_id: bool) -> None:
    """Without it, their number leaves open which answers are wrong, so none is scored."""
    write(tmp_path, right=2, wrong=1)
    path = tmp_path / "score/bee/non_live/BFCL_v4_simple_python_score.json"
    header = {"accuracy": 0.66, "correct_count": 2, "total_count": 3}
    prompt = {"id": "simple_python_1"} if has_id else {"question": "?"}
    write_lines(path, [header, failure(2) | {"id": 2, "prompt": prompt}])
    run = opened(tmp_path)
    assert list(scores(run).values()) == ([1.0, 0.0, 1.0] if has_id else [None] * 3)
    assert [problem.field for problem in run.problems] == ([] if has_id else ["id"])


def test_unmatched_verdicts_are_facts_with_numbers(tmp_path: Path) -> None:
    write(tmp_path, right=1, wrong=1)
    path = tmp_path / "score/bee/non_live/BFCL_v4_simple_python_score.json"
    header = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    write_lines(path, [header, failure(0), failure(77)])
    (fact,) = opened(tmp_path).contradictions
    message = "simple_python: 1 of 2 verdicts without an answer."
    assert fact == Contradiction("verdict_unmatched", "simple_python", "id", 2, 1, message)


def test_a_copied_answer_is_a_problem_and_not_another_answer(tmp_path: Path) -> None:
    write(tmp_path, right=2, wrong=1)
    path = tmp_path / "result/bee/non_live/BFCL_v4_simple_python_result.json"
    write_lines(path, [answer(0), answer(1), answer(2), answer(0)])
    run = opened(tmp_path)
    assert list(scores(run).values()) == [0.0, 1.0, 1.0]
    assert "duplicate result" in run.problems[0].message


def test_an_id_and_a_result_alone_are_of_no_known_harness(tmp_path: Path) -> None:
    rows = [{"id": f"simple_{number}", "result": f"call {number}"} for number in range(6)]
    write_lines(tmp_path / "x_result.json", rows)
    assert recognise(tmp_path) == []
