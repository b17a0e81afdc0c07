"""Repeats and --noise, checked against plain Python over all pairs of answers."""

from __future__ import annotations

import math
from statistics import fmean

import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from estimator_oracle import Shape
from estimator_runs import compared, every_group
from forgetmap.errors import PairingError
from forgetmap.results import Estimate

SEED = 1
SHAPES = {
    "two": Shape(repeats=2, items=25),
    "three, some missing": Shape(repeats=3, items=20, missing=0.2),
    "two, two options": Shape(repeats=2, items=20, ks=(2,)),
    "two, open-ended": Shape(repeats=2, items=20, ks=(None,)),
    "two, four options": Shape(repeats=2, items=20, ks=(4,)),
}


def check(found: Estimate, expected: oracle.Limits) -> None:
    assert (found.value, found.low, found.high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_excess_is_flips_between_the_models_less_flips_within(name: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            expected = oracle.student_limits(oracle.excess_scores(own))
            check(getattr(group.excess, side), expected)


@pytest.mark.parametrize("name", SHAPES)
def test_net_is_matched_between_the_models_less_within(name: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        kept = oracle.repeated_items(items)
        scale = fmean(item.k / (item.k - 1) if item.k < math.inf else 1.0 for item in kept)
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            check(getattr(group.net, side), oracle.student_limits(oracle.net_scores(own), scale))


@pytest.mark.parametrize("name", SHAPES)
def test_noise_floor_and_excess_over_the_model_before(name: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        assert group.noise_floor.value == pytest.approx(oracle.noise_floor(items))
        expected = oracle.student_limits(oracle.excess_before_scores(items))
        check(group.excess_before, expected)


@pytest.mark.parametrize("name", SHAPES)
def test_p_values_come_from_dealing_out_the_answers_of_each_item(name: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        assert group.p_lost == pytest.approx(oracle.change_p(items), rel=1e-6)
    tasks = compared(SHAPES[name], SEED)[0].tasks
    theirs = multipletests([task.p_lost for task in tasks], method="fdr_bh")[1]
    assert [task.q_lost for task in tasks] == pytest.approx(list(theirs))


@pytest.mark.parametrize("name", SHAPES)
def test_detectable_follows_from_the_error_of_excess(name: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        _, low, high = oracle.student_limits(oracle.excess_scores(items))
        error = (high - low) / 2 / stats.norm.ppf(0.975)
        loss = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error
        right = fmean(b["score"] for item in items for b, _ in item.pairs)
        assert group.detectable == (pytest.approx(loss) if loss <= right else None)


def test_the_mean_over_tasks_adds_the_variances_of_the_tasks() -> None:
    result, items = compared(SHAPES["two"], SEED)
    parts = [oracle.excess_scores(own) for own in oracle.groups_of(items)["tasks"].values()]
    errors, freedom = [], [len(part) - 1 for part in parts]
    for part, free in zip(parts, freedom, strict=True):
        _, low, high = oracle.student_limits(part)
        errors.append((high - low) / 2 / stats.t.ppf(0.975, free) / len(parts))
    total = sum(error**2 for error in errors)
    combined = total**2 / sum(e**4 / free for e, free in zip(errors, freedom, strict=True))
    half = stats.t.ppf(0.975, combined) * math.sqrt(total)
    mean = fmean(map(fmean, parts))
    check(result.total_macro.excess.forgetting, (mean, mean - half, mean + half))


def test_before_and_after_exchanged() -> None:
    before, after = (
        oracle.random_run(2, SHAPES["three, some missing"], side) for side in ("before", "after")
    )
    forth = fm.compare(as_arrow(before), as_arrow(after)).result
    back = fm.compare(as_arrow(after), as_arrow(before)).result
    for one, other in zip([forth.total, *forth.tasks], [back.total, *back.tasks], strict=True):
        for name in ("excess", "net"):
            mine, theirs = getattr(one, name), getattr(other, name)
            for side, turned in (
                ("forgetting", "backward_transfer"),
                ("backward_transfer", "forgetting"),
            ):
                expected = getattr(theirs, turned)
                check(getattr(mine, side), (expected.value, expected.low, expected.high))
        assert one.noise_floor.value == pytest.approx(other.noise_floor.value)


def single(side: str, seed: int = 3) -> list[oracle.Row]:
    return oracle.random_run(seed, Shape(), side)


def test_noise_is_a_second_repeat_of_the_model_before() -> None:
    before, noise, after = (single(side) for side in ("before", "again", "after"))
    twice = [*before, *(row | {"repeat": 1} for row in noise)]
    found = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result
    expected = fm.compare(as_arrow(twice), as_arrow(after)).result
    for level in ("tasks", "categories", "tags"):
        assert getattr(found, level) == getattr(expected, level)
    assert found.total == expected.total
    items = oracle.items_of(twice, after)
    check(found.total.excess_before, oracle.student_limits(oracle.excess_before_scores(items)))
    assert found.total.noise_floor.value == pytest.approx(oracle.noise_floor(items))
    assert found.total.excess.forgetting.value is None
    assert found.total.headline.estimator == "excess_before"


def test_noise_beside_repeats_is_more_of_them() -> None:
    shape = Shape(repeats=2, items=20)
    before, after = (oracle.random_run(4, shape, side) for side in ("before", "after"))
    noise = oracle.random_run(4, shape, "again")
    more = [*before, *(row | {"repeat": row["repeat"] + 2} for row in noise)]
    found = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result.total
    items = oracle.items_of(more, after)
    check(found.excess.forgetting, oracle.student_limits(oracle.excess_scores(items)))


def test_noise_of_a_harness_that_labels_nothing() -> None:
    """k, category and tags come from the two models; the repeat needs only ids and scores."""
    before, noise, after = (single(side) for side in ("before", "again", "after"))
    bare = [{name: row[name] for name in ("task", "item", "score")} for row in noise]
    full = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result
    less = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(bare)).result
    for level in ("tasks", "categories", "tags"):
        wanted = [(g.name, g.excess_before, g.noise_floor) for g in getattr(full, level)]
        assert [(g.name, g.excess_before, g.noise_floor) for g in getattr(less, level)] == wanted


def test_noise_on_other_items_is_refused() -> None:
    before, after = single("before"), single("after")
    other = [row | {"item": f"other {row['item']}"} for row in before]
    few = before[:20]
    for noise in (other, few):
        with pytest.raises(PairingError) as refused:
            fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise))
        assert "pass a repeat of the model before" in refused.value.hint


def test_noise_that_pairs_otherwise_is_refused() -> None:
    """The models pair by content, the repeat has none."""
    question = [{"question": f"What is {n}?"} for n in range(len(single("before")))]
    before, after = (
        [row | asked for row, asked in zip(single(side), question, strict=True)]
        for side in ("before", "after")
    )
    with pytest.raises(PairingError, match="is not a repeat of"):
        fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(single("again")))


def test_one_repeated_item_has_no_interval() -> None:
    rows = {"task": ["t"] * 2, "item": ["1"] * 2, "repeat": [0, 1], "score": [1.0, 0.0]}
    total = fm.compare(pa.table(rows), pa.table(rows)).result.total
    assert total.excess.forgetting.value is None
    assert total.excess.forgetting.reason
