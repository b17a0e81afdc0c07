"""YAML that remembers on which line everything stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap.errors import FieldError, MissingInputError, UnreadableError

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value, from the top."""
DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Yaml:
    """What a YAML file says, and where.

    Attributes:
        value: mappings, lists, texts, numbers, ...
        lines: the line of each value, counted from 1.
        file: its path.
    """

    value: Any
    lines: Mapping[Place, int]
    file: str

    def line(self, place: Place) -> int:
        """Where a value stands, or the nearest one around it that stands anywhere."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]


def read_yaml(path: Path) -> Yaml:
    """Read one YAML document.

    Raises:
        MissingInputError: there is no such file.
        UnreadableError: it is not YAML, or not UTF-8.
        FieldError: a key occurs twice, or the file contains itself.
    """
    import yaml  # type: ignore[import-untyped]  # part of an extra

    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise MissingInputError(
            "There is no such recipe.", file=str(path), hint="check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableError(
            "The file is not UTF-8 text.", file=str(path), hint="give a YAML file."
        ) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Place, int] = {(): 1}
        return Yaml(_value(loader, node, (), lines, str(path)), lines, str(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UnreadableError(
            f"The file is not YAML: {getattr(error, 'problem', None) or error}",
            file=str(path),
            line=mark.line + 1 if mark else None,
            hint="mend the syntax there.",
        ) from error
    finally:
        loader.dispose()


def _value(loader: Any, node: Any, place: Place, lines: dict[Place, int], file: str) -> Any:
    import yaml

    if node is None:
        return None
    lines[place] = node.start_mark.line + 1
    if len(place) > DEEPEST:
        raise FieldError(
            f"Values are nested more than {DEEPEST} deep.",
            file=file,
            line=lines[place],
            hint="write the recipe without anchors that contain themselves.",
        )
    if isinstance(node, yaml.SequenceNode):
        parts = enumerate(node.value)
        return [_value(loader, each, (*place, at), lines, file) for at, each in parts]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node)
    found: dict[str, Any] = {}
    for key_node, each in node.value:
        key = str(loader.construct_object(key_node))
        if key in found:
            raise FieldError(
                f"The key '{key}' occurs twice.",
                file=file,
                line=key_node.start_mark.line + 1,
                field=key,
                hint="leave one of them.",
            )
        found[key] = _value(loader, each, (*place, key), lines, file)
        lines[*place, key] = key_node.start_mark.line + 1
    return found
