"""Mathematical answers, compared by math-verify in separate processes.

The timeouts of math-verify use signals, which work only in the main thread and cannot interrupt a
huge power. A worker can be killed at any time and serves every thread. Two plain numbers are
compared here, without math-verify: equal ones are right, different integers wrong.
"""

from __future__ import annotations

import atexit
import os
import re
import unicodedata
from fractions import Fraction
from functools import cache, lru_cache, partial

from forgetmap._lazy import check_installed
from forgetmap._workers import WorkerPool, count_cores
from forgetmap.errors import TaskTimeoutError, WorkerError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import find_spoken_claims, first_sentence, last_line
from forgetmap.scoring.extract.numbers import NUMBER, quantity_at, tidy
from forgetmap.scoring.extract.wording import simplify, trim, with_powers
from forgetmap.scoring.grade import Grade, grade_answer, grade_failure, grade_missing


def _as_fraction(character: str) -> str:
    top, bottom = unicodedata.normalize("NFKC", character).split("\u2044")
    return f"\\frac{{{top}}}{{{bottom}}}"


_ANSWER_SECONDS = 5.0
MAX_WORKERS = 4
"""Each one loads sympy and its grammars, about 100 MB."""
_FORMULA = re.compile(r"\$\$?([^$\n]{1,500})\$\$?|\\\(([^\n]{1,500}?)\\\)|\\\[([^\n]{1,500}?)\\\]")
_JOINT = re.compile(r"\s*(?:,|;|,?\s*\b(?:and|or)\b)\s*", re.IGNORECASE)
_ROOT = re.compile(r"√\s?(?:\(([^()\n]{1,60})\)|(\d{1,30}|[a-z]))")
_SIGNS = str.maketrans(
    {fraction: _as_fraction(fraction) for fraction in "¼½¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
    | {"°": r"^\circ", "\u00d7": r"\times ", "÷": "/", "≤": r"\le ", "≥": r"\ge ", "∞": r"\infty "}
)
_MATHEMATICAL = re.compile(r"[\d=+*/^\\]|\bpi\b|^\W*[a-z]\W*$")
_COMMAND = re.compile(
    r"\\(?:text|textbf|mathrm|mbox|begin|end|operatorname)\s*\{[^}]*\}|\\[a-zA-Z]+"
    r"|sqrt|infty|sinh|cosh|tanh"
)
_WORD = re.compile("[A-Za-z]{4}")
_DECIMAL_COMMA = re.compile(r",(?!\d{3}(?!\d))")
_MAX_CHARS = 100


class MathsReader:
    """Reader of the answers to a question whose answer is mathematics."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = tuple(_in_latex(simplify(text)) for text in (gold, *also_right))

    def read_claim(self, phrase: str) -> list[str]:
        """Return the formula, if the phrase has one or is one."""
        phrase = _in_latex(phrase)
        if formulas := _formulas(phrase):
            return [formulas[-1]]
        bare = phrase.strip(" \t*_`").rstrip(".,;:!")
        prose = _prose(bare)
        if bare.isalpha():
            return [bare]
        bare = bare[:prose].strip() if prose is not None else bare
        return [bare] if _MATHEMATICAL.search(bare) else []

    def read_bare(self, text: str) -> list[str]:
        """Return the formula, if the text is only a formula."""
        short = "\n" not in text and len(text) <= _MAX_CHARS
        return self.read_claim(text) if short and _prose(text) is None else []

    def is_complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Return False: the formula may be truncated."""
        return False

    def read_statement(self, text: str) -> list[str]:
        """Return the formulas that a text states; the most explicit statement counts."""
        final = last_line(text)
        for passage in (final, text):
            formulas = [
                formula
                for claim in find_spoken_claims(passage)
                for formula in self.read_claim(first_sentence(claim))
            ]
            if formulas:
                return list(dict.fromkeys(formulas))
        return _formulas(final)[-1:] or self.read_bare(final)

    def grade(self, answer: str, phrase: str, *, strict: bool) -> Grade:  # noqa: ARG002
        """Grade an answer; the score is missing if comparing it fails or takes too long."""
        if _as_written(answer) in map(_as_written, self._right):
            return grade_answer(answer, right=True, strict=strict)
        verdict = _by_value(answer, self._right) or _by_math_verify(answer, self._right)
        if verdict == "unreadable":
            return grade_failure(Outcome.NO_ANSWER)
        if verdict not in {"right", "wrong"}:
            return grade_missing(verdict, answer, strict=strict)
        return grade_answer(answer, right=verdict == "right", strict=strict)


class Verifier:
    """math-verify in separate processes, started when needed, replaced if one hangs."""

    def __init__(self, seconds: float = _ANSWER_SECONDS) -> None:
        self._seconds = seconds
        # The first comparison loads grammars, which takes seconds.
        self._pool = WorkerPool(
            min(count_cores(), MAX_WORKERS), prepare=partial(_compare, r"\frac{1}{2}", ("0.5",))
        )

    def compare(self, answer: str, right: tuple[str, ...]) -> str:
        """Return `right`, `wrong`, `unreadable`, or a sentence why the result is unknown."""
        try:
            return self._pool.call(_compare, answer, right, seconds=self._seconds)
        except TaskTimeoutError:
            return f"math-verify did not decide within {self._seconds:g} s"
        except WorkerError:
            return "math-verify ended without a result"

    def close(self) -> None:
        """End the processes."""
        self._pool.close()


def _compare(answer: str, right: tuple[str, ...]) -> str:
    """Compare in a worker; see `Verifier.compare`."""
    from math_verify import verify  # type: ignore[import-untyped]  # slow, and an extra

    try:
        expected = [_parse(text) for text in right]
        if not all(expected):
            return "math-verify cannot read the right answer"
        try:
            parsed = _parse(answer)
        except Exception:  # noqa: BLE001  # whatever a model writes must not end the worker
            return "unreadable"
        if not parsed:
            return "unreadable"
        same = any(verify(formulas, parsed, timeout_seconds=0) for formulas in expected)
    except Exception as error:  # noqa: BLE001  # same; the caller records the item as missing
        return f"math-verify failed: {type(error).__name__}"
    return "right" if same else "wrong"


def _parse(text: str) -> list[object]:
    """Parse a formula with math-verify; not as an expression, which sympy would evaluate."""
    from math_verify import LatexExtractionConfig, parse

    latex = f"${text.strip().strip('$')}$"
    return list(parse(latex, [LatexExtractionConfig()], parsing_timeout=0, raise_on_error=True))


@cache
def _verifier(process: int) -> Verifier:  # noqa: ARG001  # a forked process needs its own
    check_installed("math_verify", "Grading answers of kind 'maths'", extra="run")
    verifier = Verifier()
    atexit.register(verifier.close)
    return verifier


def _by_value(answer: str, right: tuple[str, ...]) -> str | None:
    """Return `right` or `wrong` if all are plain numbers and the result is certain; else None."""
    value = _plain_number(answer)
    values = [_plain_number(number) for number in right]
    if value is None or None in values:
        return None
    if value in values:
        return "right"
    whole = all(number is not None and number.denominator == 1 for number in (value, *values))
    return "wrong" if whole else None


def _plain_number(text: str) -> Fraction | None:
    """Return the value of a text that is one number; None otherwise, as for `1,5`, maybe a list."""
    plain_text = tidy(text.strip().strip("$")).strip().rstrip(".")
    if (
        len(plain_text) > _MAX_CHARS
        or not NUMBER.fullmatch(plain_text)
        or _DECIMAL_COMMA.search(plain_text)
    ):
        return None
    quantity = quantity_at(plain_text, 0)
    return quantity.values[0] if quantity and not quantity.percent else None


@lru_cache(maxsize=65536)
def _by_math_verify(answer: str, right: tuple[str, ...]) -> str:
    return _verifier(os.getpid()).compare(answer, right)


def _formulas(text: str) -> list[str]:
    """Return the formulas in order; those joined only by a comma, `and` or `or` are one."""
    formulas: list[str] = []
    end = -1
    for match in _FORMULA.finditer(text):
        formula = (match[1] or match[2] or match[3]).strip()
        if formulas and _JOINT.fullmatch(text, end, match.start()):
            formulas[-1] += f", {formula}"
        elif formula:
            formulas.append(formula)
        end = match.end()
    return formulas


def _in_latex(text: str) -> str:
    """Convert superscript digits, roots, vulgar fractions and symbols to LaTeX."""
    if text.isascii():
        return text
    text = _ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", text)
    return with_powers(text.translate(_SIGNS))


def _prose(text: str) -> int | None:
    """Return the offset of the first word that is not mathematics; None if there is none."""
    hidden = _COMMAND.sub(lambda command: " " * len(command[0]), text)
    words = _WORD.search(hidden)
    return words.start() if words else None


def _as_written(formula: str) -> str:
    """Return a formula for comparison: a word in lower case, anything else without blanks."""
    words = trim(formula)
    return words.casefold() if words.isalpha() else "".join(formula.strip("$").split())
