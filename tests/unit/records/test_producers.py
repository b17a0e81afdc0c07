"""One record for each producer that the schema must support, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from forgetmap.errors import FieldError
from forgetmap.records.folder import read_run
from forgetmap.records.schema import BY_NAME, KEY, json_schema
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run
from run_folders import Row, on_disk, results, scores_of, write

Producer = tuple[dict[str, Any], list[Row]]
ONCE = {"repeat": 0, "scorer": "default"}

LM_EVAL: Producer = (
    {
        "run_id": "base-gsm8k",
        "model": {"name": "org/model", "revision": "main"},
        "harness": {"name": "lm-eval", "version": "0.4.9"},
        "decoding": {"temperature": 0.0, "until": ["</s>", "Question:"], "do_sample": False},
        "tasks": {
            "gsm8k": {
                "version": "3",
                "n_shot": 5,
                "main_metric": "exact_match",
                "main_scorer": "flexible-extract",
            }
        },
        "metrics": {"bleu": {"low": 0, "high": 100}},
    },
    [
        {
            "task": "gsm8k", "item": "17", "repeat": 0, "metric": "exact_match", "scorer": scorer,
            "score": score, "outcome": outcome, "gold": "42", "answer": answer,
            "question": "How many?", "prompt": "Question: How many?\nAnswer:",
            "response": "I think it is 42.",
        }
        for scorer, score, outcome, answer in (
            ("strict-match", 0.0, "no_answer", "[invalid]"),
            ("flexible-extract", 1.0, "correct", "42"),
        )
    ]
    + [
        # The harness logs a pair of texts per sample for BLEU, and a number only for the corpus.
        {
            "task": "wmt", "item": "3", "repeat": 0, "metric": "bleu", "scorer": "none",
            "score": None, "outcome": "unscored", "gold": "Guten Tag", "answer": "Hallo",
        }
    ],
)  # fmt: skip

INSPECT_EPOCHS: Producer = (
    {
        "run_id": "2025-01-01T00-00-00_arc_abc",
        "harness": {"name": "inspect_ai", "version": "0.3.100"},
        "decoding": {"temperature": 0.7, "max_tokens": 512},
    },
    [
        {
            "task": "arc", "item": "sample-1", "repeat": epoch, "metric": "accuracy",
            "scorer": "choice", "score": score, "outcome": outcome, "k": 2, "gold": "Rome",
            "choice": choice, "answer": choice, "question": "Which?", "options": ["Oslo", "Rome"],
            "response": f"ANSWER: {choice}",
        }
        for epoch, score, outcome, choice in (
            (0, 1.0, "correct", "Rome"),
            (1, 0.0, "incorrect", "Oslo"),
            (2, 0.5, "partial", None),
            (3, 0.0, "no_answer", None),
        )
    ],
)  # fmt: skip

RUNNER_REPEATS: Producer = (
    {
        "run_id": "tuned",
        "parent": "base",
        "stage": "sft",
        "model": {"name": "org/model", "adapter": "org/lora"},
        "harness": {"name": "forgetmap", "version": "0.1.0"},
        "template_hash": "9f86d081",
        "system_prompt_hash": "2c26b46b",
        "protocol": "chat-v1",
        "decoding": {"temperature": 1.0, "top_p": 0.95, "max_new_tokens": 256},
        "seeds": [11, 12],
    },
    [
        {
            "task": "mmlu", "item": "a1", "repeat": repeat, "metric": "acc", "scorer": "default",
            "score": 1.0 - repeat, "outcome": outcome, "k": 4, "category": "knowledge",
            "tags": "stem;physics", "seed": 11 + repeat, "tokens_in": 120, "tokens_out": tokens,
            "finish_reason": reason, "answer": None if repeat else "B", "response": "...",
        }
        for repeat, outcome, tokens, reason in (
            (0, "correct", 3, "stop"),
            (1, "truncated", 256, "length"),
        )
    ],
)  # fmt: skip

JUDGE: Producer = (
    {
        "metrics": {
            "helpfulness": {"low": 1, "high": 10},
            "verbosity": {"low": 1, "high": 10, "higher_is_better": False},
            "harmless": {},
        }
    },
    [
        {
            **ONCE, "task": "mt-bench", "item": "81", "metric": metric, "scorer": "judge/gpt",
            "score": score, "outcome": outcome, "response": "Dear all, ...",
        }
        for metric, score, outcome in (
            ("helpfulness", 7.5, "partial"),
            ("verbosity", 10.0, "incorrect"),
            ("harmless", 1.0, "correct"),
        )
    ],
)  # fmt: skip

CODE: Producer = (
    {"tasks": {"humaneval": {"version": "1", "n_shot": 0}}},
    [
        {
            **ONCE, "task": "humaneval", "item": "HumanEval/0", "metric": "pass@1",
            "scorer": "unit-tests", "score": 0.0, "outcome": "incorrect", "tags": "python",
            "answer": "def f(x):\n    return x\n", "question": "def f(x):\n    '''Adds one.'''\n",
            "gold": "    return x + 1\n", "response": "```python\ndef f(x):\n    return x\n```",
        }
    ],
)  # fmt: skip

LOG_PROBABILITY: Producer = (
    {"decoding": {}},
    [
        {
            **ONCE, "task": "hellaswag", "item": "24", "metric": "acc_norm", "score": 0.0,
            "outcome": "incorrect", "k": 4, "gold": "runs", "choice": "sleeps", "answer": "sleeps",
            "logprob_answer": -3.25, "logprob_gold": -4.5, "question": "The dog",
            "options": ["runs", "sleeps", "is a cat", "7"],
        }
    ],
)  # fmt: skip

CHAT: Producer = (
    {"protocol": "chat-v1"},
    [
        {
            **ONCE, "task": "mt-bench", "item": f"81/turn-{turn}", "metric": "score", "score": 1.0,
            "outcome": "correct", "cluster": "81", "question": f"Turn {turn}",
            "prompt": json.dumps(
                [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": 'Write "x".'},
                    {"role": "assistant", "content": "x\n"},
                    {"role": "user", "content": "Again, in \u00fc."},
                ][: 2 * turn]
            ),
            "response": "<think>ok</think>x",
        }
        for turn in (1, 2)
    ],
)  # fmt: skip

ERRORED: Producer = (
    {},
    [
        {
            **ONCE, "task": "gsm8k", "item": "18", "metric": "exact_match", "score": None,
            "outcome": "error", "question": "How many?",
            "error": "RateLimitError: 429\n  retry after 60 s",
        }
    ],
)  # fmt: skip

PRODUCERS = {
    "lm-eval with two filters and a list": LM_EVAL,
    "Inspect with epochs": INSPECT_EPOCHS,
    "the runner with repeats": RUNNER_REPEATS,
    "a judge with several fields": JUDGE,
    "a code task": CODE,
    "a log-probability task": LOG_PROBABILITY,
    "a chat of several turns": CHAT,
    "a sample that failed": ERRORED,
}
every_producer = pytest.mark.parametrize("name", PRODUCERS)


@every_producer
def test_its_records_fit_the_published_schema(name: str) -> None:
    validator = Draft202012Validator(json_schema())
    for record in PRODUCERS[name][1]:
        validator.validate(record)


@every_producer
def test_its_records_survive_a_run_folder(name: str, tmp_path: Path) -> None:
    info, records = PRODUCERS[name]
    folder = write(tmp_path / "run", records, **info)
    texts: dict[Any, Row] = {}
    if any(BY_NAME[field].part == "texts" for record in records for field in record):
        texts = {tuple(row[key] for key in KEY): row for row in on_disk(folder, "texts")}
    scores = {tuple(row[key] for key in _RESULT): row for row in on_disk(folder, "scores")}
    for record in records:
        found = texts.get(tuple(record[key] for key in KEY), {})
        found = found | scores[tuple(record[key] for key in _RESULT)]
        assert {field: found[field] for field in record} == record
    assert len(scores) == len(records)


_RESULT = ("task", "item", "repeat", "metric", "scorer")


@every_producer
def test_its_run_is_valid_and_keeps_its_manifest(name: str, tmp_path: Path) -> None:
    info, records = PRODUCERS[name]
    run = read_run(write(tmp_path / "run", records, **info))
    assert check_run(run) == len(records)
    check_run(run, unique=True)
    kept = run.info.model_dump(exclude_unset=True)
    for field in info.keys() - {"metrics", "model", "harness", "tasks"}:
        assert kept[field] == info[field]
    assert run.info.model.adapter == info.get("model", {}).get("adapter")


@pytest.mark.parametrize("name", [name for name in PRODUCERS if PRODUCERS[name] is not JUDGE])
@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_its_records_may_be_handed_in_as_json(ending: str, name: str, tmp_path: Path) -> None:
    """Those of the judge need a manifest, because a table cannot declare a scale."""
    _, records = PRODUCERS[name]
    lines = "\n".join(map(json.dumps, records)) if ending == "jsonl" else json.dumps(records)
    (tmp_path / "table").write_text(lines)
    run = open_run(tmp_path / "table")
    assert check_run(run) == len(records)
    wanted = sorted(((r["task"], r["item"], r["repeat"], r["score"]) for r in records), key=str)
    assert scores_of(run) == wanted


def test_a_list_is_no_score(tmp_path: Path) -> None:
    """What a harness logs per sample for a corpus metric must not be taken for one."""
    record = LM_EVAL[1][2] | {"score": ["Guten Tag", "Hallo"], "outcome": "correct"}
    assert not Draft202012Validator(json_schema()).is_valid(record)
    (tmp_path / "table").write_text(json.dumps(record) + "\n")
    with pytest.raises(FieldError) as caught:
        check_run(open_run(tmp_path / "table"))
    assert (caught.value.line, caught.value.field) == (1, "score")


def test_a_scale_must_be_declared(tmp_path: Path) -> None:
    """Without a declared range a metric is a share of correctness."""
    with pytest.raises(FieldError) as caught:
        check_run(read_run(write(tmp_path / "run", JUDGE[1])))
    assert (caught.value.line, caught.value.field) == (1, "score")


def test_a_score_beyond_its_declared_scale_is_refused(tmp_path: Path) -> None:
    beyond = [JUDGE[1][0] | {"score": 10.5}]
    with pytest.raises(FieldError):
        check_run(read_run(write(tmp_path / "run", beyond, **JUDGE[0])))


def test_lighteval_with_three_seeds_is_one_run_of_three_repeats(tmp_path: Path) -> None:
    alike = {
        "model": {"name": "org/model"},
        "harness": {"name": "lighteval", "version": "0.9"},
        "decoding": {"temperature": 0.6},
    }
    for place, seed in enumerate((42, 1234, 7)):
        rows = results([1, place % 2], "math", metric="extractive_match", scorer="default")
        records = [row | {"seed": seed, "response": f"by {seed}"} for row in rows]
        write(tmp_path / f"run-{place}", records, seeds=[seed], **alike)
    run = open_run(tmp_path)
    assert check_run(run) == 6
    check_run(run, unique=True)
    assert run.info.seeds == [42, 1234, 7]
    found = run.scores.select("item", "repeat", "seed", "score").collect().rows()
    assert sorted(found) == [
        ("i0", 0, 42, 1.0),
        ("i0", 1, 1234, 1.0),
        ("i0", 2, 7, 1.0),
        ("i1", 0, 42, 0.0),
        ("i1", 1, 1234, 1.0),
        ("i1", 2, 7, 0.0),
    ]
