"""Training examples from tables of every shape, and from runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import results, write
from forgetmap.errors import ColumnError, EmptyInputError, FieldError, UsageError
from forgetmap.export.pool import Pool

PAIR = [("user", "Why?"), ("assistant", "Because.")]
CHAT = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
SHARED = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "Because."}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}, CHAT[1]]


def turns(source: Path, **options: Any) -> list[list[tuple[str, str]]]:
    return [[tuple(turn) for turn in e.turns] for e in Pool([source], **options)]  # type: ignore[misc]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Why?", "completion": "Because."},
        {"question": "Why?", "answer": "Because."},
        {"instruction": "Why?", "input": "", "output": "Because."},
        {"messages": CHAT},
        {"conversations": SHARED},
        {"messages": PARTS},
        {"prompt": CHAT[:1], "completion": CHAT[1:]},
        {"messages": [*CHAT, {"role": "user", "content": "Thanks."}]},
    ],
)
def test_rows_of_every_shape(tmp_path: Path, row: dict[str, Any]) -> None:
    assert turns(write(tmp_path / "pool.jsonl", [row])) == [PAIR]


def test_parquet_csv_and_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"messages": [CHAT]}), tmp_path / "pool.parquet")
    (tmp_path / "pool.csv").write_text('prompt,response\nWhy?,"Because."\n', encoding="utf-8")
    (tmp_path / "pool.json").write_text(json.dumps([{"messages": CHAT}]), encoding="utf-8")
    for name in ("pool.parquet", "pool.csv", "pool.json"):
        assert turns(tmp_path / name) == [PAIR]


def test_an_instruction_has_its_input_below(tmp_path: Path) -> None:
    row = {"instruction": "Add.", "input": "1 and 2", "output": "3"}
    assert turns(write(tmp_path / "p.jsonl", [row]))[0][0] == ("user", "Add.\n\n1 and 2")


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [{"q": "Why?", "a": "Because."}])
    assert turns(path, columns={"prompt": "q", "completion": "a"}) == [PAIR]
    with pytest.raises(ColumnError) as caught:
        turns(path, columns={"prompt": "q", "completion": "b"})
    assert (caught.value.line, caught.value.field) == (1, "b")


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"prompt": "Why?", "completion": " "}, "completion"),
        ({"prompt": None, "completion": "Because."}, "prompt"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "Why?"}]}, "messages"),
        ({"messages": [CHAT[0], {"role": "assistant", "content": None}]}, "messages"),
    ],
)
def test_a_row_without_text_is_named_or_left_out(
    tmp_path: Path, row: dict[str, Any], field: str
) -> None:
    good = {name: CHAT if name == "messages" else "Why?" for name in row}
    path = write(tmp_path / "pool.jsonl", [good, row])
    with pytest.raises(FieldError) as caught:
        turns(path)
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 2, field)
    pool = Pool([path], skip_unusable=True)
    assert len(list(pool)) == 1
    assert pool.unusable == 1


def test_a_table_without_an_answer_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "pool.jsonl", [{"prompt": "Why?"}])
    with pytest.raises(ColumnError, match="missing column for completion"):
        turns(path)


def test_an_empty_table_says_so(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text("")
    with pytest.raises(EmptyInputError):
        turns(tmp_path / "pool.jsonl")


def test_a_run_gives_its_questions_and_right_answers(tmp_path: Path) -> None:
    same: dict[str, Any] = {"question": "Which is a metal?", "gold": "wood"}
    same["options"] = ["iron", "wood"]
    path = write(tmp_path / "run.jsonl", results([1.0], **same))
    (example,) = Pool([path])
    assert example.texts == ("Which is a metal?\nA. iron\nB. wood", "B. wood")
    assert (example.line, example.item) == (None, "t/i0")
    bare = write(tmp_path / "bare.jsonl", results([1.0, 0.0]))
    with pytest.raises(UsageError, match="no questions"):
        turns(bare)
