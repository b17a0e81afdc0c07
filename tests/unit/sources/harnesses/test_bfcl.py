"""BFCL: answers and failures joined, either file found from the other, totals compared."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.records import Contradiction
from forgetmap.records.run import Run
from forgetmap.sources.files import find_files
from forgetmap.sources.logs import recognise
from forgetmap.sources.registry import adapters
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


# --- 2024: verdicts count from 1 ------------------------------------------------------------------

WRONG_2024: Mapping[str, Sequence[int]] = {
    "simple": (0, 3, 4),
    "executable_parallel_function": (1, 2, 3, 4, 5),
    "live_multiple": (5,),
    "java": (),
}
"""Category -> the wrong ones of six answers; the numbers of their verdicts are one higher."""
ALL_2024 = range(6)


def id_2024(category: str, number: int) -> str:
    """Ids of live categories also count the tools and the questions of a user."""
    return f"{category}_{number}" + ("-3-1" if category.startswith("live") else "")


def plain_id(category: str, number: int) -> str:
    return f"{category}_{number}"


def verdict_2024(category: str, number: int, **other: Any) -> dict[str, Any]:
    """A failure as written until January 2025: `id` is a number from 1, `prompt` has the id."""
    return {
        "id": number + 1,
        "model_name": "bee",
        "test_category": category,
        "valid": False,
        "error": ["wrong"],
        "error_type": "value_error:string",
        "prompt": {"id": id_2024(category, number), "question": f"Question {number}?"},
        "model_result_raw": f"call {number}",
    } | other


def with_plain_id(category: str, number: int) -> dict[str, Any]:
    return verdict_2024(category, number, prompt={"id": plain_id(category, number)})


def without_prompt_id(category: str, number: int) -> dict[str, Any]:
    return verdict_2024(category, number, prompt={"question": f"Question {number}?"})


def without_prompt(category: str, number: int) -> dict[str, Any]:
    row = verdict_2024(category, number)
    del row["prompt"]
    return row


def by_id(category: str, number: int) -> dict[str, Any]:
    return {"id": id_2024(category, number), "result": f"call {number}", "latency": 0.1}


def by_idx(category: str, number: int) -> dict[str, Any]:
    return {"idx": number, "result": f"call {number}", "latency": 0.1}


def bare(category: str, number: int) -> dict[str, Any]:
    return {"id": id_2024(category, number), "result": f"call {number}"}


def bare_number(category: str, number: int) -> dict[str, Any]:
    return {"id": number, "result": f"call {number}"}


Row = Callable[[str, int], dict[str, Any]]


def write_2024(folder: Path, row: Row = by_id, verdict: Row = verdict_2024) -> Path:
    """All categories, with the file names of 2024."""
    for category, wrong in WRONG_2024.items():
        results = f"result/bee/gorilla_openfunctions_v1_test_{category}_result.json"
        write_lines(folder / results, [row(category, number) for number in ALL_2024])
        write_scores_2024(folder, category, [verdict(category, number) for number in wrong])
    return folder


def write_scores_2024(folder: Path, category: str, rows: Sequence[Mapping[str, Any]]) -> None:
    right, total = len(ALL_2024) - len(WRONG_2024[category]), len(ALL_2024)
    header = {"accuracy": right / total, "correct_count": right, "total_count": total}
    write_lines(folder / f"score/bee/{category}_score.json", [header, *rows])


def wrong_items(run: Run) -> dict[str, set[str]]:
    """Category -> the ids of its wrong answers; every answer must have a score."""
    wrong: dict[str, set[str]] = {category: set() for category in WRONG_2024}
    answers = Counter[str]()
    for task, item, score in run.scores.collect().select("task", "item", "score").iter_rows():
        assert score in (0.0, 1.0)
        answers[task] += 1
        if not score:
            wrong[task].add(item)
    assert answers == dict.fromkeys(WRONG_2024, len(ALL_2024))
    return wrong


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (by_id, verdict_2024),
        (by_id, without_prompt),
        (bare, verdict_2024),
        (bare, without_prompt_id),
        (by_idx, with_plain_id),
        (by_idx, without_prompt_id),
        (bare_number, without_prompt),
    ],
)
def test_verdicts_numbered_from_1_are_joined_by_id(tmp_path: Path, row: Row, verdict: Row) -> None:
    run = opened(write_2024(tmp_path, row, verdict))
    name = id_2024 if row in (by_id, bare) else plain_id
    assert wrong_items(run) == {
        category: {name(category, number) for number in wrong}
        for category, wrong in WRONG_2024.items()
    }
    assert (run.problems, run.notices, run.contradictions) == ((), (), ())


@pytest.mark.parametrize("row", [by_id, by_idx, bare, bare_number])
def test_no_other_adapter_takes_logs_of_2024(tmp_path: Path, row: Row) -> None:
    files = find_files(write_2024(tmp_path, row))
    assert {reader.name for reader in adapters() if reader.sniff(files)} == {"bfcl"}


@pytest.mark.parametrize("half", ["result", "score"])
def test_the_other_half_of_2024_has_another_name(tmp_path: Path, half: str) -> None:
    write_2024(tmp_path)
    expected = {c: {id_2024(c, number) for number in wrong} for c, wrong in WRONG_2024.items()}
    assert wrong_items(opened(tmp_path / half / "bee")) == expected


def test_the_id_in_the_prompt_counts_not_the_number(tmp_path: Path) -> None:
    """Numbers are positions in the sorted file, which may differ from the numbers in the ids."""
    write_2024(tmp_path)
    rows = [verdict_2024("simple", number, id=number + 2) for number in WRONG_2024["simple"]]
    write_scores_2024(tmp_path, "simple", rows)
    run = opened(tmp_path)
    assert wrong_items(run)["simple"] == {"simple_0", "simple_3", "simple_4"}
    assert (run.problems, run.notices) == ((), ())


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([1, 2], id="fewer than the totals say"),
        pytest.param([1, 2, 7], id="beyond the last answer"),
        pytest.param([0, 1, 2], id="counted from 0"),
        pytest.param([1, 2, 2], id="twice"),
    ],
)
def test_numbers_that_do_not_add_up_score_nothing(tmp_path: Path, rows: list[int]) -> None:
    write_2024(tmp_path)
    verdicts = [without_prompt("simple", number - 1) for number in rows]
    write_scores_2024(tmp_path, "simple", verdicts)
    run = opened(tmp_path)
    table = run.scores.collect().select("task", "score")
    values = {task: set[float | None]() for task in WRONG_2024}
    for task, score in table.iter_rows():
        values[task].add(score)
    assert values["simple"] == {None}
    assert None not in values["live_multiple"] | values["java"]
    assert [problem.field for problem in run.problems] == ["id"] * len(rows)
    kinds = {(one.kind, one.task, one.stated, one.found) for one in run.contradictions}
    assert kinds == {
        ("verdict_unmatched", "simple", len(rows), 0),
        ("total_contradicted", "simple", 3, 0),
    }


def test_gaps_in_the_ids_leave_numbers_without_an_answer(tmp_path: Path) -> None:
    write_2024(tmp_path)
    results = tmp_path / "result/bee/gorilla_openfunctions_v1_test_simple_result.json"
    write_lines(results, [by_id("simple", number) for number in (0, 1, 2, 3, 4, 6)])
    write_scores_2024(tmp_path, "simple", [without_prompt("simple", n) for n in (0, 3, 4)])
    run = opened(tmp_path)
    assert run.problem_count == 3
    assert "answer number 1" in run.problems[0].message


def test_unmatched_verdicts_are_facts_with_numbers(tmp_path: Path) -> None:
    write(tmp_path, right=1, wrong=1)
    path = tmp_path / "score/bee/non_live/BFCL_v4_simple_python_score.json"
    header = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    write_lines(path, [header, failure(0), failure(77)])
    (fact,) = opened(tmp_path).contradictions
    message = "simple_python: 1 of 2 verdicts without an answer."
    assert fact == Contradiction("verdict_unmatched", "simple_python", "id", 2, 1, message)


@pytest.mark.parametrize(
    ("wrong", "scored"),
    [([], [1.0, 1.0]), ([3, 3], [0.0, 0.0]), ([3], [None, None])],
)
def test_two_answers_of_one_id_are_scored_if_their_verdicts_agree(
    tmp_path: Path, wrong: list[int], scored: list[float | None]
) -> None:
    """As in `live_relevance` of December 2024; numbers from 1 then run ahead of the ids."""
    numbers = [0, 1, 2, 3, 3, 4]
    header = {"accuracy": 1, "correct_count": len(numbers) - len(wrong), "total_count": 6}
    rows = [verdict_2024("live", number, id=5) for number in wrong]
    for folder, name, lines in (
        ("result", "result", [by_id("live", number) for number in numbers]),
        ("score", "score", [header, *rows]),
    ):
        write_lines(tmp_path / folder / f"bee/BFCL_v3_live_{name}.json", lines)
    run = opened(tmp_path)
    found = scores(run)
    assert [found["live_3-3-1"], found["live_3-3-1~2"]] == scored
    assert {found[id_2024("live", number)] for number in (0, 1, 2, 4)} == {1.0}
    is_clear = None not in scored
    assert run.problem_count == (0 if is_clear else 2)
    assert [(one.stated, one.found, one.unscored) for one in run.contradictions] == (
        [] if is_clear else [(5, 4, 2)]
    )


def test_a_copied_answer_is_a_problem_and_not_another_answer(tmp_path: Path) -> None:
    write(tmp_path, right=2, wrong=1)
    path = tmp_path / "result/bee/non_live/BFCL_v4_simple_python_result.json"
    write_lines(path, [answer(0), answer(1), answer(2), answer(0)])
    run = opened(tmp_path)
    assert list(scores(run).values()) == [0.0, 1.0, 1.0]
    assert "duplicate result" in run.problems[0].message


def test_an_id_and_a_result_alone_are_of_no_known_harness(tmp_path: Path) -> None:
    write_lines(tmp_path / "x_result.json", [bare("simple", number) for number in ALL_2024])
    assert recognise(tmp_path) == []
