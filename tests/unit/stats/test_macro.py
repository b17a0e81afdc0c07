"""Means over tasks, some of which have few clusters."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import Interval, clip_interval, join_in_quadrature


def interval(value: float, low: float, high: float) -> Interval:
    return Interval(np.asarray(value), np.asarray(low), np.asarray(high))


def test_parts_join_in_quadrature() -> None:
    parts = [interval(0.1, 0.07, 0.14), interval(0.2, 0.0, 1.0)]
    found = join_in_quadrature(parts, [0.75, 0.25])
    assert float(found.value) == pytest.approx(0.125)
    assert float(found.low) == pytest.approx(0.125 - np.hypot(0.75 * 0.03, 0.25 * 0.2))
    assert float(found.high) == pytest.approx(0.125 + np.hypot(0.75 * 0.04, 0.25 * 0.8))


def test_a_part_adds_at_most_its_weight() -> None:
    large = interval(0.1, 0.08, 0.12)
    tiny = clip_interval(interval(0.1, -40.0, 60.0), 0.0, 1.0)
    found = join_in_quadrature([large, tiny], [0.95, 0.05])
    assert float(found.high - found.value) < 0.95 * 0.02 + 0.05


def test_one_part_is_itself_and_limits_on_the_wrong_side_add_nothing() -> None:
    found = join_in_quadrature([interval(0.1, 0.2, 0.3)], [1.0])
    assert float(found.low) == pytest.approx(0.1)
    assert float(found.high) == pytest.approx(0.3)
