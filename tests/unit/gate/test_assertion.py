from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import SkipTest

import pytest

from forgetmap.errors import UsageError
from forgetmap.gate import assert_no_forgetting, take_results
from forgetmap.gate.assertion import explain
from forgetmap.records import Run
from gate_results import make_check, make_result
from run_folders import results, run_of

RIGHT = run_of(results([1.0] * 900 + [0.0] * 100))
AGAIN = run_of(results([1.0] * 900 + [0.0] * 100))
WORSE = run_of(results([1.0] * 700 + [0.0] * 300))
FEW = run_of(results([1.0] * 10))
FEW_AGAIN = run_of(results([1.0] * 10))


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    take_results()


def test_it_returns_the_result_of_a_gate_that_passes() -> None:
    result = assert_no_forgetting(RIGHT, AGAIN)
    assert result.status == "PASS"
    assert (result.forgotten, result.gained, result.forgotten_items) == (0, 0, [])
    assert take_results() == [result]
    assert take_results() == []


def test_it_says_what_was_lost() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_no_forgetting(RIGHT, WORSE)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("FAIL: loss: ")
    assert lines[1] == "  200 forgotten, 0 gained of 1,000."
    assert lines[2].startswith("  loss: FAIL: ")
    assert "margin 2%, 200 forgotten, 0 gained, 1,000 items" in lines[3]
    assert lines[-1] == "  forgotten, for example: t/i700, t/i701, t/i702, t/i703, t/i704"
    assert take_results()[0].status == "FAIL"


def test_the_margin_is_what_is_tolerated() -> None:
    assert assert_no_forgetting(RIGHT, WORSE, margin=0.5).checks[0].margin == 0.5


@pytest.mark.parametrize(("word", "error"), [("fail", AssertionError), ("skip", SkipTest)])
def test_what_is_open_fails_or_is_skipped(word: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="INCONCLUSIVE"):
        assert_no_forgetting(FEW, FEW_AGAIN, margin=0.001, inconclusive=word)  # type: ignore[arg-type]


def test_it_says_what_would_decide() -> None:
    text = explain(make_result(make_check("INCONCLUSIVE"), status="INCONCLUSIVE"))
    assert "to decide: confirm the 31 flips: 62 answers" in text
    assert "(command: confirm)" in text


def test_what_passes_can_be_chosen() -> None:
    other = run_of(results([1.0] * 850 + [0.0] * 50 + [1.0] * 60 + [0.0] * 40))
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_no_forgetting(RIGHT, other)
    assert assert_no_forgetting(RIGHT, other, accept="net").checks[0].verdict == "no_net_loss"


def test_a_loss_is_never_skipped() -> None:
    with pytest.raises(AssertionError):
        assert_no_forgetting(RIGHT, WORSE, inconclusive="skip")


def test_a_policy_and_its_options_are_used(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('required_tasks = ["gsm8k"]\n[[rule]]\nmargin = 0.1\n', encoding="utf-8")
    with pytest.raises(AssertionError, match="required task is missing: gsm8k"):
        assert_no_forgetting(RIGHT, AGAIN, policy=policy, look=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.1, "policy": "policy.toml"}, "cannot be combined"),
        ({"margin": 0}, "margin is 0"),
        ({"margin": 2.0}, "margin is 2"),
        ({"inconclusive": "pass"}, "'pass'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        assert_no_forgetting(RIGHT, AGAIN, **options)  # type: ignore[arg-type]


def test_the_list_of_checks_is_cut() -> None:
    checks = [make_check("FAIL", rule=f"rule {number}") for number in range(25)]
    text = explain(make_result(*checks, make_check(), status="FAIL"))
    assert text.count("FAIL: the sentence") == 20
    assert text.endswith("and 5 more")


def test_only_so_many_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Run, **__: object) -> object:
        return make_result()

    monkeypatch.setattr("forgetmap.gate.decision.run_gate", run)
    for _ in range(1001):
        assert_no_forgetting(RIGHT, AGAIN)
    assert len(take_results()) == 1000
