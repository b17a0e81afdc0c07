"""From counts to rates: what has no data is null, and averages skip it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.transitions.cells import Cells, Group
from forgetmap.transitions.rates import group_result, macro_result, results_by, results_by_task
from forgetmap.transitions.result import Estimate, GroupResult

RATES = ("forgetting", "backward_transfer", "conditional_forgetting")
PLAIN = ("acc_before", "acc_after", "conventional_forgetting")


def value(group: GroupResult, name: str) -> float | None:
    found = getattr(group, name)
    return found.value if isinstance(found, Estimate) else found


def cells(n11: int = 0, n10: int = 0, n01: int = 0, n00: int = 0) -> Cells:
    n = n11 + n10 + n01 + n00
    return Cells(paired=n, items=n, n11=n11, n10=n10, n01=n01, n00=n00)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_rates_are_those_of_a_plain_count(flips: list[tuple[bool, bool]]) -> None:
    n, count = len(flips), Counter(flips)
    lost, gained = count[True, False], count[False, True]
    known = sum(before for before, _ in flips)
    before, after = known / n, sum(after for _, after in flips) / n
    group = group_result("g", cells(count[True, True], lost, gained, count[False, False]))
    assert group.n == n
    assert value(group, "forgetting") == lost / n
    assert value(group, "backward_transfer") == gained / n
    assert value(group, "conditional_forgetting") == (lost / known if known else None)
    assert (group.acc_before, group.acc_after) == (before, after)
    assert group.conventional_forgetting == pytest.approx(max(before - after, 0), abs=1e-12)


@pytest.mark.parametrize("name", [*RATES, *PLAIN])
def test_no_data_is_null_never_zero(name: str) -> None:
    assert value(group_result("empty", Cells()), name) is None
    assert value(macro_result([], group_result("empty", Cells())), name) is None


def test_nothing_known_before_leaves_only_the_conditional_rate_without_value() -> None:
    group = group_result("g", cells(n01=1, n00=3))
    assert group.conditional_forgetting.value is None
    assert group.forgetting.value == 0
    assert group.backward_transfer.value == 0.25


def test_an_estimate_says_how_it_was_made_and_has_no_interval_yet() -> None:
    estimate = group_result("g", cells(n11=1, n10=1)).forgetting
    assert estimate == Estimate(value=0.5, low=None, high=None, method="raw")


def test_the_mean_over_tasks_skips_tasks_without_a_value() -> None:
    unknown = group_result("nothing known", cells(n01=1, n00=1))
    known = group_result("known", cells(n11=3, n10=1))
    unscored = group_result("nothing scored", Cells(paired=5, unscored=5))
    total = group_result("total", cells(n11=3, n10=1, n01=1, n00=1))
    macro = macro_result([unknown, known, unscored], total)
    assert macro.conditional_forgetting.value == 0.25
    assert macro.forgetting.value == (0 + 0.25) / 2
    assert macro.acc_before == (0 + 1) / 2
    assert macro.forgetting.method == "mean over tasks"
    assert (macro.n, macro.n10) == (total.n, total.n10)


def test_the_mean_of_net_drops_does_not_let_a_rise_hide_a_drop() -> None:
    fallen, risen = group_result("a", cells(n11=1, n10=1)), group_result("b", cells(n01=1, n00=1))
    macro = macro_result([fallen, risen], group_result("total", cells(1, 1, 1, 1)))
    assert macro.acc_before == macro.acc_after == 0.5
    assert macro.conventional_forgetting == 0.25


def test_a_group_counts_under_each_of_its_tags_and_tasks_without_pairs_are_left_out() -> None:
    groups = [
        Group("a", None, ("x", "y"), cells(n11=2)),
        Group("b", None, ("y",), cells(n10=3)),
        Group("c", None, ("z",), Cells(only_before=4)),
    ]
    by_tag = results_by(groups, lambda group: group.tags)
    assert [(group.name, group.n11, group.n10) for group in by_tag] == [("x", 2, 0), ("y", 2, 3)]
    assert [group.name for group in results_by_task(groups)] == ["a", "b"]
