"""Old prompts and examples of mitigations: read from files and tokenized.

Rows have the format that `forgetmap export replay` writes and TRL reads:

    {"prompt": "What is 2 + 2?", "completion": " 4"}       text, or lists of chat messages
    {"messages": [{"role": "user", ...}, {"role": "assistant", ...}]}
    {"prompt": "What is 2 + 2?"}                           unlabelled
    {"input_ids": [5, 9, 3], "labels": [-100, 9, 3]}       tokens

Only the completion is trained on or compared: for chats the last message, for tokens the labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.errors import (
    ColumnError,
    EmptyInputError,
    FieldError,
    MissingInputError,
    ModelError,
    UnreadableError,
    UsageError,
)

ExampleRow = Mapping[str, Any]
ExampleSource = str | Path | Sequence[ExampleRow]
"""A file of JSON lines, or a sequence of rows."""
IGNORED = -100
"""Label of a token that is excluded from the loss."""
FORMS = (
    "add `prompt`, `prompt` and `completion`, `messages`, or `input_ids` and `labels` to each row."
)


@dataclass(frozen=True)
class Place:
    """Position of a row, for errors."""

    file: str
    line: int


@dataclass(frozen=True)
class TokenExample:
    """A sequence of tokens.

    Attributes:
        ids: tokens of prompt and completion.
        begin: index at which the completion begins; the length of `ids` if there is none.
        place: position in the source.
    """

    ids: tuple[int, ...]
    begin: int
    place: Place

    @property
    def is_answered(self) -> bool:
        """Whether it has a completion."""
        return self.begin < len(self.ids)

    @property
    def labels(self) -> list[int]:
        """Tokens of the completion; those before it are ignored."""
        return [IGNORED] * self.begin + list(self.ids[self.begin :])


def read_examples(
    source: ExampleSource, tokenizer: Any, *, context: int | None = None, eos: bool = True
) -> list[TokenExample]:
    """Read all rows of a source as tokens.

    Args:
        source: a file of JSON lines, or rows.
        tokenizer: tokenizer of the model; None if rows are tokens already.
        context: maximum number of tokens of the model.
        eos: end completions with the end-of-sequence token, as TRL does.

    Raises:
        InputError: a row cannot be used; the error names file, line and field.
    """
    examples = []
    for place, row in read_rows(source):
        example = _encode(row, tokenizer, place, eos=eos)
        if context is not None and len(example.ids) > context:
            raise FieldError(
                f"the row has {len(example.ids)} tokens, more than the context length {context} "
                "of the model",
                hint="shorten the row, or remove it.",
                file=place.file,
                line=place.line,
                field="input_ids" if "input_ids" in row else "prompt",
            )
        examples.append(example)
    return examples


def read_rows(source: ExampleSource) -> list[tuple[Place, ExampleRow]]:
    """Read rows with their positions; at least one.

    Raises:
        InputError: there is no such file, it is not JSON lines, or it has no rows.
    """
    if isinstance(source, str | Path):
        name, rows = str(source), list(_lines(Path(source)))
    else:
        name, rows = "examples", list(enumerate(source, start=1))
    if not rows:
        raise EmptyInputError("there are no rows", hint=FORMS, file=name)
    for line, row in rows:
        if not isinstance(row, Mapping):
            raise FieldError("the row is not an object", hint=FORMS, file=name, line=line)
    return [(Place(name, line), row) for line, row in rows]


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingInputError(
            "the file does not exist",
            hint="pass a JSON Lines file, such as the output of `forgetmap export replay`.",
            file=str(path),
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"the file cannot be read: {error}",
            hint="pass a JSON Lines file in UTF-8.",
            file=str(path),
        ) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise UnreadableError(
                f"invalid JSON: {error}", hint=FORMS, file=str(path), line=number
            ) from error


def check_vocabulary(examples: Sequence[TokenExample], size: int) -> None:
    """Check that the model knows all tokens.

    Raises:
        ModelError: the tokenizer belongs to another model.
    """
    for example in examples:
        if max(example.ids) >= size:
            raise ModelError(
                f"{example.place.file}, line {example.place.line}: token {max(example.ids)} is "
                f"outside the vocabulary of the model, which has {size} tokens",
                hint="pass the tokenizer of the model: protect(..., tokenizer=...).",
            )


def context_of(model: Any, tokenizer: Any) -> int | None:
    """Return the context length of a model, if stated."""
    config = model.config.get_text_config()
    limits = [
        getattr(config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
    ]
    known = [int(limit) for limit in limits if limit and limit < 1e9]  # 1e30 means unknown
    return min(known) if known else None


# ------------------------------------------------------------------------------------------ tokens


def _encode(row: ExampleRow, tokenizer: Any, place: Place, *, eos: bool) -> TokenExample:
    if "input_ids" in row:
        return _given_tokens(row, place)
    if tokenizer is None:
        raise UsageError(
            "rows of text need a tokenizer, and the trainer has none",
            hint="pass one: protect(trainer, ..., tokenizer=tokenizer).",
        )
    if "messages" in row:
        messages = _messages(row, "messages", place)
        return _encode_chat(messages[:-1], messages[-1:], tokenizer, place)
    if "prompt" not in row:
        raise ColumnError(
            "the row has no prompt", hint=FORMS, file=place.file, line=place.line, field="prompt"
        )
    if isinstance(row["prompt"], list):
        prompt = _messages(row, "prompt", place)
        answer = _messages(row, "completion", place) if row.get("completion") else []
        return _encode_chat(prompt, answer, tokenizer, place)
    return _encode_text(row, tokenizer, place, eos=eos)


def _encode_text(row: ExampleRow, tokenizer: Any, place: Place, *, eos: bool) -> TokenExample:
    prompt = _text(row, "prompt", place)
    start = _ids(tokenizer, prompt)
    if row.get("completion") is None:
        end = tokenizer.eos_token_id
        if len(start) > 1 and start[-1] == end:
            start = start[:-1]  # some tokenizers always append an end token
        return _checked(start, len(start), place)
    whole = _ids(tokenizer, prompt + _text(row, "completion", place))
    if eos and tokenizer.eos_token_id is not None and whole[-1:] != [tokenizer.eos_token_id]:
        whole.append(tokenizer.eos_token_id)
    return _checked(whole, _shared(start, whole), place)


def _encode_chat(
    prompt: list[Any], answer: list[Any], tokenizer: Any, place: Place
) -> TokenExample:
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            f"{place.file}, line {place.line}: a chat, but the tokenizer has no chat template",
            hint="use `prompt` and `completion`: forgetmap export replay --format "
            "prompt-completion.",
        )
    if not prompt:
        raise FieldError(
            "the chat has only one message",
            hint="add a question and an answer.",
            file=place.file,
            line=place.line,
            field="messages",
        )
    start = _template(tokenizer, prompt, open_end=True)
    if not answer:
        return _checked(start, len(start), place)
    whole = _template(tokenizer, [*prompt, *answer], open_end=False)
    return _checked(whole, _shared(start, whole), place)


def _template(tokenizer: Any, messages: list[Any], *, open_end: bool) -> list[int]:
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=open_end)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _given_tokens(row: ExampleRow, place: Place) -> TokenExample:
    ids = [int(token) for token in row["input_ids"]]
    labels = [int(label) for label in row.get("labels", ids)]
    if len(labels) != len(ids):
        raise FieldError(
            f"{len(labels)} labels for {len(ids)} tokens",
            hint="give one label per token, -100 for tokens that do not count.",
            file=place.file,
            line=place.line,
            field="labels",
        )
    if "labels" not in row:
        return _checked(ids, min(1, len(ids)), place)
    counted = [at for at, label in enumerate(labels) if label != IGNORED]
    if not counted:
        return _checked(ids, len(ids), place)
    last = counted[-1] + 1
    return _checked(ids[:last], counted[0], place)  # the rest is padding


def _checked(ids: list[int], begin: int, place: Place) -> TokenExample:
    if not ids:
        raise FieldError(
            "the row has no tokens",
            hint="add a prompt with text.",
            file=place.file,
            line=place.line,
            field="prompt",
        )
    return TokenExample(tuple(ids), begin, place)


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text)["input_ids"])


def _shared(first: list[int], second: list[int]) -> int:
    """Return the length of the common prefix; a token across the border is in the completion."""
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _text(row: ExampleRow, field: str, place: Place) -> str:
    value = row[field]
    if not isinstance(value, str) or (field == "completion" and not value):
        raise FieldError(
            f"{value!r:.40} is not a text" if value else "the completion is empty",
            hint=FORMS,
            file=place.file,
            line=place.line,
            field=field,
        )
    return value


def _messages(row: ExampleRow, field: str, place: Place) -> list[Any]:
    value = row[field]
    good = isinstance(value, list) and value
    if not good or not all(isinstance(m, Mapping) and {"role", "content"} <= set(m) for m in value):
        raise FieldError(
            "not a list of messages with `role` and `content`",
            hint=FORMS,
            file=place.file,
            line=place.line,
            field=field,
        )
    return list(value)
