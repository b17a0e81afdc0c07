"""EvalScope: reviews of three generations of formats, and broken ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forgetmap.records.run import Run
from forgetmap.sources.formats.suites import split_question
from forgetmap.sources.logs import Reading, recognise
from forgetmap.sources.open import open_run
from log_writers import opened, write_lines

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs" / "evalscope"
STONES = FIXTURES / "1.8/log/20260101_120000/reviews/acme-2/stones_default.jsonl"
KNOTS = FIXTURES / "0.9/log/reviews/acme-0/knots_main.jsonl"


def results(run: Run) -> dict[tuple[str, int, str], float | None]:
    rows = run.scores.collect().rows(named=True)
    return {(row["item"], row["repeat"], row["metric"]): row["score"] for row in rows}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_is_described() -> None:
    run = opened(FIXTURES / "1.8" / "log")
    assert run.info.model.name == "acme-2"
    assert run.info.tasks["stones_default"].main_metric == "acc"
    assert run.info.tasks["orders_default"].main_metric == "prompt_level_strict"
    logs = recognise(FIXTURES / "1.8" / "log")
    assert {log.stamp for log in logs} == {"20260101_120000"}


def test_model_is_that_of_the_folder_where_nothing_else_says_it() -> None:
    assert opened(FIXTURES / "1.0" / "log").info.model.name == "acme-1"


def test_line_order_does_not_matter(tmp_path: Path) -> None:
    rows = lines(STONES)
    found = [
        results(opened(write_lines(tmp_path / "a.jsonl", order))) for order in (rows, rows[::-1])
    ]
    assert found[0] == found[1]
    assert found[0]["1", 0, "acc"] == 1.0
    assert found[0]["1", 1, "acc"] == 0.0


def test_planned_repeats_are_not_closed_up(tmp_path: Path) -> None:
    row = lines(STONES)[0]
    row["sample_score"]["generation_index"] = 3
    assert set(results(opened(write_lines(tmp_path / "a.jsonl", [row])))) == {("1", 3, "acc")}


def test_records_are_in_the_order_of_the_lines(tmp_path: Path) -> None:
    rows = lines(STONES)[:2]
    rows += [json.loads(json.dumps(row)) for row in rows]  # a second pass over the items
    for place, row in enumerate(rows):
        row["index"] = place
        row["sample_score"] |= {"group_id": place % 2, "generation_index": place // 2}
    found = opened(write_lines(tmp_path / "a.jsonl", rows)).scores.collect().rows(named=True)
    assert [(row["item"], row["repeat"]) for row in found] == [
        *(("0", 0), ("1", 0)),
        *(("0", 1), ("1", 1)),
    ]


def test_answers_to_another_question_do_not_shift_repeats(tmp_path: Path) -> None:
    rows = lines(STONES)
    rows[3]["sample_score"]["group_id"] = 1
    found = opened(write_lines(tmp_path / "a.jsonl", rows)).scores.collect().rows(named=True)
    of_one = {row["repeat"]: row["score"] for row in found if row["gold"] == "Coal"}
    assert of_one == {0: 1.0, 1: 0.0}


def test_ids_of_messages_are_not_part_of_the_prompt(tmp_path: Path) -> None:
    prompts = []
    for name in ("one", "two"):
        row = lines(STONES)[0]
        row["messages"][0]["id"] = name
        run = opened(write_lines(tmp_path / "a.jsonl", [row]))
        prompts.append(run.scores.collect()["prompt_hash"].to_list())
    assert prompts[0] == prompts[1] != [None]


def test_collection_has_the_tasks_it_was_made_of(tmp_path: Path) -> None:
    rows = lines(STONES)
    for row, name in zip(rows, ("arc", "gsm8k", "arc", "gsm8k"), strict=True):
        row["sample_score"]["sample_metadata"] = {
            "collection_info": {"dataset_name": name, "subset_name": "main"}
        }
    run = opened(write_lines(tmp_path / "data_collection.jsonl", rows))
    assert set(run.info.tasks) == {"arc_main", "gsm8k_main"}


def test_letters_in_an_open_question_are_no_options(tmp_path: Path) -> None:
    row = lines(STONES)[0]
    row["target"] = "seven"
    run = opened(write_lines(tmp_path / "a.jsonl", [row]))
    assert run.scores.collect()["k"].to_list() == [None]


def write_reported(folder: Path, model: str, right: int, *, reported: float | None = None) -> None:
    """Write ten reviews of a model, and a report with their mean."""
    rows = []
    for place in range(10):
        row = lines(STONES)[0]
        row["index"] = row["sample_score"]["group_id"] = place
        row["messages"][0]["content"] = f"Which stone has number {place}?"
        row["messages"][-1]["model"] = model
        row["sample_score"]["score"]["value"] = {"acc": float(place < right)}
        rows.append(row)
    write_lines(folder / f"reviews/{model}/stones_default.jsonl", rows)
    subset = {"name": "default", "score": right / 10 if reported is None else reported}
    metric = {"name": "mean_acc", "categories": [{"name": ["all"], "subsets": [subset]}]}
    report = {"dataset_name": "stones", "model_name": model, "score": 0.5, "metrics": [metric]}
    path = folder / f"reports/{model}/stones.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report))


@pytest.mark.parametrize("folders", [("", ""), ("one", "two")])
def test_a_report_is_about_its_own_model(tmp_path: Path, folders: tuple[str, str]) -> None:
    for folder, model, right in zip(folders, ("acme-1", "acme-2"), (3, 9), strict=True):
        write_reported(tmp_path / folder, model, right)
    for model in ("acme-1", "acme-2"):
        run = open_run(tmp_path, reading=Reading(cached=False, run=model))
        assert (run.info.model.name, run.contradictions) == (model, ())
    write_reported(tmp_path / folders[1], "acme-2", 9, reported=0.3)
    run = open_run(tmp_path, reading=Reading(cached=False, run="acme-2"))
    assert [(one.stated, one.found) for one in run.contradictions] == [(0.3, 0.9)]


def test_a_report_is_about_its_own_run(tmp_path: Path) -> None:
    for stamp, right in (("20260101_120000", 3), ("20260102_120000", 9)):
        write_reported(tmp_path / stamp, "acme-1", right)
    for stamp in ("20260101_120000", "20260102_120000"):
        run = open_run(tmp_path, reading=Reading(cached=False, run=stamp))
        assert run.contradictions == ()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("sample_score",), None),
        (("sample_score",), []),
        (("sample_score", "score"), "x"),
        (("sample_score", "score", "value"), {"acc": "many"}),
        (("sample_score", "score", "value"), {"acc": None}),
        (("messages",), [3, {"role": "user", "content": {"a": 1}}]),
        (("messages",), None),
        (("index",), {"a": 1}),
        (("target",), ["A"]),
    ],
)
def test_wrong_types_harm_only_their_row(
    tmp_path: Path, place: tuple[str, ...], value: object
) -> None:
    rows = lines(STONES)
    inner = rows[1]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    before = results(opened(write_lines(tmp_path / "a.jsonl", lines(STONES))))
    run = opened(write_lines(tmp_path / "b.jsonl", rows))
    spoilt = ("0", 0, "acc")
    found = results(run)
    of_others = {key: value for key, value in before.items() if key[0] == "1"}
    assert {key: found[key] for key in of_others} == of_others
    if place[0] == "sample_score":
        assert found.get(spoilt) != 1.0
    if value != {"acc": None}:
        assert {problem.line for problem in run.problems} == {2}


def test_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    text = STONES.read_text().splitlines()
    path.write_text("\n".join([text[0], text[1][:40], *text[2:]]))
    run = opened(path)
    assert [(problem.line, Path(problem.file).name) for problem in run.problems] == [(2, "a.jsonl")]
    assert len(results(run)) == 3


@pytest.mark.parametrize(
    "choices", [None, [], [3], [{"review": None}], [{"review": {"result": []}}]]
)
def test_old_review_without_result_gives_no_score(tmp_path: Path, choices: object) -> None:
    rows = lines(KNOTS)
    rows[0]["choices"] = choices
    run = opened(write_lines(tmp_path / "a.jsonl", rows))
    assert results(run) | {("1", 0, "acc"): None} == {("0", 0, "acc"): 0.0, ("1", 0, "acc"): None}


def test_predictions_alone_are_no_log(tmp_path: Path) -> None:
    source = FIXTURES / "1.8/log/20260101_120000/predictions/acme-2/stones_default.jsonl"
    shutil.copy(source, tmp_path / "a.jsonl")
    assert not [log for log in recognise(tmp_path) if log.adapter == "evalscope"]


def test_failures_of_another_run_are_not_taken(tmp_path: Path) -> None:
    """Both runs bear the same names; only in the first did the request fail."""
    row = lines(STONES)[0]
    for stamp, error in (("20260101_000000", "timeout"), ("20260102_000000", None)):
        for kind in ("reviews", "predictions"):
            (tmp_path / stamp / kind / "m").mkdir(parents=True)
        write_lines(tmp_path / stamp / "reviews/m/stones.jsonl", [row])
        predicted = {"index": row["index"], "model": "m", "model_output": {"error": error}}
        write_lines(tmp_path / stamp / "predictions/m/stones.jsonl", [predicted])
    assert set(results(opened(tmp_path / "20260101_000000")).values()) == {None}
    assert set(results(opened(tmp_path)).values()) == {0.0}


def test_a_failure_without_an_index_is_that_of_no_review(tmp_path: Path) -> None:
    reviews = [{**row, "index": None} for row in lines(STONES)]
    predicted = {"index": None, "model": "m", "model_output": {"error": "timeout"}}
    for kind, rows in (("reviews", reviews), ("predictions", [predicted])):
        folder = tmp_path / "20260101_000000" / kind / "m"
        folder.mkdir(parents=True)
        write_lines(folder / "stones.jsonl", rows)
    assert None not in results(opened(tmp_path)).values()


def test_the_innermost_stamp_is_that_of_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "20250101_000000" / "20260202_000000" / "reviews" / "m"
    folder.mkdir(parents=True)
    write_lines(folder / "stones.jsonl", lines(STONES))
    assert [log.stamp for log in recognise(tmp_path)] == ["20260202_000000"]


BEFORE = (
    "Answer the following multiple choice question. Reply.\n\n",
    "Answer the following multiple choice question. Reply.\n\nQuestion:\n",
    "\u56de\u7b54\u4e0b\u9762\u7684\u9898\n\n\u95ee\u9898\uff1a",
    "One and one?\nANSWER: 2\n\n",
    "One and one?\n\u7b54\u6848\uff1a2\n\n",
    "Solve the following math problem step by step. Please.\n\n",
    "Solve the following problem step by step. Please.\n\n",
    "Read the following function signature and docstring, then write.\n",
    "\n \n",
)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("after", ["", "\n", "\nPlease reason step by step."])
def test_words_around_a_question_are_left_out(before: str, after: str) -> None:
    assert split_question(f"{before}Why? ANSWER: so\nor not?{after}", "x") == (
        "Why? ANSWER: so\nor not?",
        [],
    )
    assert split_question(f"{before}Why?{after}\nA) a\nB) b", "B") == ("Why?", ["a", "b"])


@pytest.mark.parametrize("text", ["ANSWER: 2", "question:\n", " # Your Task ", "\nOptions:"])
def test_a_question_of_a_template_alone_stays(text: str) -> None:
    assert split_question(text, None) == (text.strip(), [])
