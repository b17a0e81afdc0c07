"""Training examples from which a replay set is chosen: a table of texts, or a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.errors import ColumnError, EmptyInputError, FieldError, UsageError
from forgetmap.evaluation import table_rows
from forgetmap.export.measured import items_of
from forgetmap.records import ColumnMap, is_run_folder
from forgetmap.sources import is_remote, open_run

CHATS = ("messages", "conversations")
PROMPTS = ("prompt", "instruction", "question", "input")
COMPLETIONS = ("completion", "response", "output", "answer", "chosen", "target", "gold")
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant"}
"""Names of roles in other formats -> names in TRL."""
TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


class Turn(NamedTuple):
    """One message of a training example."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Example:
    """A training example, and its origin.

    Attributes:
        turns: the messages; the last one is the answer to learn.
        file: path of the file.
        line: line of the file; None for an item of a run.
        item: item of a run; None for a line of a file.
    """

    turns: tuple[Turn, ...]
    file: str
    line: int | None = None
    item: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all messages."""
        return tuple(turn.content for turn in self.turns)


@dataclass(slots=True)
class Pool:
    """Training examples of several sources, read one by one.

    Attributes:
        sources: tables of texts, run folders or logs.
        columns: `prompt`, `completion` or `messages` -> its column in tables.
        skip_unusable: count rows without text instead of raising an error.
        unusable: number of rows left out so far.
    """

    sources: Sequence[str | Path]
    columns: ColumnMap | None = None
    skip_unusable: bool = False
    unusable: int = 0

    def __iter__(self) -> Iterator[Example]:
        for source in self.sources:
            is_table = _is_table(source, self.columns or {})
            yield from self._of_table(Path(source)) if is_table else _of_run(source)

    def _of_table(self, path: Path) -> Iterator[Example]:
        count = 0
        for line, row in table_rows(path):
            count += 1
            try:
                yield _example(row, self.columns or {}, str(path), line)
            except FieldError:
                if not self.skip_unusable:
                    raise
                self.unusable += 1
        if not count:
            raise EmptyInputError(
                "there are no training examples", file=str(path), hint="check the file."
            )


def _is_table(source: str | Path, columns: ColumnMap) -> bool:
    """Return whether a source is a table of texts; a table of results is a run."""
    path = Path(source)
    if is_remote(source) or is_run_folder(path) or path.suffix.lower() not in TABLES:
        return False
    first = next(iter(table_rows(path)), None)
    if first is None or columns:
        return True
    names = first[1].keys()
    is_result = {"score", "doc_id", "filtered_resps"} & names
    return not is_result and bool(_chat_column(names) or _column(PROMPTS, names))


def _of_run(source: str | Path) -> Iterator[Example]:
    """Return questions with options and right answers of a run."""
    run = open_run(source)
    items = [item for item in items_of(run).values() if item.question and item.gold]
    if not items:
        raise UsageError(
            f"{run.name} contains no questions with right answers",
            hint="pass a table with prompt and completion, or messages, as --pool; or logs with "
            "texts.",
        )
    for item in items:
        turns = Turn("user", item.as_asked()), Turn("assistant", item.answer())
        yield Example(turns, run.origin, item=f"{item.task}/{item.item}")


def _example(row: Mapping[str, Any], columns: ColumnMap, file: str, line: int) -> Example:
    def fault(message: str, field: str) -> FieldError:
        hint = "add the text, delete the row, or skip such rows with --skip-unusable."
        return FieldError(message, file=file, line=line, field=field, hint=hint)

    chat = columns.get("messages") or _chat_column(row)
    if chat is not None:
        turns = _turns(_cell(row, chat, file, line))
        if turns is None:
            raise fault("the messages have no text", chat)
    else:
        prompt, completion = _prompt_columns(row, columns, file, line)
        prompt_turns = _prompt_turns(row, prompt)
        answer_turns = _turns(row.get(completion), "assistant")
        if prompt_turns is None:
            raise fault("the training example has no prompt", prompt)
        if answer_turns is None:
            raise fault("the training example has no text to learn", completion)
        turns = (*prompt_turns, *answer_turns)
    last = max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=0)
    if not last:
        raise fault("the chat has no answer to learn from", chat or "completion")
    return Example(turns[: last + 1], file, line)


def _chat_column(names: Any) -> str | None:
    return next((name for name in CHATS if name in names), None)


def _column(wanted: Sequence[str], names: Any) -> str | None:
    return next((name for name in wanted if name in names), None)


def _prompt_columns(
    row: Mapping[str, Any], columns: ColumnMap, file: str, line: int
) -> tuple[str, str]:
    prompt = columns.get("prompt") or _column(PROMPTS, row)
    rest = [name for name in row if name != prompt]
    completion = columns.get("completion") or _column(COMPLETIONS, rest)
    for field, name in (("prompt", prompt), ("completion", completion)):
        if name is None or name not in row:
            raise ColumnError(
                f"missing column for {field}; the columns are {', '.join(map(str, row))}",
                file=file,
                line=line,
                field=name or field,
                hint=f"name it with --pool-columns {field}=COLUMN.",
            )
    assert prompt is not None and completion is not None  # noqa: S101, PT018  # checked above
    return prompt, completion


def _cell(row: Mapping[str, Any], column: str, file: str, line: int) -> Any:
    if column in row:
        return row[column]
    raise ColumnError(
        f"there is no column {column!r}; the columns are {', '.join(map(str, row))}",
        file=file,
        line=line,
        field=column,
        hint="name it with --pool-columns messages=COLUMN.",
    )


def _prompt_turns(row: Mapping[str, Any], column: str) -> tuple[Turn, ...] | None:
    """Return the prompt; an instruction may have its input in a separate column."""
    input_text = row.get("input") if column == "instruction" else None
    value = row.get(column)
    if isinstance(value, str) and isinstance(input_text, str) and input_text.strip():
        value = f"{value}\n\n{input_text}"
    return _turns(value, "user")


def _turns(value: Any, role: str | None = None) -> tuple[Turn, ...] | None:
    """Return a text as one turn, messages as several; None if there is no text in them."""
    if isinstance(value, str):
        return (Turn(role, value),) if role and value.strip() else None
    if not isinstance(value, Sequence) and not hasattr(value, "__iter__"):
        return (Turn(role, str(value)),) if role and isinstance(value, int | float) else None
    turns = [_turn(message) for message in value]
    kept = [turn for turn in turns if turn is not None]
    return tuple(kept) if kept and len(kept) == len(turns) else None


def _turn(message: Any) -> Turn | None:
    if not isinstance(message, Mapping):
        return None
    role = message.get("role", message.get("from"))
    content = message.get("content", message.get("value"))
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str) or not content.strip():
        return None
    return Turn(ROLES.get(role, role), content)
