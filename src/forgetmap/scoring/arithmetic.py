"""Equations between numbers that a text states, and whether they hold.

Read by a grammar of its own: sums, products, quotients, brackets. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from forgetmap.scoring.numerals import tidied

_SPELLED = str.maketrans({"\u00d7": "*", "·": "*", "÷": "/", "\u2212": "-", "\u2013": "-"})
_LATEX = re.compile(r"\\(?:times|cdot)\b|\\div\b|\\left|\\right|\\[()\[\]]|\\text\{[^{}]*\}|\$")
_GROUP = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIDE = r"[\d(.-][\d .()+*/-]{0,200}"
_EQUATION = re.compile(rf"(?<![\w.^%=)]){_SIDE}(?:= *{_SIDE})+(?![\w^%=])")
_TOKEN = re.compile(r"\s*(?:(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})|([-+*/()]))")
_DEEPEST = 20
_ROUNDED = Fraction(1, 100)


class NoSumError(ValueError):
    """Not a sum of numbers."""


def equations(text: str) -> Iterator[bool]:
    """Whether each equation holds; only those that compute something are looked at."""
    tidy = _GROUP.sub("", _LATEX.sub(_operator, tidied(text).translate(_SPELLED)))
    for equation in _EQUATION.finditer(tidy):
        sides = [side.lstrip().rstrip(" .") for side in equation[0].split("=")]
        try:
            values = [_value(side) for side in sides if side]
        except (NoSumError, ZeroDivisionError):
            continue
        if len(values) > 1 and any(re.search(r"\d\s*[-+*/]", side) for side in sides):
            yield all(_equal(left, right) for left, right in pairwise(values))


def _operator(command: re.Match[str]) -> str:
    return {"\\times": "*", "\\cdot": "*", "\\div": "/"}.get(command[0], " ")


def _equal(left: Fraction, right: Fraction) -> bool:
    """Results are often rounded to two decimals."""
    return abs(left - right) < _ROUNDED


def _value(text: str) -> Fraction:
    tokens = _tokens(text)
    value, rest = _sum(tokens, 0)
    if rest != len(tokens):
        raise NoSumError(text)
    return value


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise NoSumError(text)
        tokens.append(token[1] or token[2])
        position = token.end()
    return tokens


def _sum(tokens: list[str], place: int, depth: int = 0) -> tuple[Fraction, int]:
    value, place = _product(tokens, place, depth)
    while place < len(tokens) and tokens[place] in "+-":
        other, after = _product(tokens, place + 1, depth)
        value, place = (value + other if tokens[place] == "+" else value - other), after
    return value, place


def _product(tokens: list[str], place: int, depth: int) -> tuple[Fraction, int]:
    value, place = _factor(tokens, place, depth)
    while place < len(tokens) and tokens[place] in "*/":
        other, after = _factor(tokens, place + 1, depth)
        value, place = (value * other if tokens[place] == "*" else value / other), after
    return value, place


def _factor(tokens: list[str], place: int, depth: int) -> tuple[Fraction, int]:
    if place >= len(tokens) or depth > _DEEPEST:
        raise NoSumError
    head = tokens[place]
    if head in {"-", "+"}:
        value, after = _factor(tokens, place + 1, depth + 1)
        return (-value if head == "-" else value), after
    if head == "(":
        value, after = _sum(tokens, place + 1, depth + 1)
        if after >= len(tokens) or tokens[after] != ")":
            raise NoSumError
        return value, after + 1
    if head in "*/)":
        raise NoSumError
    return Fraction(head), place + 1
