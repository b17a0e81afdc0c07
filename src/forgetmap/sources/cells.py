"""Cells of a row by a column, a path, or a rule about columns.

    judge_label=0         1 where the column has this value, else 0
    prediction==gold      1 where the answer is the right one, graded here
    correct/count         as many results: of `count` answers, `correct` were right
    config+sample_id      both values as one id

A column of this very name comes first.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from forgetmap.sources.decode import number
from forgetmap.sources.paths import NOTHING, value_at

EQUALS, OF, AND = "==", "/", "+"
_RULE = re.compile(r"(?P<left>.+?)(?P<mark>==|=|/|\+)(?P<right>.+)")
_TOLERANCE = 1e-3
"""Difference of two numbers up to which an answer counts as the right one."""


def columns_of(spec: str, present: Container[str] = frozenset()) -> list[str]:
    """Return the columns that a specification is about."""
    rule = None if spec in present else _RULE.fullmatch(spec)
    if rule is None:
        return [spec]
    if rule["mark"] == "=":
        return [rule["left"]]
    if rule["mark"] == AND:
        return spec.split(AND)
    return [rule["left"], rule["right"]]


def is_rule(spec: str, present: Container[str] = frozenset()) -> bool:
    """Whether a specification is a rule, not a column or path."""
    return spec not in present and _RULE.fullmatch(spec) is not None


def cell_of(row: Mapping[str, Any], spec: str) -> Any:
    """Return the cell of a row; None if it has none."""
    if spec in row:
        return row[spec]
    value = value_at(row, spec)
    if value is not NOTHING:
        return value
    rule = _RULE.fullmatch(spec)
    if rule is None:
        return None
    if rule["mark"] == AND:
        return _joined([cell_of(row, part) for part in spec.split(AND)])
    left = cell_of(row, rule["left"])
    if rule["mark"] == "=":
        return None if left in (None, "") else float(_same_label(left, rule["right"]))
    right = cell_of(row, rule["right"])
    return is_right(left, right) if rule["mark"] == EQUALS else _share(left, right)


def counts_of(row: Mapping[str, Any], spec: str) -> tuple[int, int] | None:
    """Return right answers and answers of a rule such as `correct/count`; None for any other."""
    rule = None if spec in row else _RULE.fullmatch(spec)
    if rule is None or rule["mark"] != OF:
        return None
    right, count = (number(cell_of(row, rule[side])) for side in ("left", "right"))
    if right is None or count is None or not 0 <= right <= count or count % 1 or right % 1:
        return None
    return int(right), int(count)


def is_right(answer: Any, gold: Any) -> float | None:
    """Grade an answer: equal as text, as a letter or as a number; None without a right answer.

    Several right answers are a list, or a text with semicolons. No answer is a wrong one.
    """
    while isinstance(answer, list):
        answer = answer[0] if answer else None
    golds = gold if isinstance(gold, list) else [gold]
    golds = [part for one in golds for part in str("" if one is None else one).split(";")]
    known = [part for part in map(_plain, golds) if part]
    if not known:
        return None
    text = _plain("" if answer is None else str(answer))
    return float(any(_equal(text, one) for one in known))


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
    numbers = None if isinstance(value, list | dict) else (number(value), number(label))
    if numbers and None not in numbers:
        return numbers[0] == numbers[1]
    return str(value).strip().casefold() == label.strip().casefold()


def _share(right: Any, count: Any) -> float | None:
    numbers = number(right), number(count)
    return None if None in numbers or not numbers[1] else float(numbers[0] or 0) / numbers[1]


def _joined(parts: list[Any]) -> str | None:
    return None if all(part is None for part in parts) else " | ".join(map(str, parts))
