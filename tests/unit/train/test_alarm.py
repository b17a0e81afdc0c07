"""Results of a look for each group, and alarms that remain rare for any number of looks."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.train.alarm import AlarmRule, Key, KlMeans, judge_look

RULE = AlarmRule(margin=0.02, noise_floor=0.005, alpha=0.05)
CATEGORIES = {"capitals": "facts", "sums": "maths"}


def items(task: str, *answers: bool | None) -> dict[Key, bool | None]:
    return {(task, str(number)): answer for number, answer in enumerate(answers)}


def test_shares_are_of_the_items_with_an_answer_at_both_times() -> None:
    start = items("capitals", True, True, False, True, None) | items("sums", False, True)
    now = items("capitals", True, False, True, None, True) | items("sums", False, True)
    groups = judge_look(1, start, now, CATEGORIES, RULE, {"facts": KlMeans(0.5, 0.25)})
    total, facts = groups["total"], groups["facts"]
    assert (total.items, total.missing) == (5, 1)
    assert (total.forgotten, total.gained, total.accuracy) == (0.2, 0.2, 0.6)
    assert (facts.items, facts.missing) == (3, 1)
    assert (facts.kl_to_start, facts.kl_from_start) == (0.5, 0.25)
    assert groups["maths"].forgotten == 0
    assert list(groups) == ["total", "facts", "maths"]


def test_without_any_answer_nothing_is_forgotten_and_nothing_is_claimed() -> None:
    start = items("capitals", True, True)
    total = judge_look(1, start, {}, CATEGORIES, RULE)["total"]
    assert (total.items, total.missing, total.forgotten, total.alarm) == (0, 2, None, False)


def test_one_category_is_the_total() -> None:
    start = items("capitals", True, True)
    assert list(judge_look(1, start, start, CATEGORIES, RULE)) == ["total"]


def test_a_heavy_loss_raises_the_alarm_where_it_is() -> None:
    start = items("capitals", *[True] * 100) | items("sums", *[True] * 100)
    now = items("capitals", *[True] * 60, *[False] * 40) | items("sums", *[True] * 100)
    groups = judge_look(3, start, now, CATEGORIES, RULE)
    assert {name for name, group in groups.items() if group.alarm} == {"total", "facts"}
    assert 0.02 < groups["facts"].forgotten_at_least < 0.4


def test_the_error_rates_of_all_groups_and_looks_add_up_to_alpha() -> None:
    rates = [
        RULE.group_alpha(look, 3, is_total=is_total)
        for look in range(1, 5000)
        for is_total in (True, False, False, False)
    ]
    assert sum(rates) <= RULE.alpha
    assert sum(rates) == pytest.approx(RULE.alpha, rel=1e-3)


def test_the_start_is_not_tested() -> None:
    start = items("capitals", True, True)
    assert judge_look(0, start, start, CATEGORIES, RULE)["total"].forgotten_at_least == 0


def test_no_more_false_alarms_than_alpha_over_many_looks() -> None:
    """Items that are lost with a chance of just the margin and the floor, anew at each look."""
    rng = np.random.default_rng(5)
    alarms = 0
    start = items("capitals", *[True] * 150) | items("sums", *[True] * 150)
    for _ in range(60):
        for look in range(1, 9):
            lost = rng.random(300) < 0.025
            now = {key: not gone for key, gone in zip(start, lost, strict=True)}
            groups = judge_look(look, start, now, CATEGORIES, RULE)
            if any(group.alarm for group in groups.values()):
                alarms += 1
                break
    assert alarms <= 0.05 * 60
