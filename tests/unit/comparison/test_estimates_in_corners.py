"""Edge cases of estimates: noise, clusters, plausible ranges, gold positions, plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from command_line import call, write
from estimator_oracle import Row, Shape
from forgetmap.comparison.choices import Wish
from forgetmap.comparison.plan import make_plan
from forgetmap.comparison.result import ComparisonResult
from forgetmap.errors import PairingError
from forgetmap.results import Estimate


def sampled(seed: int) -> pa.Table:
    """One model that half knows a third of the items, asked once."""
    dice = np.random.default_rng(seed)
    rows = []
    for task in range(20):
        for item in range(150):
            p = (1, 0.6, 0.25)[(item * 7 + task) % 3]
            right = dice.random() < p
            choice = "gold" if right else f"w{dice.integers(3)}" if p < 0.5 else "w0"
            rows.append(
                {"task": f"{task:02}", "item": str(item), "k": 4, "score": float(right)}
                | {"choice": choice}
            )
    return as_arrow(rows)


def single(seed: int, n: int = 60, **columns: Any) -> pa.Table:
    dice = np.random.default_rng(seed)
    rows: list[Row] = [
        {"task": "t", "item": str(i), "score": float(dice.random() < 0.6)}
        | {name: make(i) for name, make in columns.items()}
        for i in range(n)
    ]
    return as_arrow(rows)


def compared(shape: Shape, seed: int) -> tuple[list[list[Row]], ComparisonResult]:
    runs = [oracle.random_run(seed, shape, side) for side in ("before", "after")]
    before, after = map(as_arrow, runs)
    return runs, fm.compare(before, after).result


def test_with_noise_q_values_are_not_those_of_luck() -> None:
    tasks = fm.compare(sampled(1), sampled(2), noise=sampled(3)).result.tasks
    assert sum(task.q_lost is not None and task.q_lost <= 0.05 for task in tasks) <= 1


def test_clusters_hold_together_over_tags() -> None:
    def total(tags: str) -> Estimate:
        runs = [
            [
                {"task": "t", "item": f"{p}-{q}", "cluster": f"p{p}", "tags": tags[q]}
                | {"score": float(not (side and p < 6))}
                for p in range(12)
                for q in range(6)
            ]
            for side in (0, 1)
        ]
        before, after = map(as_arrow, runs)
        return fm.compare(before, after).result.total.forgetting

    assert total("abcdef") == total("xxxxxx")


@pytest.mark.parametrize("loss", ["0", "-0.1", "nan", "5"])
def test_an_impossible_loss_is_refused_after_a_run(loss: str, tmp_path: Path) -> None:
    rows = [
        [{"task": "t", "item": str(n), "score": float(n % 3 > s)} for n in range(30)]
        for s in (0, 1)
    ]
    paths = [write(tmp_path / f"{s}.jsonl", rows[s]) for s in (0, 1)]
    done = call("plan", *paths, "--loss", loss)
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(("k", "accuracy", "loss"), [(2, 0.5, 0.1), (2, 0.4, 0.1), (4, 0.3, 0.2)])
def test_no_number_of_items_shows_a_loss_of_what_is_not_known(
    k: int, accuracy: float, loss: float
) -> None:
    assert make_plan(Wish(loss, accuracy), [k], []).rows[0].items is None


def test_noise_may_have_fewer_repeats() -> None:
    shape = Shape(repeats=2, items=20)
    before, after = (oracle.random_run(4, shape, side) for side in ("before", "after"))
    noise = oracle.random_run(4, Shape(items=20), "again")
    more = [*before, *(row | {"repeat": 2} for row in noise)]
    found = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result.total
    want = oracle.student_limits(oracle.excess_scores(oracle.items_of(more, after)))
    assert found.excess.forgetting.value == pytest.approx(want[0])


def test_the_upper_end_lies_within_its_limits() -> None:
    _, result = compared(Shape(ks=(4,)), seed=1)
    high = result.total.bracket_high.forgetting
    assert high.low is not None
    assert high.value is not None
    assert high.high is not None
    assert high.low <= high.value <= high.high


@pytest.mark.parametrize("seed", range(11, 19))
def test_the_upper_end_uses_its_own_clusters(seed: int) -> None:
    runs, result = compared(Shape(clusters=True, ks=(2, 4)), seed=seed)
    found = result.total.bracket_high.forgetting
    want, _ = oracle.clustered_limits("matched_upper", oracle.items_of(*runs))
    assert (found.low, found.high) == pytest.approx(want[1:], abs=1e-7)


def test_foreign_noise_is_refused_also_with_twins() -> None:
    def twins(seed: int, question: str = "q", item: str = "a") -> pa.Table:
        found = single(seed, question=lambda i: f"{question}{i // 2}")
        ids = [f"{item}{i}" for i in range(found.num_rows)]
        return found.set_column(found.column_names.index("item"), "item", pa.array(ids))

    with pytest.raises(PairingError, match="is not a repeat of"):
        fm.compare(twins(1), twins(2), noise=twins(3, "other", "z"))


def test_stages_of_a_chain_know_the_noise() -> None:
    chain = fm.chain(single(1), single(2), single(3), noise=single(4))
    assert chain.stages[-1].against_first.excess_before == chain.result.total.excess_before
    assert chain.stages[-1].against_previous.excess_before.value is None


def test_one_character_answers_are_no_places() -> None:
    def run(after: int) -> pa.Table:
        rows: list[Row] = []
        for i in range(200):
            right = i % 3 == 0 or (i % 3 == 1 and not after)
            gold = "79"[i % 2]
            rows.append(
                {"task": "t", "item": str(i), "k": 4, "gold": gold, "score": float(right)}
                | {"choice": gold if right else "13"[after]}
            )
        return as_arrow(rows)

    assert fm.compare(run(0), run(1)).result.total.matched.forgetting.value is not None


def test_the_mean_over_tasks_counts_the_items_that_were_repeated() -> None:
    """An item without a scored pair may still have been answered twice by both models."""
    answers = {"before": ((0, 1.0), (1, 0.0), (2, None)), "after": ((0, None), (1, 1.0), (2, 0.0))}
    runs = [
        [
            {"task": task, "item": item, "repeat": repeat, "score": score}
            for task in "ab"
            for item in "123"
            for repeat, score in (answers[side] if item != "1" else ((0, 1.0), (1, 0.0)))
        ]
        for side in ("before", "after")
    ]
    before, after = map(as_arrow, runs)
    compared = fm.compare(before, after, min_paired=0.5)
    excess = compared.result.total_macro.excess.forgetting
    assert excess.low is not None
    assert excess.low < excess.high  # type: ignore[operator]  # and neither is nan
