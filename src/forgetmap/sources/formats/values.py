"""Values that several formats take from their rows, conversations and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Score
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_json_text, as_objects, as_text
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.formats.engine import Head, LogRow

_MAX_SECONDS = 1 << 33


def stem(file: LogFile) -> str:
    """Return the name of a file up to its first dot."""
    return PurePosixPath(file.name).name.split(".")[0]


def is_beside(file: LogFile, other: LogFile) -> bool:
    """Whether files are in one folder, or in folders of one model, `RUN/KIND/MODEL`."""
    is_same = PurePosixPath(file.name).parent.name == PurePosixPath(other.name).parent.name
    return is_same and run_folder(file) == run_folder(other)


def as_json(*paths: str) -> Callable[[LogRow], str | None]:
    """Declare the first non-empty of these fields, of any type, as text."""
    return lambda row: next(filter(None, (as_json_text(row[path]) for path in paths)), None)


def plain(*paths: str) -> Callable[[LogRow], str | None]:
    """Declare the first of these fields that is a text or a number; others are not reported."""
    return lambda row: row.plain(*paths)


def numbers(values: Mapping[str, Any], without: Container[str] = ()) -> dict[str, float | None]:
    """Return the numbers and truth values of an object by their names; NaN is None."""
    real = {name: v for name, v in values.items() if isinstance(v, bool | int | float)}
    return {name: number(value) for name, value in real.items() if name not in without}


def scores_of(values: Mapping[str, float | None], scorer: str = "default") -> list[Score]:
    """Return a score per metric."""
    return [Score(name, value, scorer) for name, value in values.items()]


def verdict(metric: str, right: bool | None, scorer: str = "default") -> Score:  # noqa: FBT001
    """Return the score of an answer that is right or wrong; None if that is not known."""
    outcome = None if right is None else Outcome.CORRECT if right else Outcome.INCORRECT
    return Score(metric, number(right), scorer, outcome)


def as_time(value: object) -> str | None:
    """Return seconds since 1970 as ISO 8601."""
    seconds = number(value)
    if seconds is None or not 0 <= seconds < _MAX_SECONDS:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def digest(*parts: str | None, size: int = 8) -> str:
    """Return an id of some bytes for an item without one, from its texts."""
    text = "\n".join(map(str, parts))
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def last_stamp(head: Head) -> str | None:
    """Return the last time, such as `20260101_120000`, in the path of a file."""
    return next(reversed(re.findall(r"(?<!\d)\d{8}_\d{6}(?!\d)", head.file.name)), None)


def texts_of_role(messages: object, *roles: str) -> str | None:
    """Return all texts of these roles in a conversation; a plain text is returned as it is."""
    if not isinstance(messages, list):
        return messages if isinstance(messages, str) else None
    texts = [
        text_of(one.get("content")) for one in as_objects(messages) if one.get("role") in roles
    ]
    return "\n\n".join(filter(None, texts)) or None


def last_question(prompt: object) -> str | None:
    """Return the last message of the user, which may follow a system prompt and examples."""
    if not isinstance(prompt, list):
        return prompt or None if isinstance(prompt, str) else None
    asked = [one for one in as_objects(prompt) if str(one.get("role")).lower() in ("user", "human")]
    return text_of(asked[-1].get("content", asked[-1].get("prompt"))) or None if asked else None


def text_of(content: object) -> str | None:
    """Return the text of a message; the texts of its parts are joined."""
    if isinstance(content, list):
        parts = [part.get("text") for part in as_objects(content)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return as_text(content)
