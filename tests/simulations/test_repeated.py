"""Excess and net of sampled models with known loss."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import forgetmap as fm
from forgetmap.comparison.repeated import ItemCounts, ItemSums, excess_p, interval_of

Counts = NDArray[np.int64]


def drawn(dice: np.random.Generator, k: int, lost: float, items: int = 120) -> ItemSums:
    """Two sampled models with two answers each; half known, some of that only half of the time."""
    kind = dice.choice(3, size=items, p=[0.35, 0.25, 0.4])
    gone = (kind < 2) & (dice.random(items) < lost)
    sides = []
    for is_gone in (np.zeros(items, bool), gone):
        knows = np.select([is_gone, kind == 0, kind == 1], [0.0, 1.0, 0.6], 0.0)
        guess = dice.integers(k, size=(items, 2))
        sides.append(np.where(dice.random((items, 2)) < knows[:, None], 0, guess))
    found: dict[ItemCounts, int] = {}
    for before, after in zip(*sides, strict=True):
        counts = _count(k, before, after)
        found[counts] = found.get(counts, 0) + 1
    return ItemSums(found)


def _count(k: int, before: Counts, after: Counts) -> ItemCounts:
    """Option 0 is right."""

    def same(x: Counts, y: Counts) -> int:
        return int(((x[:, None] == y[None, :]) & (x[:, None] > 0)).sum())

    right_b, right_a = int((before == 0).sum()), int((after == 0).sum())
    wrong = (same(before, after), same(before, before), same(after, after))
    return ItemCounts(k, right_b, 2 - right_b, 0, 0, right_a, 2 - right_a, 0, 0, *wrong)


@pytest.mark.parametrize("k", [3, 4, 10])
def test_the_same_sampled_model_has_lost_nothing(k: int) -> None:
    dice = np.random.default_rng(k)
    sets = [drawn(dice, k, 0.0) for _ in range(400)]
    for name in ("excess", "net"):
        found = [interval_of(name, each) for each in sets]
        covered = fmean(bool(each.contains(0.0)) for each in found if each)
        values = [float(each.value) for each in found if each]
        assert 0.92 <= covered <= 0.99
        assert abs(fmean(values)) <= 3.5 * np.std(values) / math.sqrt(400)
    rejected = fmean((excess_p(each) or 0.0) <= 0.05 for each in sets)
    assert rejected <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("k", [3, 4])
def test_net_recovers_what_was_lost(k: int) -> None:
    """A fully known item that is lost counts 1, a half known one the square of its mastery."""
    dice = np.random.default_rng(10 + k)
    found = [interval_of("net", drawn(dice, k, 0.1)) for _ in range(400)]
    values = [float(each.value) for each in found if each]
    truth = 0.1 * (0.35 + 0.25 * (0.6 + 0.6**2) / 2)
    assert fmean(values) == pytest.approx(truth, abs=float(4 * np.std(values)) / 20)
    assert fmean(bool(each.contains(truth)) for each in found if each) >= 0.91


def answers(right: NDArray[np.bool_], single: int) -> pa.Table:
    """A task for each row; all items but the first `single` ones are answered twice."""
    tries, items = right.shape
    item = np.concatenate([np.arange(items), np.arange(single, items)])
    repeat = np.repeat([0, 1], [items, items - single])
    return pa.table({
        "task": np.repeat(np.arange(tries).astype(str), item.size).tolist(),
        "item": np.tile(item.astype(str), tries).tolist(),
        "repeat": np.tile(repeat, tries),
        "score": right[:, item].ravel().astype(float),
    })  # fmt: skip


@pytest.mark.parametrize("where", ["repeated", "unrepeated", "both"])
def test_items_without_repeats_count_as_well(where: str) -> None:
    """95 % of the items are answered twice; 4 % are lost among these, the others or all.

    The tries are the tasks of one comparison: a task alone has the same interval.
    """
    random = np.random.default_rng(6)
    tries, items, single = 100, 400, 20
    chance = {"repeated": (0.0, 0.05), "unrepeated": (0.8, 0.0), "both": (0.05, 0.05)}[where]
    known = random.random((tries, items)) < 0.8
    gone = known & (random.random((tries, items)) < np.where(np.arange(items) < single, *chance))
    sides = [answers(right, single) for right in (known, known & ~gone)]
    tasks = fm.compare(sides[0], sides[1]).result.tasks
    assert len(tasks) == tries
    wrong = {"above": 0, "below": 0}
    for task in tasks:
        loss, lost = task.headline.forgetting, gone[int(task.name)].mean()
        assert loss.low is not None
        assert loss.high is not None
        wrong["above"] += loss.low > lost
        wrong["below"] += loss.high < lost
    assert max(wrong.values()) <= 6
