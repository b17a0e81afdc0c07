"""Every number of a comparison, checked against plain Python answer by answer."""

from __future__ import annotations

import math
from functools import cache
from statistics import fmean

import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

import estimator_oracle as oracle
import forgetmap as fm
from estimator_oracle import Item, Limits, Shape
from forgetmap.comparison.result import ComparisonResult, GroupResult
from forgetmap.results import Estimate, Estimates

SEEDS = (1, 2)
SHAPES = {
    "single": Shape(),
    "four options": Shape(ks=(4,)),
    "two options": Shape(ks=(2,)),
    "open-ended": Shape(ks=(None,)),
}
CASES = [(name, seed) for name in SHAPES for seed in SEEDS]
LEVELS = ("tasks", "categories", "tags")


def as_table(rows: list[oracle.Row]) -> pa.Table:
    kinds = {"score": pa.float64(), "k": pa.int64(), "repeat": pa.int64()}
    fields = [(name, kinds.get(name, pa.string())) for name in rows[0]]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@cache
def compared(name: str, seed: int) -> tuple[ComparisonResult, list[Item]]:
    before, after = (oracle.random_run(seed, SHAPES[name], side) for side in ("before", "after"))
    found = fm.compare(as_table(before), as_table(after)).result
    return found, oracle.items_of(before, after)


def every_group(
    result: ComparisonResult, items: list[Item]
) -> list[tuple[GroupResult, list[Item]]]:
    """Total, tasks, categories and tags with the items of each."""
    found = [(result.total, items)]
    for level, names in oracle.groups_of(items).items():
        groups = {group.name: group for group in getattr(result, level)}
        assert groups.keys() == names.keys()
        found += [(groups[name], names[name]) for name in names]
    return found


def limits(estimate: Estimate) -> tuple[float | None, ...]:
    return estimate.value, estimate.low, estimate.high


def check(found: Estimate, expected: Limits) -> None:
    assert limits(found) == pytest.approx(expected, abs=1e-9)


def clipped(expected: Limits) -> Limits:
    return expected[0], max(expected[1], 0.0), expected[2]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_raw_and_the_upper_end(name: str, seed: int) -> None:
    for group, items in every_group(*compared(name, seed)):
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            raw, upper = (oracle.score_limits(oracle.scores(n, own)) for n in ("raw", "upper"))
            check(getattr(group, side), clipped(raw))
            check(getattr(group.upper, side), upper)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_the_lower_end_agrees_with_the_test(name: str, seed: int) -> None:
    for group, items in every_group(*compared(name, seed)):
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            expected = oracle.score_limits(oracle.scores("latent", own))
            if any(item.k < math.inf for item in own):
                expected = oracle.agreeing(expected, oracle.luck("latent", own))
            check(getattr(group.latent, side), expected)


@pytest.mark.parametrize("name", ["single", "four options"])
@pytest.mark.parametrize("seed", SEEDS)
def test_matched_with_answers_that_vanish(name: str, seed: int) -> None:
    for group, items in every_group(*compared(name, seed)):
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            expected = oracle.score_limits(oracle.scores("matched", own))
            expected = oracle.agreeing(expected, oracle.luck("matched", own))
            check(getattr(group.matched, side), expected)
            check(getattr(group.bracket_low, side), expected)
            high = fmean(x.s for x in oracle.scores("matched_upper", own))
            assert getattr(group.bracket_high, side).value == pytest.approx(high)


@pytest.mark.parametrize("name", ["two options", "open-ended"])
def test_matched_needs_a_third_option(name: str) -> None:
    result, _ = compared(name, 1)
    assert result.total.matched.forgetting.value is None
    assert result.total.matched.forgetting.reason
    assert limits(result.total.bracket_high.forgetting) == limits(result.total.upper.forgetting)
    assert limits(result.total.bracket_low.forgetting) == limits(result.total.latent.forgetting)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_published_and_what_was_known(name: str, seed: int) -> None:
    for group, items in every_group(*compared(name, seed)):
        for field, value in oracle.published(items).items():
            assert getattr(group.published, field).value == pytest.approx(value, abs=1e-12)
        assert group.known_before == pytest.approx(oracle.known_share(items))


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_p_values(name: str, seed: int) -> None:
    score = "latent" if name == "two options" else "matched"
    for group, items in every_group(*compared(name, seed)):
        if name == "open-ended":
            assert group.p_lost is None
        else:
            assert group.p_lost == pytest.approx(oracle.luck(score, items), rel=1e-6, abs=1e-12)
        theirs = mcnemar([[0, group.n10], [group.n01, 0]], exact=True).pvalue
        assert group.mcnemar_p == pytest.approx(theirs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["single", "four options"])
def test_q_values_are_those_of_statsmodels(name: str, level: str) -> None:
    groups: list[GroupResult] = getattr(compared(name, 2)[0], level)
    theirs = multipletests([group.p_lost for group in groups], method="fdr_bh")[1]
    assert [group.q_lost for group in groups] == pytest.approx(list(theirs))


def test_tasks_without_options_are_no_tests() -> None:
    before, after = (oracle.random_run(4, Shape(ks=(4,)), side) for side in ("before", "after"))
    for row in (*before, *after):
        row["k"] = None if row["task"] == "gsm8k" else row["k"]
    tasks = fm.compare(as_table(before), as_table(after)).result.tasks
    tested = [task for task in tasks if task.name != "gsm8k"]
    theirs = multipletests([task.p_lost for task in tested], method="fdr_bh")[1]
    assert [task.q_lost for task in tested] == pytest.approx(list(theirs))
    assert [task.q_lost for task in tasks if task.name == "gsm8k"] == [None]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_smallest_detectable_loss(name: str, seed: int) -> None:
    score = "latent" if name == "two options" else "matched"
    for group, items in every_group(*compared(name, seed)):
        expected = oracle.detectable(score, items)
        assert group.detectable == (None if expected is None else pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_the_mean_over_tasks_carries_the_variance_of_each(name: str, seed: int) -> None:
    result, items = compared(name, seed)
    tasks = oracle.groups_of(items)["tasks"].values()
    for score in ("raw", "latent", "upper", "matched"):
        macro = result.total_macro
        found = macro.forgetting if score == "raw" else getattr(macro, score).forgetting
        if found.value is None:
            assert score == "matched"
            assert name in {"two options", "open-ended"}
            continue
        expected = macro_limits([oracle.scores(score, each) for each in tasks])
        check(found, clipped(expected) if score == "raw" else expected)


def macro_limits(parts: list[list[oracle.Scored]]) -> Limits:
    w2 = 1 / len(parts) ** 2
    theta = fmean(fmean(x.s for x in part) for part in parts)
    a1 = sum(w2 * fmean(x.c for x in part) / len(part) for part in parts)
    a2 = sum(w2 / len(part) for part in parts)
    floor = sum(w2 * sum(x.spread_here for x in part) / len(part) ** 2 for part in parts)
    spread = sum(w2 * sum(x.s**2 for x in part) / len(part) ** 2 for part in parts)
    q0 = max(
        w2 * (fmean(x.spread for x in part) + fmean(x.c for x in part) ** 2 / 4) / len(part) ** 2
        for part in parts
    )
    return oracle.solve(theta, a1, a2, max(floor, spread - a1 * theta) + q0, oracle.Z**2)


def test_rates_of_the_mean_over_tasks_and_the_spread_between_them() -> None:
    result, items = compared("single", 1)
    tasks = list(oracle.groups_of(items)["tasks"].values())
    macro = result.total_macro
    assert macro.known_before == pytest.approx(fmean(map(oracle.known_share, tasks)))
    for field in ("forgetting", "backward_transfer_max"):
        expected = fmean(oracle.published(each)[field] for each in tasks)
        assert getattr(macro.published, field).value == pytest.approx(expected)
    rates = [fmean(x.s for x in oracle.scores("raw", each)) for each in tasks]
    theirs = stats.ttest_1samp(rates, 0).confidence_interval()
    assert macro.between_tasks is not None
    check(macro.between_tasks.forgetting, (fmean(rates), theirs.low, theirs.high))


@pytest.mark.parametrize("name", SHAPES)
def test_before_and_after_exchanged(name: str) -> None:
    before, after = (oracle.random_run(5, SHAPES[name], side) for side in ("before", "after"))
    forth = fm.compare(as_table(before), as_table(after)).result
    back = fm.compare(as_table(after), as_table(before)).result
    for one, other in zip(
        [forth.total, forth.total_macro, *forth.tasks],
        [back.total, back.total_macro, *back.tasks],
        strict=True,
    ):
        assert one.forgetting == other.backward_transfer
        assert one.mcnemar_p == other.mcnemar_p
        for score in ("published", "latent", "upper", "matched", "bracket_low", "bracket_high"):
            mine, theirs = getattr(one, score), getattr(other, score)
            assert near(mine.forgetting, theirs.backward_transfer), score
            assert near(mine.backward_transfer, theirs.forgetting), score


def near(one: Estimate, other: Estimate) -> bool:
    same = (one.method, one.reason) == (other.method, other.reason)
    return same and limits(one) == pytest.approx(limits(other), abs=1e-12)


def cells_table(
    k: int | None, n11: int, n10: int, n01: int, n00: int, different: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """Two runs with these cells; of n00 so many with different wrong options, if recorded."""
    moves = ["11"] * n11 + ["10"] * n10 + ["01"] * n01 + ["00"] * n00
    tables = []
    for side in (0, 1):
        columns = {
            "task": ["t"] * len(moves),
            "item": [str(place) for place in range(len(moves))],
            "score": [float(move[side]) for move in moves],
            "k": pa.array([k] * len(moves), pa.int64()),
        }
        if different is not None:
            wrong = ["y"] * (n00 - different) + ["x" if side else "y"] * different
            columns["choice"] = [
                "gold" if move[side] == "1" else "y" for move in moves[: n11 + n10 + n01]
            ] + wrong
        tables.append(pa.table(columns))
    return tables[0], tables[1]


def shown(estimate: Estimate) -> tuple[float, ...]:
    return tuple(round(float(value or 0), 6) for value in limits(estimate))


def test_worked_example_latent() -> None:
    total = fm.compare(*cells_table(4, 40, 15, 12, 33)).result.total
    low, high = total.latent.forgetting.low, total.latent.forgetting.high
    assert total.latent.forgetting.value == pytest.approx(0.053333, abs=1e-6)
    assert low == pytest.approx(-0.038619, abs=1e-6)
    assert high == pytest.approx(0.190664, abs=1e-6)
    assert total.p_lost == pytest.approx(0.161532, abs=1e-6)


def test_worked_example_matched() -> None:
    total = fm.compare(*cells_table(4, 40, 15, 12, 33, different=20)).result.total
    assert shown(total.matched.forgetting) == (0.066667, -0.030045, 0.207771)
    assert total.p_lost == pytest.approx(0.120779, abs=1e-6)


def test_worked_example_of_mixed_options_and_their_mean_over_tasks() -> None:
    sides: list[list[pa.Table]] = [[], []]
    for k, n10, n00, n in ((2, 5, 20, 60), (4, 9, 22, 80), (None, 2, 0, 30)):
        for side, part in zip(sides, cells_table(k, n - n10 - n00, n10, 0, n00), strict=True):
            name = pa.array([f"k={k}"] * n)
            side.append(part.set_column(0, "task", name))
    before, after = (pa.concat_tables(side) for side in sides)
    result = fm.compare(before, after).result
    assert shown(result.total.latent.forgetting) == (-0.151634, -0.267178, 0.003974)
    assert shown(result.total_macro.latent.forgetting) == (-0.135185, -0.240531, 0.01183)


def test_worked_example_raw() -> None:
    total = fm.compare(*cells_table(None, 48, 2, 0, 0)).result.total
    assert shown(total.forgetting) == (0.04, 0.008216, 0.137424)


def test_a_wrong_answer_that_nobody_recorded_is_not_taken_for_none() -> None:
    before, after = cells_table(4, 40, 15, 12, 33, different=20)
    choices = after["choice"].to_pylist()
    choices[-1] = None
    after = after.set_column(after.column_names.index("choice"), "choice", pa.array(choices))
    found = fm.compare(before, after).result.total.matched
    assert isinstance(found, Estimates)
    assert found.forgetting.value is None
    assert "not recorded" in (found.forgetting.reason or "")


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_an_estimate_lies_between_its_limits(name: str, seed: int) -> None:
    for group, _ in every_group(*compared(name, seed)):
        for score in ("latent", "upper", "matched", "bracket_low"):
            for side in ("forgetting", "backward_transfer"):
                value, low, high = limits(getattr(getattr(group, score), side))
                if value is not None and low is not None and high is not None:
                    assert low <= value <= high, (group.name, score, side)
