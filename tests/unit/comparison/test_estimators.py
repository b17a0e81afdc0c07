"""Estimators: every number equals its formula, answer by answer, and is right on average."""

from __future__ import annotations

import math
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import decide_oracle
import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from estimator_oracle import Item, Shape
from forgetmap.comparison import ComparisonResult, all_estimators, estimator_names
from forgetmap.comparison.estimators import BUILT_IN, find_estimator
from forgetmap.comparison.kinds import TALLIES, Kinds
from forgetmap.comparison.labels import Label
from forgetmap.errors import PairingError, UsageError
from forgetmap.results import Estimate
from small_runs import table

SHAPES = {
    "four options": Shape(ks=(4,), lost=0.1),
    "three and ten options": Shape(ks=(3, 10, None), lost=0.1),
    "two options": Shape(lost=0.1),
    "clusters": Shape(ks=(3, 5), clusters=True, lost=0.1),
    "repeats": Shape(ks=(4, None), repeats=3, items=20, lost=0.1),
    "uneven repeats": Shape(ks=(4, 5), repeats=(2, 3), items=20, missing=0.2, unscored=0.03),
    "not recorded": Shape(ks=(4,), silent=0.3),
    "open-ended": Shape(ks=(None,), lost=0.1),
}
FROM_COUNTS = ("flips", "latent", "upper", "matched")
FROM_REPEATS = ("drop", "leave_one_out", "excess")


@cache
def compared(name: str) -> tuple[ComparisonResult, list[Item]]:
    shape = SHAPES[name]
    before, after = (oracle.random_run(11, shape, side) for side in ("before", "after"))
    single = shape.repeats == 1
    items = oracle.paired_items(before, after) if single else oracle.items_of(before, after)
    return fm.compare(as_arrow(before), as_arrow(after)).result, items


def lacks(estimator: str, items: list[Item]) -> bool:
    """Whether the data do not allow an estimator."""
    if estimator in ("leave_one_out", "excess"):
        return not any(min(len(item.before), len(item.after)) > 1 for item in items)
    if estimator != "matched":
        return False
    closed = [item for item in items if not math.isinf(item.k)]
    rows = [row for item in closed for side in (item.before, item.after) for row in side.values()]
    return (
        not closed
        or any(item.k == 2 for item in closed)
        or any(oracle.kind_of(row) == "unknown" for row in rows)
    )


def largest(estimator: str, items: list[Item]) -> float:
    if estimator not in ("latent", "upper", "matched"):
        return 1.0
    return max(1.0 if math.isinf(item.k) else item.k / (item.k - 1) for item in items)


@pytest.mark.parametrize("estimator", [*FROM_COUNTS, *FROM_REPEATS])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_intervals_are_those_of_the_formula(name: str, estimator: str) -> None:
    result, items = compared(name)
    groups = [(result.total, items, False), (result.total_macro, items, True)]
    own = oracle.groups_of(items)
    for level in ("tasks", "categories", "tags"):
        groups += [(group, own[level][group.name], False) for group in getattr(result, level)]
    for group, members, macro in groups:
        found = group.estimators[estimator]
        for side, part in (("forgetting", members), ("backward_transfer", oracle.swapped(members))):
            estimate: Estimate = getattr(found, side)
            if lacks(estimator, part):
                assert estimate.value is None
                assert estimate.reason
                continue
            given = oracle.as_decided(part, macro=macro)
            scores = [oracle.item_score(estimator, item) for item in part]
            weighed, _ = decide_oracle.weighted(given, scores)
            assert estimate.value == pytest.approx(fmean(weighed), abs=1e-9), (group.name, side)
            if estimator == "flips" or len(part) < 2:
                continue  # with limits of their own
            h = largest(estimator, part)
            low = decide_oracle.lower_t(given, scores, 0.025, h)
            high = -decide_oracle.lower_t(given, [-score for score in scores], 0.025, h)
            assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_flips_have_limits_that_hold_for_few_of_them(name: str) -> None:
    result, items = compared(name)
    given = oracle.as_decided(items)
    total = result.total
    scores = [oracle.pair_mean("flips", item) for item in items]
    if given.plain:
        n10, size = decide_oracle.cells(given)[0], given.size
        low, high = decide_oracle.lower_flips(n10, size), decide_oracle.upper(given)
    else:
        low = decide_oracle.lower_t(given, scores, 0.025)
        high = decide_oracle.upper_v(given, scores, 0.025)
    assert total.forgetting == total.estimators["flips"].forgetting
    assert (total.forgetting.low, total.forgetting.high) == pytest.approx((low, high), abs=1e-9)
    before = fmean(given.x)
    assert total.acc_before == pytest.approx(before)
    conditional = total.conditional_forgetting
    assert conditional.value == pytest.approx(fmean(scores) / before)
    assert (conditional.low, conditional.high) == pytest.approx(
        (low / before, min(high / before, 1.0))
    )


@pytest.mark.parametrize("name", SHAPES)
def test_published_and_the_noise_floor(name: str) -> None:
    result, items = compared(name)
    for group, own in ((result.total, items),
                       *((task, oracle.groups_of(items)["tasks"][task.name])
                         for task in result.tasks)):  # fmt: skip
        expected = oracle.published(own)
        for side, value in expected.items():
            found: Estimate = getattr(group.estimators["published"], side)
            assert found.value == pytest.approx(value)
            assert (found.low, found.high) == (None, None)
        floor = oracle.noise_floor(own)
        assert group.noise_floor.value == (None if floor is None else pytest.approx(floor))


# ---------------------------------------------------------------------------- on average


def guessed(rng: np.random.Generator, k: int, lost: float, *, repeated: float = 0.0) -> Kinds:
    """Half of the items are known; the rest is guessed blindly, anew or as before."""
    size = 2000
    known = rng.random(size) < 0.5
    gone = known & (rng.random(size) < lost)
    gold = np.zeros(size, int)
    first, second = rng.integers(k, size=(2, size))
    second = np.where(rng.random(size) < repeated, first, second)
    before, after = np.where(known, gold, first), np.where(known & ~gone, gold, second)
    columns = {name: np.zeros(size) for name in TALLIES}
    for side, chosen in (("before", before), ("after", after)):
        columns[f"right_{side}"] = chosen == gold
        columns[f"option_{side}"] = chosen != gold
    columns["same"] = (before == after) & (before != gold)
    whole = np.zeros(size, np.int64)
    return Kinds(
        labels=(Label("t", None, None),), label=whole, count=np.ones(size),
        k=np.full(size, float(k)), gold=np.full(size, math.nan), half=whole, cluster=None,
        tallies=np.stack([np.asarray(columns[name], float) for name in TALLIES], 1),
    )  # fmt: skip


@pytest.mark.parametrize("k", [3, 4, 10])
@pytest.mark.parametrize(
    ("estimator", "repeated"),
    [("latent", 0.0), ("upper", 1.0), ("matched", 0.0), ("matched", 0.6), ("matched", 1.0)],
)
def test_lost_knowledge_is_recovered_on_average(estimator: str, repeated: float, k: int) -> None:
    """If guesses are blind: `latent` if they are drawn anew, `upper` if repeated."""
    rng = np.random.default_rng(k)
    row = find_estimator(estimator)
    values = [
        row.estimate(guessed(rng, k, 0.1, repeated=repeated), 0.025).forgetting for _ in range(120)
    ]
    found = [value.value for value in values if value.value is not None]
    truth = 0.05
    assert fmean(found) == pytest.approx(truth, abs=4 * float(np.std(found)) / math.sqrt(120))
    covered = fmean((each.low or 0) <= truth <= (each.high or 0) for each in values)
    assert covered >= 0.9


# ---------------------------------------------------------------------------- noise runs


def single(side: str) -> list[oracle.Row]:
    return oracle.random_run(3, Shape(ks=(4,)), side)


def test_noise_is_a_second_repeat_of_the_model_before() -> None:
    before, noise, after = (single(side) for side in ("before", "again", "after"))
    twice = [*before, *(row | {"repeat": 1} for row in noise)]
    found = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result
    expected = fm.compare(as_arrow(twice), as_arrow(after)).result
    for level in ("total", "total_macro", "tasks", "categories", "tags"):
        assert getattr(found, level) == getattr(expected, level)
    assert found.total.loss.p != fm.compare(as_arrow(before), as_arrow(after)).result.total.loss.p


def test_noise_of_a_harness_that_labels_nothing() -> None:
    """Options, category and tags come from the two models; a repeat needs only ids and scores."""
    before, noise, after = (single(side) for side in ("before", "again", "after"))
    bare = [{name: row[name] for name in ("task", "item", "score")} for row in noise]
    full = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise)).result
    less = fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(bare)).result
    for level in ("tasks", "categories", "tags"):
        wanted = [(group.name, group.loss, group.noise_floor) for group in getattr(full, level)]
        assert [(g.name, g.loss, g.noise_floor) for g in getattr(less, level)] == wanted


@pytest.mark.parametrize("kind", ["other items", "no content", "twins"])
def test_a_run_that_is_not_a_repeat_is_refused(kind: str) -> None:
    before, after, noise = (single(side) for side in ("before", "after", "again"))
    if kind == "other items":
        noise = [row | {"item": f"other {row['item']}"} for row in noise]
    elif kind == "no content":  # the models pair by content
        before, after = ([row | {"question": f"{n}?"} for n, row in enumerate(rows)]
                         for rows in (before, after))  # fmt: skip
    else:
        before, after = ([row | {"question": f"{n // 2}?"} for n, row in enumerate(rows)]
                         for rows in (before, after))  # fmt: skip
        noise = [row | {"question": f"other {n // 2}?", "item": f"z{n}"}
                 for n, row in enumerate(noise)]  # fmt: skip
    with pytest.raises(PairingError, match="is not a repeat of"):
        fm.compare(as_arrow(before), as_arrow(after), noise=as_arrow(noise))


# ---------------------------------------------------------------------------- the table


def test_three_decide_and_those_with_an_assumption_can_be_stated() -> None:
    assert [row.name for row in BUILT_IN if row.role == "decides"] == [
        "flips", "drop", "leave_one_out",
    ]  # fmt: skip
    assert estimator_names() == ["auto", *(row.name for row in BUILT_IN if row.assumes)]
    assert len({row.name for row in all_estimators()}) == len(all_estimators())


@pytest.mark.parametrize("name", ["flips", "excess", "published", "best"])
def test_an_estimator_without_an_assumption_cannot_be_stated(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        fm.compare(table([1.0]), table([1.0]), estimator=name)
    assert "choose from auto, latent, upper, matched" in refused.value.hint


@pytest.mark.parametrize("estimator", ["latent", "upper", "matched"])
def test_a_stated_assumption_is_said(estimator: Any) -> None:
    size = 400
    golds = [f"{n % 4}" for n in range(size)]
    before, after = (
        table(
            [float(n % 50 > 0 and n >= lost) for n in range(size)], k=[4] * size,
            choice=[gold if n % 50 and n >= lost else f"{(n + 1) % 4}"
                    for n, gold in enumerate(golds)],
        )
        for lost in (0, 60)
    )  # fmt: skip
    total = fm.compare(before, after, estimator=estimator).result.total
    assert total.loss.carried_by == "stated"
    assert total.loss.assumes == find_estimator(estimator).assumes
