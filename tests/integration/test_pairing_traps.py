"""Seventeen ways to pair logs wrongly, each taken from real code or an issue."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import (
    MetricError,
    PairingError,
    TaskVersionError,
    TooFewPairedError,
    UsageError,
)
from log_writers import (
    inspect_sample,
    lm_eval_row,
    write_inspect,
    write_lines,
    write_lm_eval,
    write_lm_eval_results,
)

RIGHT_AFTER = {0: 1, 1: 0, 2: 1, 3: 0, 4: 1, 5: 1}


@lru_cache(maxsize=1)
def compared(before: Path, after: Path, **options: Any) -> fm.Comparison:
    """Once for all questions that a test asks about the same logs."""
    both: fm.Comparison = fm.compare(before, after, **options)
    return both


def cells(before: Path, after: Path, **options: Any) -> tuple[int, int, int, int]:
    total = compared(before, after, **options).result.total
    return total.n11, total.n10, total.n01, total.n00


def warnings(before: Path, after: Path, **options: Any) -> dict[str, str]:
    found = compared(before, after, **options).result.pairing.warnings
    return {notice.code: notice.message for notice in found}


def lost(before: Path, after: Path) -> set[str]:
    flips = compared(before, after).flips("forgotten", texts=True)
    return set(flips["question"].to_pylist())


def sums(tmp: Path, name: str, scores: dict[int, int], **more: Any) -> Path:
    rows = [lm_eval_row(number, score, **more) for number, score in scores.items()]
    return write_lm_eval(tmp / name, rows)


def test_1_wrong_ids_of_an_unsorted_selection(tmp_path: Path) -> None:
    """`--samples 5,2,9` logs the documents in their order under the ids as given."""
    before = sums(tmp_path, "before", {2: 1, 5: 1, 9: 1})
    rows = [lm_eval_row(number, score) for number, score in ((2, 1), (5, 0), (9, 1))]
    for row, label in zip(rows, (5, 2, 9), strict=True):
        row["doc_id"] = label
    after = write_lm_eval(tmp_path / "after", rows)
    assert cells(before, after) == (2, 1, 0, 0)
    assert lost(before, after) == {"What is 5 and 5?"}


@pytest.mark.parametrize("named", [True, False])
def test_2_one_line_per_filter_is_one_item(tmp_path: Path, named: bool) -> None:
    for side, strict, flexible in (("before", 1, 1), ("after", 0, 1)):
        rows = [
            lm_eval_row(number, score, filter_name=name if named else None)
            for name, score in (("strict-match", strict), ("flexible-extract", flexible))
            for number in range(4)
        ]
        write_lm_eval(tmp_path / side, rows)
    sides = tmp_path / "before", tmp_path / "after"
    assert cells(*sides) == (0, 4, 0, 0)
    second = "exact_match/flexible-extract" if named else "exact_match/filter-2"
    assert cells(*sides, metric=second) == (4, 0, 0, 0)


def test_3_order_of_several_processes(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    ranks = [0, 2, 4, 1, 3, 5]
    after = sums(tmp_path, "after", {number: RIGHT_AFTER[number] for number in ranks})
    assert cells(before, after) == (4, 2, 0, 0)
    assert lost(before, after) == {"What is 1 and 1?", "What is 3 and 3?"}


def gpqa_row(number: int, score: int, seed: int) -> dict[str, Any]:
    answers = [f"right {number}", f"wrong {number}", f"bad {number}", f"false {number}"]
    shown = random.Random(seed * 100 + number).sample(answers, 4)
    letter = "ABCD"[shown.index(answers[0])]
    doc = {
        "Question": f"Which of {number}?",
        "Correct Answer": answers[0],
        **{f"Incorrect Answer {place}": answers[place] for place in (1, 2, 3)},
        **{f"choice{place + 1}": shown[place] for place in range(4)},
        "choices": shown,
        "answer": f"({letter})",
    }
    return lm_eval_row(number, score, doc=doc, target=f"({letter})")


def test_4_shuffled_options_pair_by_the_text_of_the_right_one(tmp_path: Path) -> None:
    scores = {0: 1, 1: 1, 2: 0, 3: 1}
    before = write_lm_eval(tmp_path / "before", [gpqa_row(n, 1, seed=1) for n in scores])
    after = write_lm_eval(tmp_path / "after", [gpqa_row(n, s, seed=2) for n, s in scores.items()])
    assert compared(before, after).result.pairing.paired == 4
    assert cells(before, after) == (3, 1, 0, 0)
    flips = compared(before, after).flips("forgotten")
    assert flips.select(["gold", "k"]).to_pylist() == [{"gold": "right 2", "k": 4}]


def test_5_prompts_may_differ_and_are_warned_about(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    rows = [
        lm_eval_row(n, s, prompt=f"<|user|>What is {n} and {n}?<|assistant|>")
        for n, s in RIGHT_AFTER.items()
    ]
    after = write_lm_eval(tmp_path / "after", rows)
    assert cells(before, after) == (4, 2, 0, 0)
    assert any("prompt" in text for text in warnings(before, after).values())


def test_6_stale_prompts_of_a_cache_are_warned_about(tmp_path: Path) -> None:
    """A cache may bring the prompt of another question: the items pair, the difference is said."""
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    rows = [lm_eval_row(n, s, prompt="Question: of last week") for n, s in RIGHT_AFTER.items()]
    after = write_lm_eval(tmp_path / "after", rows)
    assert cells(before, after) == (4, 2, 0, 0)
    assert "6" in warnings(before, after)["prompts"]


def test_7_sorting_by_prompt_would_invent_losses(tmp_path: Path) -> None:
    """Same answers, other prompts, one row without score: no flip but the real one."""
    number_of = {number: (number * 7) % 20 for number in range(20)}
    scores = {number: int(number % 3 > 0) for number in range(20)}
    before = sums(tmp_path, "before", scores)
    rows = [
        lm_eval_row(n, None if n == 4 else s, prompt=f"{number_of[n]:02d} chat {n}")
        for n, s in scores.items()
    ]
    after = write_lm_eval(tmp_path / "after", rows)
    right = sum(scores.values())
    assert cells(before, after) == (right - 1, 0, 0, 20 - right)


def test_8_equal_numbers_of_other_questions_do_not_pair(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    rows = [
        lm_eval_row(n, 0, doc={"question": f"Who wrote book {n}?", "answer": f"Author {n}"})
        for n in range(6)
    ]
    after = write_lm_eval(tmp_path / "after", rows)
    with pytest.raises(TooFewPairedError):
        fm.compare(before, after)


def nemo(path: Path, rewards: dict[int, list[float]]) -> Path:
    rows = [
        {
            "problem_idx": number,
            "repeat": place,
            "reward": reward,
            "prompt": f"What is {number}?",
            "model_response": f"so, says {place}",
            "extracted_answer": "so",
            "expected_answer": f"{number}",
            "scoring_details": {},
            "metadata": {},
        }
        for number, each in rewards.items()
        for place, reward in enumerate(each)
    ]
    return write_lines(path / "results.jsonl", rows)


def test_9_one_right_of_eight_is_not_right(tmp_path: Path) -> None:
    before = nemo(tmp_path / "before", {n: [1.0] * 8 for n in range(4)})
    after = nemo(tmp_path / "after", {n: [1.0] + [0.0] * 7 for n in range(4)})
    assert cells(before, after) == (4, 28, 0, 0)
    averaged = nemo(tmp_path / "averaged", {n: [0.125] for n in range(4)})
    once = nemo(tmp_path / "once", {n: [1.0] for n in range(4)})
    assert cells(once, averaged) == (0, 4, 0, 0)


def test_10_repeats_are_not_further_items(tmp_path: Path) -> None:
    once = write_inspect(tmp_path / "a.json", [inspect_sample(n, "C") for n in range(30)])
    lost_once = write_inspect(
        tmp_path / "b.json", [inspect_sample(n, "I" if n < 6 else "C") for n in range(30)]
    )
    before, after = (
        write_inspect(
            tmp_path / name,
            [
                inspect_sample(
                    n,
                    "I" if is_after and n < 6 else "C",
                    epoch=epoch,
                    output={"model": "m", "choices": [], "completion": f"so, in epoch {epoch}"},
                )
                for n in range(30)
                for epoch in range(1, 6)
            ],
        )
        for name, is_after in (("c.json", False), ("d.json", True))
    )
    single = fm.compare(once, lost_once).result
    repeated = fm.compare(before, after).result
    assert (repeated.total.items, repeated.total.n) == (30, 150)
    widths = [r.total.forgetting.high - r.total.forgetting.low for r in (single, repeated)]  # type: ignore[operator]
    assert widths[1] == pytest.approx(widths[0], rel=0.35)


def test_11_errors_and_missing_items_are_neither_right_nor_wrong(tmp_path: Path) -> None:
    before = write_inspect(tmp_path / "a.json", [inspect_sample(n, "C") for n in range(8)])
    failed: dict[str, Any] = {"error": {"message": "server gone", "traceback": ""}, "scores": None}
    samples = [inspect_sample(n, "C") for n in range(5)]
    samples += [inspect_sample(5, "C", **failed), inspect_sample(6, float("nan"))]
    after = write_inspect(tmp_path / "b.json", samples)
    result = fm.compare(before, after, min_paired=0.6).result
    assert (result.total.n11, result.total.n10, result.total.n) == (5, 0, 5)
    assert (result.pairing.unscored, result.pairing.only_before) == (2, 1)


def test_12_partial_answers_follow_a_rule_that_is_kept(tmp_path: Path) -> None:
    before = write_inspect(tmp_path / "a.json", [inspect_sample(n, "C") for n in range(4)])
    after = write_inspect(tmp_path / "b.json", [inspect_sample(n, v) for n, v in enumerate("CPNI")])
    assert cells(before, after) == (2, 2, 0, 0)
    strict = fm.compare(before, after, correct_at=1.0)
    assert strict.result.total.n11 == 1
    assert strict.result.rule.correct_at == 1.0


def test_12_lists_are_no_scores(tmp_path: Path) -> None:
    rows = [lm_eval_row(n, 1, f1=[1, 0], metrics=["f1", "exact_match"]) for n in range(4)]
    before = write_lm_eval(tmp_path / "before", rows)
    measures = {task.metric for task in _survey(before)}
    assert measures == {"exact_match"}


def _survey(path: Path) -> Any:
    from forgetmap.records.tables import survey

    return survey(fm.open_run(path)).tasks


def test_13_a_metric_that_falls_is_refused(tmp_path: Path) -> None:
    for side in ("before", "after"):
        rows = [lm_eval_row(n, 12.5 + n, metric="word_nll") for n in range(4)]
        folder = write_lm_eval(tmp_path / side, rows)
        write_lm_eval_results(folder, higher_is_better={"sums": {"word_nll": False}})
    with pytest.raises(MetricError, match="lower word_nll is better"):
        fm.compare(tmp_path / "before", tmp_path / "after")


def test_14_two_versions_of_a_task_are_refused(tmp_path: Path) -> None:
    for side, version in (("before", 1.0), ("after", 2.0)):
        folder = sums(tmp_path, side, dict.fromkeys(range(4), 1))
        write_lm_eval_results(folder, versions={"sums": version}, results={"sums": {}})
    with pytest.raises(TaskVersionError):
        fm.compare(tmp_path / "before", tmp_path / "after")


def test_14_other_numbers_of_examples_are_warned_about(tmp_path: Path) -> None:
    for side, shots in (("before", 5), ("after", 0)):
        folder = sums(tmp_path, side, dict.fromkeys(range(4), 1))
        parts: dict[str, Any] = {"n-shot": {"sums": shots}, "results": {"sums": {}}}
        write_lm_eval_results(folder, **parts)
    found = warnings(tmp_path / "before", tmp_path / "after")
    assert "5 before, 0 after" in found["n_shot"]


def test_15_a_right_answer_that_was_not_extracted_is_told_apart(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    said = {1: "I think about it.\nThe answer is: It is 2.", 3: "It is 7."}
    rows = [lm_eval_row(n, s, response=said.get(n, "so")) for n, s in RIGHT_AFTER.items()]
    after = write_lm_eval(tmp_path / "after", rows)
    reasons = fm.compare(before, after).result.total.reasons
    assert reasons["misread"] == 1
    assert reasons["wrong"] == 1


def test_16_doubled_items_keep_their_own_scores(tmp_path: Path) -> None:
    doc = {"question": "Twice?", "answer": "Yes."}
    rows = [lm_eval_row(n, s, doc=doc) for n, s in ((0, 1), (1, 0))]
    before = write_lm_eval(tmp_path / "before", rows)
    after = write_lm_eval(tmp_path / "after", list(reversed(rows)))
    assert cells(before, after) == (1, 0, 0, 1)
    assert compared(before, after).result.pairing.duplicates == 2


def test_17_the_newest_of_several_stamps_counts_and_is_said(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    after = tmp_path / "after"
    for stamp, scores in (
        ("2026-01-02T00-00-00.000000", RIGHT_AFTER),
        ("2026-01-01T00-00-00.000000", dict.fromkeys(range(6), 0)),
    ):
        write_lm_eval(after, [lm_eval_row(n, s) for n, s in scores.items()], stamp=stamp)
    assert cells(before, after) == (4, 2, 0, 0)
    assert "2026-01-01" in warnings(before, after)["log"]
    older = fm.compare(before, after, run=["2026-01-01", "2026-01-01"]).result.total
    assert older.n10 == 6


def test_the_same_item_logged_by_two_harnesses_pairs(tmp_path: Path) -> None:
    before = sums(tmp_path, "before", dict.fromkeys(range(6), 1))
    after = write_inspect(
        tmp_path / "log.json",
        [inspect_sample(n, "C" if s else "I") for n, s in RIGHT_AFTER.items()],
    )
    assert cells(before, after) == (4, 2, 0, 0)


def test_two_models_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    for place, model in enumerate(("a", "b")):
        path = tmp_path / "logs" / f"{model}.json"
        write_inspect(path, [inspect_sample(n, "C" if place else "I") for n in range(4)])
        log = json.loads(path.read_text())
        log["eval"]["model"] = f"provider/{model}"
        path.write_text(json.dumps(log))
    with pytest.raises((PairingError, ValueError), match="2 models"):
        fm.open_run(tmp_path / "logs")
    chosen = fm.compare(tmp_path / "logs", tmp_path / "logs", run=["provider/a", "provider/b"])
    assert chosen.result.total.n01 == 4


def test_undated_runs_in_two_folders_are_not_mixed(tmp_path: Path) -> None:
    for folder, score in (("first", 0), ("second", 1)):
        rows = [lm_eval_row(number, score) for number in range(4)]
        write_lines(tmp_path / "logs" / folder / "sums.jsonl", rows)
    with pytest.raises(UsageError, match="several folders"):
        fm.open_run(tmp_path / "logs")
    chosen = fm.compare(tmp_path / "logs", tmp_path / "logs", run=["first", "second"])
    assert chosen.result.total.n01 == 4
