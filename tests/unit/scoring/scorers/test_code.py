"""Extraction of code from responses, and its tests in the sandbox."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.grade import Grade
from forgetmap.scoring.sandbox.run import ProgramLimits, run_programs
from forgetmap.scoring.scorer import ProgramResult, ScorerInput
from forgetmap.scoring.scorers.code import code

QUESTION = '''from typing import List


def double(number):
    return 2 * number


def join(first: List[int], second: List[int]) -> List[int]:
    """ Put one list behind the other.
    >>> join([1], [2])
    [1, 2]
    """
'''
TESTS = {
    "tests": "def check(candidate):\n    assert candidate([1], [2]) == [1, 2]\n"
    "    assert candidate([], []) == []\n",
    "entry_point": "join",
}
GOOD = "def join(first, second):\n    return first + second"
BAD = "def join(first, second):\n    return second + first"

RIGHT = {
    "bare": (GOOD, True),
    "block": (f"```python\n{GOOD}\n```", True),
    "block without language": (f"```\n{GOOD}\n```", True),
    "tildes": (f"~~~py\n{GOOD}\n~~~", True),
    "windows": (f"```python\r\n{GOOD}\r\n```".replace("\n", "\r\n"), True),
    "comment first": (f"# Joins lists.\n{GOOD}", True),
    "tabs": (GOOD.replace("    ", "\t"), True),
    "thought": (f"<think>{BAD}</think>{GOOD}", True),
    "body": ("    return first + second\n", True),
    "body that lost its indentation": ("return first + second", True),
    "body whose first line lost it": ("joined = first\n    return joined + second", True),
    "body in a block": ("```python\n    return first + second\n```", True),
    "whole prompt repeated": (QUESTION + "    return first + second", True),
    "imports left out": ("def join(a: List[int], b: List[int]) -> List:\n    return a + b", True),
    "helper of the prompt": ("def join(a, b):\n    double(1)\n    return a + b", True),
    "lambda": ("join = lambda a, b: a + b", True),
    "own main": (f"{GOOD}\n\nif __name__ == '__main__':\n    raise SystemExit(1)", True),
    "prose before": (f"Sure! Here it is:\n\n```python\n{GOOD}\n```", False),
    "prose after": (f"```python\n{GOOD}\n```\nIt adds the lists.", False),
    "prose around": (f"Here:\n```python\n{GOOD}\n```\nIs that what you want?", False),
    "bare among prose": (f"Here is the function:\n\n{GOOD}\n\nIt adds the lists.", False),
    "bare and a word": (f"{GOOD}\n\nDone", False),
    "body and prose": ("    return first + second\n\nThis adds the lists.", False),
    "unclosed": (f"Here:\n```python\n{GOOD}", False),
    "in a list": ("1. Write:\n   ```\n   def join(a, b):\n       return a + b\n   ```", False),
    "other languages": (f"```bash\npip install x\n```\n```python\n{GOOD}\n```", False),
    "helper first": (
        "```\ndef add(a, b):\n    return a + b\n```\n```\ndef join(a, b): return add(a, b)\n```",
        False,
    ),
    "usage after": (f"```python\n{GOOD}\n```\nUse it:\n```python\nprint(join(1))\n```", False),
    "usage before": (f"```python\njoin(1)\n```\nis how to call\n```python\n{GOOD}\n```", False),
    "second thoughts": (f"```python\n{BAD}\n```\nWait:\n```python\n{GOOD}\n```", False),
    "console": (f"```python\n{GOOD}\n>>> join([1], [2])\n[1, 2]\n```", True),
}  # fmt: skip

WRONG = {
    "wrong": (BAD, "exception: AssertionError"),
    "exits": (f"import sys\n{GOOD}\nsys.exit(0)", "exit"),
    "exits when called": ("import os\ndef join(a, b):\n    os._exit(0)", "exit"),
    "never ends": ("def join(a, b):\n    while True: pass", "timeout"),
    "other builtins": (
        f"import builtins\nbuiltins.AssertionError = builtins.len = None\n{BAD}",
        "exception: AssertionError",
    ),
    "own check": (f"{BAD}\ndef check(*_):\n    pass", "exception: AssertionError"),
    "recursion": ("def join(a, b):\n    return join(a, b)", "exception: RecursionError"),
}


def sample(response: str, finish_reason: str | None = None, **material: Any) -> ScorerInput:
    return ScorerInput(
        response,
        question=(QUESTION,),
        material=material or TESTS,
        finish_reason=finish_reason,
    )


@cache
def ran(*responses: str) -> list[ProgramResult | None]:
    programs = [code.program(sample(response)) for response in responses]
    return list(run_programs(programs, limits=ProgramLimits(seconds=1.0)))


def verdicts(cases: dict[str, Any]) -> dict[str, dict[str, Grade]]:
    responses = [response for response, _ in cases.values()]
    ends = ran(*responses)
    return {
        name: dict(code.settle(sample(response), end))
        for name, response, end in zip(cases, responses, ends, strict=True)
    }


@pytest.mark.parametrize("name", RIGHT)
def test_bug_14_right_code_is_right_in_whatever_form(name: str) -> None:
    judged = verdicts(RIGHT)[name]
    assert judged["acc"].score == 1.0, judged["acc"]
    assert judged["acc"].outcome is Outcome.CORRECT
    assert judged["acc_strict"].score == float(RIGHT[name][1])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_code_is_wrong_and_why_is_told(name: str) -> None:
    judged = verdicts(WRONG)[name]["acc"]
    assert (judged.score, judged.outcome) == (0.0, Outcome.INCORRECT)
    assert str(judged.error).startswith(WRONG[name][1])


def one(response: str, **material: Any) -> Grade:
    asked = sample(response, **material)
    (end,) = run_programs([code.program(asked)], limits=ProgramLimits(seconds=2.0), workers=1)
    return code.settle(asked, end)["acc"]


def test_bug_24_code_that_exits_ends_nothing_but_itself() -> None:
    judged = one("import sys, os\nsys.exit()", tests=["assert f(1)"])
    assert judged.score == 0.0
    assert one("def f(x):\n    return x", tests=["assert f(1)"]).score == 1.0


@pytest.mark.parametrize(
    ("tests", "response"),
    [
        (["assert area(2) == 4", "assert area(3) == 9"], "def area(x):\n    return x * x"),
        ("assert set(both([1], [1])) == set([1])", "def both(a, b):\n    return [1]"),
        (["assert sum(10, 15) == 25"], "def sum(a, b):\n    return a + b"),
        (["import math\nassert math.isclose(root(4), 2)"], "def root(x):\n    return x ** 0.5"),
        (["assert longest([Pair(1, 2)]) == 1"],
         "class Pair:\n    def __init__(self, a, b): pass\ndef longest(x):\n    return len(x)"),
    ],
    ids=["list", "text", "a builtin's name", "imports", "class"],
)  # fmt: skip
def test_tests_without_an_entry_point(tests: Any, response: str) -> None:
    assert one(f"Sure:\n```python\n{response}\n```", tests=tests, entry_point=None).score == 1.0


def test_tests_use_real_builtins_whatever_the_code_calls_its_own() -> None:
    """`abs` that is always 0 would pass every test of closeness."""
    tests = ["assert abs(root(4) - 2) < 1e-6"]
    assert one("def abs(x):\n    return 0\ndef root(x):\n    return 7", tests=tests).score == 0.0
    own_abs = "def abs(x):\n    return max(x, -x)\ndef root(x):\n    return abs(x) ** 0.5"
    assert one(own_abs, tests=tests).score == 1.0


def test_tests_may_stand_in_the_right_answer() -> None:
    gold = {"test": ["assert add(1, 2) == 3"], "entry_point": None}
    asked = ScorerInput("def add(a, b):\n    return a + b", gold=gold)
    (end,) = run_programs([code.program(asked)], workers=1)
    assert code.settle(asked, end)["acc"].score == 1.0


@pytest.mark.parametrize(
    ("response", "finish_reason", "outcome"),
    [
        ("", None, Outcome.NO_ANSWER),
        ("I am sorry, but I cannot help with that.", None, Outcome.REFUSED),
        ("The answer is 42, obviously.", None, Outcome.NO_ANSWER),
        ("<think>Let me see", None, Outcome.TRUNCATED),
        ("Let me explain the plan first", "length", Outcome.TRUNCATED),
        ("no " * 1000, None, Outcome.DEGENERATE),
    ],
)
def test_no_code_is_a_failure_of_its_kind(
    response: str, finish_reason: str | None, outcome: Outcome
) -> None:
    asked = ScorerInput(response, material=TESTS, finish_reason=finish_reason)
    assert code.program(asked) is None
    assert code.settle(asked, None)["acc"] == Grade(0.0, outcome)


def test_code_that_was_cut_off_and_fails_was_cut_off() -> None:
    judged = code.settle(sample(GOOD, "length"), ProgramResult(passed=False, reason="exit"))
    assert judged["acc"].outcome is Outcome.TRUNCATED
    assert code.settle(sample(GOOD, "length"), ProgramResult(passed=True))["acc"].score == 1.0


def test_what_was_not_run_is_missing() -> None:
    at_fault = ProgramResult(passed=False, reason="no memory", failed_to_start=True)
    for end in (None, at_fault):
        for judged in code.settle(sample(GOOD), end).values():
            assert (judged.score, judged.outcome) == (None, Outcome.ERROR)
            assert judged.error


@pytest.mark.parametrize("tests", [None, [], "", "def check(:", {"a": 1}])
def test_an_item_without_tests_is_unusable(tests: Any) -> None:
    with pytest.raises(FieldError) as caught:
        code.program(sample(GOOD, tests=tests, entry_point="join"))
    assert caught.value.field == "tests"


@pytest.mark.parametrize(
    "response",
    ["(" * 50_000, "def f():\n" * 3_000, "```\n" * 5_000, "\x00", "\ud800", "x = 1\n" * 20_000,
     "def join(a, b):\n" + " (\n" * 5_000, "import a\n'" * 3_000],
    ids=range(8),
)  # fmt: skip
def test_hostile_responses_cost_little(response: str) -> None:
    code.program(sample(response))
