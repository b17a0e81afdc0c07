"""Totals that logs state, compared with the records; and the choice of verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.run import Run
from forgetmap.sources.adapter import StatedTotal, Verdicts
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run
from forgetmap.sources.totals import _agrees
from log_writers import (
    STAMP,
    lm_eval_row,
    opened,
    write_inspect,
    write_lm_eval,
    write_lm_eval_results,
)


def scores(run: Run) -> dict[str, float | None]:
    return dict(run.scores.collect().select("item", "score").iter_rows())


@pytest.mark.parametrize(
    ("stated", "ours", "agrees"),
    [
        (0.6667, 2 / 3, True),
        (0.667, 2 / 3, True),
        (0.67, 2 / 3, True),
        (0.66, 2 / 3, False),
        (0.5, 0.52, False),
        (1.0, 0.99, False),
        (0.3333333333333333, 1 / 3, True),
    ],
)
def test_means_agree_as_far_as_they_are_written_out(
    stated: float, ours: float, agrees: bool
) -> None:
    assert _agrees(StatedTotal("t", "acc", stated, "mean"), ours, ours) is agrees


@pytest.mark.parametrize(
    ("stated", "ours", "agrees"),
    [(66.7, 200 / 3, True), (67, 200 / 3, True), (66, 200 / 3, False), (66.6, 200 / 3, False)],
)
def test_percent_agree_as_far_as_they_are_written_out(
    stated: float, ours: float, agrees: bool
) -> None:
    total = StatedTotal("t", "acc", float(stated), "mean", scale=100.0)
    assert _agrees(total, ours, ours) is agrees


def evalchemy(path: Path, **other: Any) -> Path:
    examples = [
        {"id": n, "problem": f"{n}?", "answer": "7", "model_output": "...", "model_answer": answer}
        for n, answer in enumerate(["7", "7.0", "8"])
    ]
    result = {"examples": examples} | other
    path.write_text(json.dumps({"results": {"MATH500": result}, "date": 1.7e9}))
    return path


def test_a_benchmark_that_counts_otherwise_is_named_with_both_numbers(tmp_path: Path) -> None:
    run = opened(evalchemy(tmp_path / "x.json", num_solved=1, num_total=3, accuracy=1 / 3))
    differs, anew = run.notices
    assert "MATH500: the log states num_solved 1, but these records give 2" in differs
    assert "graded by forgetmap (--scores log leaves them unscored)" in anew
    (fact,) = run.contradictions
    assert (fact.kind, fact.task, fact.field) == ("total_contradicted", "MATH500", "num_solved")
    assert (fact.stated, fact.found, fact.results, fact.unscored) == (1, 2, 3, 0)
    assert fact.message == differs
    assert fact.is_own_grading
    assert run.problems == ()


def test_only_the_verdicts_of_the_log_leave_what_it_does_not_judge_unscored(tmp_path: Path) -> None:
    path = evalchemy(tmp_path / "x.json", num_solved=1)
    run = open_run(path, reading=Reading(cached=False, scores="log"))
    assert set(scores(run).values()) == {None}


def test_stored_labels_are_the_verdict_of_the_log(tmp_path: Path) -> None:
    path = evalchemy(tmp_path / "x.json")
    content = json.loads(path.read_text())
    for example in content["results"]["MATH500"]["examples"]:
        example["label"] = [False]
    path.write_text(json.dumps(content))
    run = opened(path)
    assert run.notices == ()
    assert set(scores(run).values()) == {0.0}


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(None, [1.0, 0.0]), ("log", [1.0, 0.0]), ("own", [0.0, 1.0])],
)
def test_own_verdicts_grade_every_response(
    tmp_path: Path, verdicts: Verdicts | None, expected: list[float]
) -> None:
    rows = [
        lm_eval_row(0, 1.0, doc={"question": "2 and 2?", "answer": "4"}, response="It is 5."),
        lm_eval_row(
            1, 0.0, doc={"question": "3 and 3?", "answer": "6"}, response="The answer is 6."
        ),
    ]
    folder = write_lm_eval(tmp_path, rows)
    for texts in (True, False):
        reading = Reading(cached=False, scores=verdicts, texts=texts)
        assert list(scores(open_run(folder, reading=reading)).values()) == expected


@pytest.mark.parametrize(("mean", "notices"), [(0.75, 0), (0.5, 1)])
def test_results_of_lm_eval_are_checked(tmp_path: Path, mean: float, notices: int) -> None:
    write_lm_eval(tmp_path, [lm_eval_row(n, float(n > 0)) for n in range(4)])
    stated = {"exact_match,none": mean, "exact_match_stderr,none": 0.1, "bleu,none": 3.0}
    write_lm_eval_results(tmp_path, results={"sums": stated}, configs={"sums": {}})
    run = opened(tmp_path)
    assert len(run.notices) == notices
    assert all("exact_match,none 0.5, but these records give 0.75" in n for n in run.notices)


@pytest.mark.parametrize("metric", [{"a": 1}, ["acc"], None, 7])
def test_metrics_of_any_type_in_the_configuration(tmp_path: Path, metric: object) -> None:
    write_lm_eval(tmp_path, [lm_eval_row(0, 1.0)])
    stated = {"sums": {"exact_match,none": 0.5}}
    listed = {"sums": {"metric_list": [{"metric": metric, "aggregation": "mean"}]}}
    write_lm_eval_results(tmp_path, results=stated, configs=listed)
    assert len(opened(tmp_path).notices) == 1


def test_many_differences_are_counted_after_the_first(tmp_path: Path) -> None:
    stated = {}
    for number in range(8):
        write_lm_eval(tmp_path, [lm_eval_row(0, 1.0)], task=f"sums{number}")
        stated[f"sums{number}"] = {"exact_match,none": 0.25}
    write_lm_eval_results(tmp_path, results=stated, configs={task: {} for task in stated})
    run = opened(tmp_path)
    assert len(run.notices) == 6
    assert run.notices[-1] == "3 more totals differ."
    assert {fact.task for fact in run.contradictions} == stated.keys()
    assert {(fact.stated, fact.found) for fact in run.contradictions} == {(0.25, 1.0)}
    assert {(fact.metric, fact.scorer) for fact in run.contradictions} == {("exact_match", "none")}
    assert not any(fact.is_own_grading for fact in run.contradictions)


def test_contradictions_are_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    path = evalchemy(tmp_path / "x.json", num_solved=1)
    first, again = (open_run(path, reading=Reading()) for _ in range(2))
    assert len(first.contradictions) == 1
    assert again.contradictions == first.contradictions


def test_results_of_another_time_state_nothing_about_samples(tmp_path: Path) -> None:
    write_lm_eval(tmp_path, [lm_eval_row(n, float(n > 0)) for n in range(4)])
    for stamp, count in (("2026-02-02T00-00-00.000000", 0), (STAMP, 1)):
        stated = {"sums": {"exact_match,none": 0.25}}
        write_lm_eval_results(tmp_path, stamp=stamp, results=stated, configs={"sums": {}})
        assert len(opened(tmp_path).contradictions) == count
    assert [one.stated for one in opened(tmp_path).contradictions] == [0.25]


def test_a_fact_names_the_only_metric_of_its_task(tmp_path: Path) -> None:
    (fact,) = opened(evalchemy(tmp_path / "x.json", num_solved=1)).contradictions
    row = opened(tmp_path / "x.json").scores.collect().rows(named=True)[0]
    assert (fact.metric, fact.scorer) == (row["metric"], row["scorer"])


def test_accuracy_of_inspect_is_checked(tmp_path: Path) -> None:
    samples = [
        {
            "id": n,
            "epoch": 1,
            "input": f"{n}?",
            "target": "x",
            "messages": [],
            "output": {"model": "m", "choices": [], "completion": "so"},
            "scores": {"match": {"value": "C", "answer": "so"}},
        }
        for n in range(3)
    ]
    path = write_inspect(tmp_path / "x.json", samples)
    content = json.loads(path.read_text())
    metrics = {"accuracy": {"name": "accuracy", "value": 0.6}}
    content["results"]["scores"][0]["metrics"] = metrics
    path.write_text(json.dumps(content))
    (notice,) = opened(path).notices
    assert "match.accuracy 0.6, but these records give 1" in notice


def test_a_difference_is_no_problem_of_a_row(tmp_path: Path) -> None:
    path = evalchemy(tmp_path / "x.json", num_solved=1)
    run = open_run(path, reading=Reading(cached=False, strict=True))
    assert run.problem_count == 0
    broken = json.loads(path.read_text())
    broken["results"]["MATH500"]["examples"].append("text")
    path.write_text(json.dumps(broken))
    with pytest.raises(FieldError, match="has no id and no question"):
        open_run(path, reading=Reading(cached=False, strict=True))
