"""Rows of EvalScope and verifiers as columns give the same records as row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import fuzz_logs
from forgetmap.records import HashColumn
from forgetmap.sources import gather
from forgetmap.sources.adapter import Problems
from forgetmap.sources.columns import SampleColumns
from forgetmap.sources.gather import RunWriter, samples_of
from forgetmap.sources.logs import recognise
from forgetmap.sources.parts import PartOptions, whole
from forgetmap.sources.settle import hash_columns
from fuzz_logs import require_equal, result_of

Row = dict[str, Any]


def _review(number: int, **changes: Any) -> Row:
    """Every second one with options, of which every third is chosen rightly."""
    options = "\n\nA) a stone\nB) a bird\nC)  two  words" if number % 2 else ""
    options += "\nD) none" if number % 4 == 1 else ""
    score = {
        "value": {"acc": float(number % 3 == 0), "speed": number},
        "extracted_prediction": "ABCJ"[number % 4] if number % 2 else f"{number}",
        "prediction": None if number % 5 else f"ANSWER: {number}",
        "explanation": "it is so",
        "metadata": {},
        "main_score_name": None,
    }
    question = f"What is {number}?{options}"
    row = {
        "index": number,
        "target": "ABC"[number % 3] if number % 2 else f"{number + 1}",
        "messages": [
            {"id": "x", "role": "system", "content": "Be kind."},
            {"id": "a", "role": "user", "content": question},
            {
                "id": "b",
                "role": "assistant",
                "content": f"I can't say, \u00e9 {number}",
                "perf_metrics": {"input_tokens": number, "output_tokens": 7.0},
            },
        ],
        "sample_score": {
            "score": score,
            "sample_id": number,
            "group_id": number,
            "sample_metadata": {"subject": "birds"},
        },
    }
    for path, value in changes.items():
        _put(row, path.split("__"), value)
    return row


def _rollout(number: int, **changes: Any) -> Row:
    """Three of each example."""
    row = {
        "example_id": number // 3,
        "prompt": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"Guess {number // 3}."},
        ],
        "completion": [
            {"role": "assistant", "content": f"is it {number}?", "tool_calls": []},
            {"role": "user", "content": "no"},
            {"role": "assistant", "content": None},
        ],
        "answer": f"{number // 3}",
        "reward": float(number % 2),
        "error": None,
        "is_truncated": number % 4 == 1,
        "metrics": {"correct": number % 2, "num_turns": 2.0},
        "token_usage": {"input_tokens": 9.0, "output_tokens": number},
        "stop_condition": "stop",
    }
    for path, value in changes.items():
        _put(row, path.split("__"), value)
    return row


def _put(row: Any, path: Sequence[str], value: Any) -> None:
    *before, last = path
    for name in before:
        row = row[int(name) if name.isdigit() else name]
    row[int(last) if last.isdigit() else last] = value


REVIEWS: list[Row] = [
    {},
    {"index": None},
    {"index": 6.0},
    {"index": 2**40},
    {"index": True},
    {"target": None},
    {"target": 7},
    {"target": "A,B"},
    {"target": "", "messages__1__content": "Which?\n\nA) one\nB) two"},
    {"target": "B", "messages__1__content": "Which?\n\nA) B\nB) A"},
    {"target": "B", "messages__1__content": "Which?\n\nA) same\nB) same"},
    {"target": "A", "messages__1__content": "Which?\n\nA) \uff22\nB) \uff21"},
    {"target": "A", "messages__1__content": "Which?\n\nA) alone"},
    {"target": "A", "messages__1__content": "ANSWER: x\n\nquestion:\nWhich?\n\nA) one\nB) two"},
    {"messages__1__content": [{"type": "text", "text": "in parts"}]},
    {"messages__1__content": None},
    {"messages__1__content": "\ud800 half"},
    {"messages__0__role": ["user"]},
    {"messages__2__role": "user"},
    {"messages__2__content": None, "sample_score__score__prediction": None},
    {"messages__2__perf_metrics": None},
    {"messages__2__perf_metrics__input_tokens": -1},
    {"messages__2__perf_metrics__input_tokens": 1.5},
    {"messages": []},
    {"messages": None, "input": "**User**: \nWhat is it?"},
    {"sample_score__score": {}},
    {"sample_score__score__value": {}},
    {"sample_score__score__value": {"acc": float("nan")}},
    {"sample_score__score__value": {"acc": None, "parts": [1]}},
    {"sample_score__score__value": {"acc": "1", "parts": {"a": 1}}},
    {"sample_score__score__value": {"acc": True, "new": 10**400}},
    {"sample_score__score__extracted_prediction": None},
    {"sample_score__score__extracted_prediction": 3},
    {"sample_score__score__extracted_prediction": "a  bird"},
    {"sample_score__score__status": "degraded"},
    {"sample_score__score__status": "transport_error"},
    {"sample_score__group_id": None},
    {"sample_score__group_id": "", "sample_score__sample_id": None},
    {"sample_score__generation_index": 0},
    {"sample_score__generation_index": 2},
    {"sample_score__sample_metadata__collection_info": {"dataset_name": "other"}},
    {"sample_score__group_id": 3},  # of another review, too
    {"sample_score__group_id": 1.5},
]
ROLLOUTS: list[Row] = [
    {},
    {"example_id": None},
    {"example_id": ""},
    {"example_id": "text"},
    {"example_id": True},
    {"example_id": 0},
    {"example_id": 0, "prompt__1__content": "something else"},
    {"prompt": "one text"},
    {"prompt": [], "example_id": None},
    {"prompt__1__content": [{"type": "text", "text": "in parts"}]},
    {"prompt__1__content": "\ud800 half"},
    {"completion": None},
    {"completion": "one text"},
    {"answer": ["a", 1]},
    {"answer": ""},
    {"reward": None},
    {"reward": True},
    {"reward": "1"},
    {"reward": float("inf")},
    {"reward": 0, "is_truncated": True},
    {"is_truncated": 1},
    {"metrics": None},
    {"metrics": {}},
    {"metrics": {"reward": 5.0, "correct": True}},
    {"metrics": {"correct": None, "note": "text"}},
    {"error": {"error": "TimeoutError"}},
    {"error": ""},
    {"token_usage": None},
    {"token_usage": 3},
    {"token_usage__input_tokens": 2**40},
    {"stop_condition": 3},
    {"task": "other"},
    {"task": "default"},
    {"task": 3},
]


def _written(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    path = folder / "log" / name
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder / "log"


REVIEW_FILE, ROLLOUT_FILE = "reviews/m/quiz_default.jsonl", "env--m/results.jsonl"
FORMATS: dict[str, tuple[str, Callable[..., Row], list[Row]]] = {
    "evalscope": (REVIEW_FILE, _review, REVIEWS),
    "verifiers": (ROLLOUT_FILE, _rollout, ROLLOUTS),
}


CHANGES_OF_A_LOG = 6


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (name, start)
        for name, (_, _, every) in FORMATS.items()
        for start in range(0, len(every), CHANGES_OF_A_LOG)
    ],
)
def test_plain_and_unusual_rows_come_to_the_same_in_all_ways(
    name: str, start: int, tmp_path: Path
) -> None:
    file, make, every = FORMATS[name]
    rows = [make(number) for number in range(5 * CHANGES_OF_A_LOG)]
    for place, changes in enumerate(every[start : start + CHANGES_OF_A_LOG]):
        for number in (5 * place + 2, 5 * place + 3):
            rows[number] = make(number, **changes)
    require_equal(_written(tmp_path, file, rows), tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_that_are_no_text_are_a_problem_in_fields_that_are_passed_over(
    name: str, tmp_path: Path
) -> None:
    file, make, _ = FORMATS[name]
    log = _written(tmp_path, file, [make(number, unknown="xyz") for number in range(6)])
    lines = (log / file).read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b"xyz", b"x\xffz")
    (log / file).write_bytes(b"\n".join([*lines, b"  ", b"{", b""]))
    require_equal(log, tmp_path)
    assert result_of("columns", recognise(log), tmp_path, texts=False)["problems"][0] == 2


def _blocks(log: Path, folder: Path, *, texts: bool = True) -> list[int | str]:
    part = whole(recognise(log), PartOptions(folder, texts=texts, scores=None))
    blocks = samples_of(part, Problems())
    return [len(block) if isinstance(block, SampleColumns) else block.item for block in blocks]


def test_common_reviews_take_columns_and_others_do_not(tmp_path: Path) -> None:
    rows = [_review(2 * number + 1) for number in range(8)]
    rows[3]["target"] = 7
    assert _blocks(_written(tmp_path, REVIEW_FILE, rows), tmp_path) == [3, "7", 4]


def test_reviews_with_repeats_are_read_together(tmp_path: Path) -> None:
    rows = [_review(number - number % 2, index=number) for number in (3, 1, 0, 2)]
    log = _written(tmp_path, REVIEW_FILE, rows)
    assert _blocks(log, tmp_path) == ["2", "0", "0", "2"]  # in the order of the lines
    require_equal(log, tmp_path)


def test_common_rollouts_take_columns_and_others_do_not(tmp_path: Path) -> None:
    rows = [_rollout(number, is_truncated=False) for number in range(9)]
    rows[4]["error"] = "timeout"
    assert _blocks(_written(tmp_path, ROLLOUT_FILE, rows), tmp_path) == [4, "1", 4]


@pytest.mark.parametrize("name", FORMATS)
def test_a_long_file_is_read_in_parts(name: str, tmp_path: Path) -> None:
    file, make, _ = FORMATS[name]
    log = _written(tmp_path, file, [make(number) for number in range(150)])
    require_equal(log, tmp_path)
    result_of("ranges", recognise(log), tmp_path, texts=True)
    assert len(list((tmp_path / "ranges").glob("texts-*.parquet"))) == fuzz_logs.RANGES


def test_rollouts_of_an_example_that_stand_apart_are_read_together(tmp_path: Path) -> None:
    rows = [_rollout(3 * (number % 30), reward=number / 60) for number in range(60)]
    log = _written(tmp_path, ROLLOUT_FILE, rows)
    require_equal(log, tmp_path)
    result = result_of("ranges", recognise(log), tmp_path, texts=False)
    assert {row["repeat"] for row in result["scores"]} == {0, 1}
    assert not list((tmp_path / "ranges").glob("texts-*.parquet"))


def test_rows_of_changing_forms_are_written_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls on columns of one row each took ten times as long as the rows."""
    hashed: list[int] = []

    def hash_all(columns: SampleColumns) -> dict[str, HashColumn]:
        hashed.append(len(columns))
        return hash_columns(columns)

    monkeypatch.setattr(gather, "hash_columns", hash_all)
    rows = [_review(number) for number in range(20)] + [_review(21 + 2 * n) for n in range(20)]
    part = whole(
        recognise(_written(tmp_path, REVIEW_FILE, rows)), PartOptions(tmp_path, False, None)
    )
    with RunWriter(tmp_path, texts=False, problems=Problems()) as writer:
        for samples in samples_of(part, Problems()):
            writer.add(samples)
    assert hashed == [21]  # the last of those before is of the same form
    assert writer.samples == len(rows)


def test_many_rows_keep_their_order_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forgetmap.sources.typed_lines.ROWS_AT_A_TIME", 4)
    monkeypatch.setattr("forgetmap.sources.files.BLOCK_BYTES", 2_000)
    log = _written(tmp_path, ROLLOUT_FILE, [_rollout(number) for number in range(40)])
    require_equal(log, tmp_path)
