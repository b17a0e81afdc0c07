"""Cells of a row: by column, by a path into one, or by a rule about columns.

    scores.pass@1         a member of an object; names may contain dots
    trials.0.reward       an element of a list, from 0; -1 is the last one
    trials.*.reward       every element of a list, each of them a result: these are repeats
    judge_label=0         1 where the column has this value, else 0
    prediction==gold      1 where the answer is the right one, graded here
    correct/count         as many results: of `count` answers, `correct` were right
    config+sample_id      both values as one id

A column of this very name comes first, and of several ways to read a path the one with the longest
first name. Texts that contain JSON, as in a cell of a CSV file, are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from forgetmap.sources.decode import Malformed, decode, number

NOTHING: Final = object()
"""Marks a path that does not exist, unlike a null."""
EVERY, EQUALS, OF, AND = "*", "==", "/", "+"
MAX_DEPTH = 6
_INDEX = re.compile(r"-?\d{1,9}")
MAX_FORM, MAX_GOLD, MAX_END = 8, 200, 4_000
"""Characters beyond which an answer is a sentence, a right answer is a solution, and what of an
answer is looked at."""
_KEY = re.compile(r"(?=.*\d)(?=.*[a-z])[\w-]{8,}")
"""A right answer that no sentence has by chance, such as a UUID."""
_TOLERANCE = 1e-3
"""Difference of two numbers up to which an answer counts as the right one."""


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path; `NOTHING` if there is no such path."""
    return _at(value, path.split("."))


def _at(value: Any, parts: Sequence[str]) -> Any:
    if not parts or parts == [""]:
        return value
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            value = decode(value.encode("utf-8", "replace"))
        except Malformed:
            return NOTHING
    if isinstance(value, list) and _INDEX.fullmatch(parts[0]):
        index = int(parts[0])
        return _at(value[index], parts[1:]) if -len(value) <= index < len(value) else NOTHING
    if isinstance(value, Mapping):
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            part = _at(value[name], parts[count:]) if name in value else NOTHING
            if part is not NOTHING:
                return part
    return NOTHING


def split_every(path: str) -> tuple[str, str] | None:
    """Split a path at its `*` into the parts before and after; None if it has no `*`."""
    parts = path.split(".")
    if EVERY not in parts:
        return None
    index = parts.index(EVERY)
    return ".".join(parts[:index]), ".".join(parts[index + 1 :])


def scalar_paths(value: Any, prefix: str = "", depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:
    """Iterate over path and value of every leaf of an object; a list is one leaf."""
    if not isinstance(value, Mapping) or not depth:
        yield prefix, value
        return
    for name, part in value.items():
        yield from scalar_paths(part, f"{prefix}.{name}" if prefix else str(name), depth - 1)


def parse_rule(spec: str) -> tuple[str, str, str] | None:
    """Return left side, mark and right side of a rule; None for a column or path."""
    for mark in (EQUALS, "=", OF, AND):
        left, found, right = spec.partition(mark)
        if found and left and right:
            return left, mark, right
    return None


def columns_of(spec: str, present: Container[str] = frozenset()) -> list[str]:
    """Return the columns that a specification is about."""
    rule = None if spec in present else parse_rule(spec)
    if rule is None:
        return [spec]
    left, mark, right = rule
    if mark == AND:
        return spec.split(AND)
    return [left] if mark == "=" else [left, right]


def is_rule(spec: str, present: Container[str] = frozenset()) -> bool:
    """Whether a specification is a rule, not a column or path."""
    return spec not in present and parse_rule(spec) is not None


def cell_of(row: Mapping[str, Any], spec: str) -> Any:
    """Return the cell of a row; None if it has none."""
    if spec in row:
        return row[spec]
    value = value_at(row, spec)
    if value is not NOTHING:
        return value
    rule = parse_rule(spec)
    if rule is None:
        return None
    if rule[1] == AND:
        parts = [cell_of(row, part) for part in spec.split(AND)]
        return None if all(part is None for part in parts) else " | ".join(map(str, parts))
    left = cell_of(row, rule[0])
    if rule[1] == "=":
        return None if left in (None, "") else float(_same_label(left, rule[2]))
    right = cell_of(row, rule[2])
    if rule[1] == EQUALS:
        return is_right(left, right)
    share, count = number(left), number(right)
    return share / count if share is not None and count else None


def counts_of(row: Mapping[str, Any], spec: str) -> tuple[int, int] | None:
    """Return right answers and answers of a rule such as `correct/count`; None for any other."""
    rule = None if spec in row else parse_rule(spec)
    if rule is None or rule[1] != OF:
        return None
    right, count = (number(cell_of(row, side)) for side in rule[::2])
    if right is None or count is None or not 0 <= right <= count or count % 1 or right % 1:
        return None
    return int(right), int(count)


def every_cell(row: Mapping[str, Any], paths: Mapping[str, tuple[str, str]]) -> Iterator[Any]:
    """Iterate over the cells of each element of the lists in a row; at least one, of nulls.

    Args:
        row: the row.
        paths: column -> the parts of its path before and after `*`.
    """
    lists = {prefix: cell_of(row, prefix) for prefix, _ in paths.values()}
    count = max((len(one) for one in lists.values() if isinstance(one, list)), default=0)
    for index in range(max(count, 1)):
        cells = {
            column: value_at(lists[prefix], f"{index}.{rest}".removesuffix("."))
            for column, (prefix, rest) in paths.items()
        }
        yield {column: None if cell is NOTHING else cell for column, cell in cells.items()}


def is_right(answer: Any, gold: Any) -> float | None:
    """Grade an answer: equal as text, as a letter or as a number; None without a right answer.

    In an answer that is a sentence or longer, the final answer is looked for. Several right answers
    are a list, or a text with semicolons. No answer is a wrong one. The right option may be given
    by its number, from 0.
    """
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    golds = gold if isinstance(gold, list) else [gold]
    golds = [part for one in golds for part in str("" if one is None else one).split(";")]
    known = [part for part in map(_plain, golds) if part]
    if not known:
        return None
    raw = "" if answer is None else str(answer)
    text = _plain(raw)
    if any(_equal(text, one) for one in known):
        return 1.0
    if len(text) == 1 and text.isalpha() and known[0].isdigit():
        return float(str(ord(text) - ord("a")) == known[0])
    longest = max(map(len, known))
    if len(text) <= 2 * longest + MAX_FORM or longest > MAX_GOLD:
        return 0.0
    if _KEY.fullmatch(known[0]):
        return float(known[0] in raw.casefold())
    from forgetmap.sources.reasons import grade_text  # large

    return grade_text(raw[-MAX_END:], golds[0].strip()) or 0.0


def _equal(text: str, gold: str) -> bool:
    if text == gold:
        return True
    try:
        answer, right = (float(one.replace(",", "").lstrip("$")) for one in (text, gold))
    except ValueError:
        return False
    return abs(answer - right) <= _TOLERANCE


def _plain(text: str) -> str:
    """Return a text without case, outer blanks and the brackets of a letter."""
    bare = text.strip().casefold()
    letter = re.fullmatch(r"\(?([a-z])[).:]?", bare)
    return letter[1] if letter else bare


def _same_label(value: Any, label: str) -> bool:
    if not isinstance(value, list | dict) and None not in (number(value), number(label)):
        return number(value) == number(label)
    return str(value).strip().casefold() == label.strip().casefold()
