r"""Numbers in a text, in any notation.

Thousands may be separated by a comma, an apostrophe, a space or a point: `1.200` can mean 1.2 or
1200, and both readings are kept. Digits of other scripts must be converted first
(`wording.simplify`). Nothing is evaluated beyond the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple
from unicodedata import numeric

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import (
    MAX_ANSWER_CHARS,
    find_spoken_claims,
    first_sentence,
    last_line,
)
from forgetmap.scoring.extract.wording import simplify, with_powers
from forgetmap.scoring.grade import Grade, grade_answer

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "mil": 10**3, "mille": 10**3, "tausend": 10**3, "тысяч": 10**3, "тысячи": 10**3,
    "millions": 10**6, "millones": 10**6, "millionen": 10**6, "миллиона": 10**6, "миллионов": 10**6,
    "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
_JOINED_SCALES = {
    "百万": 10**6, "千万": 10**7, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "千": 10**3,
    "만": 10**4, "억": 10**8,
}  # fmt: skip
_ALL_SCALES = _SCALES | _JOINED_SCALES
_SCALE = (
    rf"(?:\s+(?P<scale>{'|'.join(_SCALES)})\b|\s?(?P<joined>{'|'.join(_JOINED_SCALES)})(?![个個]))?"
)
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_UNITS[1:10])}))?|(?:{'|'.join(_UNITS)}))\b"
_HUNDREDS = rf"{_SMALL}(?: hundred\b(?: (?:and )?{_SMALL})?)?"
_IN_WORDS = rf"{_HUNDREDS}(?: (?:thousand|million|billion)\b(?:,? (?:and )?{_HUNDREDS})?)*"
_DIGITS = (
    r"[1-9]\d{0,2}(?:[,']\d{3})+(?!\d)(?:\.\d{1,300})?"  # 1,234.5
    r"|[1-9]\d{0,2}(?:[ _]\d{3})+(?![\d/])(?:[.,]\d{1,300})?"  # 1 234,5
    r"|[1-9]\d{0,2}(?:\.\d{3})+,\d{1,300}(?![\d,])"  # 1.234,5
    r"|[1-9]\d{0,2}(?:\.\d{3}){2,}(?!\d)"  # 1.234.567
    r"|[1-9]\d?(?:,\d\d)+,\d{3}(?!\d)(?:\.\d{1,300})?"  # 1,23,456
    r"|(?<!,)(?:0,\d{1,300}|\d{1,300},(?:\d{4,300}|\d\d?))(?![\d,])"  # 1,5
    r"|\d{1,300}(?:\.\d{1,300})?|\.\d{1,300}"
)
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_VULGAR = "[¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
_MONEY = "[$€£¥₹₽₩฿]"
NUMBER = re.compile(
    rf"(?<![^\W{_SPACELESS}])(?<![.^√])(?<!sqrt\{{)"
    rf"(?P<sign>-\s?(?=[\d.$€£¥₹₽₩฿])|minus\s+)?(?:(?:US|R)?{_MONEY}\s?)?(?:"
    rf"(?P<digits>(?>{_DIGITS}))(?!\s?(?:√|π|\\sqrt|\\pi))"
    r"(?:(?:e|\s?(?:\u00d7|x|\*|\\times|\\cdot)\s?10\s?\^\s?\{?)(?P<power>[+-]?\d{1,3})\}?(?!\d)"
    r"|\s?\^\s?\{?(?P<raised>-?\d{1,2})\}?|\s?/\s?(?P<over>\d{1,300})(?![\d/])"
    r"|\s+(?P<part>\d{1,9})/(?P<whole>\d{1,9})(?!\d))?"
    rf"(?P<vulgar>{_VULGAR})?|(?P<only>{_VULGAR})|(?P<word>{_IN_WORDS}))"
    rf"{_SCALE}(?P<percent>\s?\\?[%٪]|\s+per\s?cent\b)?",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{(-?\d{1,300})\}|(\d))\s*(?:\{(\d{1,300})\}|(\d))")
_LATEX_GAP = re.compile(r"(?<=\d)(?:\{,\}|\\[,!;: ]|~)(?=\d{3})")
_GROUPS_OF_THREE = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}")
_MAYBE_THOUSANDS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_HAN_DIGITS = {numeral: value for value, numeral in enumerate("〇一二三四五六七八九")} | {
    "零": 0,
    "两": 2,
    "兩": 2,
}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN = re.compile(f"[{''.join(_HAN_DIGITS | _HAN_TENS | _HAN_SCALES)}]{{1,20}}")
_MAX_EXPONENT = 400
_MAX_BASE = 10**9
_POWER_OF_TEN = int("1" + 320 * "0")
_TOLERANCE = Fraction(1, 10**6)


class Quantity(NamedTuple):
    """A number as written, with its possible values.

    Attributes:
        text: the number as written.
        values: possible values, the most likely first.
        percent: whether it has a percent sign, so that 50 can mean 0.5.
    """

    text: str
    values: tuple[Fraction, ...]
    percent: bool = False


def tidy(text: str) -> str:
    """Convert LaTeX fractions and gaps, and superscript digits, to plain text."""
    if "\\" in text or "~" in text or "{" in text:
        text = _LATEX_GAP.sub(",", text.replace("\\$", "$"))
        text = _FRACTION.sub(lambda f: f" {f[1] or f[2]}/{f[3] or f[4]} ", text)
    return with_powers(text)


def find_quantities(text: str) -> list[Quantity]:
    """Return all numbers in a text, in order."""
    numbers = map(_quantity, NUMBER.finditer(tidy(text)))
    return [quantity for quantity in numbers if quantity]


def quantity_at(text: str, position: int) -> Quantity | None:
    """Return the number at a position of a tidied text; None if there is none."""
    number = NUMBER.match(text, position)
    return _quantity(number) if number else None


def han_numeral(text: str) -> Quantity | None:
    """Return the number in Chinese numerals at the beginning of a text, such as 三百二十."""
    numeral = _HAN.match(text)
    value = _han_value(numeral[0]) if numeral else None
    return Quantity(numeral[0], (Fraction(value),)) if numeral and value is not None else None


def same_number(answer: Quantity, gold: Quantity) -> bool:
    """Whether two numbers are equal; if only one has a percent sign, 50 % is 50 or 0.5."""
    values = _readings(answer, other=gold)
    return any(_same(value, right) for value in values for right in _readings(gold, other=answer))


def _readings(quantity: Quantity, *, other: Quantity) -> tuple[Fraction, ...]:
    if not quantity.percent or other.percent:
        return quantity.values
    return quantity.values + tuple(value / 100 for value in quantity.values)


def _same(value: Fraction, right: Fraction) -> bool:
    """Whether two values are equal: integers exactly, others up to a tolerance of 1e-6.

    The tolerance is relative, but absolute for values above 1 with finitely many decimals.
    """
    if value.denominator == right.denominator == 1:
        return value == right
    size = max(abs(right), _TOLERANCE)
    endless = not (_ends(value) and _ends(right))
    return abs(value - right) <= _TOLERANCE * (size if endless else min(size, Fraction(1)))


def _ends(value: Fraction) -> bool:
    """Whether a value has finitely many decimals."""
    return _POWER_OF_TEN % value.denominator == 0


def _quantity(number: re.Match[str]) -> Quantity | None:
    if number[0].isascii() and number[0].isdigit():  # most numbers; ten times faster
        return Quantity(number[0], (Fraction(int(number[0])),))
    try:
        values = _values(number)
    except (ZeroDivisionError, ValueError):
        return None
    factor = _ALL_SCALES.get((number["scale"] or number["joined"] or "").lower(), 1)
    factor = -factor if number["sign"] else factor
    text = number[0].strip()
    return Quantity(text, tuple(value * factor for value in values), bool(number["percent"]))


def _values(number: re.Match[str]) -> tuple[Fraction, ...]:
    if number["only"]:
        return (_vulgar(number["only"]),)
    if number["word"]:
        return (Fraction(_in_words(number["word"].lower())),)
    value = _with_exponent(number, Fraction(_decimal(number["digits"])))
    if number["over"]:
        value /= int(number["over"])
    if number["part"]:
        value += Fraction(int(number["part"]), int(number["whole"]))
    value += _vulgar(number["vulgar"]) if number["vulgar"] else 0
    return (value, value * 1000) if _MAYBE_THOUSANDS.fullmatch(number["digits"]) else (value,)


def _decimal(digits: str) -> str:
    """Return digits with a decimal point and without separators of thousands."""
    digits = re.sub(r"[ '_]", "", digits)
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma > point >= 0:
        return digits.replace(".", "").replace(",", ".")
    if comma >= 0:
        whole = point >= 0 or _GROUPS_OF_THREE.fullmatch(digits)
        return digits.replace(",", "" if whole else ".")
    return digits.replace(".", "") if digits.count(".") > 1 else digits


def _with_exponent(number: re.Match[str], value: Fraction) -> Fraction:
    power, raised = int(number["power"] or 0), number["raised"]
    if abs(power) > _MAX_EXPONENT or (raised and value > _MAX_BASE):
        raise ValueError(number[0])
    value *= Fraction(10) ** power
    return value ** int(raised) if raised else value


def _in_words(words: str) -> int:
    total = current = 0
    for word in re.findall("[a-z]+", words):
        if word == "hundred":
            current *= 100
        elif word in _SCALES:
            total, current = total + current * _SCALES[word], 0
        elif word != "and":
            current += _WORDS[word]
    return total + current


def _han_value(numeral: str) -> int | None:
    """Return the value; None if digits follow one another, as in a year."""
    total = section = 0
    digit: int | None = None
    for character in numeral:
        if character in _HAN_DIGITS:
            if digit:
                return None
            digit = _HAN_DIGITS[character]
        elif character in _HAN_TENS:
            section, digit = section + (1 if digit is None else digit) * _HAN_TENS[character], None
        else:
            total += (section + (digit or 0)) * _HAN_SCALES[character]
            section, digit = 0, None
    return total + section + (digit or 0)


def _vulgar(character: str) -> Fraction:
    return Fraction(numeric(character)).limit_denominator(16)


_ASIDE = re.compile(
    r"\(|\b(?:because|since|as|which|over|in|for|per|after|out of|of|every|within|during)\b|[;\n]",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|has|have|had|costs?|takes?|gets?|makes?|leaves|total"
    r"|es|son|tiene|est|sont|ist|sind|hat|beträgt|равно|ni|è|é)\b|[=≈])"
    r"(?:\s*(?:about|approximately|exactly|only|just|now|left with))?[\s*:\\(]*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_MAX_WORDS = 4
_LAST_LATIN = 0x24F


class NumberReader:
    """Reader of the answers to a question whose answer is a number."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = [self._gold(text) for text in (gold, *also_right)]

    def read_claim(self, phrase: str) -> list[Quantity]:
        """Return the number in a phrase; several if it is ambiguous."""
        numbers = _distinct(find_quantities(phrase))
        if len(numbers) > 1 and "=" in phrase:
            numbers = _distinct(find_quantities(phrase[phrase.rfind("=") + 1 :]))
        if len(numbers) > 1:
            head = first_sentence(phrase)
            aside = _ASIDE.search(head)
            numbers = (
                _distinct(find_quantities(head[: aside.start()] if aside else head)) or numbers
            )
        if not numbers and (numeral := han_numeral(phrase.lstrip(" *_`"))):
            return [numeral]
        return numbers

    def read_bare(self, text: str) -> list[Quantity]:
        """Return the number, if the text is only a number and a unit."""
        if len(text) > MAX_ANSWER_CHARS or "\n" in text or len(text.split()) > _MAX_WORDS:
            return []
        bare = tidy(text).lstrip(" *_`(~≈$\\[{").removeprefix("text{").lstrip()
        numbers = _distinct(find_quantities(bare)) if NUMBER.match(bare) else []
        return numbers if len(numbers) == 1 else []

    def is_complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Return False: the number may be truncated."""
        return False

    def read_statement(self, text: str) -> list[Quantity]:
        """Return the numbers that a text states; the most explicit statement counts."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, answer: Quantity, phrase: str, *, strict: bool) -> Grade:  # noqa: ARG002
        """Grade an answer."""
        right = any(same_number(answer, gold) for gold in self._right)
        return grade_answer(answer.text, right=right, strict=strict)

    def _gold(self, text: str) -> Quantity:
        numbers = self.read_claim(simplify(text))
        if len(numbers) != 1:
            raise FieldError(
                f"the right answer {text[:60]!r} is not a single number",
                field="gold",
                hint="use a number such as 12, -3.5, 1,000, 3/4 or 1e6, or the kind 'text'.",
            )
        return numbers[0]._replace(values=numbers[0].values[:1])

    def _ways(self, text: str) -> Iterator[list[Quantity]]:
        final = last_line(text)
        yield self._read_claims(final)
        yield self._read_claims(text)
        yield self.read_bare(final)
        yield self._after_verb(tidy(final[-MAX_ANSWER_CHARS:]))
        yield _distinct(number for bold in _BOLD.findall(final) for number in self.read_bare(bold))
        yield self._only_one(final)

    def _read_claims(self, text: str) -> list[Quantity]:
        return _distinct(
            number
            for claim in find_spoken_claims(text)
            for number in self.read_claim(first_sentence(claim))
        )

    def _after_verb(self, line: str) -> list[Quantity]:
        for end in reversed([verb.end() for verb in _VERB.finditer(line)]):
            if NUMBER.match(line, end):
                quantity = quantity_at(line, end)
                return [quantity] if quantity else []
        return []

    def _only_one(self, line: str) -> list[Quantity]:
        """Return the only number of a line in a script whose verbs are not in the patterns."""
        if not any(char.isalpha() and ord(char) > _LAST_LATIN for char in line):
            return []
        numbers = _distinct(find_quantities(line))
        return numbers if len(numbers) == 1 else []


def _distinct(numbers: Iterable[Quantity]) -> list[Quantity]:
    return list({(quantity.values, quantity.percent): quantity for quantity in numbers}.values())
