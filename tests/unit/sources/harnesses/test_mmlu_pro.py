"""MMLU-Pro output files: variants, broken rows, and rows that share question and right answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import FieldError, UsageError
from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run


def question(number: int, predicted: object, **other: Any) -> dict[str, Any]:
    return {
        "question_id": number,
        "question": f"How much is {number} plus one?",
        "options": [str(number + 1), str(number + 2), str(number)],
        "answer": "A",
        "answer_index": 0,
        "category": "math",
        "pred": predicted,
        "model_outputs": f"The answer is ({predicted}).",
        **other,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows))
    return path


def opened(path: Path, *, strict: bool = False) -> Run:
    return open_run(path, reading=Reading(cached=False, strict=strict))


def scores(run: Run) -> dict[str, float | None]:
    return dict(run.scores.collect().select("item", "score").iter_rows())


def test_model_and_shots_come_from_the_name(tmp_path: Path) -> None:
    run = opened(write(tmp_path / "model_outputs_Tiny_2-3B_5shots.json", [question(1, "A")]))
    assert run.info.model.name == "Tiny_2-3B"
    assert run.info.tasks["mmlu_pro"].n_shot == 5
    dated = opened(write(tmp_path / "model_outputs_opus_2shots_00_37_14.json", [question(1, "A")]))
    assert (dated.info.model.name, dated.info.tasks["mmlu_pro"].n_shot) == ("opus", 2)


def test_renamed_zipped_and_split_files_are_known(tmp_path: Path) -> None:
    folder = tmp_path / "any"
    write(folder / "a.txt", [question(1, "A"), question(2, "B")])
    (folder / "b").write_bytes(gzip.compress(json.dumps([question(3, "A")]).encode()))
    assert scores(opened(folder)) == {"1": 1.0, "2": 0.0, "3": 1.0}


def test_same_subject_of_two_models_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "one" / "math_result.json", [question(1, "A")])
    write(tmp_path / "two" / "math_result.json", [question(1, "B")])
    with pytest.raises(UsageError, match="2 models: one, two"):
        opened(tmp_path)
    run = open_run(tmp_path, reading=Reading(cached=False, run="two"))
    assert scores(run) == {"1": 0.0}


def test_names_of_responses(tmp_path: Path) -> None:
    rows = [question(1, "A"), question(2, "A"), question(3, "A")]
    del rows[1]["model_outputs"], rows[2]["model_outputs"]
    rows[1]["generated_text"], rows[2]["response"] = "old", "fork"
    run = opened(write(tmp_path / "x.json", rows))
    assert run.texts is not None
    found = dict(run.texts.collect().select("item", "response").iter_rows())
    assert found == {"1": "The answer is (A).", "2": "old", "3": "fork"}


@pytest.mark.parametrize(
    ("broken", "field", "score"),
    [
        ({"pred": ["A"]}, "pred", None),
        ({"pred": 0}, "pred", None),
        ({"answer": {"a": 1}}, "answer", None),
        ({"options": "A or B"}, "options", 1.0),
        ({"options": [{}]}, "options", 1.0),
        ({"category": 5}, "category", 1.0),
        ({"model_outputs": [1]}, "model_outputs", 1.0),
    ],
)
def test_field_of_another_type_is_a_problem(
    tmp_path: Path, broken: dict[str, Any], field: str, score: float | None
) -> None:
    path = write(tmp_path / "x.json", [question(1, "A"), question(2, "A", **broken)])
    run = opened(path)
    assert scores(run) == {"1": 1.0, "2": score}
    assert [(p.file, p.line, p.field) for p in run.problems] == [(str(path), 1, field)]


@pytest.mark.parametrize("broken", ["total", 7, None, {"question_id": 9}, {"question": "What?"}])
def test_element_that_is_no_question_is_left_out(tmp_path: Path, broken: object) -> None:
    path = tmp_path / "x.json"
    elements = [json.dumps(row) for row in (question(1, "A"), broken, question(2, "B"))]
    path.write_text("[" + ",\n".join(elements) + "]")
    run = opened(path)
    assert scores(run) == {"1": 1.0, "2": 0.0}
    assert [p.line for p in run.problems] == [2]
    with pytest.raises(FieldError, match="line 2"):
        opened(path, strict=True)


def test_questions_that_share_question_and_gold_pair_by_options_then_id(tmp_path: Path) -> None:
    shared = {"question": "Which one is true?"}
    rows = [
        question(1, "A", **shared, options=["yes", "no"]),
        question(2, "B", **shared, options=["yes", "never"]),
        question(3, "A", **shared, options=["yes", "no"]),
    ]
    after = [dict(row, pred="A") for row in reversed(rows)]
    after[0]["pred"] = "B"
    before = write(tmp_path / "before.json", rows)
    total = fm.compare(before, write(tmp_path / "after.json", after)).result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 1, 1, 0)


@pytest.mark.parametrize(("stated", "is_explained"), [(2, True), (4, True), (5, False), (0, False)])
def test_guesses_of_the_script_explain_its_total(
    tmp_path: Path, stated: int, is_explained: bool
) -> None:
    """One answer is right, one wrong, and for three without an answer the script guesses."""
    rows = [question(n, letter) for n, letter in enumerate(["A", "B", None, None, None])]
    write(tmp_path / "math_result.json", rows)
    counts = {"corr": float(stated), "wrong": 5.0 - stated, "acc": stated / 5}
    (tmp_path / "math_summary.json").write_text(json.dumps({"math": counts, "total": counts}))
    (fact,) = opened(tmp_path).contradictions
    assert (fact.stated, fact.found, fact.is_explained) == (stated, 1, is_explained)
