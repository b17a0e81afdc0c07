"""Shapes of public files that once were dead ends or were counted wrongly, each made small.

What is right and wrong in each is written here by hand: item 0 is right on both sides, item 1 only
before, item 2 only after, item 3 on neither; some have five such rounds, so that there are enough.
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
from forgetmap.errors import ColumnError, UnknownFormatError
from unknown_layouts import QUESTIONS, RIGHT, cells, rows, write

ROUNDS = 6
MANY = {side: right * ROUNDS for side, right in RIGHT.items()}
Verdicts = tuple[bool, ...]

SHAPES: dict[str, tuple[str, Callable[[Verdicts], object]]] = {
    "an id of any name": (
        "csv", lambda right: [
            {"model_name": "m", "pair_id": n, "correct": int(one)} for n, one in enumerate(right)],
    ),
    "results inside the tests that sum them up": (
        "json", lambda right: [
            {"test": f"t{part}", "rate": .5, "total": 4, "cases": [
                {"case_id": n, "outcome": "Pass" if right[4 * part + n] else "Fail"}
                for n in range(4)]}
            for part in range(ROUNDS)],
    ),
    "options by letter": (
        "json", lambda right: {"accuracy": .5, "predictions": [
            {"question": f"q{n} is what?", "options": {"A": "x", "B": "y"}, "is_correct": one}
            for n, one in enumerate(right)]},
    ),
    "verdicts of several samples by id": (
        "json", lambda right: {"scored": {f"s{n}": [one] for n, one in enumerate(right)},
                               "raw": {f"s{n}": ["text"] for n, _ in enumerate(right)}},
    ),
    "lists of ids by stage": (
        "json", lambda right: {
            "generated": [f"i{n}" for n, _ in enumerate(right)], "reset_failed": [],
            "applied": [f"i{n}" for n, _ in enumerate(right)],
            "resolved": [f"i{n}" for n, one in enumerate(right) if one]},
    ),
    "a conversation and the right answer in an object": (
        "jsonl", lambda right: [
            {"messages": [{"role": "system", "content": "Solve."},
                          {"role": "user", "content": f"What is {n} plus 1?"}],
             "ground_truth": {"answer": n + 1}, "completion": str(n + 1 if one else -n)}
            for n, one in enumerate(right)],
    ),
    "a list as the item": (
        "json", lambda right: {"problems": [
            {"numbers": [n, n + 1, 4], "success": one, "error": ""}
            for n, one in enumerate(right)]},
    ),
    "samples inside a row, not equally many": (
        "jsonl", lambda right: [
            {"_id": f"x{n}", "level": "class", "generate_results": [
                {"code": "pass", "is_pass": one}] * (1 if n else 2)}
            for n, one in enumerate(right)],
    ),
    "a slash in the name of a column": (
        "json", lambda right: [
            {"org/model-1B_label": "AB"[n % 2 if one else (n + 1) % 2], "label": "AB"[n % 2],
             "prompt": f"Which is {n}?"}
            for n, one in enumerate(right)],
    ),
    "a label among numbers": (
        "jsonl", lambda right: [
            *({"id": n, "score": int(one)} for n, one in enumerate(right)),
            {"id": 99, "score": "REFUSAL"}],
    ),
    "words for right in a name with error": (
        "json", lambda right: [
            {"uid": f"u{n}", "error_reason_correctness": "correct" if one else "incorrect"}
            for n, one in enumerate(right)],
    ),
    "iterations inside a row with a score": (
        "json", lambda right: {"version": "1", "tasks": [
            {"taskId": f"t{n}", "score": .9 if one else .1,
             "iterations": [{"iteration": k, "success": True} for k in range(3)]}
            for n, one in enumerate(right)]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_public_shapes_are_read_as_they_are(shape: str, tmp_path: Path) -> None:
    ending, make = SHAPES[shape]
    sides = [write(tmp_path, side, make(right), ending) for side, right in MANY.items()]
    found = cells(*sides)
    extra = found[0] - ROUNDS  # a first sample more
    assert extra in {0, 1}
    assert found[1:] == (ROUNDS,) * 3


def test_runs_of_models_in_one_file(tmp_path: Path) -> None:
    runs = [
        {"provider_id": name, "model": name, "pass_rate": 0.5, "samples": [
            {"id": f"s{n}", "passed": one} for n, one in enumerate(right)]}
        for name, right in MANY.items()
    ]  # fmt: skip
    tests = [{"id": f"s{n}", "text": "x"} for n in range(4 * ROUNDS)]
    path = write(tmp_path, "results", {"tests": tests, "runs": runs})
    assert cells(f"{path}#before", f"{path}#after") == (ROUNDS,) * 4


def test_tasks_that_both_files_have_are_united(tmp_path: Path) -> None:
    sides = [
        write(tmp_path, side, {"results": {
            task: {"accuracy": 0.5, "samples": rows(side, lambda n, right: {
                "id": n, "is_correct": right})} for task in ("gsm8k", "math", "mmlu")}})
        for side in RIGHT
    ]  # fmt: skip
    result = fm.compare(sides[0], sides[1]).result
    assert [result.total.n11, result.total.n10, result.total.n01, result.total.n00] == [3, 3, 3, 3]
    assert {task.name for task in result.tasks} == {"gsm8k", "math", "mmlu"}


def test_parts_of_a_folder_and_a_file_without_scores(tmp_path: Path) -> None:
    for side, right in MANY.items():
        folder = tmp_path / side
        folder.mkdir()
        graded = [{"index": n, "is_correct": one, "out": "x"} for n, one in enumerate(right)]
        write(folder, "correct", [row for row in graded if row["is_correct"]])
        write(folder, "wrong", [row for row in graded if not row["is_correct"]])
        write(folder, "generated", [{"index": row["index"], "out": "x"} for row in graded], "jsonl")
        (folder / "summary.json").write_text(json.dumps({"model": "m", "accuracy": 0.5}))
    assert cells(tmp_path / "before", tmp_path / "after") == (ROUNDS,) * 4
    notices = fm.open_run(tmp_path / "before").notices
    assert any("generated.jsonl" in one and "left out" in one for one in notices)


def test_answers_that_no_column_numbers_are_repeats_on_both_sides(tmp_path: Path) -> None:
    table = [
        {"model": side, "prompt_id": f"p{n}", "correct": one, "response": f"text {repeat}"}
        for side, right in RIGHT.items() for n, one in enumerate(right)
        for repeat in range(5 - (side == "before" and n == 3))
    ]  # fmt: skip
    path = write(tmp_path, "all", table, "jsonl")
    total = fm.compare(f"{path}#before", f"{path}#after").result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (5, 5, 5, 4)


def test_few_ids_that_occur_again_are_repeats(tmp_path: Path) -> None:
    def make(n: int, right: bool) -> dict[str, Any]:
        return {"task_id": f"HumanEval/{n}", "is_solved": right, "attempt_text": f"{n}"}

    before, after = rows("before", make), rows("after", make)
    after.append({**after[0], "is_solved": False})
    sides = write(tmp_path, "before", before, "jsonl"), write(tmp_path, "after", after, "jsonl")
    assert cells(*sides) == (1, 1, 1, 1)
    assert any("occur 1 to 2 times" in one for one in fm.open_run(sides[1]).notices)


def test_letters_of_models_against_the_number_of_the_right_choice(tmp_path: Path) -> None:
    table = [
        {"question": f"{QUESTIONS[n % 4]} ({n})", "groundtruth_answer": n % 3,
         "gt_agreement": True, **{
            side: "ABC"[n % 3] if right[n] else "ABC"[(n + 1) % 3] for side, right in MANY.items()}}
        for n in range(4 * ROUNDS)
    ]  # fmt: skip
    path = write(tmp_path, "wide", table, "csv")
    assert cells(f"{path}#before", f"{path}#after") == (ROUNDS,) * 4


def test_sentences_on_one_side_are_graded_like_bare_answers_on_the_other(tmp_path: Path) -> None:
    """The form of the answers is not what is measured."""
    keys = [f"{n:08x}-aa{n:02d}-4b" for n in range(4 * ROUNDS)]
    sides = []
    for side, right in MANY.items():
        form = "The value for this key is {}, as the data says." if side == "before" else "{}"
        table = [
            {"id": n, "ground_truth": key, "prediction": form.format(key if one else "none")}
            for n, (key, one) in enumerate(zip(keys, right, strict=True))
        ]  # fmt: skip
        sides.append(write(tmp_path, side, table, "jsonl"))
    assert cells(*sides) == (ROUNDS,) * 4


def test_a_right_answer_that_is_never_given_is_refused(tmp_path: Path) -> None:
    """Another language, in which no answer could ever be right."""
    table = [
        {"id": n, "label": ("falso", "real")[n % 2], "prediction": ("fake", "real")[n % 3 % 2]}
        for n in range(24)
    ]  # fmt: skip
    path = write(tmp_path, "news", table, "csv")
    with pytest.raises(ColumnError, match="'falso' is never answered, 'fake' is never right"):
        fm.open_run(path)


ASKED: dict[str, Callable[[bool, int], dict[str, Any]]] = {
    "verdicts of no telling name": lambda one, n: {
        "position_idx": n, "is_best": one, "is_legal": n % 3 == 0},
    "ratings of no telling name": lambda one, n: {
        "question": f"What is {n}?", "truthfulness": 5 if one else 1 + n % 2, "words": 10.5 + n},
    "counts from 0 to 4": lambda one, n: {"puzzle": f"p{n}", "Unweighted Score": 4 * one},
    "measures in an object": lambda one, n: {
        "id": n, "scores": {"clarity": 4, "overall": 5 if one else n % 3}},
}  # fmt: skip


@pytest.mark.parametrize("shape", ASKED)
def test_what_is_not_clear_has_a_command_that_works(shape: str, tmp_path: Path) -> None:
    sides = [
        write(tmp_path, side, [ASKED[shape](one, n) for n, one in enumerate(right)], "jsonl")
        for side, right in MANY.items()
    ]
    done = call("compare", *sides, columns=4000)
    assert done.code == 2
    commands = [shlex.split(one) for one in re.findall(r"`(forgetmap [^`]+)`", done.err)]
    totals = [json_of(*words[2:])["total"] for words in commands]
    found = [tuple(one[name] for name in ("n11", "n10", "n01", "n00")) for one in totals]
    assert (ROUNDS,) * 4 in found


def test_measures_of_a_model_are_asked_about(tmp_path: Path) -> None:
    table = [
        {"task_id": f"t{n}", **{f"{side}_{name}": float(right[n] or (k and n % 4 == 3))
                                for k, name in enumerate(("pass@1", "pass@5"))
                                for side, right in MANY.items()}}
        for n in range(4 * ROUNDS)
    ]  # fmt: skip
    path = write(tmp_path, "wide", table, "csv")
    done = call("compare", f"{path}#before", f"{path}#after", columns=4000)
    assert done.code == 2
    first, *_ = (shlex.split(one) for one in re.findall(r"`(forgetmap [^`]+)`", done.err))
    total = json_of(*first[2:])["total"]
    assert (total["n11"], total["n10"], total["n01"], total["n00"]) == (ROUNDS,) * 4


def test_what_is_missing_is_said_with_a_complete_command(tmp_path: Path) -> None:
    table = [{"id": n, "instruction": f"Do {n}.", "output": "text"} for n in range(4)]
    sides = [write(tmp_path, side, table) for side in RIGHT]
    done = call("compare", *sides, columns=4000)
    assert done.code == 2
    assert "no column is known to be the score" in done.err
    typed = f"forgetmap compare {sides[0]} {sides[1]} --columns score=COLUMN,item=id"
    assert f"`{typed}`" in done.err


def test_a_name_that_is_there_is_not_denied(tmp_path: Path) -> None:
    table = [
        {"model": side, "id": n, "notes": "text"} for side in RIGHT for n in range(4)
    ]  # fmt: skip
    path = write(tmp_path, "all", table, "jsonl")
    done = call("compare", f"{path}#before", f"{path}#after", columns=4000)
    assert done.code == 2
    assert "no column or model" not in done.err


def test_an_excel_workbook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(UnknownFormatError, match="Excel workbook") as caught:
        fm.open_run(path)
    assert "save its sheet as CSV" in caught.value.hint
