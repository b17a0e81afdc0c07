"""Mapping files: how to read a table, stored next to it.

`base.csv.map.toml` belongs to `base.csv`; `forgetmap.toml` to the folder it lies in and to all
tables there that have no map of their own; any other file is named with --mapping:

    task = "arc"                 # name of the only task
    rows = "performances"        # the list of results in a JSON document
    model = "model"              # column with the model of each row, for TABLE#NAME
    range = [0, 100]             # worst and best score, if they are not 0 and 1

    [columns]
    item = "question_id"
    score = "scores.pass@1"      # a column, or a path into one
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from forgetmap.errors import ColumnError, OutputError, UsageError
from forgetmap.records import BY_NAME
from forgetmap.sources.selection import is_remote, parse_selection
from forgetmap.sources.sniff import readable_file
from forgetmap.sources.table_map import ScoreRange, TableMap

ENDING = ".map.toml"
OF_FOLDER = "forgetmap.toml"


def map_file(source: str | Path) -> Path:
    """Return the path of the map of a table or folder; for a URL, a file in the current folder."""
    if is_remote(source):
        return Path(PurePosixPath(urlsplit(str(source)).path).name + ENDING)
    table = Path(source)
    return table / OF_FOLDER if table.is_dir() else table.with_name(table.name + ENDING)


def is_map(path: Path) -> bool:
    """Whether a file is a map, by its name."""
    return path.name == OF_FOLDER or path.name.endswith(ENDING)


def saved_map(table: Path, mapping: Path | None = None) -> TableMap:
    """Read `mapping`, else the map of the table or of its folder; else return an empty map."""
    if mapping is not None:
        return _read(mapping)
    for path in (map_file(table), table.parent / OF_FOLDER):
        if path.is_file():
            return _read(path)
    return TableMap()


def save_map(source: str | Path, table_map: TableMap, *, out: Path | None = None) -> Path:
    """Write a map next to its table, where it is found when the table is next opened.

    Args:
        source: file or folder of the table, or `TABLE#NAME`.
        table_map: the map.
        out: path to write to instead.
    """
    if out is None and is_remote(source):
        raise UsageError(
            "a mapping cannot be written next to a remote table",
            hint=f"`forgetmap records map {shlex.quote(str(source))}` writes one here; pass it "
            "with --mapping.",
        )
    path = out or map_file(parse_selection(str(source)).path)
    try:
        path.write_text(map_text(table_map), encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"the mapping cannot be written to {path}: {error.strerror}",
            hint="copy the table to a writable folder, and try again.",
        ) from None
    return path


def map_text(table_map: TableMap) -> str:
    """Return a map as TOML."""
    lines = ["# How forgetmap reads this table: field of forgetmap = column of the table."]
    for name in ("task", "rows", "model"):
        value = getattr(table_map, name)
        if value is not None:
            lines.append(f"{name} = {_quoted(value)}")
    if table_map.score_range is not None:
        lines.append(f"range = [{', '.join(f'{end:g}' for end in table_map.score_range)}]")
    columns = table_map.columns.items()
    lines += ["", "[columns]", *(f"{name} = {_quoted(column)}" for name, column in columns)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a TOML string, which has the syntax of a JSON string."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _read(path: Path) -> TableMap:
    try:
        with readable_file(path), path.open("rb") as stream:
            settings = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(path, f"this mapping is not valid TOML: {error}") from None
    columns = settings.get("columns", {})
    if not isinstance(columns, dict):
        raise _wrong(path, "'columns' is not a table of fields and columns", "columns")
    for name in settings.keys() - {"columns", "range", *_NAMES}:
        raise _wrong(
            path,
            f"unknown setting {name!r}; the settings are {', '.join(_NAMES)}, range and [columns]",
            name,
        )
    for name, column in columns.items():
        _check(path, name, column)
    named = {name: _name(path, settings, name) for name in _NAMES}
    scale = _range(path, settings.get("range"))
    return TableMap(columns, named["task"], named["rows"], named["model"], scale)


_NAMES = ("task", "rows", "model")


def _name(path: Path, settings: Mapping[str, Any], name: str) -> str | None:
    value = settings.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(path, f"{name!r} is {value!r:.40}, not a name", name)
    return value


def _range(path: Path, ends: Any) -> ScoreRange | None:
    if ends is None:
        return None
    is_pair = isinstance(ends, list) and len(ends) == len(ScoreRange._fields)
    if not is_pair or not all(type(end) in (int, float) for end in ends) or ends[0] == ends[1]:
        raise _wrong(path, f"'range' is {ends!r:.40}, not two different numbers", "range")
    return ScoreRange(*map(float, ends))


def _check(path: Path, name: str, column: Any) -> None:
    if name not in BY_NAME:
        raise _wrong(path, f"unknown field {name!r}", name)
    if not isinstance(column, str):
        raise _wrong(path, f"{name} = {column!r:.40} is not a column name", name)


def _wrong(path: Path, message: str, field: str | None = None) -> ColumnError:
    return ColumnError(
        message,
        file=str(path),
        field=field,
        hint="correct the mapping, or delete it and use --columns.",
    )
