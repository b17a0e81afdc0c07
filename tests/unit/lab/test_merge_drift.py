"""The share of a loss that a merge recovers, for small and for large drift."""

from __future__ import annotations

import random

import pytest

from forgetmap.lab.merge_drift import compensation, summarise_levels
from forgetmap.lab.result import MergeLevel, MergePoint

pytestmark = pytest.mark.needs_torch


def point(
    weight: float, lost: float, score: float, halves: tuple[float, float] | None = None
) -> MergePoint:
    return MergePoint(weight=weight, lost=lost, score=score, halves=halves or (lost, lost))


def test_compensation_is_the_best_merge_that_keeps_the_gain() -> None:
    points = [point(0.2, 0.0, 0.5), point(0.6, 0.1, 0.96), point(0.8, 0.2, 0.99), point(1, 0.4, 1)]
    share, weight = compensation(points, 0.2, 100)
    assert share == pytest.approx(0.75)
    assert weight == 0.6
    # 95 % of the gain from 0.2 to 1 is 0.96; a score just below it does not do.
    points[1] = point(0.6, 0.1, 0.959)
    share, weight = compensation(points, 0.2, 100)
    assert share == pytest.approx(0.5)
    assert weight == 0.8


def test_items_that_choose_a_merge_do_not_measure_it() -> None:
    lucky = [point(0.4, 0.2, 1, (0.1, 0.3)), point(0.7, 0.2, 1, (0.3, 0.1)), point(1, 0.2, 1)]
    share, weight = compensation(lucky, 0.0, 100)
    assert share == pytest.approx(-0.5)
    assert weight == 0.4


def test_merges_that_undo_nothing_compensate_nothing_however_few_items_were_lost() -> None:
    """Every point loses a random 10 % of the items; the best on the same items would undo half."""
    draw = random.Random(3)
    undone = []
    for _ in range(300):
        points = []
        for weight in range(1, 11):
            halves = tuple(sum(draw.random() < 0.1 for _ in range(50)) / 50 for _ in range(2))
            points.append(point(weight / 10, sum(halves) / 2, 1.0, (halves[0], halves[1])))
        share, _ = compensation(points, 0.0, 100)
        if share is not None:
            # The trained model is one of the ten, and is seen only where it lost five items.
            undone.append(share * sum(points[-1].halves))
    assert sum(undone) / len(undone) < 0.02


def test_no_merge_is_worse_than_the_trained_model_itself() -> None:
    points = [point(0.5, 0.9, 1.0), point(1.0, 0.4, 1.0)]
    assert compensation(points, 0.0, 100) == (0.0, 1.0)


def test_nothing_is_said_of_a_loss_of_a_few_items() -> None:
    assert compensation([point(1.0, 0.04, 1.0)], 0.0, 100) == (None, None)
    assert compensation([point(1.0, 0.05, 1.0)], 0.0, 100) == (0.0, 1.0)
    assert compensation([point(1.0, 1 - 0.9, 1.0)], 0.0, 50) == (0.0, 1.0)  # 4.999...: five of 50


def level(share: float, seed: int, recovered: float | None) -> MergeLevel:
    return MergeLevel(
        share=share, seed=seed, distance=share, kl_old_reverse=1.0, lost=0.2, score=1.0,
        points=[point(1.0, 0.2, 1.0)], recovered=recovered, weight=0.5,
    )  # fmt: skip


def test_small_drift_against_large() -> None:
    undone = {0.1: 0.9, 0.2: 0.7, 0.5: 0.4, 1.0: 0.2}
    levels = [
        level(share, seed, value + seed / 100)
        for seed in (1, 2, 3)
        for share, value in undone.items()
    ]
    result = summarise_levels("small", levels)
    assert result.small.value == pytest.approx(0.82)
    assert result.large.value == pytest.approx(0.32)
    assert result.difference.value == pytest.approx(0.5)
    assert result.trend.value == pytest.approx(-1.0)
    assert result.headline.startswith("Merging compensates better when drift is small")
    assert result.notices == []


def test_models_that_lost_nothing_are_left_out_and_counted() -> None:
    levels = [level(share, seed, None) for seed in (1, 2) for share in (0.1, 0.2)]
    levels += [level(share, seed, 0.5) for seed in (1, 2) for share in (0.5, 1.0)]
    result = summarise_levels("small", levels)
    assert result.small.value is None
    assert result.headline.startswith("Cannot tell")
    assert result.trend.value is None
    assert result.notices[0].startswith("4 of 8 models lost fewer than 5")
