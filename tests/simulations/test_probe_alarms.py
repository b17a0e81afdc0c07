"""A probe of an unchanged model seldom raises an alarm, also in small groups."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import alarm_p, family_wise, self_loss

ALARM = 0.05


def probe_p(
    items: int, repeats: int, wavering: float, p: float, random: np.random.Generator
) -> tuple[float, float]:
    """Of one group: p of an unchanged model, and of one that lost a tenth of the items."""
    chance = np.where(random.random(items) < wavering, p, 1.0)
    right = random.binomial(repeats, chance)
    stable = right == repeats
    if not stable.any():
        return 1.0, 1.0
    _, floor = self_loss(right, np.full(items, repeats))
    wrong = stable & (random.random(items) >= chance)
    lost = stable & (random.random(items) < 0.1)
    n = int(stable.sum())
    return alarm_p(float(wrong.sum()), n, floor), alarm_p(float((wrong | lost).sum()), n, floor)


def alarm_rates(
    items: int, repeats: int, wavering: float, p: float, draws: int
) -> tuple[float, float]:
    random = np.random.default_rng(7)
    values = np.array([probe_p(items, repeats, wavering, p, random) for _ in range(draws)])
    false, power = (values <= ALARM).mean(axis=0)
    return float(false), float(power)


@pytest.mark.parametrize("items", [15, 30, 60, 150])
@pytest.mark.parametrize("repeats", [2, 4])
def test_a_tenth_of_the_items_wavers(items: int, repeats: int) -> None:
    false, power = alarm_rates(items, repeats, 0.1, 0.9, 400)
    assert false <= 0.05
    assert power > (0.5 if items == 150 else 0.0) or repeats == 2


@pytest.mark.slow
@pytest.mark.parametrize("items", [10, 15, 30, 60, 150, 600])
@pytest.mark.parametrize("repeats", [2, 3, 4, 8])
@pytest.mark.parametrize(("wavering", "p"), [(0.1, 0.9), (0.3, 0.9), (0.5, 0.95), (1.0, 0.95)])
def test_false_alarms_are_rare_in_many_worlds(
    items: int, repeats: int, wavering: float, p: float
) -> None:
    false, _ = alarm_rates(items, repeats, wavering, p, 2000)
    assert false <= 0.05


@pytest.mark.parametrize("groups", [10, 40])
def test_no_group_of_many_raises_an_alarm(groups: int) -> None:
    random = np.random.default_rng(8)
    alarms = 0
    for _ in range(100):
        values = [probe_p(60, 4, 0.3, 0.9, random)[0] for _ in range(groups)]
        alarms += bool((family_wise(values) <= ALARM).any())
    assert alarms <= 5
