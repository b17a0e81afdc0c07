"""Comparison of formulas in a separate process: timeouts, crashes, threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from forgetmap.records.outcome import Outcome
from forgetmap.scoring.extract import maths
from forgetmap.scoring.grading import grade_response


def test_it_works_in_threads() -> None:
    responses = [f"Answer: $\\frac{{{2 * n}}}{{4}}$" for n in range(12)]
    with ThreadPoolExecutor(4) as threads:
        judged = list(
            threads.map(lambda each: grade_response(each, gold="1.5", kind="maths"), responses)
        )
    assert [each.score for each in judged] == [float(n == 3) for n in range(12)]


@pytest.fixture
def verifier() -> Iterator[maths.Verifier]:
    found = maths.Verifier(seconds=60.0)
    yield found
    found.close()


def test_a_comparison_without_end_is_missing_and_the_next_one_works(
    verifier: maths.Verifier,
) -> None:
    assert verifier.compare("2", ("2.0",)) == "right"
    verifier._seconds = 1
    assert "within 1 s" in verifier.compare("9^{9^{9^{9}}}", ("7",))
    verifier._seconds = 60
    assert verifier.compare("3", ("2.0",)) == "wrong"


def test_a_helper_that_dies_is_replaced(verifier: maths.Verifier) -> None:
    assert verifier.compare("2", ("2.0",)) == "right"
    (worker,) = verifier._pool._workers
    worker._process.kill()
    worker._process.wait()
    assert verifier.compare("2", ("2.0",)) == "right"


def test_an_undecided_answer_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths._verifier(os.getpid()), "_seconds", 1.0)
    judged = grade_response("Answer: $9^{9^{9^{9}}}$", gold="7", kind="maths")
    assert (judged.score, judged.outcome) == (None, Outcome.ERROR)
    assert "did not decide" in (judged.error or "")
