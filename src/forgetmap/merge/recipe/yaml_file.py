"""YAML files with line numbers for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import FieldError, MissingInputError, UnreadableError

KeyPath = tuple[str | int, ...]
"""Keys and list indices that lead to a value, from the top."""
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a YAML file, with lines.

    Attributes:
        value: mappings, lists, texts, numbers, ...
        lines: the line of each value, counted from 1.
        file: its path.
    """

    value: Any
    lines: Mapping[KeyPath, int]
    file: str

    def line(self, key_path: KeyPath) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines[key_path]


def read_yaml(path: Path) -> YamlFile:
    """Read one YAML document.

    Raises:
        MissingInputError: there is no such file.
        UnreadableError: it is not YAML, or not UTF-8.
        FieldError: a key occurs twice, or the file contains itself.
    """
    yaml = require("yaml", "A recipe in YAML")

    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise MissingInputError(
            "The recipe file does not exist.", file=str(path), hint="check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableError(
            "The file is not UTF-8 text.", file=str(path), hint="pass a YAML file."
        ) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: dict[KeyPath, int] = {(): 1}
        return YamlFile(_value(loader, node, (), lines, str(path)), lines, str(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UnreadableError(
            f"The file is not valid YAML: {getattr(error, 'problem', None) or error}",
            file=str(path),
            line=mark.line + 1 if mark else None,
            hint="fix the syntax at this place.",
        ) from error
    finally:
        loader.dispose()


def _value(loader: Any, node: Any, key_path: KeyPath, lines: dict[KeyPath, int], file: str) -> Any:
    yaml = require("yaml", "A recipe in YAML")

    if node is None:
        return None
    lines[key_path] = node.start_mark.line + 1
    if len(key_path) > MAX_DEPTH:
        raise FieldError(
            f"Values are nested more than {MAX_DEPTH} levels deep.",
            file=file,
            line=lines[key_path],
            hint="remove anchors that contain themselves.",
        )
    if isinstance(node, yaml.SequenceNode):
        items = enumerate(node.value)
        return [_value(loader, item, (*key_path, at), lines, file) for at, item in items]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node)
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node))
        if key in mapping:
            raise FieldError(
                f"The key '{key}' occurs twice.",
                file=file,
                line=key_node.start_mark.line + 1,
                field=key,
                hint="remove one of them.",
            )
        mapping[key] = _value(loader, value_node, (*key_path, key), lines, file)
        lines[*key_path, key] = key_node.start_mark.line + 1
    return mapping
