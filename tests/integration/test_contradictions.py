"""Results that contradict what their log states: no verdict, and exit code 2 of a gate."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import call, json_of
from forgetmap.errors import ContradictionError
from log_writers import (
    inspect_sample,
    lm_eval_row,
    write_inspect,
    write_lines,
    write_lm_eval,
    write_lm_eval_results,
)

ITEMS = 300
GOOD = {"java": 290, "live": 280, "simple": 290}
STATED = "java: the log states correct_count 120, but these records give 300 (300 results)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))


def write_bfcl(folder: Path, right: Mapping[str, int], **stated: int) -> Path:
    """Write results and scores as BFCL did in 2024.

    Args:
        folder: the folder of the run.
        right: number of right answers by category.
        stated: number of right answers that the totals state, if another.
    """
    for task, count in right.items():
        answers = [{"id": f"{task}_{n}", "result": f"call {n}"} for n in range(ITEMS)]
        verdicts = [
            {
                "id": n + 1,
                "model_name": "bee",
                "test_category": task,
                "valid": False,
                "error": ["wrong"],
                "error_type": "value_error:string",
                "prompt": {"id": f"{task}_{n}", "question": f"Question {n}?"},
            }
            for n in range(count, ITEMS)
        ]
        total = stated.get(task, count)
        header = {"accuracy": total / ITEMS, "correct_count": total, "total_count": ITEMS}
        name = f"gorilla_openfunctions_v1_test_{task}_result.json"
        write_lines(folder / "result/bee" / name, answers)
        write_lines(folder / f"score/bee/{task}_score.json", [header, *verdicts])
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """A run with right totals, and one whose totals are those of a much worse model."""
    before = write_bfcl(tmp_path / "before", GOOD)
    right = {"java": 300, "live": 280, "simple": 300}
    return before, write_bfcl(tmp_path / "after", right, java=120, simple=90)


def verdicts(result: dict[str, Any]) -> set[str]:
    groups = [result["total"], result["total_macro"], *result["tasks"], *result["categories"]]
    return {group["verdict"] for group in groups}


def codes(before: object, after: object, *options: str) -> list[str]:
    """Return the contradictions of a comparison."""
    result = json_of(before, after, "--min-paired", "0.01", *options)
    found = [notice["code"] for notice in result["pairing"]["contradictions"]]
    assert (verdicts(result) == {"cannot_tell"}) or not found
    assert bool(found) is result["headline"].partition(": ")[2].startswith("cannot tell: after: ")
    return found


# --- the rule -------------------------------------------------------------------------------------


def test_compare_begins_with_the_contradiction(logs: tuple[Path, Path]) -> None:
    done = call("compare", *logs, columns=200)
    first, second, *_ = done.out.splitlines()
    assert done.code == 0
    assert first.split() == ["CANNOT", "TELL", "before", "->", "after"]
    assert second.rstrip() == f"Cannot tell: after: {STATED} (and 1 further contradiction)."


def test_no_group_has_a_verdict(logs: tuple[Path, Path]) -> None:
    result = json_of(*logs)
    assert result["headline"] == (
        f"after: cannot tell: after: {STATED} (and 1 further contradiction)."
    )
    assert verdicts(result) == {"cannot_tell"}
    assert [notice["code"] for notice in result["pairing"]["contradictions"]] == [
        "total_contradicted"
    ] * 2
    assert all(
        notice["message"].startswith("after: ") and notice["message"].endswith(".")
        for notice in result["pairing"]["contradictions"]
    )


def test_right_totals_leave_the_verdict_alone(tmp_path: Path) -> None:
    before = write_bfcl(tmp_path / "before", {"java": 290, "simple": 300})
    after = write_bfcl(tmp_path / "after", {"java": 200, "simple": 210})
    result = json_of(before, after)
    assert (result["total"]["verdict"], result["pairing"]["contradictions"]) == ("lost", [])
    assert call("gate", before, after).code == 1


def test_a_gate_ends_in_2_and_names_a_command_that_shows_the_log(logs: tuple[Path, Path]) -> None:
    for before, after in (logs, logs[::-1]):
        done = call("gate", before, after, columns=300)
        assert (done.code, done.out) == (2, "")
        assert f"Error: after: {STATED} (and 1 further contradiction)" in done.err
        command = re.search(r"`forgetmap (.*?)`", done.err)
        assert command is not None
        shown = call(*shlex.split(command[1]), columns=200)
        assert (shown.code, shown.out.count("the log states correct_count")) == (0, 2)
        assert str(logs[1]) in command[1]


def test_a_gate_in_python_raises_the_same(logs: tuple[Path, Path]) -> None:
    with pytest.raises(ContradictionError, match=re.escape(STATED)):
        fm.run_gate(*logs)
    with pytest.raises(ContradictionError, match=re.escape(STATED)) as caught:
        fm.run_gate(*map(fm.open_run, logs))
    assert caught.value.hint.startswith("`contradictions` of the run shows")


def test_a_gate_names_the_run_that_was_chosen(logs: tuple[Path, Path]) -> None:
    write_bfcl(logs[1] / "other", {"java": 300})
    (logs[1] / "other/result/bee").rename(logs[1] / "result/fly")
    (logs[1] / "other/score/bee").rename(logs[1] / "score/fly")
    done = call("gate", *logs, "--run", "bee", columns=300)
    assert (done.code, "--run bee`" in done.err) == (2, True)
    done = call("gate", logs[0], f"{logs[1]}#bee", columns=300)
    assert (done.code, f"records show '{logs[1]}#bee'`" in done.err) == (2, True)


def test_verdicts_without_a_result(tmp_path: Path) -> None:
    before = write_bfcl(tmp_path / "before", {"simple": 290, "java": 290})
    after = write_bfcl(tmp_path / "after", {"simple": 290, "java": 290})
    path = after / "score/bee/simple_score.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["prompt"]["id"] = "simple_9999"
    write_lines(path, rows)
    assert codes(before, after)[-1] == "verdict_unmatched"
    done = call("gate", before, after)
    assert (done.code, "simple" in done.err) == (2, True)


def test_nothing_scored_because_of_a_contradiction_is_no_lack_of_pairs(tmp_path: Path) -> None:
    before, after = (write_bfcl(tmp_path / side, {"simple": 290}) for side in ("before", "after"))
    path = after / "score/bee/simple_score.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[1:]:
        del row["prompt"]
    write_lines(path, rows[:-1])  # numbers that do not add up
    assert json_of(before, after)["headline"] == (
        "after: cannot tell: after: simple: 9 of 9 verdicts without an answer."
    )
    assert call("gate", before, after).code == 2


def test_every_model_of_a_fan_out_has_its_own(logs: tuple[Path, Path], tmp_path: Path) -> None:
    good = write_bfcl(tmp_path / "good", GOOD)
    bad, fine = fm.compare(*logs, good)
    assert bad.result.total.verdict == "cannot_tell"
    assert bad.headline.startswith(f"after: cannot tell: after: {STATED}")
    assert fine.result.total.verdict != "cannot_tell"


def test_every_stage_of_a_chain_has_its_own(logs: tuple[Path, Path], tmp_path: Path) -> None:
    good = write_bfcl(tmp_path / "good", GOOD)
    chain = fm.compare(*logs, good, chain=True)
    assert chain.result.total.verdict != "cannot_tell"
    middle, last = chain.stages
    found = (middle.against_first, middle.against_previous, last.against_previous)
    assert {group.verdict for group in found} == {"cannot_tell"}
    assert last.against_first.verdict != "cannot_tell"
    ends_badly = fm.compare(logs[0], good, logs[1], chain=True)
    assert ends_badly.result.headline.startswith(f"after: cannot tell: after: {STATED}")


def test_a_repeat_that_measures_the_noise_counts_too(logs: tuple[Path, Path]) -> None:
    good = write_bfcl(logs[0].parent / "good", GOOD)
    done = call("gate", logs[0], good, "--noise", logs[1], columns=300)
    assert (done.code, f"Error: noise: {STATED}" in done.err) == (2, True)
    assert f"records show {logs[1]}`" in done.err


# --- what it is not -------------------------------------------------------------------------------


def test_a_task_of_one_side_is_not_compared(tmp_path: Path) -> None:
    before = write_bfcl(tmp_path / "before", {"simple": 290})
    after = write_bfcl(tmp_path / "after", {"simple": 290, "java": 290}, java=3)
    assert codes(before, after) == []
    before = write_bfcl(tmp_path / "before", {"java": 290})
    assert codes(before, after) == ["total_contradicted"]


def write_two_metrics(folder: Path, **stated: float) -> Path:
    """Write 30 answers with the metrics `exact_match` (20 right) and `acc` (all right)."""
    rows = [
        lm_eval_row(n, float(n < 20)) | {"metrics": ["exact_match", "acc"], "acc": 1.0}
        for n in range(30)
    ]
    write_lm_eval(folder, rows)
    results = {f"{metric},none": value for metric, value in stated.items()}
    return write_lm_eval_results(folder, results={"sums": results}, configs={"sums": {}})


def test_only_the_compared_metric_counts(tmp_path: Path) -> None:
    before = write_two_metrics(tmp_path / "before")
    after = write_two_metrics(tmp_path / "after", exact_match=2 / 3, acc=0.4)
    assert codes(before, after, "--metric", "exact_match") == []
    assert codes(before, after, "--metric", "acc") == ["total_contradicted"]


@pytest.mark.parametrize(
    ("stated", "found"),
    [(0.6667, 0), (0.667, 0), (0.67, 0), (0.66, 1), (0.6, 1), (0.6657, 1), (2 / 3 + 1e-9, 0)],
)
def test_a_rounded_total_is_the_same(tmp_path: Path, stated: float, found: int) -> None:
    before = write_two_metrics(tmp_path / "before")
    after = write_two_metrics(tmp_path / "after", exact_match=stated)
    assert len(codes(before, after, "--metric", "exact_match")) == found


def write_with_failures(path: Path, accuracy: float | None) -> Path:
    """Write 20 samples of Inspect: 12 right, 4 wrong, and 4 without a score."""
    samples = [inspect_sample(n, "C" if n < 12 else "I") for n in range(16)]
    samples += [inspect_sample(n, "I", scores={}, error={"message": "x"}) for n in range(16, 20)]
    write_inspect(path, samples)
    content = json.loads(path.read_text())
    metrics = {} if accuracy is None else {"accuracy": {"name": "accuracy", "value": accuracy}}
    content["results"]["scores"][0]["metrics"] = metrics
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("accuracy", "found"),
    [(12 / 16, 0), (12 / 20, 0), (16 / 20, 0), (0.7, 0), (0.59, 1), (0.82, 1)],
)
def test_missing_scores_explain_a_total_within_their_reach(
    tmp_path: Path, accuracy: float, found: int
) -> None:
    before = write_with_failures(tmp_path / "before.json", None)
    after = write_with_failures(tmp_path / "after.json", accuracy)
    assert len(codes(before, after)) == found


def write_evalchemy(path: Path, **stated: int) -> Path:
    examples = [
        {"id": n, "problem": f"{n}?", "answer": "7", "model_output": "...", "model_answer": "7.0"}
        for n in range(20)
    ]
    result = {"examples": examples} | stated
    path.write_text(json.dumps({"results": {"MATH500": result}, "date": 1.7e9}))
    return path


def test_our_own_grading_may_count_otherwise(tmp_path: Path) -> None:
    before = write_evalchemy(tmp_path / "before.json")
    after = write_evalchemy(tmp_path / "after.json", num_solved=3)
    assert len(fm.open_run(after).contradictions) == 1
    assert codes(before, after) == []


# --- facts are kept -------------------------------------------------------------------------------


def test_an_imported_run_keeps_the_fact(logs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "runs/after"
    assert call("records", "import", logs[1], "--out", out).code == 0
    assert fm.open_run(out).contradictions == fm.open_run(logs[1]).contradictions != ()
    assert codes(logs[0], out) == ["total_contradicted"] * 2
    assert call("gate", logs[0], out).code == 2
    again = tmp_path / "runs/again"
    assert call("records", "convert", out, "--out", again).code == 0
    assert fm.open_run(again).contradictions == fm.open_run(out).contradictions
    shown = call("records", "show", out, columns=200)
    assert STATED in shown.out


def test_a_baseline_keeps_the_fact(logs: tuple[Path, Path], tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert call("gate", "accept", logs[1], "--as", "main", "--store", store).code == 0
    done = call("gate", "baseline:main", logs[0], "--store", store, columns=300)
    assert (done.code, STATED in done.err) == (2, True)
    command = re.search(r"`forgetmap (.*?)`", done.err)
    assert command is not None
    assert STATED in call(*shlex.split(command[1]), columns=200).out


def test_repeats_keep_the_facts_of_every_run(logs: tuple[Path, Path], tmp_path: Path) -> None:
    for side, name in zip(logs, ("seed0", "seed1"), strict=True):
        fm.write_run(fm.open_run(side), tmp_path / "runs" / name)
    run = fm.open_run(tmp_path / "runs")
    assert run.contradictions == fm.open_run(logs[1]).contradictions


def test_a_table_states_no_totals(logs: tuple[Path, Path], tmp_path: Path) -> None:
    table = tmp_path / "after.parquet"
    assert call("records", "convert", logs[1], "--out", table).code == 0
    assert codes(logs[0], table) == []


def test_a_task_under_another_name_keeps_its_facts(tmp_path: Path) -> None:
    before = write_two_metrics(tmp_path / "before")
    after = write_two_metrics(tmp_path / "after", exact_match=0.1)
    for path in after.rglob("*_sums_*"):
        path.rename(path.with_name(path.name.replace("sums", "Sums")))
    (results,) = after.rglob("results_*")
    results.write_text(results.read_text().replace('"sums"', '"Sums"'))
    metric = ("--metric", "exact_match")
    assert codes(before, after, *metric) == ["total_contradicted"]  # the names are aligned
    assert codes(before, after, *metric, "--task", "other") == ["total_contradicted"]


def test_show_lists_contradictions(logs: tuple[Path, Path]) -> None:
    shown = json.loads(call("records", "show", logs[1], "--json").out)
    facts = [
        (one["kind"], one["task"], one["stated"], one["found"]) for one in shown["contradictions"]
    ]
    assert facts == [
        ("total_contradicted", "java", 120, 300),
        ("total_contradicted", "simple", 90, 300),
    ]
    assert json.loads(call("records", "show", logs[0], "--json").out)["contradictions"] == []


# --- one question ---------------------------------------------------------------------------------


def write_table(path: Path, columns: Mapping[str, str] | None = None, *, prompts: int = 40) -> Path:
    """Write 40 items with the same question, and some more columns with {n} for the item."""
    columns = columns or {}
    with path.open("w", newline="") as file:
        names = dict.fromkeys(("task", "item", "score", "question", "prompt", *columns))
        table = csv.DictWriter(file, list(names))
        table.writeheader()
        for n in range(40):
            row = {"task": "t", "item": n, "score": 1, "question": "Classify the text."}
            row["prompt"] = f"Classify the text. It is text {n % prompts}."
            table.writerow(row | {name: text.format(n=n) for name, text in columns.items()})
    return path


def test_one_question_for_all_prompts(tmp_path: Path) -> None:
    sides = (write_table(tmp_path / "before.csv"), write_table(tmp_path / "after.csv"))
    result = json_of(*sides)
    message = "t: 40 different prompts, but the same question in all of them"
    assert result["headline"] == (
        f"after: cannot tell: before: {message} (and 1 further contradiction)."
    )
    assert {notice["code"] for notice in result["pairing"]["contradictions"]} == {"one_question"}
    done = call("gate", *sides)
    assert (done.code, "different prompts" in done.err) == (2, True)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"question": "Question {n}?"}, id="several questions"),
        pytest.param({"options": '["a {n}", "b {n}"]'}, id="told apart by their options"),
        pytest.param({"prompt": "The same prompt."}, id="one prompt"),
        pytest.param({"prompt": ""}, id="no prompts"),
        pytest.param({"item": "only", "repeat": "{n}"}, id="repeats of one item"),
    ],
)
def test_other_repeated_questions_are_fine(tmp_path: Path, columns: dict[str, str]) -> None:
    sides = [write_table(tmp_path / f"{side}.csv", columns) for side in ("before", "after")]
    assert json_of(*sides)["pairing"]["contradictions"] == []


def test_two_prompts_may_be_a_question_that_occurs_twice(tmp_path: Path) -> None:
    for prompts, found in ((2, 0), (3, 2)):
        sides = [
            write_table(tmp_path / f"{side}.csv", prompts=prompts) for side in ("before", "after")
        ]
        assert len(json_of(*sides)["pairing"]["contradictions"]) == found
