"""Tool calls in a response.

Calls are read as Python (`name(key=value)`, dotted names, several in a list or one per line,
possibly assigned to a variable) and as JSON (`{"name": ..., "arguments": {...}}`, alone, in a list,
or as `tool_calls`). Fences, tags, list marks and backticks around them are ignored, as are lines of
prose. Nothing is run: Python is parsed, not evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forgetmap.scoring.extract.json_text import NotJson, json_within, read_json
from forgetmap.scoring.extract.python_code import parse

_MAX_CHARS = 20_000
MAX_CALLS = 200
_WORK_PER_CHARACTER = 20
_FENCE_LINE = re.compile(r"^[ \t]*```.*$|^[ \t]*</?[\w|]{1,30}>[ \t]*$", re.MULTILINE)
_MARKS = re.compile(r"(?:[-*+>•]|\d{1,3}[.)]|\w{1,20}:(?!:))[ \t]+|[ \t`]+")
_START = re.compile(
    r"(?:[A-Za-z_]\w{0,60}[ \t]*=(?!=)[ \t]*)?"
    r"(?:\[[ \t\n]*)?(?P<name>[A-Za-z_][\w.-]{0,200}(?: [A-Za-z_][\w.-]{0,60}){0,5})\("
)
_SPACED = re.compile(r"^[ \t]*([A-Za-z_][\w. -]{0,200}?) +\(", re.MULTILINE)
_TOKEN = re.compile(r"\\.|['\"()\[\]{}]", re.DOTALL)
_NODE = re.compile(r"(?<!['\"\w])<node-\d{1,4}>(?:\.\w{1,40})?(?:\[\d{1,4}\])?(?!['\"])")
_ARGUMENTS = ("arguments", "args", "parameters", "kwargs")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    name: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """An argument that is not a literal, as written: a variable, an expression, another call."""

    text: str


def calls_in(text: str, names: frozenset[str] = frozenset()) -> tuple[list[Call], bool]:
    """Return the calls in a text, and whether it is only calls, written as Python.

    Args:
        text: the response.
        names: names of known tools, which may contain spaces.
    """
    calls: list[Call] = []
    for _, value in json_within(text):
        calls += calls_of(value)
    if calls:
        return calls, False
    body = _FENCE_LINE.sub("", text)
    if calls := _parsed(body.strip(), names):
        return calls, body == text
    calls, rest = _scattered(body, names)
    return calls, bool(calls) and body == text and not rest


def calls_of(value: Any) -> list[Call]:
    """Return the calls described by a JSON value; none if it is anything else."""
    if isinstance(value, list):
        return _all_or_none([calls_of(item) for item in value])
    if not isinstance(value, Mapping):
        return []
    if isinstance(value.get("tool_calls"), list):
        return calls_of(value["tool_calls"])
    inner = value.get("function")
    described = inner if isinstance(inner, Mapping) else value
    name = described.get("name") or (inner if isinstance(inner, str) else None)
    raw = next((described[key] for key in _ARGUMENTS if key in described), None)
    arguments = _arguments(raw)
    if not isinstance(name, str) or not name.strip() or arguments is None:
        return []
    label = value.get("id")
    return [Call(name.strip(), named=arguments, id=None if label is None else str(label))]


def _all_or_none(parts: list[list[Call]]) -> list[Call]:
    """Return the calls of all parts, if each part has calls."""
    return [call for calls in parts for call in calls] if all(parts) else []


def _arguments(value: Any) -> dict[str, Any] | None:
    """Return arguments as an object, also from JSON text; else None."""
    if isinstance(value, str):
        try:
            value = read_json(value)
        except NotJson:
            return None
    return dict(value) if isinstance(value, Mapping) else None


def _scattered(text: str, names: frozenset[str]) -> tuple[list[Call], bool]:
    """Return the calls that begin a line, and whether there is any other text."""
    all_calls: list[Call] = []
    rest, position, work = False, 0, _WORK_PER_CHARACTER * len(text)
    while position < len(text) and len(all_calls) < MAX_CALLS:
        line_end = text.find("\n", position) % (len(text) + 1)
        start = _after_marks(text, position, line_end)
        end = _call_end(text, start) if work > 0 and _START.match(text, start) else None
        work -= (end or min(start + _MAX_CHARS, len(text))) - start
        calls = _parsed(text[start:end], names) if end else []
        all_calls += calls
        stop = text.find("\n", end) % (len(text) + 1) if calls and end else line_end
        between = text[position:start] + (text[end:stop] if calls else text[start:stop])
        rest = rest or bool(between.strip(" \t`,;"))
        position = stop + 1
    return all_calls, rest


def _after_marks(text: str, start: int, line_end: int) -> int:
    """Return the start of a line after list marks, labels and backticks."""
    while start < line_end and (mark := _MARKS.match(text, start, line_end)):
        start = mark.end()
    return start


def _call_end(text: str, start: int) -> int | None:
    """Return the offset at which all brackets opened from `start` are closed; else None."""
    opened: list[str] = []
    quote = ""
    for token in _TOKEN.finditer(text, start, start + _MAX_CHARS):
        mark = token[0]
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark in "([{":
            opened.append(mark)
        elif mark in _CLOSES:
            if not opened or opened.pop() != _CLOSES[mark]:
                return None
            if not opened:
                return token.end()
    return None


def _parsed(text: str, names: frozenset[str]) -> list[Call]:
    """Return the calls of a text that is only calls; none if it is anything else."""
    if "(" not in text or len(text) > _MAX_CHARS or _is_prose(text, names):
        return []
    tree = parse(_NODE.sub(lambda node: repr(node[0]), _joined_name(text, names)))
    statements = tree.body if tree else []
    try:
        return _all_or_none([_calls_at(_expression(statement)) for statement in statements])
    except RecursionError:  # an endless argument such as 1+1+1+...
        return []


def _is_prose(text: str, names: frozenset[str]) -> bool:
    """Whether a line begins like `Paris (France)`, which Python would parse as a call."""
    return any(same_words(spaced[1]) not in names for spaced in _SPACED.finditer(text))


def _joined_name(text: str, names: frozenset[str]) -> str:
    """Replace spaces in the name of a known tool by underscores."""
    start = _START.match(text)
    if not start or " " not in start["name"] or same_words(start["name"]) not in names:
        return text
    name = re.sub(r"[ -]", "_", start["name"])
    return text[: start.start("name")] + name + text[start.end("name") :]


def same_words(name: str) -> str:
    """Return a name for comparison, regardless of spaces, hyphens, dots, underscores and case."""
    return re.sub(r"[\s._-]+", "_", name.strip()).lower()


def _expression(statement: ast.stmt) -> ast.expr | None:
    return statement.value if isinstance(statement, ast.Expr | ast.Assign) else None


def _calls_at(node: ast.expr | None) -> list[Call]:
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.List | ast.Tuple):
        return _all_or_none([_calls_at(item) for item in node.elts])
    call = _call(node)
    return [call] if call else []


def _call(node: ast.expr | None) -> Call | None:
    if not isinstance(node, ast.Call):
        return None
    name = _dotted(node.func)
    if not name:
        return None
    named = {keyword.arg or "**": _value(keyword.value) for keyword in node.keywords}
    return Call(name, tuple(map(_value, node.args)), named)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, anything else as written."""
    if isinstance(node, ast.Name) and node.id.lower() in _CONSTANTS:
        return _CONSTANTS[node.id.lower()]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        return dict(zip(map(_key, node.keys), map(_value, node.values), strict=True))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Expression(ast.unparse(node))


def _key(node: ast.expr | None) -> str:
    value = _value(node) if node else None
    return value.text if isinstance(value, Expression) else str(value)
