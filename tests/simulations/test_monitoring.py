"""Trainings that never lose more than the margin raise few alarms, for any number of looks."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import monitor

LOOKS = 40


def alarm_rate(*, items: int, loss: float, fresh: bool, stickiness: float, trainings: int) -> float:
    """How often any look alarms; the loss sits at its value at every look.

    Each look, a share `stickiness` of the same items keeps the score it had.
    """
    rng = np.random.default_rng(int(1000 * loss) + items)
    alarms = 0
    for _ in range(trainings):
        looks = (rng.random((LOOKS, items)) < loss).astype(float)
        for look in range(1, LOOKS):
            kept = rng.random(items) < stickiness
            looks[look, kept] = looks[look - 1, kept]
        alarms += any(x.alarm for x in monitor(list(looks), margin=0.02, fresh=fresh))
    return alarms / trainings


@pytest.mark.parametrize("fresh", [True, False])
def test_few_trainings_alarm_falsely(fresh: bool) -> None:
    rate = alarm_rate(items=200, loss=0.02, fresh=fresh, stickiness=0.0, trainings=30)
    assert rate <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("items", [50, 400])
def test_fresh_items_alarm_falsely_in_few_trainings(items: int) -> None:
    rate = alarm_rate(items=items, loss=0.02, fresh=True, stickiness=0.0, trainings=300)
    assert rate <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("stickiness", [0.0, 0.9])
def test_the_same_items_alarm_falsely_in_few_trainings(stickiness: float) -> None:
    rate = alarm_rate(items=300, loss=0.02, fresh=False, stickiness=stickiness, trainings=150)
    assert rate <= 0.05


def test_losses_above_the_margin_are_found() -> None:
    kind = {"items": 400, "loss": 0.06, "stickiness": 0.9, "trainings": 12}
    assert alarm_rate(**kind, fresh=False) >= 0.8  # type: ignore[arg-type]
    kind["stickiness"] = 0.0
    assert alarm_rate(**kind, fresh=True) == 1  # type: ignore[arg-type]
