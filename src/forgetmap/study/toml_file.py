"""TOML files with line numbers for error messages."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.errors import MissingInputError, UnreadableError

TomlPath = tuple[str | int, ...]
"""Keys and indices of a value, from the top."""
HINT = "create a study to start from with `forgetmap study init empty --out study.toml`."


@dataclass(frozen=True, slots=True)
class TomlFile:
    """Content of a TOML file, with line numbers.

    Attributes:
        value: its tables.
        lines: line of each value, from 1.
        file: path or name of the file.
    """

    value: dict[str, Any]
    lines: Mapping[TomlPath, int]
    file: str

    def line(self, path: TomlPath) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_toml_file(path: Path) -> TomlFile:
    """Read a TOML file.

    Raises:
        MissingInputError: there is no such file.
        UnreadableError: it is not TOML, or not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingInputError("the file does not exist", file=str(path), hint=HINT) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(
            f"not a valid TOML file: {error}", file=str(path), hint=HINT
        ) from None
    return parse_toml(text, str(path))


def parse_toml(text: str, file: str) -> TomlFile:
    """Parse TOML.

    Raises:
        UnreadableError: it is not TOML.
    """
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError(f"not a valid TOML file: {error}", file=file, hint=HINT) from None
    return TomlFile(value, _find_lines(text), file)


def _find_lines(text: str) -> dict[TomlPath, int]:
    lines: dict[TomlPath, int] = {}
    counts: dict[TomlPath, int] = {}
    table: TomlPath = ()
    for number, statement in _statements(text):
        content = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _open_table(_only_path(content), counts)
            lines[table] = number
            continue
        for path in _paths(content):
            lines.setdefault((*table, *path), number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header or assignment, which a parser accepts alone, with its first line."""
    rows, start = text.splitlines(), 0
    while start < len(rows):
        end = start + 1
        while not _is_whole("\n".join(rows[start:end])):
            end += 1
        statement = "\n".join(rows[start:end])
        if tomllib.loads(statement):
            yield start + 1, statement
        start = end


def _is_whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _only_path(content: Any) -> TomlPath:
    """Return the keys of a header; a list marks an array of tables."""
    path: TomlPath = ()
    while content:
        if isinstance(content, list):
            return (*path, -1)
        key, content = next(iter(content.items()))
        path = (*path, key)
    return path


def _open_table(header: TomlPath, counts: dict[TomlPath, int]) -> TomlPath:
    """Return the path of a table, with its index if there are several of this name."""
    path: TomlPath = ()
    is_new = header[-1] == -1
    keys = [key for key in header if key != -1]
    for number, key in enumerate(keys, 1):
        path = (*path, key)
        if is_new and number == len(keys):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _paths(content: Any, path: TomlPath = ()) -> Iterator[TomlPath]:
    if path:
        yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _paths(value, (*path, key))
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from _paths(value, (*path, index))
