"""Trainings that never lose more than the margin raise few alarms, for any number of looks."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.train.alarm import AlarmRule, WatchedItems, judge_look

LOOKS, MARGIN = 20, 0.02
RULE = AlarmRule(margin=MARGIN, alpha=0.025)
CATEGORIES = {f"t{number}": f"c{number % 3}" for number in range(9)}


def alarm_rate(
    *, items: int, loss: float, gain: float, noise: float, trainings: int, rule: AlarmRule = RULE
) -> float:
    """How often any look alarms; a share is lost and another gained from the first look on.

    A share of 4 times `noise` of the items is right half of the time, at every look anew.
    """
    rng = np.random.default_rng([items, int(1000 * loss), int(1000 * noise)])
    keys = [(f"t{number % 9}", str(number)) for number in range(items)]
    watched = WatchedItems(CATEGORIES, {})
    alarms = 0
    for _ in range(trainings):
        place = rng.random(items)
        before = np.where(place < loss, 1.0, np.where(place < loss + gain, 0.0, place < 0.7))
        coin = (place >= loss + gain) & (rng.random(items) < 4 * noise)
        after = np.where(place < loss, 0.0, np.where(place < loss + gain, 1.0, before))
        chances = [np.where(coin, 0.5, before), np.where(coin, 0.5, after)]
        start, *later = (
            dict(zip(keys, (rng.random(items) < chances[look > 0]).tolist(), strict=True))
            for look in range(LOOKS + 1)
        )
        for look, now in enumerate(later, 1):
            earlier = later[look - 2] if look > 1 else None
            groups = judge_look(look, start, now, watched, rule, earlier=earlier)
            if any(group.alarm for group in groups.values()):
                alarms += 1
                break
    return alarms / trainings


@pytest.mark.parametrize("noise", [0.0, 0.015, 0.08])
@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_few_trainings_alarm_falsely(noise: float, gain: float) -> None:
    rate = alarm_rate(items=200, loss=MARGIN, gain=gain, noise=noise, trainings=35)
    assert rate <= 0.03


@pytest.mark.slow
@pytest.mark.parametrize("items", [50, 400, 2000])
@pytest.mark.parametrize("noise", [0.0, 0.015, 0.08])
@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_few_trainings_alarm_falsely_in_many_worlds(items: int, noise: float, gain: float) -> None:
    rate = alarm_rate(items=items, loss=MARGIN, gain=gain, noise=noise, trainings=300)
    assert rate <= 0.03


@pytest.mark.parametrize("gain", [0.0, 0.08])
def test_losses_above_the_margin_are_found(gain: float) -> None:
    """Also under an equal gain: the look before tells what stays lost."""
    rate = alarm_rate(items=1000, loss=0.08, gain=gain, noise=0.015, trainings=10)
    assert rate >= 0.8
