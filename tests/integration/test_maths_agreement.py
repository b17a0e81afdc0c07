r"""The maths scorer compared with math-verify, which reads the whole response by its own rules.

Golds and answers are generated, so the right verdict is known. Every answer is written in every
form. Differences between the two are listed below by form and kind of answer, with the reason.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.answers import maths

FORMS = {
    "latex line": "We compute step by step.\nAnswer: ${}$",
    "boxed": "First we get 3, then more.\nSo the result is $\\boxed{{{}}}$.",
    "bare line": "Answer: {}",
    "brackets": "Answer: \\({}\\)",
    "spoken": "We compute. The final answer is ${}$.",
    "bold cue": "**Answer:** ${}$",
    "display": "Therefore\n\\[ \\boxed{{{}}} \\]",
}


class Case(NamedTuple):
    kind: str
    gold: str
    answer: str
    right: bool


def cases() -> Iterator[Case]:
    chance = random.Random(7)
    a, b, c = (chance.randint(2, 40) for _ in range(3))
    d = a + chance.randint(1, 5)
    yield from numbers(a, b, d)
    yield from formulas(a, b, c, d)


def numbers(a: int, b: int, d: int) -> Iterator[Case]:
    yield Case("fraction", f"\\frac{{{a}}}{{{b}}}", f"\\dfrac{{{2 * a}}}{{{2 * b}}}", True)
    yield Case("fraction", f"\\frac{{{a}}}{{{b}}}", f"{a}/{b}", True)
    yield Case("fraction", f"\\frac{{{a}}}{{{b}}}", f"\\frac{{{d}}}{{{b}}}", False)
    yield Case("decimal", f"{a}.25", f"\\frac{{{4 * a + 1}}}{{4}}", True)
    yield Case("decimal", f"{a}.25", f"{a}.35", False)
    yield Case("thousands", f"{a}{b:03d}", f"{a},{b:03d}", True)
    yield Case("thousands", f"{a}{b:03d}", f"{a},{b + 1:03d}", False)
    yield Case("negative", f"-{a}", f"-{a}.0", True)
    yield Case("negative", f"-{a}", f"{a}", False)
    yield Case("percent", f"{a}\\%", f"{a}\\%", True)
    yield Case("percent", f"{a}\\%", f"{a + b}\\%", False)
    yield Case("mixed number", f"\\frac{{{2 * a + 1}}}{{2}}", f"{a}\\frac{{1}}{{2}}", True)
    yield Case("root", f"{a}\\sqrt{{2}}", f"\\sqrt{{{2 * a * a}}}", True)
    yield Case("root", f"{a}\\sqrt{{2}}", f"{d}\\sqrt{{2}}", False)
    yield Case("pi", f"\\frac{{{a}\\pi}}{{4}}", f"{a}\\pi/4", True)
    yield Case("pi", f"\\frac{{{a}\\pi}}{{4}}", f"{d}\\pi/4", False)


def formulas(a: int, b: int, c: int, d: int) -> Iterator[Case]:
    yield Case("polynomial", f"x^2+{a}x+{b}", f"{b}+{a}x+x^2", True)
    yield Case("polynomial", f"x^2+{a}x+{b}", f"x^2+{a}x-{b}", False)
    yield Case("factored", f"(x+{a})(x+{b})", f"x^2+{a + b}x+{a * b}", True)
    yield Case("equation", f"{a}", f"x = {a}", True)
    yield Case("equation", f"{a}", f"x = {d}", False)
    yield Case("tuple", f"({a}, {b})", f"({a},{b})", True)
    yield Case("tuple", f"({a}, {b})", f"({d}, {b})", False)
    yield Case("set", f"\\{{{a}, {d}\\}}", f"\\{{{d}, {a}\\}}", True)
    yield Case("set", f"\\{{{a}, {d}\\}}", f"\\{{{a}, {d + 1}\\}}", False)
    yield Case("interval", f"[{a}, {d})", f"[{a},{d})", True)
    yield Case("interval", f"[{a}, {d})", f"({a}, {d}]", False)
    yield Case("unit", f"{a}", f"{a}\\text{{ cm}}", True)
    yield Case("unit", f"{a}", f"{d}\\text{{ cm}}", False)
    yield Case("degrees", f"{a}", f"{a}^\\circ", True)
    yield Case("power", f"{2**10 * a}", f"{a}\\cdot 2^{{10}}", True)
    yield Case("power", f"{2**10 * a}", f"{a}\\cdot 2^{{11}}", False)
    yield Case("complex", f"{a}+{b}i", f"{b}i+{a}", True)
    yield Case("complex", f"{a}+{b}i", f"{a}-{b}i", False)
    yield Case("scientific", f"{a}00000", f"{a}\\times 10^{{5}}", True)
    yield Case("inequality", f"x \\geq {a}", f"x \\ge {a}", True)
    yield Case("inequality", f"x \\geq {a}", f"x \\le {a}", False)
    matrix = "\\begin{{pmatrix}} {} \\\\ {} \\end{{pmatrix}}"
    yield Case("matrix", matrix.format(a, b), matrix.format(f"{2 * a}/2", b), True)
    yield Case("matrix", matrix.format(a, b), matrix.format(b, d + c), False)
    yield Case("word", "\\text{odd}", "\\text{odd}", True)
    yield Case("word", "\\text{odd}", "\\text{even}", False)


def by_math_verify(response: str, gold: str) -> bool:
    from math_verify import parse, verify  # type: ignore[import-untyped]

    wanted = parse(f"${gold}$", parsing_timeout=None)
    return bool(verify(wanted, parse(response, parsing_timeout=None), timeout_seconds=None))


@pytest.fixture(scope="module")
def compared() -> list[tuple[Case, str, bool, bool]]:
    found = []
    for case in cases():
        for form, pattern in FORMS.items():
            response = pattern.format(case.answer)
            ours = maths.score(ScorerInput(response, case.gold))["acc"].score == 1.0
            found.append((case, form, ours, by_math_verify(response, case.gold)))
    return found


def test_every_verdict_is_right(compared: list[tuple[Case, str, bool, bool]]) -> None:
    assert len(compared) == 287
    assert [(case, form) for case, form, ours, _ in compared if ours is not case.right] == []


def test_math_verify_differs_only_on_latex_without_marks_around_it(
    compared: list[tuple[Case, str, bool, bool]],
) -> None:
    differing = [(case, form) for case, form, ours, theirs in compared if ours is not theirs]
    assert {form for _, form in differing} == {"bare line"}
    assert all(case.right for case, _ in differing)
    assert len(differing) <= 20


@pytest.mark.parametrize(
    ("response", "gold", "ours", "theirs"),
    [
        ("Answer: 5\nWrong.\nAnswer: 6", "6", True, True),
        # The last box counts here; math-verify makes a set of both.
        ("\\boxed{5}. No: \\boxed{6}", "6", True, False),
        ("\\boxed{6}. No: \\boxed{5}", "6", False, False),
        ("Answer: $5$\nHe had $6$ before.", "5", True, True),
        # No answer is stated: math-verify takes the last number of any text.
        ("There were 6 of them, I believe, but I am not sure", "6", False, True),
        ("I will not discuss chapter 6.", "6", False, True),
        # Two different answers are none.
        ("The answer is $5$. The answer is $6$.", "6", False, True),
        # Digits of other scripts, words and signs that are not LaTeX.
        ("Answer: ١٢", "12", True, False),
        ("Answer: ¾", "\\frac{3}{4}", True, False),
        ("Answer: 3√2", "3\\sqrt{2}", True, False),
        ("Answer: 1 1/2", "1.5", True, False),
        # A comma is a decimal one to math-verify, and may part a list here; `number` reads both.
        ("Answer: 0,75", "0.75", False, True),
        # Both leave a point before three digits a decimal point.
        ("Answer: 1.200", "1200", False, False),
    ],
)
def test_where_the_two_part(response: str, gold: str, ours: bool, theirs: bool) -> None:
    assert (maths.score(ScorerInput(response, gold))["acc"].score == 1.0) is ours
    assert by_math_verify(response, gold) is theirs
