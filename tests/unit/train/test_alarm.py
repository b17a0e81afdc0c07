"""Results of a look for each group, and alarms that remain rare for any number of looks."""

from __future__ import annotations

import pytest

from forgetmap.train.alarm import AlarmRule, Key, KlMeans, WatchedItems, judge_look

RULE = AlarmRule(margin=0.02, alpha=0.025)
ITEMS = WatchedItems({"capitals": "facts", "sums": "maths"}, {})


def items(task: str, *answers: bool | None) -> dict[Key, bool | None]:
    return {(task, str(number)): answer for number, answer in enumerate(answers)}


def test_shares_are_of_the_items_with_an_answer_at_both_times() -> None:
    start = items("capitals", True, True, False, True, None) | items("sums", False, True)
    now = items("capitals", True, False, True, None, True) | items("sums", False, True)
    groups = judge_look(1, start, now, ITEMS, RULE, kl={"facts": KlMeans(0.5, 0.25)})
    total, facts = groups["total"], groups["facts"]
    assert (total.items, total.missing) == (5, 1)
    assert (total.forgotten, total.gained, total.accuracy) == (0.2, 0.2, 0.6)
    assert (facts.items, facts.missing) == (3, 1)
    assert (facts.kl_to_start, facts.kl_from_start) == (0.5, 0.25)
    assert groups["maths"].forgotten == 0
    assert list(groups) == ["total", "facts", "maths"]


def test_without_any_answer_nothing_is_forgotten_and_nothing_is_claimed() -> None:
    start = items("capitals", True, True)
    total = judge_look(1, start, {}, ITEMS, RULE)["total"]
    assert (total.items, total.missing, total.forgotten, total.alarm) == (0, 2, None, False)


def test_one_category_is_the_total() -> None:
    start = items("capitals", True, True)
    assert list(judge_look(1, start, start, ITEMS, RULE)) == ["total"]


def test_a_heavy_loss_raises_the_alarm_where_it_is() -> None:
    start = items("capitals", *[True] * 100) | items("sums", *[True] * 100)
    now = items("capitals", *[True] * 60, *[False] * 40) | items("sums", *[True] * 100)
    groups = judge_look(3, start, now, ITEMS, RULE)
    assert {name for name, group in groups.items() if group.alarm} == {"total", "facts"}
    assert 0.02 < groups["facts"].lost_at_least < 0.4


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
    assert judge_look(0, start, start, ITEMS, RULE)["total"].lost_at_least == 0


def test_what_is_lost_at_two_looks_is_found_under_an_equal_gain() -> None:
    start = items("capitals", *[True] * 60, *[False] * 60, *[True] * 80)
    now = items("capitals", *[False] * 60, *[True] * 60, *[True] * 80)
    alone = judge_look(2, start, now, ITEMS, RULE)["total"]
    assert (alone.forgotten, alone.gained, alone.lost_at_least) == (0.3, 0.3, 0)
    known = judge_look(2, start, now, ITEMS, RULE, earlier=now)["total"]
    assert 0.2 < known.lost_at_least < 0.3
    assert known.alarm
    unstable = judge_look(2, start, now, ITEMS, RULE, earlier=start)["total"]
    assert unstable.lost_at_least == 0


def test_a_stated_noise_floor_adds_a_limit() -> None:
    start = items("capitals", *[True] * 60, *[False] * 60, *[True] * 80)
    now = items("capitals", *[False] * 60, *[True] * 60, *[True] * 80)
    rule = AlarmRule(margin=0.02, alpha=0.025, noise_floor=0.01)
    assert judge_look(1, start, now, ITEMS, RULE)["total"].lost_at_least == 0
    assert judge_look(1, start, now, ITEMS, rule)["total"].lost_at_least > 0.15


def test_items_of_a_passage_are_one_observation() -> None:
    start = items("capitals", *[True] * 200)
    now = items("capitals", *[False] * 20, *[True] * 180)
    whole = {("capitals", str(number)): f"passage {number // 20}" for number in range(200)}
    assert judge_look(1, start, now, ITEMS, RULE)["total"].alarm
    clustered = WatchedItems(ITEMS.categories, whole)
    assert not judge_look(1, start, now, clustered, RULE)["total"].alarm
