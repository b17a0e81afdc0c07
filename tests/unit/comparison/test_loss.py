"""The headline loss: its parts, and the effect of noise on its bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison import GroupResult
from forgetmap.errors import UsageError
from small_runs import table as scored


def table(states: np.ndarray[tuple[int], np.dtype[np.str_]], k: int | None) -> pl.DataFrame:
    """`1` right, `0` no answer, else the letter of a wrong option; gold is A."""
    right, none = states == "1", states == "0"
    choice = [None if gone else "A" if good else state for state, good, gone in zip(
        states, right, none, strict=True
    )]  # fmt: skip
    return pl.DataFrame(
        {
            "task": "t",
            "item": [str(number) for number in range(len(states))],
            "score": right.astype(float),
            "k": [k] * len(states),
            "choice": choice,
            "outcome": np.where(right, "correct", np.where(none, "no_answer", "incorrect")),
        },
        schema_overrides={"k": pl.Int32, "choice": pl.String},
    )


def total(before: str, after: str, k: int | None, noise_floor: float = 0.005) -> GroupResult:
    sides = [table(np.array(list(side)), k) for side in (before, after)]
    return fm.compare(sides[0], sides[1], noise_floor=noise_floor).result.total


BEFORE = "1" * 60 + "B" * 40
AFTER = "1" * 40 + "C" * 8 + "0" * 12 + "B" * 20 + "C" * 14 + "0" * 6


def test_parts_are_the_formulas_of_the_design() -> None:
    group = total(BEFORE, AFTER, 4)
    c, n = 4 / 3, 100
    assert group.headline.estimator == "matched"
    assert group.knowledge.value == pytest.approx(c * (8 - 14 / 2) / n)
    assert group.answering.value == pytest.approx((12 - 6 / 3) / n)
    assert group.headline.forgetting.value == pytest.approx(
        (group.knowledge.value or 0) + (group.answering.value or 0)
    )


def test_open_ended_items_have_no_luck_in_either_part() -> None:
    group = total(BEFORE, AFTER, None)
    assert group.knowledge.value == pytest.approx(0.08)
    assert group.answering.value == pytest.approx(0.12)
    assert group.headline.forgetting.value == pytest.approx(0.2)


def test_an_assumed_noise_floor_lowers_only_the_lower_limit() -> None:
    quiet, noisy = (total(BEFORE, AFTER, None, noise_floor=floor) for floor in (0.0, 0.03))
    assert noisy.headline.forgetting.high == quiet.headline.forgetting.high
    assert noisy.headline.forgetting.low == pytest.approx(
        (quiet.headline.forgetting.low or 0) - 0.03
    )
    assert noisy.forgetting == quiet.forgetting
    assert (noisy.noise_assumed, quiet.noise_assumed) == (0.03, 0.0)


def test_noise_of_any_size_is_bounded_by_losses_less_gains() -> None:
    group = total("1" * 50 + "B" * 50, "1" * 30 + "B" * 20 + "1" * 20 + "B" * 30, None)
    assert group.verdict == "lost"
    assert group.symmetric_noise.value == 0
    assert group.symmetric_noise.low is not None
    assert group.symmetric_noise.low < 0


def test_noise_is_not_measured_by_what_is_compared(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.csv" for name in ("before", "after")]
    for path, lost in zip(paths, (0, 60), strict=True):
        rows = [f"t,{n},{int(n >= lost)}" for n in range(300)]
        path.write_text("\n".join(["task,item,score", *rows]))
    for path in paths:
        with pytest.raises(UsageError) as caught:
            fm.compare(paths[0], paths[1], noise=path)
        assert "is one of the compared runs" in caught.value.message


def test_noise_of_the_model_after_is_taken_off_estimate_limits_and_parts() -> None:
    """Only the model after is repeated, and disagrees with itself as often as with before."""
    rng = np.random.default_rng(3)
    before = scored((rng.random(400) < 0.7).astype(float).tolist())
    repeats = [
        {"task": "t", "item": str(n), "repeat": r, "score": float(rng.random() < 0.7)}
        for n in range(400)
        for r in range(4)
    ]
    total = fm.compare(before, pa.Table.from_pylist(repeats), min_paired=0.1).result.total
    loss = total.headline.forgetting
    assert loss.value is not None
    assert loss.low is not None
    assert loss.high is not None
    assert loss.low <= loss.value <= loss.high
    assert total.knowledge.verdict == "cannot_tell"
