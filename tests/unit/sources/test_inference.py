"""Files of unknown layout, each a shape of a public file that could not be read.

What is right and wrong in each is written here by hand: item 0 is right on both sides, item 1 only
before, item 2 only after, item 3 on neither.
"""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, json_of
from forgetmap.errors import ColumnError, ForgetmapError, UnknownFormatError
from forgetmap.sources.cells import cell_of, counts_of, is_right
from unknown_layouts import QUESTIONS, RIGHT, cells, rows, write

# ---- read as they are ----

SHAPES: dict[str, tuple[str, Callable[[str], object]]] = {
    "a verdict of another name, beside settings": (
        "jsonl",
        lambda side: rows(side, lambda n, right: {
            "uid": f"u{n}", "is_solved": right, "temperature": 0, "difficulty": n % 2}),
    ),
    "a verdict called result": (
        "jsonl", lambda side: rows(side, lambda n, right: {
            "id": n, "pred": str(n), "gold": "1", "result": right}),
    ),
    "a word for right and wrong": (
        "csv",
        lambda side: rows(side, lambda n, right: {
            "case": f"c{n}", "outcome": "pass" if right else "fail", "seconds": 1.5 + n}),
    ),
    "no id, but a question": (
        "csv",
        lambda side: rows(side, lambda n, right: {
            "": n, "question": QUESTIONS[n], "accuracy": int(right), "cost": .1 * n}),
    ),
    "objects by id": (
        "json",
        lambda side: {f"q{n}": {"answer": "7", "true_false": right, "meta": {"n": n}}
                      for n, right in enumerate(RIGHT[side])},
    ),
    "results beside averages and arguments": (
        "json",
        lambda side: {"acc": .5, "args": {"seed": 1}, "results": {
            f"q{n}": {"prediction": "x", "true_false": right}
            for n, right in enumerate(RIGHT[side])}},
    ),
    "truth values by id": (
        "json", lambda side: {f"i{n}": right for n, right in enumerate(RIGHT[side])},
    ),
    "lists of ids": (
        "json",
        lambda side: {
            "submitted_ids": [f"i{n}" for n in range(4)], "total": 4, "error_ids": [],
            "resolved": [f"i{n}" for n in range(4) if RIGHT[side][n]]},
    ),
    "a summary inside each episode": (
        "json",
        lambda side: {str(n): {"query": QUESTIONS[n], "rewards": [0.0, float(right)],
                               "summary": {"max_reward": float(right), "turns_taken": 2}}
                      for n, right in enumerate(RIGHT[side])},
    ),
    "graded answers below question and model": (
        "json",
        lambda side: {f"q{n}": {f"model-{side}": [{"total_score": float(right), "text": "x"}]}
                      for n, right in enumerate(RIGHT[side])},
    ),
    "letters without a score": (
        "csv",
        lambda side: rows(side, lambda n, right: {
            "Question": QUESTIONS[n], "CorrectABCD": "b", "CorrectAnswer": "fine",
            "PredictedABCD": "b" if right else "a", "PredictedAnswer": "fine" if right else "bad"}),
    ),
    "numbers without a score, predictions in a list": (
        "jsonl",
        lambda side: rows(side, lambda n, right: {
            "idx": n, "question": QUESTIONS[n], "gt": "1,000",
            "pred": ["1000" if right else "7"], "report": [None]}),
    ),
    "several samples in a list": (
        "json", lambda side: rows(side, lambda n, right: {"idx": 900 + n, "accs": [right]}),
    ),
    "many verdicts, of which one is about being right": (
        "csv",
        lambda side: rows(side, lambda n, right: {
            "index": n, "prompt": QUESTIONS[n], "format_valid": True, "function_correct": right,
            "hallucinated": not right}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_files_of_these_shapes_are_read_as_they_are(shape: str, tmp_path: Path) -> None:
    ending, make = SHAPES[shape]
    sides = [write(tmp_path, side, make(side), ending) for side in ("before", "after")]
    assert cells(*sides) == (1, 1, 1, 1)


def test_both_sides_may_have_layouts_of_their_own(tmp_path: Path) -> None:
    before = rows("before", lambda n, right: {"idx": n, "accs": [right, False]})
    after = rows("after", lambda n, right: {"idx": n, "infos": [{"r": int(right)}, {"r": 0}]})
    paths = write(tmp_path, "before", before), write(tmp_path, "after", after)
    total = fm.compare(*paths).result.total
    assert (total.items, total.n11, total.n10) == (4, 1, 1)


def test_correct_and_count_are_repeats(tmp_path: Path) -> None:
    table = [{"example": f"e{n}", "correct": n, "count": 3} for n in range(4)]
    run = fm.open_run(write(tmp_path, "before", table, "csv"))
    scores = run.scores.select("item", "repeat", "score").collect().rows()
    assert len(scores) == 12
    assert sum(score for _, _, score in scores) == 6
    assert {repeat for _, repeat, _ in scores} == {0, 1, 2}


def test_a_run_that_failed_is_missing_in_a_list_of_runs(tmp_path: Path) -> None:
    runs = {f"t{n}": [{"passed": n % 2 == 0}, None] for n in range(4)}
    run = fm.open_run(write(tmp_path, "before", {"model": "m", "runs": runs}))
    scores = run.scores.collect()["score"].to_list()
    assert sorted(scores, key=str) == [0.0, 0.0, 1.0, 1.0, None, None, None, None]


def test_a_folder_with_a_file_for_each_item(tmp_path: Path) -> None:
    for side, right in RIGHT.items():
        folder = tmp_path / side
        folder.mkdir()
        (folder / "README.md").write_text("# Results\n\nNothing here, but text.\n")
        for n, verdict in enumerate(right):
            answer = {"instance_id": f"repo__{n}", "resolved": verdict, "model": f"m{n % 2}"}
            (folder / f"repo__{n}.json").write_text(json.dumps(answer))
            (folder / f"repo__{n}.md").write_text("a chat")
    sides = tmp_path / "before", tmp_path / "after"
    assert cells(*sides) == (1, 1, 1, 1)
    named = {"score": "resolved", "item": "instance_id"}
    assert cells(*sides, column_map=named) == (1, 1, 1, 1)


def test_an_archive_with_a_file_for_each_model(tmp_path: Path) -> None:
    path = tmp_path / "results.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for side in RIGHT:
            content = {
                "experiment": side, "total_questions": 4,
                "per_question": rows(side, lambda n, right: {
                    "question_id": f"q{n}", "judge": {"normalized": float(right), "why": "x"}}),
            }  # fmt: skip
            archive.writestr(f"out/metrics_llama-3.1-{side}.json", json.dumps(content))
    assert cells(f"{path}#llama-3.1-before", f"{path}#llama-3.1-after") == (1, 1, 1, 1)


def test_rows_of_a_variant_and_columns_of_an_agent(tmp_path: Path) -> None:
    both = [
        {"test": f"t{n}", "variant_key": name, "passed": right, "recall": .5}
        for side, name in (("before", "A1"), ("after", "A4"))
        for n, right in enumerate(RIGHT[side])
    ]  # fmt: skip
    path = write(tmp_path, "long", both, "csv")
    assert cells(f"{path}#A1", f"{path}#A4") == (1, 1, 1, 1)
    agents = [
        {"task_id": n, "Agent_1_human_label": str(int(RIGHT["before"][n])),
         "Agent_2_human_label": str(int(RIGHT["after"][n]))}
        for n in range(4)
    ]  # fmt: skip
    path = write(tmp_path, "wide", agents)
    assert cells(f"{path}#Agent_1", f"{path}#Agent_2") == (1, 1, 1, 1)


def test_answers_of_models_in_columns_are_graded(tmp_path: Path) -> None:
    table = [
        {"ID": n, "ANSWER": "yes; indeed", "a": "indeed" if RIGHT["before"][n] else "no",
         "b": "yes" if RIGHT["after"][n] else "never"}
        for n in range(4)
    ]  # fmt: skip
    path = write(tmp_path, "answers", table, "tsv")
    comparison = fm.compare(f"{path}#a", f"{path}#b")
    total = comparison.result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)
    said = [one.message for one in comparison.result.pairing.warnings]
    assert any("no score: graded here" in one for one in said)


def test_samples_in_many_settings_are_items_of_their_own(tmp_path: Path) -> None:
    both = [
        {"model": model, "lang": lang, "kept": kept, "sample_id": n,
         "correct": (n + len(lang)) % 2 == 0, "config_hash": f"{model}{lang}{kept}"}
        for model in ("m1", "m2") for lang in ("en", "pol") for kept in (.5, 1.0) for n in range(9)
    ]  # fmt: skip
    path = write(tmp_path, "both", both, "csv")
    result = fm.compare(f"{path}#m1", f"{path}#m2").result
    assert (result.total.items, result.pairing.only_before) == (36, 0)


def test_some_questions_worded_otherwise_are_paired_by_id(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"pid": f"p{n}", "question": QUESTIONS[n], "true_false": right}

    before, after = rows("before", make), rows("after", make)
    after[3]["question"] += " Answer briefly."
    comparison = fm.compare(write(tmp_path, "before", before), write(tmp_path, "after", after))
    total = comparison.result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 1)
    said = [one.message for one in comparison.result.pairing.warnings]
    assert any("worded differently: paired by pid" in one for one in said)


# ---- asked, with commands that work ----

LABELS = ("A", "A", "B", "C"), ("A", "B", "A", "C")
ASKED: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "letters of a grader": lambda side, n: {
        "problem": QUESTIONS[n], "predicted_answer": "x", "grade": LABELS[side][n]},
    "a judge's label of which the lowest is right": lambda side, n: {
        "id": n, "judge_label": "ABC".index(LABELS[side][n]), "model_answer": "x"},
    "a judge's rating": lambda side, n: {
        "id": n, "parsed": {"safety": {"score": str(5 if LABELS[side][n] == "A" else 1 + n % 2),
                                       "reason": "because"}}},
    "two measures that differ": lambda side, n: {
        "id": n, "passed_tests": LABELS[side][n] == "A", "passed_lint": LABELS[side][n] == "B"},
}  # fmt: skip


@pytest.mark.parametrize("shape", ASKED)
def test_what_is_not_clear_is_asked_with_commands_that_work(shape: str, tmp_path: Path) -> None:
    sides = [
        write(tmp_path, name, [ASKED[shape](side, n) for n in range(4)], "jsonl")
        for side, name in enumerate(("before", "after"))
    ]
    done = call("compare", *sides, columns=4000)
    assert done.code == 2
    commands = [shlex.split(one) for one in re.findall(r"`(forgetmap [^`]+)`", done.err)]
    found = [json_of(*words[2:]) for words in commands]
    counts = [tuple(one["total"][name] for name in ("n11", "n10", "n01", "n00")) for one in found]
    assert (1, 1, 1, 1) in counts


def test_a_setting_that_is_equal_on_both_sides_is_no_score(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"id": n, "passed_before": n % 2 == 0, "passed_now": right}

    sides = [write(tmp_path, side, rows(side, make), "jsonl") for side in RIGHT]
    assert cells(*sides) == (1, 1, 1, 1)


def test_two_equal_runs_are_legitimate(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"id": n, "is_solved": right}

    sides = [write(tmp_path, name, rows("before", make), "jsonl") for name in RIGHT]
    assert cells(*sides) == (2, 0, 0, 2)


def test_of_several_the_one_that_a_total_agrees_with(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"id": n, "passed_easy": n < 3, "passed_all": right}

    sides = [write(tmp_path, side, {"accuracy": 0.5, "rows": rows(side, make)}) for side in RIGHT]
    assert cells(*sides) == (1, 1, 1, 1)


def test_a_verdict_of_no_telling_name_is_asked_about_in_both_directions(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"id": n, "flagged": not right, "seconds": 0.5}

    sides = [write(tmp_path, side, rows(side, make), "jsonl") for side in RIGHT]
    done = call("compare", *sides, columns=4000)
    assert done.code == 2
    assert "score=flagged=1" in done.err
    assert cells(*sides, column_map={"score": "flagged=0", "item": "id"}) == (1, 1, 1, 1)


@pytest.mark.parametrize("name", ["hallucination_rate", "wer"])
def test_less_is_better_is_asked(name: str, tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"id": n, name: 0.1 if right else 0.9}

    sides = [write(tmp_path, side, rows(side, make), "jsonl") for side in RIGHT]
    done = call("compare", *sides, columns=4000)
    (command,) = re.findall(r"`(forgetmap [^`]+)`", done.err)
    assert "--range 1:0" in command
    total = json_of(*shlex.split(command)[2:])["total"]
    assert (total["n11"], total["n10"], total["n01"], total["n00"]) == (1, 1, 1, 1)


# ---- refused or contradicted ----


def test_lists_of_different_lengths_are_no_repeats(tmp_path: Path) -> None:
    table = [{"id": n, "passed": [True] * (n + 1)} for n in range(4)]
    sides = [write(tmp_path, name, table, "jsonl") for name in RIGHT]
    with pytest.raises(ForgetmapError):
        fm.compare(*sides)


def test_right_answers_by_subject_are_asked_about(tmp_path: Path) -> None:
    table = [{"subject": s, "correct": 10 * n, "total": 100 * n} for n, s in enumerate("abcd", 1)]
    with pytest.raises(ForgetmapError):
        fm.open_run(write(tmp_path, "before", table, "csv"))


def test_averages_of_tasks_in_a_table_are_no_results(tmp_path: Path) -> None:
    table = [{"benchmark": name, "accuracy": 0.5, "n": 100} for name in ("arc", "piqa", "boolq")]
    with pytest.raises(ForgetmapError):
        fm.open_run(write(tmp_path, "before", table, "csv"))


def test_averages_are_no_results(tmp_path: Path) -> None:
    path = write(tmp_path, "before", {"arc": 0.5, "piqa": 0.7, "boolq": 0.9})
    with pytest.raises(UnknownFormatError):
        fm.open_run(path)


def test_shuffled_rows_without_ids_are_refused(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"label": n % 2, "prediction": n % 2 if right else 1 - n % 2, "seconds": 0.1 + n}

    sides = [
        write(tmp_path, "before", rows("before", make), "csv"),
        write(tmp_path, "after", rows("after", make)[::-1], "csv"),
    ]
    with pytest.raises(ForgetmapError) as caught:
        fm.compare(*sides)
    assert caught.value.field in {"item", "score"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("beside", "field"), [({"total": 1319}, "total"), ({"num_solved": 4}, "num_solved")]
)
def test_totals_that_rows_do_not_have_decide(
    beside: dict[str, int], field: str, tmp_path: Path
) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"question_id": n, "is_solved": right}

    sides = [write(tmp_path, side, {**beside, "results": rows(side, make)}) for side in RIGHT]
    result = fm.compare(sides[0], sides[1]).result
    assert result.total.verdict == "cannot_tell"
    assert any(f"states {field} " in one.message for one in result.pairing.contradictions)


def test_an_answer_without_any_right_one_is_not_graded(tmp_path: Path) -> None:
    table = [{"id": n, "prediction": "x", "model": "m"} for n in range(4)]
    with pytest.raises(ColumnError):
        fm.open_run(write(tmp_path, "before", table, "jsonl"))


# ---- rules ----


@pytest.mark.parametrize(
    ("answer", "gold", "grade"),
    [
        ("B", "(b)", 1.0), ("b.", "B", 1.0), ("a", "B", 0.0), ("1,000", 1000, 1.0),
        ("0.3333", "0.333", 1.0), ("yes", ["no", "yes"], 1.0), ("x", "x; y", 1.0),
        (["7"], "7", 1.0), ("", "7", 0.0), (None, "7", 0.0), ("7", None, None), ("7", "", None),
        ("True", "1", 0.0),
    ],
)  # fmt: skip
def test_grades(answer: object, gold: object, grade: float | None) -> None:
    assert is_right(answer, gold) == grade


def test_a_column_of_this_very_name_comes_before_a_rule() -> None:
    assert cell_of({"a=b": 3, "a": "b"}, "a=b") == 3
    assert cell_of({"a": "b"}, "a=b") == 1.0
    assert cell_of({"a": {"b": 1}}, "a.b=1") == 1.0
    assert cell_of({"a": None}, "a=b") is None
    assert counts_of({"c": 2, "n": 5}, "c/n") == (2, 5)
    assert counts_of({"c": 6, "n": 5}, "c/n") is None
    assert cell_of({"x": 1, "y": "p"}, "x+y") == "1 | p"
