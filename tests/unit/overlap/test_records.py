from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from command_line import write
from forgetmap.errors import ColumnError, FieldError
from forgetmap.overlap.records import overlap_from_records

BEFORE = [0.9, 0.5, 0.2, 0.99, 0.6, 0.7]
AFTER = [0.8, 0.1, 0.3, 0.99, 0.05, 0.7]


def run(path: Path, chances: list[float | None], order: list[int] | None = None) -> Path:
    rows: list[dict[str, Any]] = [
        {
            "task": "t", "item": f"i{place}", "score": 1.0, "question": f"q{place}",
            "logprob_gold": None if chance is None else math.log(chance),
        }
        for place, chance in enumerate(chances)
    ]  # fmt: skip
    return write(path, [rows[place] for place in order or range(len(rows))])


def test_bounds_are_those_of_one_event(tmp_path: Path) -> None:
    before = run(tmp_path / "b.jsonl", [*BEFORE])
    after = run(tmp_path / "a.jsonl", [*AFTER], order=[3, 1, 0, 5, 4, 2])
    found = overlap_from_records(before, after).total
    pairs = list(zip(BEFORE, AFTER, strict=True))
    kl = [p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) for p, q in pairs]
    shared = [math.sqrt(p * q) + math.sqrt((1 - p) * (1 - q)) for p, q in pairs]
    assert found.items == found.clusters == 6
    assert found.forward_kl_at_least.value == pytest.approx(sum(kl) / 6)
    assert found.overlap_at_most.value == pytest.approx(sum(shared) / 6)
    assert found.change.value == pytest.approx(sum(math.log(q / p) for p, q in pairs) / 6)
    assert (found.change.low or 0) < (found.change.value or 0) < (found.change.high or 0)


def test_items_without_log_probability_are_counted_and_left_out(tmp_path: Path) -> None:
    before = run(tmp_path / "b.jsonl", [*BEFORE])
    after = run(tmp_path / "a.jsonl", [None, *AFTER[1:]])
    found = overlap_from_records(before, after)
    assert (found.total.items, found.without) == (5, 1)


def test_runs_without_log_probabilities_are_refused(tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "1", "score": 1.0}]
    both = [write(tmp_path / name, rows) for name in ("b.jsonl", "a.jsonl")]
    with pytest.raises(ColumnError, match="log-probability of its right answer"):
        overlap_from_records(*both)


def test_a_probability_above_one_is_refused(tmp_path: Path) -> None:
    before = run(tmp_path / "b.jsonl", [*BEFORE])
    after = run(tmp_path / "a.jsonl", [1.5, *AFTER[1:]])
    with pytest.raises(FieldError, match=r"'i0' is 0\.405") as caught:
        overlap_from_records(before, after)
    assert "a.jsonl" in str(caught.value)
