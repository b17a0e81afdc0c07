"""The prompts that both models continue."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.errors import (
    ColumnError,
    DuplicateKeyError,
    EmptyInputError,
    FieldError,
    ForgetmapError,
    MissingInputError,
    UnknownFormatError,
    UnreadableError,
)


@dataclass(frozen=True, slots=True)
class SamplingPrompt:
    """A prompt to continue.

    Attributes:
        id: unique id, the same in every measurement.
        text: the prompt; a chat template is applied later.
        group: group of prompts, such as `old` or `new`.
    """

    id: str
    text: str
    group: str | None = None


def read_prompts(path: Path) -> list[SamplingPrompt]:
    """Read prompts from a text file (one per line), JSON lines, a JSON list or CSV.

    JSON and CSV have `prompt`, and may have `id` and `group`; a JSON entry may be a bare text.

    Raises:
        EmptyInputError: there is no prompt, or one is empty.
    """
    readers = {".txt": _text, ".jsonl": _json_lines, ".json": _json, ".csv": _csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnknownFormatError(
            f"{path} is neither text, JSON nor CSV.",
            hint="pass a .txt, .jsonl, .json or .csv file.",
        )
    try:
        text = path.read_text(encoding="utf-8")
        prompts = [_prompt(line, entry, path) for line, entry in reader(text)]
    except FileNotFoundError:
        raise MissingInputError(
            f"The file {path} does not exist.", hint="check the path."
        ) from None
    except ForgetmapError:
        raise
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UnreadableError(
            f"The file cannot be read: {error}.", file=str(path), hint="save it again as UTF-8."
        ) from None
    if not prompts:
        raise EmptyInputError(
            "There are no prompts.", file=str(path), hint="add at least one prompt."
        )
    _check_ids(prompts, path)
    return prompts


def _text(text: str) -> Iterator[tuple[int, Any]]:
    for line, prompt in enumerate(text.splitlines(), start=1):
        if prompt.strip():
            yield line, prompt


def _json_lines(text: str) -> Iterator[tuple[int, Any]]:
    for line, raw in enumerate(text.splitlines(), start=1):
        if raw.strip():
            yield line, json.loads(raw)


def _json(text: str) -> Iterator[tuple[int, Any]]:
    entries = json.loads(text)
    yield from enumerate(entries if isinstance(entries, list) else [entries], start=1)


def _csv(text: str) -> Iterator[tuple[int, Any]]:
    yield from enumerate(csv.DictReader(text.splitlines(keepends=True)), start=2)


def _prompt(line: int, entry: Any, path: Path) -> SamplingPrompt:
    entry = {"prompt": entry} if isinstance(entry, str) else entry
    if not isinstance(entry, dict) or "prompt" not in entry:
        raise ColumnError(
            "The field `prompt` is missing.", file=str(path), line=line, field="prompt",
            hint="add a `prompt` to each entry; `id` and `group` are optional.",
        )  # fmt: skip
    text = entry["prompt"]
    if not isinstance(text, str):
        raise FieldError(
            f"The prompt is a {type(text).__name__}.", file=str(path), line=line, field="prompt",
            hint="give a text.",
        )  # fmt: skip
    if not text.strip():
        raise EmptyInputError(
            "The prompt is empty.", file=str(path), line=line, field="prompt",
            hint="remove the line, or add text to continue.",
        )  # fmt: skip
    name = entry.get("id")
    group = entry.get("group")
    return SamplingPrompt(
        str(line if name in (None, "") else name),
        text,
        None if group in (None, "") else str(group),
    )


def _check_ids(prompts: list[SamplingPrompt], path: Path) -> None:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise DuplicateKeyError(
                f"Two prompts have the id {prompt.id!r}.", file=str(path), field="id",
                hint="give each prompt its own id, or none.",
            )  # fmt: skip
        seen.add(prompt.id)
