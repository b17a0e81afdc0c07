"""Values that several formats take from their rows and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

from forgetmap.records import Outcome
from forgetmap.sources.adapter import Score
from forgetmap.sources.decode import number
from forgetmap.sources.fields import as_json_text
from forgetmap.sources.files import LogFile, run_folder
from forgetmap.sources.formats.engine import Head, LogRow

_MAX_SECONDS = 1 << 33
_STAMP = re.compile(r"(?<!\d)\d{8}_\d{6}(?!\d)")


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


def numbers(values: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, float | None]:
    """Return the numbers and truth values of an object by their names; NaN is None."""
    left = set(without)
    real = {name: v for name, v in values.items() if isinstance(v, bool | int | float)}
    return {name: number(value) for name, value in real.items() if name not in left}


def scores_of(values: Mapping[str, float | None], scorer: str = "default") -> list[Score]:
    """Return a score per metric."""
    return [Score(name, value, scorer) for name, value in values.items()]


def verdict(metric: str, right: bool | None, scorer: str = "default") -> Score:  # noqa: FBT001
    """Return the score of an answer that is right or wrong; None if that is not known."""
    if right is None:
        return Score(metric, None, scorer)
    return Score(metric, float(right), scorer, Outcome.CORRECT if right else Outcome.INCORRECT)


def as_time(value: object, form: str = "") -> str | None:
    """Return seconds since 1970 as ISO 8601, or in another form."""
    seconds = number(value)
    if seconds is None or not 0 <= seconds < _MAX_SECONDS:
        return None
    time = datetime.fromtimestamp(seconds, UTC)
    return time.strftime(form) if form else time.isoformat()


def digest(*parts: str | None, size: int = 8) -> str:
    """Return an id of some bytes for an item without one, from its texts."""
    text = "\n".join(map(str, parts))
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def last_stamp(head: Head) -> str | None:
    """Return the last time, such as `20260101_120000`, in the path of a file."""
    return next(reversed(_STAMP.findall(head.file.name)), None)
