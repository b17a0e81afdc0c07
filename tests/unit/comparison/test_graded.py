"""Scores between 0 and 1."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import forgetmap as fm


def frame(scores: list[float]) -> pl.DataFrame:
    items = [str(number) for number in range(len(scores))]
    return pl.DataFrame({"task": "t", "item": items, "score": scores})


def test_the_mean_fall_stands_beside_the_cut() -> None:
    before = [0.9, 0.8, 0.4, 1.0, 0.0, 0.6] * 10
    after = [0.6, 0.8, 0.3, 0.5, 0.2, 0.55] * 10
    comparison = fm.compare(frame(before), frame(after))
    graded = comparison.result.total.graded
    assert graded is not None
    falls = np.subtract(before, after)
    assert graded.value == pytest.approx(falls.mean())
    assert graded.pairs == 60
    assert graded.low is not None
    assert graded.high is not None
    half = stats.t.ppf(0.975, 59) * falls.std(ddof=1) / np.sqrt(60)
    assert graded.high - graded.low >= 2 * half  # one pseudo observation more
    assert "graded" in {notice.code for notice in comparison.result.pairing.warnings}


def test_scores_of_0_and_1_have_none() -> None:
    result = fm.compare(frame([1.0, 0.0, 1.0]), frame([1.0, 1.0, 0.0])).result
    assert result.total.graded is None
    assert "graded" not in {notice.code for notice in result.pairing.warnings}
