"""Rows of old examples become tokens, or errors that name the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import (
    ColumnError,
    EmptyInputError,
    FieldError,
    MissingInputError,
    ModelError,
    UnreadableError,
    UsageError,
)
from forgetmap.train.examples import check_vocabulary, context_of, read_examples
from tiny_models import CONTEXT, tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
CHAT += "{% if add_generation_prompt %}<assistant>{% endif %}"


def chat_tokenizer() -> Any:
    import copy

    found = copy.deepcopy(tokenizer())
    found.chat_template = CHAT
    return found


def text_of(ids: Any) -> str:
    return str(tokenizer().decode(list(ids)))


def test_a_completion_ends_with_the_end_and_only_it_has_labels() -> None:
    (example,) = read_examples([{"prompt": "the cat", "completion": " sat"}], tokenizer())
    assert text_of(example.ids[: example.begin]) == "the cat"
    assert text_of(example.ids[example.begin :]) == " sat</s>"
    assert example.labels == [-100] * example.begin + list(example.ids[example.begin :])


def test_without_the_end() -> None:
    (example,) = read_examples(
        [{"prompt": "the cat", "completion": " sat"}], tokenizer(), eos=False
    )
    assert text_of(example.ids[example.begin :]) == " sat"


def test_a_token_across_the_border_belongs_to_the_completion() -> None:
    whole = tokenizer()("the cat")["input_ids"]
    (example,) = read_examples([{"prompt": "the c", "completion": "at"}], tokenizer(), eos=False)
    assert list(example.ids) == whole
    assert text_of(example.ids[: example.begin]).strip() == "the"


def test_a_prompt_alone_is_unlabelled() -> None:
    (example,) = read_examples([{"prompt": "the cat"}], tokenizer())
    assert not example.is_answered
    assert example.begin == len(example.ids)


def test_chats_train_the_last_message() -> None:
    messages = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
    rows = [
        {"messages": messages},
        {"prompt": messages[:1], "completion": messages[1:]},
        {"prompt": messages[:1]},
    ]
    whole, split, alone = read_examples(rows, chat_tokenizer())
    assert whole.ids == split.ids
    assert text_of(whole.ids[whole.begin :]) == "sat</s>"
    assert alone.ids == whole.ids[: whole.begin]


def test_tokens_are_taken_as_they_are_and_padding_is_cut() -> None:
    row = {"input_ids": [5, 9, 3, 0, 0], "labels": [-100, 9, 3, -100, -100]}
    (example,) = read_examples([row], None)
    assert (example.ids, example.begin) == ((5, 9, 3), 1)


def test_files_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a cat"}\n\n{"prompt": "a dog"}\n', encoding="utf-8")
    first, second = read_examples(path, tokenizer())
    assert (first.place.line, second.place.line) == (1, 3)
    assert read_examples(str(path), tokenizer()) == [first, second]


@pytest.mark.parametrize(
    ("row", "error", "field"),
    [
        ({"question": "?"}, ColumnError, "prompt"),
        ({"prompt": 7}, FieldError, "prompt"),
        ({"prompt": ""}, FieldError, "prompt"),
        ({"prompt": "a", "completion": ""}, FieldError, "completion"),
        ({"prompt": "a", "completion": 3}, FieldError, "completion"),
        ({"messages": []}, FieldError, "messages"),
        ({"messages": ["a"]}, FieldError, "messages"),
        ({"messages": [{"role": "user", "content": "a"}]}, FieldError, "messages"),
        ({"input_ids": [1, 2], "labels": [1]}, FieldError, "labels"),
    ],
)
def test_errors_name_file_line_and_field(
    tmp_path: Path, row: dict[str, Any], error: type[Exception], field: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"prompt": "a cat"}}\n{json.dumps(row)}\n', encoding="utf-8")
    with pytest.raises(error) as caught:
        read_examples(path, chat_tokenizer())
    assert (caught.value.file, caught.value.line) == (str(path), 2)  # type: ignore[attr-defined]
    assert caught.value.field == field  # type: ignore[attr-defined]


def test_a_row_longer_than_the_context() -> None:
    rows = [{"prompt": "cat " * 300}]
    with pytest.raises(FieldError, match="context length 256"):
        read_examples(rows, tokenizer(), context=context_of(tiny_model("llama"), tokenizer()))
    assert context_of(tiny_model("llama"), tokenizer()) == CONTEXT


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty.jsonl", tmp_path / "broken.jsonl"
    empty.write_text("\n")
    broken.write_text('{"prompt": "a"}\n{"prompt"')
    with pytest.raises(EmptyInputError):
        read_examples(empty, tokenizer())
    with pytest.raises(UnreadableError) as caught:
        read_examples(broken, tokenizer())
    assert caught.value.line == 2
    with pytest.raises(MissingInputError):
        read_examples(tmp_path / "none.jsonl", tokenizer())
    with pytest.raises(EmptyInputError):
        read_examples([], tokenizer())


def test_text_needs_a_tokenizer_and_chats_a_template() -> None:
    with pytest.raises(UsageError, match="need a tokenizer"):
        read_examples([{"prompt": "a"}], None)
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with pytest.raises(UsageError, match="no chat template"):
        read_examples([{"messages": chat}], tokenizer())


def test_tokens_that_the_model_does_not_have() -> None:
    examples = read_examples([{"input_ids": [1, 2]}, {"input_ids": [1, 400]}], None)
    with pytest.raises(
        ModelError, match="token 400 is outside the vocabulary of the model, which has 400"
    ):
        check_vocabulary(examples, 400)
