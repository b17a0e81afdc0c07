"""From counts to rates: groups without data are null, and means skip them."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.comparison.cells import Cells, Label
from forgetmap.comparison.choice_counts import OptionCounts
from forgetmap.comparison.evidence import Evidence, GroupedEvidence
from forgetmap.comparison.group_results import group_result, macro_result
from forgetmap.comparison.luck import Luck
from forgetmap.comparison.result import GroupResult
from forgetmap.comparison.verdict import Policy
from forgetmap.results import Estimate

RATES = ("forgetting", "backward_transfer", "conditional_forgetting")
PLAIN = ("acc_before", "acc_after", "conventional_forgetting")


def value(group: GroupResult, name: str) -> float | None:
    found = getattr(group, name)
    return found.value if isinstance(found, Estimate) else found


def cells(n11: int = 0, n10: int = 0, n01: int = 0, n00: int = 0) -> Cells:
    n = n11 + n10 + n01 + n00
    options = {math.inf: OptionCounts(n11, n10, n01, n00)}
    return Cells(paired=n, items=n, n11=n11, n10=n10, n01=n01, n00=n00, options=options)


def counted(found: Cells) -> Evidence:
    return Evidence(found, luck={Luck.CHOICES: found.options})


def result(found: Cells, name: str = "g") -> GroupResult:
    return group_result(name, counted(found), Policy())


def mean_over(*tasks: Cells) -> GroupResult:
    evidence = {str(place): counted(each) for place, each in enumerate(tasks)}
    each = [result(found.cells, name) for name, found in evidence.items()]
    return macro_result(evidence, each, result(Cells.total(tasks)), Policy())


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_rates_are_those_of_a_plain_count(flips: list[tuple[bool, bool]]) -> None:
    n, count = len(flips), Counter(flips)
    lost, gained = count[True, False], count[False, True]
    known = sum(before for before, _ in flips)
    before, after = known / n, sum(after for _, after in flips) / n
    group = result(cells(count[True, True], lost, gained, count[False, False]))
    assert group.n == n
    assert value(group, "forgetting") == lost / n
    assert value(group, "backward_transfer") == gained / n
    assert value(group, "conditional_forgetting") == (lost / known if known else None)
    assert (group.acc_before, group.acc_after) == (before, after)
    assert group.conventional_forgetting == pytest.approx(max(before - after, 0), abs=1e-12)


@pytest.mark.parametrize("name", [*RATES, *PLAIN])
def test_no_data_is_null_never_zero(name: str) -> None:
    assert value(result(Cells()), name) is None
    assert value(mean_over(), name) is None


def test_nothing_known_before_leaves_only_the_conditional_rate_without_value() -> None:
    group = result(cells(n01=1, n00=3))
    assert group.conditional_forgetting.value is None
    assert group.forgetting.value == 0
    assert group.backward_transfer.value == 0.25


def test_an_estimate_says_how_it_was_made() -> None:
    estimate = result(cells(n11=48, n10=2)).forgetting
    assert estimate.value == 0.04
    assert estimate.low == pytest.approx(0.008216, abs=1e-6)
    assert estimate.high == pytest.approx(0.137424, abs=1e-6)
    assert estimate.method == "raw, score interval"


def test_the_mean_over_tasks_skips_tasks_without_a_value() -> None:
    unscored = Cells(paired=5, unscored=5)
    macro = mean_over(cells(n01=1, n00=1), cells(n11=3, n10=1), unscored)
    assert macro.conditional_forgetting.value == 0.25
    assert macro.forgetting.value == (0 + 0.25) / 2
    assert macro.acc_before == (0 + 1) / 2
    assert macro.forgetting.method.startswith("raw, mean over tasks")
    assert (macro.n, macro.n10) == (6, 1)


def test_the_mean_of_net_drops_does_not_let_a_rise_hide_a_drop() -> None:
    macro = mean_over(cells(n11=1, n10=1), cells(n01=1, n00=1))
    assert macro.acc_before == macro.acc_after == 0.5
    assert macro.conventional_forgetting == 0.25


def test_a_group_counts_under_each_of_its_tags_and_tasks_without_pairs_are_left_out() -> None:
    groups = {
        Label("a", None, "x; y"): Evidence(cells(n11=2)),
        Label("b", None, "y"): Evidence(cells(n10=3)),
        Label("c", None, "z"): Evidence(Cells(only_before=4)),
    }
    gathered = GroupedEvidence(groups, {})
    found = [(name, each.cells.n11, each.cells.n10) for name, each in gathered.tags().items()]
    assert found == [("x", 2, 0), ("y", 2, 3)]
    assert list(gathered.tasks()) == ["a", "b"]


def test_the_mean_over_tasks_has_its_own_losses_less_gains() -> None:
    mean = mean_over(cells(60, 20, 10, 10), cells(700, 100, 100, 100)).symmetric_noise
    assert mean.value == pytest.approx((0.1 + 0.0) / 2)


def test_the_spread_between_tasks_is_that_of_the_level() -> None:
    tasks = [cells(60, 20, 10, 10), cells(70, 10, 10, 10), cells(50, 5, 5, 40)]
    evidence = {str(place): counted(task) for place, task in enumerate(tasks)}
    groups = [result(task) for task in tasks]
    total = result(Cells.total(tasks))
    widths = []
    for level in (0.9, 0.95):
        between = macro_result(evidence, groups, total, Policy(level=level)).between_tasks
        assert between is not None
        assert between.forgetting.low is not None
        assert between.forgetting.high is not None
        widths.append(between.forgetting.high - between.forgetting.low)
    assert widths[0] < widths[1]
