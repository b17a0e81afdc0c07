"""Generated releases that mislead other gates, with known truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from check_verdict import bundle_row
from forgetmap.gate import run_gate
from gate_traps import Trap, judge_traps, main, make_traps, write_release

ITEMS, OPTIONS = 3_000, 10
LETTERS = "ABCDEFGHIJ"


def outputs(known: Any, seed: int) -> list[dict[str, Any]]:
    """What MMLU-Pro's scripts write of a model that guesses where it does not know."""
    random = np.random.default_rng(seed)
    gold = np.random.default_rng(7).integers(0, OPTIONS, ITEMS)
    chosen = np.where(known, gold, random.integers(0, OPTIONS, ITEMS))
    return [
        {
            "question_id": number,
            "question": f"What is the {number}th answer?",
            "options": [f"{letter}-{number}" for letter in LETTERS],
            "answer": LETTERS[gold[number]],
            "answer_index": int(gold[number]),
            "category": "law" if number % 2 else "maths",
            "pred": LETTERS[chosen[number]],
            "model_outputs": f"The answer is ({LETTERS[chosen[number]]}).",
        }
        for number in range(ITEMS)
    ]


def answers(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Answers of two models; the one after lost 8 % and gained 20 %."""
    draw = np.random.default_rng(1).random(ITEMS)
    before = outputs(draw < 0.6, seed)
    after = outputs((draw < 0.52) | (draw > 0.8), seed + 1)
    return before, after


@pytest.fixture(scope="module")
def pair() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One answer of each model to every item."""
    return answers(2)


@pytest.mark.parametrize("number", range(6))
def test_the_gate_is_right_about_every_trap(
    pair: tuple[list[dict[str, Any]], list[dict[str, Any]]], number: int, tmp_path: Path
) -> None:
    trap = list(make_traps(*pair))[number]
    ((_, status, headline, _),) = judge_traps(iter([trap]), tmp_path)
    assert status in trap.right, headline


def bundles(folder: Path, *pairs: Any) -> tuple[Path, Path]:
    """Write both models; each pair of outputs is a repeat."""
    before, after = (
        [
            {**bundle_row(place, row), "repeat": repeat}
            for repeat, pair in enumerate(pairs)
            for place, row in enumerate(pair[side])
        ]
        for side in (0, 1)
    )
    return write_release(Trap("", "", (), before, after), folder)


@pytest.mark.parametrize("accept", ["items", "net"])
def test_forgetting_under_a_larger_gain_fails_once_confirmed_or_repeated(
    pair: tuple[list[dict[str, Any]], list[dict[str, Any]]], tmp_path: Path, accept: Any
) -> None:
    once = bundles(tmp_path / "once", pair)
    again = bundles(tmp_path / "again", answers(4))
    confirmed = run_gate(*once, accept=accept, confirm=again)
    assert (confirmed.status, confirmed.checks[0].loss.carried_by) == ("FAIL", "confirmed")
    twice = bundles(tmp_path / "twice", pair, answers(4))
    repeated = run_gate(*twice, accept=accept)
    assert (repeated.status, repeated.checks[0].loss.carried_by) == ("FAIL", "repeats")


def test_a_wrong_decision_would_be_seen(
    pair: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for side, rows in zip(("before", "after"), pair, strict=True):
        (folder / f"{side}.json").write_text(json.dumps(rows), encoding="utf-8")
    truth = [{"name": "pair", "before": "before.json", "after": "after.json"}]
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    first = next(make_traps(*pair))
    wrong = Trap(first.name, first.truth, ("FAIL / FAIL",), first.before, first.after)
    monkeypatch.setattr("gate_traps.make_traps", lambda *_: iter([wrong]))
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    with pytest.raises(SystemExit) as stop:
        main([str(folder)], show=lines.append)
    assert stop.value.code == 1
    assert "PASS / PASS (WRONG)" in lines[0]
