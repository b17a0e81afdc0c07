"""How to read a table, written down next to it.

`base.csv.map.toml` belongs to `base.csv`; `forgetmap.toml` to the folder it lies in and to all
tables there that have no map of their own:

    task = "arc"

    [columns]
    item = "question_id"
    score = "correct"
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError, OutputError
from forgetmap.records import BY_NAME, ColumnMap
from forgetmap.sources.selection import parse_selection
from forgetmap.sources.sniff import readable_file

ENDING = ".map.toml"
OF_FOLDER = "forgetmap.toml"


@dataclass(frozen=True, slots=True)
class SavedMap:
    """A map from a file.

    Attributes:
        columns: canonical field -> column.
        task: name of the task, for tables without such a column.
    """

    columns: ColumnMap = field(default_factory=dict)
    task: str | None = None


def map_file(table: Path) -> Path:
    """Where the map of a table, or of a folder of tables, is kept."""
    return table / OF_FOLDER if table.is_dir() else table.with_name(table.name + ENDING)


def is_map(path: Path) -> bool:
    """Whether a file holds a map and no results."""
    return path.name == OF_FOLDER or path.name.endswith(ENDING)


def saved_map(table: Path) -> SavedMap:
    """The map of a table or folder; an empty one if nobody saved any."""
    for path in (map_file(table), table.parent / OF_FOLDER):
        if path.is_file():
            return _read(path)
    return SavedMap()


def save_map(source: str | Path, columns: ColumnMap, *, task: str | None = None) -> Path:
    """Write a map next to its table, for the next time.

    Args:
        source: file or folder of the table, or `TABLE#NAME`.
        columns: canonical field -> column.
        task: name of the task, for tables without such a column.
    """
    lines = ["# How forgetmap reads this table: its name of a field = the column here."]
    if task is not None:
        lines.append(f"task = {_quoted(task)}")
    lines += ["", "[columns]", *(f"{name} = {_quoted(column)}" for name, column in columns.items())]
    path = map_file(parse_selection(str(source)).path)
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"the map cannot be written to {path}: {error.strerror}",
            hint="leave out --save-map, or copy the table to where you may write.",
        ) from None
    return path


def _quoted(text: str) -> str:
    """A TOML string; it is written like one of JSON."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _read(path: Path) -> SavedMap:
    try:
        with readable_file(path), path.open("rb") as stream:
            settings = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(path, f"this map is not valid TOML: {error}") from None
    columns, task = settings.get("columns", {}), settings.get("task")
    if not isinstance(columns, dict):
        raise _wrong(path, "'columns' is no table of fields and columns", "columns")
    if task is not None and not isinstance(task, str):
        raise _wrong(path, f"'task' is {task!r:.40}, not a name", "task")
    for name in settings.keys() - {"columns", "task"}:
        raise _wrong(path, f"there is no setting {name!r}; only 'task' and [columns]", name)
    for name, column in columns.items():
        _check(path, name, column)
    return SavedMap(columns, task)


def _check(path: Path, name: str, column: Any) -> None:
    if name not in BY_NAME:
        raise _wrong(path, f"there is no field {name!r}", name)
    if not isinstance(column, str):
        raise _wrong(path, f"{name} = {column!r:.40} names no column", name)


def _wrong(path: Path, message: str, field: str | None = None) -> ColumnError:
    return ColumnError(
        message,
        file=str(path),
        field=field,
        hint="correct the map, or delete it and use --columns.",
    )
