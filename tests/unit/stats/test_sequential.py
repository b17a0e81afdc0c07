"""Group-sequential looks at repeats, checked by enumeration where possible."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from forgetmap.stats.repeats import excess_scores
from forgetmap.stats.sequential import (
    Look,
    StoppingRule,
    crossing_levels,
    decide,
    give_up,
    look_at,
    verdict_of_limits,
)

SEEN = Look(
    repeats=8, items=100, value=0.05, p=0.02, variance=4e-4, error=0.02, churn=0.1, right=0.6
)
SURE: dict[str, Any] = {
    "value": 0.0,
    "p": 0.5,
    "variance": 1e-8,
    "churn": 0.0,
    "items": 10_000,
    "error": 1e-4,
}


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_fewer_repeats_scatter_around_more_of_them(p: float) -> None:
    """Cov(e_2, e_3) = Var(e_3), by going through all answers of three repeats."""
    moments = np.zeros(3)
    for answers in product((0, 1), repeat=6):
        before, after = np.array(answers[:3]), np.array(answers[3:])
        chance = p ** sum(answers) * (1 - p) ** (6 - sum(answers))
        few = float(excess_scores(before[:2].sum(), 2, after[:2].sum(), 2).lost)
        all_of_them = float(excess_scores(before.sum(), 3, after.sum(), 3).lost)
        moments += chance * np.array([few * all_of_them, all_of_them**2, all_of_them])
    assert moments[2] == pytest.approx(0, abs=1e-12)
    assert moments[0] == pytest.approx(moments[1], rel=1e-9)


def test_a_look_at_nothing_new_does_not_count() -> None:
    levels = crossing_levels([1.0, 1.0, 0.5], [0.25, 0.5, 1.0], 0.05)
    assert levels[1] == 0
    assert levels[2] == crossing_levels([1.0, 0.5], [0.25, 1.0], 0.05)[1]


def test_a_look_sums_up_what_was_dealt() -> None:
    """The variance is that over all ways of dealing the answers of an item to the two sides."""
    before, after = [[1, 1], [1, 0], [0, 0], [1, 1]], [[0, 1], [0, 0], [0, 0], [1, 1]]
    found = look_at([sum(x) for x in before], [2] * 4, [sum(x) for x in after], [2] * 4)
    assert found is not None
    scores, variance = [], 0.0
    for b, a in zip(before, after, strict=True):
        dealt = [
            float(excess_scores(sum(each[:2]), 2, sum(each[2:]), 2).lost)
            for each in permutations(b + a)
        ]
        variance += float(np.var(dealt))
        scores.append(float(excess_scores(sum(b), 2, sum(a), 2).lost))
    assert found.value == pytest.approx(np.mean(scores))
    assert found.variance == pytest.approx(variance / 16)
    assert found.right == pytest.approx(5 / 8)
    weighted = look_at([2, 1, 0], [2] * 3, [1, 0, 0], [2] * 3, [2, 3, 1])
    spelled = look_at([2, 2, 1, 1, 1, 0], [2] * 6, [1, 1, 0, 0, 0, 0], [2] * 6)
    assert weighted == spelled


def test_items_without_two_answers_of_each_are_left_out() -> None:
    found = look_at([1, 2, 2, 0], [1, 2, 2, 2], [0, 1, 2, 0], [2, 2, 2, 1])
    assert found is not None
    assert found.items == 2
    assert look_at([1, 2], [1, 2], [0, 1], [2, 2]) is None


def test_what_one_category_does_not_need_goes_to_the_others() -> None:
    """Two at the last look: .02 alone is below .025 / 1 only once the other is out of the way."""
    rule = StoppingRule(most=8)
    for other, verdict in ((0.01, "lost"), (0.015, "cannot_tell")):
        looks = {"one": [replace(SEEN, p=0.02)], "other": [replace(SEEN, p=other)]}
        found = decide(looks, {}, rule)
        assert found["one"].verdict == verdict
        assert (found["other"].verdict == "lost") == (other <= 0.0125)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.03, 0.5])
@pytest.mark.parametrize("value", [-0.01, 0.0, 0.005, 0.015, 0.05])
@pytest.mark.parametrize("error", [0.001, 0.01, 0.05])
def test_verdict_and_limits_are_one(p: float, value: float, error: float) -> None:
    rule = StoppingRule(most=8)
    look = replace(SEEN, p=p, value=value, error=error, items=5000, variance=error**2 / 2)
    found = decide({"a": [look]}, {}, rule)["a"]
    assert (found.verdict in ("lost", "small_loss")) == (found.low > 0)
    assert (found.verdict in ("no_material_loss", "small_loss")) == (found.high < rule.margin)
    assert found.verdict == verdict_of_limits(found.low, found.high, rule.margin)


def test_no_loss_is_said_only_where_a_loss_would_show() -> None:
    calm = replace(SEEN, **SURE)
    rule = StoppingRule(most=8)
    assert decide({"large": [calm]}, {}, rule)["large"].verdict == "no_material_loss"
    small = replace(calm, items=50, error=0.02)
    assert decide({"small": [small]}, {}, rule)["small"].verdict == "cannot_tell"


def test_a_sure_loss_within_the_margin_is_small() -> None:
    look = replace(SEEN, **SURE | {"value": 0.005, "p": 1e-6})
    found = {
        margin: decide({"a": [look]}, {}, StoppingRule(most=8, margin=margin))["a"].verdict
        for margin in (0.02, 0.006)
    }
    assert found == {0.02: "small_loss", 0.006: "lost"}


def test_no_loss_of_one_group_does_not_depend_on_the_others() -> None:
    calm, rule = replace(SEEN, **SURE), StoppingRule(most=8)
    alone, among = (
        decide({str(n): [calm] for n in range(count)}, {}, rule)["0"].high for count in (1, 50)
    )
    assert alone == among


def test_answers_that_never_vary_end_it_at_once() -> None:
    right = np.array([2] * 30 + [0] * 20)
    look = look_at(right, [2] * 50, right, [2] * 50)
    assert look is not None
    assert look.p == 1
    found = decide({"greedy": [look]}, {}, StoppingRule(most=8))
    assert (found["greedy"].verdict, found["greedy"].why) == ("cannot_tell", "hopeless")


def test_what_may_not_go_on_is_open() -> None:
    early = replace(SEEN, repeats=2, p=0.03)
    assert decide({"a": [early]}, {}, StoppingRule(most=8)) == {}
    assert give_up({"a": [early]}, {}, StoppingRule(most=8))["a"].why == "used_up"
