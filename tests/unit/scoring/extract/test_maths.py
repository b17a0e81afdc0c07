from __future__ import annotations

import sys

import pytest

from forgetmap.errors import UsageError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.extract import maths
from forgetmap.scoring.grading import grade_response

RIGHT = [
    (r"Answer: $\frac{1}{2}$", r"\frac{1}{2}", True),
    (r"Answer: 1/2", r"\frac{1}{2}", True),
    (r"Answer: 0.5", r"\frac{1}{2}", True),
    (r"So \boxed{\frac12}.", "0.5", True),
    (r"\boxed{2\sqrt{2}}", r"\sqrt{8}", True),
    (r"Answer: $1+x^2$", "x^2+1", True),
    (r"Answer: x^2 + 2x + 1", "(x+1)^2", True),
    (r"Answer: $x = 3$", "3", True),
    (r"Answer: 12 meters", "12", True),
    (r"\boxed{12\text{ cm}}", "12", True),
    (r"\boxed{\text{Evelyn}}", r"\text{Evelyn}", True),
    (r"Answer: Evelyn", r"\text{Evelyn}", True),
    (r"Answer: $\{1,2\}$", r"\{2,1\}", True),
    ("$7$", "7", True),
    ("Answer: 10²", "100", True),
    (r"The answer is $\frac{2}{4}$.", r"\frac{1}{2}", False),
    ("We add.\nThis leaves us with the value $7$.", "7", False),
]


@pytest.mark.parametrize(("response", "gold", "strict"), RIGHT)
def test_right(response: str, gold: str, strict: bool) -> None:
    judged = grade_response(response, gold=gold, kind="maths")
    assert (judged.outcome, judged.strict) == (Outcome.CORRECT, strict)


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        (r"Answer: $\frac{1}{3}$", r"\frac{1}{2}"),
        (r"\boxed{[1,2]}", "(1,2)"),
        (r"\boxed{x+1}", "x-1"),
    ],
)
def test_wrong(response: str, gold: str) -> None:
    assert grade_response(response, gold=gold, kind="maths").outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "response", ["", "Answer: it depends on the triangle", "We cannot tell.", r"\boxed{}"]
)
def test_none(response: str) -> None:
    assert grade_response(response, gold="7", kind="maths").outcome is Outcome.NO_ANSWER


def test_further_right_answers_count() -> None:
    judged = grade_response("Answer: $8$", gold="7", kind="maths", also_right=("8",))
    assert judged.score == 1.0


def test_a_gold_nobody_can_read_is_missing_not_wrong() -> None:
    judged = grade_response("Answer: $7$", gold="", kind="maths")
    assert (judged.score, judged.outcome) == (None, Outcome.ERROR)


def test_without_math_verify_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    maths._verifier.cache_clear()
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(UsageError, match=r"forgetmap\[run\]"):
        grade_response("Answer: $x + 8$", gold="x + 7", kind="maths")
