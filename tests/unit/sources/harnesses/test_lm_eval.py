"""Logs of lm-evaluation-harness: versions, names, broken rows, results documents."""

from __future__ import annotations

import gzip
import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from forgetmap.errors import FieldError, ForgetmapError
from forgetmap.records.identity import text_hash
from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading, recognise
from forgetmap.sources.open import open_run
from log_writers import lm_eval_row, opened, write_lm_eval

STAMP = "2025-01-02T03-04-05.678901"


def row(doc_id: int, score: object = 1.0, **more: Any) -> dict[str, Any]:
    """A generated answer as 0.4.9 logs it."""
    return {
        "doc_id": doc_id,
        "doc": {"question": f"How much is {doc_id} and 1?", "answer": f"#### {doc_id + 1}"},
        "target": f"#### {doc_id + 1}",
        "arguments": {
            "gen_args_0": {"arg_0": f"Q: {doc_id}?", "arg_1": {"until": ["\n"], "do_sample": False}}
        },
        "resps": [[f"#### {doc_id + 1}"]],
        "filtered_resps": [f"{doc_id + 1}"],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": score,
        **more,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def read(path: Path, **reading: Any) -> Run:
    return open_run(path, reading=Reading(cached=False, **reading))


def results_of(run: Run) -> list[dict[str, Any]]:
    return sorted(run.scores.collect().rows(named=True), key=lambda r: (r["item"], r["scorer"]))


def results(task: str = "sums", **more: Any) -> dict[str, Any]:
    """A results document."""
    config = {
        "output_type": "generate_until",
        "metric_list": [{"metric": "exact_match", "higher_is_better": True}],
        "filter_list": [{"name": "strict"}, {"name": "loose"}],
        "generation_kwargs": {"do_sample": True, "temperature": 0.5},
    }
    return {
        "results": {task: {"alias": task, "exact_match,strict": 1.0}},
        "configs": {task: config},
        "versions": {task: 2.0},
        "n-shot": {task: 5},
        "higher_is_better": {task: {"exact_match": True}},
        "config": {
            "model": "hf",
            "model_args": "pretrained=acme/base,peft=acme/lora,revision=r1",
            "torch_seed": 1234,
        },
        "date": 1735787045.0,
        "lm_eval_version": "0.4.9",
        "model_name": "acme/lora",
        "chat_template_sha": "abc",
        "system_instruction_sha": None,
        **more,
    }


def test_results_document_tells_about_the_run_even_renamed(tmp_path: Path) -> None:
    write(tmp_path / "m" / f"samples_sums_{STAMP}.jsonl", [row(0, filter="strict")])
    (tmp_path / "about.txt").write_text(json.dumps(results(), indent=2))
    info = read(tmp_path).info
    assert (info.model.name, info.model.adapter, info.model.revision) == (
        "acme/lora",
        "acme/lora",
        "r1",
    )
    assert (info.harness.name, info.harness.version) == ("lm-eval", "0.4.9")
    task = info.tasks["sums"]
    assert (task.version, task.n_shot) == ("2.0", 5)
    assert (task.main_metric, task.main_scorer) == ("exact_match", "strict")
    assert (info.template_hash, info.system_prompt_hash) == ("abc", "none")
    assert info.seeds == [1234]
    assert info.created == "2025-01-02T03:04:05Z"
    assert info.metrics["exact_match"].higher_is_better


def test_without_results_names_tell_the_model_and_the_row_the_decoding(tmp_path: Path) -> None:
    write(tmp_path / "acme__tiny" / f"samples_sums_{STAMP}.jsonl", [row(0)])
    info = read(tmp_path).info
    assert info.model.name == "acme/tiny"
    assert info.decoding == {"until": ["\n"], "do_sample": False, "temperature": 0.0}


def test_damaged_results_count_as_absent(tmp_path: Path) -> None:
    write(tmp_path / f"samples_sums_{STAMP}.jsonl", [row(0)])
    text = json.dumps(results(), indent=2)
    (tmp_path / f"results_{STAMP}.json").write_text(text[: len(text) // 2])
    assert results_of(read(tmp_path))[0]["score"] == 1.0


@pytest.mark.parametrize("part", ["configs", "config", "versions", "n-shot", "higher_is_better"])
@pytest.mark.parametrize("value", [None, [], "x", 3, {"sums": []}, {"sums": None}])
def test_results_with_wrong_types_do_not_hurt(tmp_path: Path, part: str, value: object) -> None:
    write(tmp_path / f"samples_sums_{STAMP}.jsonl", [row(0)])
    (tmp_path / f"results_{STAMP}.json").write_text(json.dumps({**results(), part: value}))
    assert results_of(read(tmp_path))[0]["score"] == 1.0


def test_two_filters_are_two_scorers_and_the_first_is_compared(tmp_path: Path) -> None:
    rows = [row(n, float(n), filter=f) for f in ("strict-match", "loose") for n in (0, 1)]
    run = read(write(tmp_path / f"samples_sums_{STAMP}.jsonl", rows))
    assert [(r["item"], r["scorer"]) for r in results_of(run)] == [
        ("0", "loose"),
        ("0", "strict-match"),
        ("1", "loose"),
        ("1", "strict-match"),
    ]
    assert run.info.tasks["sums"].main_scorer == "strict-match"
    assert run.texts is not None
    assert len(run.texts.collect()) == 2


def test_filters_without_names_are_told_apart_by_occurrence(tmp_path: Path) -> None:
    rows = [row(n, float(k)) for k in (0, 1) for n in (0, 1)]
    for each in rows:
        del each["filter"], each["metrics"]
    write(tmp_path / "m" / f"samples_sums_{STAMP}.jsonl", rows)
    found = [(r["item"], r["scorer"], r["score"]) for r in results_of(read(tmp_path))]
    assert found == [(item, f"filter-{k + 1}", float(k)) for item in ("0", "1") for k in (0, 1)]
    (tmp_path / "m" / f"results_{STAMP}.json").write_text(json.dumps(results()))
    named = {(r["scorer"], r["score"]) for r in results_of(read(tmp_path))}
    assert named == {("strict", 0.0), ("loose", 1.0)}


def test_shuffled_rows_of_filters_without_names_are_unscored(tmp_path: Path) -> None:
    rows = [row(n, float(k)) for n in range(200) for k in (0, 1)]
    for each in rows:
        del each["filter"], each["metrics"]
    random.Random(5).shuffle(rows)
    run = read(write(tmp_path / f"samples_sums_{STAMP}.jsonl", rows))
    assert {r["score"] for r in results_of(run)} == {None}
    assert [problem.field for problem in run.problems] == ["filter"]


def test_newest_stamp_counts_and_is_said(tmp_path: Path) -> None:
    write(tmp_path / "samples_sums_2024-01-01T00-00-00.1.jsonl", [row(0, 0.0)])
    write(tmp_path / f"samples_sums_{STAMP}.jsonl", [row(0, 1.0)])
    run = read(tmp_path)
    assert [r["score"] for r in results_of(run)] == [1.0]
    assert "2024-01-01" in run.notices[0]
    assert [r["score"] for r in results_of(read(tmp_path, run="2024"))] == [0.0]


def test_renamed_split_zipped_and_reordered_is_the_same(tmp_path: Path) -> None:
    rows = [row(n, float(n % 2)) for n in range(6)]
    write(tmp_path / "a" / f"samples_sums_{STAMP}.jsonl", rows)
    mixed = rows[::-1]
    write(tmp_path / "b" / "one.txt", mixed[:4])
    packed = "".join(json.dumps(each) + "\n" for each in mixed[4:]).encode()
    (tmp_path / "b" / "two.bin").write_bytes(gzip.compress(packed))
    total = fm.compare(str(tmp_path / "a"), str(tmp_path / "b")).result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (3, 0, 0, 3)


def test_wrong_doc_ids_do_not_mispair(tmp_path: Path) -> None:
    """`--samples` with an unsorted list labels documents with each other's ids."""
    rows = [row(n, float(n == 5)) for n in (2, 5, 9)]
    write(tmp_path / "a" / f"samples_sums_{STAMP}.jsonl", rows)
    swapped = [{**each, "doc_id": doc_id} for each, doc_id in zip(rows, (5, 2, 9), strict=True)]
    write(tmp_path / "b" / f"samples_sums_{STAMP}.jsonl", swapped)
    total = fm.compare(str(tmp_path / "a"), str(tmp_path / "b")).result.total
    assert (total.n11, total.n10, total.n01, total.n00) == (1, 0, 0, 2)


def test_broken_rows_are_reported_with_their_line_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / f"samples_sums_{STAMP}.jsonl"
    without_doc = {**row(4), "doc": None}
    lines = [
        json.dumps(row(0)),
        "{broken",
        json.dumps({**row(2), "doc_id": {"a": 1}}),
        json.dumps({**row(3), "exact_match": [1.0]}),
        json.dumps(without_doc),
        "[1, 2]",
        json.dumps(row(6)).replace('"exact_match": 1.0', '"exact_match": NaN'),
        json.dumps({**row(7), "metrics": []}),
        json.dumps(row(8)),
    ]
    path.write_text("\n".join(lines) + "\n")
    run = read(path)
    assert [(r["item"], r["score"]) for r in results_of(run)] == [
        ("0", 1.0),
        ("3", None),
        ("6", None),
        ("8", 1.0),
    ]
    assert [(p.line, p.field) for p in run.problems] == [
        (2, None),
        (3, "doc_id"),
        (4, "exact_match"),
        (5, "doc"),
        (6, None),
        (8, None),
    ]
    assert {p.file for p in run.problems} == {str(path)}
    with pytest.raises(FieldError) as caught:
        read(path, strict=True)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "name",
    ["doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "prompt_hash",
     "scores_per_repeat", "exact_match", "doc_id"],
)  # fmt: skip
def test_wrong_types_never_raise_and_leave_others_alone(tmp_path: Path, name: str) -> None:
    values: list[object] = [
        None,
        7,
        "text",
        [],
        {},
        [[]],
        [[[]]],
        [{}],
        {"a": None},
        True,
        1e300,
        "\ud800",
    ]
    bad = [{**row(10 + n), name: value} for n, value in enumerate(values)]
    path = write(tmp_path / f"samples_sums_{STAMP}.jsonl", [row(0), *bad, row(2)])
    kept = {r["item"]: r for r in results_of(read(path))}
    whole = write(tmp_path / "all" / f"samples_sums_{STAMP}.jsonl", [row(0), row(2)])
    for each in results_of(read(whole)):
        assert kept[each["item"]] == each


def test_list_metrics_are_no_scores(tmp_path: Path) -> None:
    rows = [row(n, 1.0, metrics=["f1", "exact_match"], f1=[1, 0]) for n in (0, 1)]
    run = read(write(tmp_path / f"samples_sums_{STAMP}.jsonl", rows))
    assert {r["metric"] for r in results_of(run)} == {"exact_match"}
    assert run.problem_count == 0


def test_only_list_metrics_leave_items_unscored(tmp_path: Path) -> None:
    rows = [row(n, 1.0, metrics=["f1"], f1=[1, 0]) for n in (0, 1)]
    found = results_of(read(write(tmp_path / f"samples_sums_{STAMP}.jsonl", rows)))
    assert [(r["metric"], r["score"], r["outcome"]) for r in found] == [
        ("f1", None, "unscored"),
        ("f1", None, "unscored"),
    ]


def choice(lls: list[Any], acc: float, **more: Any) -> dict[str, Any]:
    """A multiple-choice row on options of lengths 2, 9 and 4."""
    options = ["ox", "crocodile", "bear"]
    doc = {"question": "Q?", "choices": options, "answer": 1, "subject": "zoo"}
    pairs = [[str(ll), "False"] for ll in lls]
    requests = {
        f"gen_args_{n}": {"arg_0": "Q?", "arg_1": f" {text}"} for n, text in enumerate(options)
    }
    changed = {"doc": doc, "target": "1", "arguments": requests, "filtered_resps": pairs}
    return {**row(0), **changed, "metrics": ["acc", *more], "acc": acc, **more}


def test_choice_is_that_of_each_metric(tmp_path: Path) -> None:
    path = write(tmp_path / f"samples_zoo_{STAMP}.jsonl", [choice([-2, -6, -8], 0.0, acc_norm=1.0)])
    found = {r["metric"]: r for r in results_of(read(path))}
    assert (found["acc"]["choice"], found["acc"]["logprob_answer"]) == ("ox", -2.0)
    assert (found["acc_norm"]["choice"], found["acc_norm"]["logprob_answer"]) == ("crocodile", -6.0)
    assert {r["logprob_gold"] for r in found.values()} == {-6.0}


def test_choice_that_contradicts_the_score_is_not_told(tmp_path: Path) -> None:
    path = write(tmp_path / f"samples_zoo_{STAMP}.jsonl", [choice([-2, -6, -8], 1.0)])
    found = results_of(read(path))[0]
    assert (found["score"], found["choice"]) == (1.0, None)


def test_infinite_likelihood_is_no_number(tmp_path: Path) -> None:
    path = write(tmp_path / f"samples_zoo_{STAMP}.jsonl", [choice(["-inf", "-inf", -8], 0.0)])
    found = results_of(read(path))[0]
    assert (found["choice"], found["logprob_gold"]) == ("bear", None)


def test_array_file_names_task_and_model(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row(0).items() if not k.endswith("hash")}]
    path = tmp_path / "pretrained__acme__open_model_7b,dtype__float16_gsm8k.jsonl"
    path.write_text(json.dumps(rows, indent=2))
    (log,) = recognise(tmp_path)
    assert log.tasks == ("gsm8k",)
    assert log.info.model.name == "acme/open_model_7b"


def test_files_of_others_are_not_claimed(tmp_path: Path) -> None:
    write(tmp_path / "table.jsonl", [{"task": "t", "item": "1", "score": 1, "doc_id": 3}])
    (tmp_path / "results.json").write_text(json.dumps({"results": [1, 2], "doc": 1}))
    assert not [log for log in recognise(tmp_path) if log.adapter.startswith("lm-eval")]


def test_legacy_rows_of_wrong_types_are_problems(tmp_path: Path) -> None:
    good = {"doc_id": 0, "prompt_0": "Q: a?", "logit_0": "b", "truth": "b", "em": "1.0"}
    bad = [
        {**good, "doc_id": []},
        {**good, "doc_id": 1, "prompt_0": 5},
        {**good, "doc_id": 2, "em": "(0, 1)"},
        {**good, "doc_id": 3, "truth": {}, "logit_0": [[]]},
    ]
    path = tmp_path / "sums_write_out_info.json"
    path.write_text(json.dumps([good, *bad], indent=4))
    run = read(path)
    assert [r["item"] for r in results_of(run)] == ["0", "3"]
    assert [p.field for p in run.problems] == ["doc_id", "prompt_0", None]


SHOTS = "".join(f"Title: T{n}\n\nBackground: B{n}.\n\nAnswer: a\n\n" for n in range(2))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # As SQuAD is asked: the last block is the same for all, so it cannot be the question.
        ("{shots}Title: T\n\nBackground: B.\n\nQuestion: Who is {n}?\n\nAnswer:", "Who is {n}?"),
        # The options are behind the last block, so it is not the same text in each row.
        ("{shots}Who is {n}?\n\nAnswer: {option}", "Who is {n}?"),
        # The last blocks differ, but only in a few texts for many prompts.
        (
            "{shots}Story {n}.\n\nQuestion: Is it {odd}?\nAnswer:",
            "Story {n}.\n\nQuestion: Is it {odd}?",
        ),
        ("{shots}Question: Who is {n}?\nAnswer:", "Who is {n}?"),
        ("Who is {n}?" + "\n\nand so on" * 9, "Who is {n}?" + "\n\nand so on" * 9),
    ],
)
def test_legacy_question_is_not_the_same_for_many_prompts(
    tmp_path: Path, parts: str, expected: str
) -> None:
    options = ("cat", "dog") if "{option}" in parts else ("",)
    rows = [
        {"doc_id": n, "truth": "a", "acc": "1.0"}
        | {
            f"prompt_{place}": parts.format(shots=SHOTS, n=n, odd=n % 2, option=option)
            for place, option in enumerate(options)
        }
        | {f"logit_{place}": -1.0 - place for place in range(len(options))}
        for n in range(40)
    ]
    path = tmp_path / "asked_write_out_info.json"
    path.write_text(json.dumps(rows, indent=4))
    run = read(path)
    assert run.texts is not None
    found = {r["item"]: r["question"] for r in run.texts.collect().rows(named=True)}
    assert found == {str(n): expected.format(n=n, odd=n % 2) for n in range(40)}
    assert len({r["question_hash"] for r in results_of(run)}) == 40


def test_nothing_usable_is_a_typed_error(tmp_path: Path) -> None:
    path = write(tmp_path / f"samples_sums_{STAMP}.jsonl", [{**row(0), "doc": None}])
    with pytest.raises(ForgetmapError):
        read(path)


def test_prompt_hash_is_the_harness_own(tmp_path: Path) -> None:
    keys = [sha256(b"one").hexdigest(), "no digest", sha256(b"one").hexdigest().replace("b", "z")]
    rows = [{**row(n), "prompt_hash": key} for n, key in enumerate(keys)]
    found = {
        r["item"]: r["prompt_hash"] for r in results_of(read(write(tmp_path / "s.jsonl", rows)))
    }
    assert found["0"] == int(keys[0][:15], 16)
    assert [found["1"], found["2"]] == [text_hash(key) for key in keys[1:]]


def test_a_doubled_row_of_two_is_no_second_filter(tmp_path: Path) -> None:
    rows = [row(n) for n in (0, 1, 1)]
    for each in rows:
        del each["filter"], each["metrics"]
    run = read(write(tmp_path / "s.jsonl", rows))
    assert [(r["item"], r["scorer"]) for r in results_of(run)] == [("0", "none"), ("1", "none")]
    assert [p.line for p in run.problems] == [3]


def test_the_main_metric_says_right_or_wrong(tmp_path: Path) -> None:
    names = ["bleu_max", "bleu_acc", "rouge1_max", "rouge1_acc"]
    rows = [
        lm_eval_row(n, 22.5, metric="bleu_max", bleu_acc=n % 2, rouge1_max=40.0, rouge1_acc=1)
        | {"metrics": names}
        for n in range(4)
    ]
    run = opened(write_lm_eval(tmp_path, rows))
    assert run.info.tasks["sums"].main_metric == "bleu_acc"


def test_rows_without_documents_keep_their_ids(tmp_path: Path) -> None:
    rows = [lm_eval_row(n, 1) for n in range(3)]
    for row in rows:
        del row["doc"]
    run = opened(write_lm_eval(tmp_path, rows))
    scores = run.scores.collect().rows(named=True)
    assert [(row["item"], row["question_hash"]) for row in scores] == [
        ("0", None), ("1", None), ("2", None),
    ]  # fmt: skip
    assert run.problem_count == 0
