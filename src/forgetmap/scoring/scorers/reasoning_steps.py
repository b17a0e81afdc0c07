"""Rules on reasoning: number of steps, and correctness of the arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise

from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import find_marked_claims
from forgetmap.scoring.extract.numbers import tidy
from forgetmap.scoring.extract.prose import line_sentences
from forgetmap.scoring.extract.thinking import without_thinking
from forgetmap.scoring.extract.wording import simplify, split_words
from forgetmap.scoring.grade import grade_count, grade_failure, grade_share
from forgetmap.scoring.scorer import COUNT, SHARE, Fields, Scale, ScorerInput

_STEP = re.compile(
    r"^[ \t>*_#-]*(?:(?:step|paso|étape|schritt|шаг|passo|bước)[ \t]*\d{1,3}\b[ \t*_]*[:.)-]?"
    r"|第?[一二三四五六七八九十\d]{1,3}步[::]?|ステップ\d{1,3}[::]?|\d{1,2}[.)](?=\s))",
    re.IGNORECASE | re.MULTILINE,
)
_CONNECTED = re.compile(
    r"\b(?:so|thus|hence|therefore|because|since|as|then|if|implies|means|follows|given|let|suppose"
    r"|assume|substitut\w+|simplif\w+|factor\w*|divid\w+|multipl\w+|add\w*|subtract\w*|solv\w+"
    r"|eliminat\w+|rule[sd]? out|option|choice|compar\w+|calculat\w+|comput\w+|consider\w*"
    r"|contradict\w*|conclud\w+|equals?|must|cannot)\b"
    r"|因为|所以|因此|由于|すると|よって|したがって|porque|entonces|donc|parce|also|weil|потому|значит",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"[=<>≤≥≈]|\\(?:frac|sqrt|le|ge|times|cdot)|\d\s?[-+*/\u00d7÷^]\s?\d|\$[^$\n]+\$"
)
_MIN_STEPS = 2


class ReasoningStepsScorer:
    """Scorer of the number of steps, the share that reason, and the share of right equations."""

    name = "reasoning_steps"
    version = 1
    fields: Mapping[str, Scale] = {"steps": COUNT, "step_validity": SHARE, "arithmetic": SHARE}

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; the answer line is not a step. Shares of nothing are absent."""
        visible, thought_out = without_thinking(sample.response)
        text = simplify(visible)
        parts = steps(text)
        if not parts:
            return {"steps": grade_failure(Outcome.NO_ANSWER if thought_out else Outcome.TRUNCATED)}
        reasoned = sum(bool(_FORMULA.search(step) or _CONNECTED.search(step)) for step in parts)
        values = {
            "steps": grade_count(len(parts)),
            "step_validity": grade_share(reasoned / len(parts)),
        }
        if checked := list(equations(text)):
            values["arithmetic"] = grade_share(sum(checked) / len(checked))
        return values


def steps(text: str) -> list[str]:
    """Return numbered steps if there are at least two, else sentences; without the answer."""
    body = _without_answer(text)
    starts = [step.start() for step in _STEP.finditer(body)]
    if len(starts) < _MIN_STEPS and not (starts and body[: starts[0]].strip() == ""):
        return [
            part
            for part in line_sentences(body)
            if _FORMULA.search(part) or len(split_words(part)) > 1
        ]
    ends = [*starts[1:], len(body)]
    return [body[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _without_answer(text: str) -> str:
    claims = find_marked_claims(text)
    if claims and text[: claims[-1].start].strip() and claims[-1].last:
        return text[: text.rfind("\n", 0, claims[-1].start + 1) + 1] or text[: claims[-1].start]
    return "" if claims and claims[-1].last else text


reasoning_steps = ReasoningStepsScorer()


_SPELLED = str.maketrans({"\u00d7": "*", "·": "*", "÷": "/", "\u2212": "-", "\u2013": "-"})
_LATEX = re.compile(r"\\(?:times|cdot)\b|\\div\b|\\left|\\right|\\[()\[\]]|\\text\{[^{}]*\}|\$")
_GROUP = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIDE = r"[\d(.-][\d .()+*/-]{0,200}"
_EQUATION = re.compile(rf"(?<![\w.^%=)]){_SIDE}(?:= *{_SIDE})+(?![\w^%=])")
_TOKEN = re.compile(r"\s*(?:(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})|([-+*/()]))")
_MAX_DEPTH = 20
_ROUNDING_ERROR = Fraction(1, 100)


class NoSumError(ValueError):
    """Not a sum of numbers."""


def equations(text: str) -> Iterator[bool]:
    """Yield whether each equation holds; only equations with a calculation are checked."""
    plain_text = _GROUP.sub("", _LATEX.sub(_operator, tidy(text).translate(_SPELLED)))
    for equation in _EQUATION.finditer(plain_text):
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
    """Whether values are equal up to 0.01, since results are often rounded."""
    return abs(left - right) < _ROUNDING_ERROR


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


def _sum(tokens: list[str], index: int, depth: int = 0) -> tuple[Fraction, int]:
    value, index = _product(tokens, index, depth)
    while index < len(tokens) and tokens[index] in "+-":
        other, after = _product(tokens, index + 1, depth)
        value, index = (value + other if tokens[index] == "+" else value - other), after
    return value, index


def _product(tokens: list[str], index: int, depth: int) -> tuple[Fraction, int]:
    value, index = _factor(tokens, index, depth)
    while index < len(tokens) and tokens[index] in "*/":
        other, after = _factor(tokens, index + 1, depth)
        value, index = (value * other if tokens[index] == "*" else value / other), after
    return value, index


def _factor(tokens: list[str], index: int, depth: int) -> tuple[Fraction, int]:
    if index >= len(tokens) or depth > _MAX_DEPTH:
        raise NoSumError
    head = tokens[index]
    if head in {"-", "+"}:
        value, after = _factor(tokens, index + 1, depth + 1)
        return (-value if head == "-" else value), after
    if head == "(":
        value, after = _sum(tokens, index + 1, depth + 1)
        if after >= len(tokens) or tokens[after] != ")":
            raise NoSumError
        return value, after + 1
    if head in "*/)":
        raise NoSumError
    return Fraction(head), index + 1
