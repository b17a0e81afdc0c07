"""Answers that are a number, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple
from unicodedata import numeric

from forgetmap.errors import FieldError
from forgetmap.scoring.claims import LONGEST_ANSWER, last_line, sentence, spoken
from forgetmap.scoring.judged import Judged, graded
from forgetmap.scoring.wording import with_powers

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_SCALE = rf"(?:\s+(?P<scale>{'|'.join(_SCALES)})\b)?"
_DIGITS = r"(?:\d{1,3}(?:(?:[,']|\{,\}|\\,)\d{3})+(?!\d)|\d{1,300})(?:\.\d{1,300})?|\.\d{1,300}"
_NUMBER = re.compile(
    rf"(?<![\w.^])(?P<sign>-\s?(?=[\d.$€£¥\\])|minus\s+)?(?:\\?[$€£¥]\s?)?(?:"
    r"\\[dt]?frac\s*\{(?P<top>-?\d{1,300})\}\s*\{(?P<bottom>\d{1,300})\}"
    rf"|(?P<digits>{_DIGITS})"
    r"(?:(?:e|\s?(?:\u00d7|x|\*|\\times|\\cdot)\s?10\s?\^\s?\{?)(?P<power>[+-]?\d{1,3})\}?(?!\d)"
    r"|\s?\^\s?\{?(?P<raised>-?\d{1,2})\}?|\s?/\s?(?P<over>\d{1,300})(?![\d/])|\s+(?P<part>\d{1,9})/(?P<whole>\d{1,9})(?!\d))?"
    r"(?P<vulgar>[¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])?|(?P<only>[¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"
    rf"|(?P<word>(?:{'|'.join(_TENS)})[- ](?:{'|'.join(_UNITS[1:10])})\b"
    rf"|(?:{'|'.join((*_UNITS, *_TENS))})\b))"
    rf"{_SCALE}(?P<percent>\s?\\?%|\s+per\s?cent\b)?",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\(|\b(?:because|since|as|which)\b|[;\n]", re.IGNORECASE)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|has|have|had|costs?|takes?|gets?|makes?|leaves|total)\b|[=≈])"
    r"(?:\s*(?:about|approximately|exactly|only|just|now|left with))?[\s*$:\\(]*",
    re.IGNORECASE,
)
_LARGEST_POWER = 400
_LARGEST_BASE = 10**9
_TOLERANCE = Fraction(1, 10**6)
_MOST_WORDS = 4


class Quantity(NamedTuple):
    """A number as it was written, and what it can mean: 50 % is 50 or 0.5."""

    said: str
    values: tuple[Fraction, ...]


class NumberReader:
    """Reads and judges answers to one question with a number for an answer."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = [self._gold(each) for each in (gold, *also_right)]

    def named(self, phrase: str) -> list[Quantity]:
        """The number a phrase gives; several if it will not decide."""
        found = _distinct(quantities(phrase))
        if len(found) > 1 and "=" in phrase:
            found = _distinct(quantities(phrase[phrase.rfind("=") + 1 :]))
        if len(found) > 1:
            head = sentence(phrase)
            aside = _ASIDE.search(head)
            found = _distinct(quantities(head[: aside.start()] if aside else head)) or found
        return found

    def alone(self, text: str) -> list[Quantity]:
        """The number, if the text is nothing but a number and a unit."""
        bare = text.lstrip(" *_`(~≈")
        if len(text) > LONGEST_ANSWER or "\n" in text or len(text.split()) > _MOST_WORDS:
            return []
        found = _distinct(quantities(bare)) if _NUMBER.match(bare) else []
        return found if len(found) == 1 else []

    def complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Further digits may have been cut off."""
        return False

    def stated(self, text: str) -> list[Quantity]:
        """The numbers a text settles on, the surest way of saying so first."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, answer: Quantity, phrase: str, *, strict: bool) -> Judged:  # noqa: ARG002
        """Right or wrong."""
        right = any(_means(answer, wanted) for wanted in self._right)
        return graded(answer.said, right=right, strict=strict)

    def _gold(self, text: str) -> Quantity:
        found = self.named(text)
        if len(found) != 1:
            raise FieldError(
                f"the right answer {text[:60]!r} is not one number",
                field="gold",
                hint="give a number such as 12, -3.5, 1,000, 3/4 or 1e6, or use the kind 'text'.",
            )
        return found[0]

    def _ways(self, text: str) -> Iterator[list[Quantity]]:
        final = last_line(text)
        yield self._spoken(final)
        yield self._spoken(text)
        yield self.alone(final)
        yield self._after_verb(final[-LONGEST_ANSWER:])

    def _spoken(self, text: str) -> list[Quantity]:
        return _distinct(found for each in spoken(text) for found in self.named(sentence(each)))

    def _after_verb(self, line: str) -> list[Quantity]:
        verbs = [verb.end() for verb in _VERB.finditer(line)]
        for end in reversed(verbs):
            if number := _NUMBER.match(line, end):
                quantity = _quantity(number)
                return [quantity] if quantity else []
        return []


def quantities(text: str) -> list[Quantity]:
    """Every number in a text, in order."""
    found = (_quantity(number) for number in _NUMBER.finditer(with_powers(text)))
    return [quantity for quantity in found if quantity]


def _quantity(number: re.Match[str]) -> Quantity | None:
    try:
        value = _value(number)
    except (ZeroDivisionError, ValueError):
        return None
    if number["sign"]:
        value = -value
    value *= _SCALES.get((number["scale"] or "").lower(), 1)
    values = (value, value / 100) if number["percent"] else (value,)
    return Quantity(number[0].strip(), values)


def _value(number: re.Match[str]) -> Fraction:
    if number["top"]:
        return Fraction(int(number["top"]), int(number["bottom"]))
    if number["only"]:
        return _vulgar(number["only"])
    if number["word"]:
        return Fraction(sum(_WORDS[part] for part in re.split("[- ]", number["word"].lower())))
    value = Fraction(re.sub(r"[^\d.]", "", number["digits"]))
    if number["power"]:
        power = int(number["power"])
        if abs(power) > _LARGEST_POWER:
            raise ValueError(number[0])
        value *= Fraction(10) ** power
    if number["raised"]:
        if value > _LARGEST_BASE:
            raise ValueError(number[0])
        value **= int(number["raised"])
    if number["over"]:
        value /= int(number["over"])
    if number["part"]:
        value += Fraction(int(number["part"]), int(number["whole"]))
    return value + (_vulgar(number["vulgar"]) if number["vulgar"] else 0)


def _vulgar(character: str) -> Fraction:
    return Fraction(numeric(character)).limit_denominator(16)


def _means(answer: Quantity, wanted: Quantity) -> bool:
    """50 % is 50 % and nothing else; without the sign on one side, 50 or 0.5 will do."""
    if len(answer.values) == len(wanted.values):
        return _same(answer.values[0], wanted.values[0])
    return any(_same(value, other) for value in answer.values for other in wanted.values)


def _same(value: Fraction, wanted: Fraction) -> bool:
    """Whole numbers must be equal, others to six digits."""
    if value.denominator == wanted.denominator == 1:
        return value == wanted
    return abs(value - wanted) <= _TOLERANCE * max(abs(wanted), _TOLERANCE)


def _distinct(found: Iterable[Quantity]) -> list[Quantity]:
    return list({quantity.values: quantity for quantity in found}.values())
