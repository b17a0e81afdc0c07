"""The same answers, written by two harnesses, give the same verdict and numbers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from check_verdict import LETTERS, check_all, differences, main, read_outputs
from forgetmap.comparison import ComparisonResult


def outputs(rng: random.Random, items: int, *, lost: float, unread: float) -> list[list[Any]]:
    """Answers of two models: half is known, a share of it lost, some answers cannot be read."""
    sides: list[list[Any]] = [[], []]
    for number in range(items):
        k = rng.choice((4, 7, 10))
        gold = rng.randrange(k)
        knows = rng.random() < 0.5
        keeps = knows and rng.random() >= lost
        row = {
            "question_id": number,
            "question": f"Which town lies on river {number}?",
            "options": [f"town {number}-{index}" for index in range(k)],
            "answer": LETTERS[gold],
            "answer_index": gold,
            "category": ("north", "south")[number % 2],
        }
        for side, known in zip(sides, (knows, keeps), strict=True):
            choice = LETTERS[gold if known else rng.randrange(k)]
            pred = None if rng.random() < unread else choice
            side.append({**row, "pred": pred, "model_outputs": f"The answer is ({choice})."})
    return sides


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    sides = outputs(random.Random(5), 600, lost=0.2, unread=0.05)
    names = ("model_outputs_base_5shots.json", "model_outputs_tuned_5shots.json")
    for name, rows in zip(names, sides, strict=True):
        (tmp_path / name).write_text(json.dumps(rows))
    truth = [{"name": "towns", "before": names[0], "after": names[1]}]
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    return tmp_path


def test_log_and_bundle_agree(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_all(pair) == 0, capsys.readouterr().out
    before, after = (pair / f"model_outputs_{name}_5shots.json" for name in ("base", "tuned"))
    result: ComparisonResult = fm.compare(before, after).result
    assert result.total.estimators["matched"].forgetting.value is not None
    assert result.total.verdict == "lost"
    assert result.total.reasons["no_answer"]


def test_differences_are_named() -> None:
    assert list(differences({"a": {"b": 1}}, {"a": {"b": 2}})) == ["a.b: 1 as log, 2 as bundle"]


def test_without_such_a_pair_the_check_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "truth.json").write_text("[]")
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path)])
    assert stop.value.code == 1
    assert "no pair of MMLU-Pro outputs" in capsys.readouterr().out
    assert read_outputs(tmp_path / "truth.json") == []
