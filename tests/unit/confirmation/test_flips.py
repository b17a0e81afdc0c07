"""Which flips are asked again, and what that could prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forgetmap as fm
from command_line import write
from forgetmap.comparison import Comparison
from forgetmap.confirmation import choose_flips
from forgetmap.errors import UsageError
from forgetmap.stats import ItemSample, ScoreBound

ALPHA = 0.025 / 4


def compared(folder: Path, before: list[int], after: list[int], **same: Any) -> Comparison:
    paths = [
        write(folder / f"{name}.jsonl",
              [{"task": "t", "item": f"i{place}", "score": float(score)} | same
               for place, score in enumerate(scores)])
        for name, scores in (("b", before), ("a", after))
    ]  # fmt: skip
    return fm.compare(paths[0], paths[1], min_paired=0.5)


@pytest.fixture
def exchange(tmp_path: Path) -> Comparison:
    """40 items become wrong and 30 right, of 400."""
    before = [1] * 140 + [0] * 260
    after = [0] * 40 + [1] * 100 + [1] * 30 + [0] * 230
    return compared(tmp_path, before, after)


def test_all_that_became_wrong_is_asked(exchange: Comparison) -> None:
    plan = choose_flips(exchange)
    assert {item.before for item in plan.items} == {f"i{place}" for place in range(40)}
    assert all(item.is_lost and item.after == item.before for item in plan.items)
    assert (plan.forgotten, plan.gained, plan.answers) == (40, 30, 80)
    assert choose_flips(exchange, repeats=3).answers == 240
    assert set(plan.ids("before")) == {"t"}


def test_what_became_right_is_asked_if_wanted(exchange: Comparison) -> None:
    plan = choose_flips(exchange, gains=True)
    gained = {item.before for item in plan.items if not item.is_lost}
    assert gained == {f"i{place}" for place in range(140, 170)}
    assert plan.answers == 2 * 70


def test_a_part_is_random_and_the_same_every_time(exchange: Comparison) -> None:
    parts = [choose_flips(exchange, limit=10, seed=seed).items for seed in range(200)]
    assert choose_flips(exchange, limit=10, seed=7).items == parts[7]
    counts = np.bincount([int(item.before[1:]) for part in parts for item in part], minlength=40)
    # 50 times each, give or take: a standard deviation is 6.1.
    assert (abs(counts - 50) < 28).all()
    assert len(choose_flips(exchange, limit=10, gains=True).items) == 20


@pytest.mark.parametrize("limit", [None, 20])
def test_what_could_be_proven_is_the_limit_if_all_hold(
    exchange: Comparison, limit: int | None
) -> None:
    plan = choose_flips(exchange, limit=limit)
    scale = 40 / len(plan.items)
    held = np.zeros(400)
    held[: len(plan.items)] = scale
    bound = ScoreBound(ItemSample(np.ones(400)), held, scale).lower(ALPHA)
    assert plan.provable == pytest.approx(bound)
    if limit is None:
        decides = exchange.result.total.decides
        assert decides is not None
        assert decides.provable == pytest.approx(plan.provable)
        assert decides.answers == plan.answers


def test_what_next_promises_what_confirm_asks(tmp_path: Path) -> None:
    """Also with repeats: answer number 1 of each model chooses the items."""
    rng = np.random.default_rng(3)
    paths = [
        write(tmp_path / f"{side}.jsonl",
              [{"task": "t", "item": f"i{item}", "repeat": repeat,
                "score": int(rng.random() < 0.7)}
               for item in range(300) for repeat in range(3)])
        for side in (0, 1)
    ]  # fmt: skip
    first = fm.compare(paths[0], paths[1])
    plan, decides = choose_flips(first), first.result.total.decides
    assert decides is not None
    assert (decides.flips, decides.answers) == (len(plan.items), plan.answers)
    assert decides.provable == plan.provable


def test_passages_make_less_provable(tmp_path: Path) -> None:
    rows = [{"task": "t", "item": f"i{place}", "cluster": f"c{place // 4}"} for place in range(400)]
    scores = [[1] * 200 + [0] * 200, [0] * 40 + [1] * 160 + [0] * 200]
    paths = [
        write(tmp_path / f"{name}.jsonl",
              [row | {"score": score} for row, score in zip(rows, values, strict=True)])
        for name, values in zip(("b", "a"), scores, strict=True)
    ]  # fmt: skip
    plan = choose_flips(fm.compare(paths[0], paths[1]))
    alone = choose_flips(compared(tmp_path, *scores))
    assert plan.provable is not None
    assert alone.provable is not None
    assert 0 < plan.provable < 0.8 * alone.provable


def test_too_few_flips_prove_nothing(tmp_path: Path) -> None:
    one = compared(tmp_path, [1, 1, 0, 0, 0], [0, 1, 1, 1, 0])
    with pytest.raises(UsageError, match="1 item went from right to wrong") as caught:
        choose_flips(one)
    assert "--gains" in caught.value.hint
    assert [item.is_lost for item in choose_flips(one, gains=True).items] == [True, False, False]
    with pytest.raises(UsageError, match="0 items"):
        choose_flips(compared(tmp_path, [1, 1], [1, 1]))


def test_ids_of_each_side_are_its_own(tmp_path: Path) -> None:
    """Items with the same question pair, whatever they are called."""
    rows = [{"task": "t", "question": f"What is {place}?", "gold": "x"} for place in range(8)]
    paths = [
        write(tmp_path / f"{name}.jsonl",
              [row | {"item": f"{name}{place}", "score": float(name == "b")}
               for place, row in enumerate(rows)])
        for name in ("b", "a")
    ]  # fmt: skip
    plan = choose_flips(fm.compare(paths[0], paths[1]))
    assert sorted(plan.ids("before")["t"]) == [f"b{place}" for place in range(8)]
    assert sorted(plan.ids("after")["t"]) == [f"a{place}" for place in range(8)]
    assert all(item.before[1:] == item.after[1:] for item in plan.items)
