"""Repeated looks: bounds, checked against their definition and betting_upper_limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forgetmap.errors import UsageError
from forgetmap.stats import betting_upper_limit, look_alpha, loss_evidence, monitor
from forgetmap.stats.bounded_mean import SHARES, WEIGHTS


def evidence(scores: list[float], margin: float) -> float:
    """The definition, by plain multiplication."""
    factors = [[1 + f * (x - margin) / margin for x in scores] for f in SHARES]
    return float(sum(v * math.prod(row) for v, row in zip(WEIGHTS, factors, strict=True)))


@pytest.mark.parametrize("scores", [[0.0, 1.0, 0.0, 0.3, 0.0], [0.0] * 30 + [1.0] * 3, [0.02], []])
def test_evidence_is_its_definition(scores: list[float]) -> None:
    assert math.exp(loss_evidence(scores, 0.02)) == pytest.approx(evidence(scores, 0.02))


def test_evidence_is_one_on_average_at_the_margin() -> None:
    """All outcomes of six items that are lost with the probability of the margin."""
    margin, total = 0.2, 0.0
    for lost in range(7):
        chance = math.comb(6, lost) * margin**lost * (1 - margin) ** (6 - lost)
        total += chance * math.exp(loss_evidence([1.0] * lost + [0.0] * (6 - lost), margin))
    assert total == pytest.approx(1)


def test_error_rates_of_all_looks_add_up() -> None:
    assert look_alpha(3, 0.05) == pytest.approx(0.05 / 12)
    assert sum(look_alpha(look, 0.05) for look in range(1, 10_000)) < 0.05
    assert sum(look_alpha(look, 0.05, 40) for look in range(1, 41)) == pytest.approx(0.05)
    with pytest.raises(UsageError, match="planned"):
        look_alpha(41, 0.05, 40)


def test_bound_of_one_look_mirrors_the_upper_limit() -> None:
    scores = np.random.default_rng(0).beta(0.3, 1.0, 80)
    (found,) = monitor([scores], margin=0.02, alpha=0.1)
    assert found.low == pytest.approx(1 - float(betting_upper_limit(1 - scores, 0.05)), abs=1e-9)
    assert found.items == 80
    assert found.mean == pytest.approx(scores.mean())
    assert found.alarm == (found.low > 0.02)


def test_alarm_where_the_evidence_reaches_one_over_alpha() -> None:
    rng = np.random.default_rng(1)
    looks = [(rng.random(100) < 0.06).astype(float) for _ in range(12)]
    found = monitor(looks, margin=0.02, fresh=True)
    reached = [loss_evidence(np.concatenate(looks[: n + 1]), 0.02) for n in range(12)]
    ever = np.maximum.accumulate(reached) >= math.log(20)
    assert [look.alarm for look in found] == ever.tolist()
    assert found[-1].alarm
    assert (np.diff([look.low for look in found]) >= 0).all()


def test_looks_at_the_same_items_are_not_multiplied() -> None:
    look = np.r_[np.ones(4), np.zeros(96)]
    same = monitor([look] * 20, margin=0.02)
    fresh = monitor([look] * 20, margin=0.02, fresh=True)
    assert not any(result.alarm for result in same)
    assert fresh[-1].alarm
    assert same[0].low > same[-1].low


def test_looks_without_loss_or_items() -> None:
    found = monitor([[0.0] * 50, []], margin=0.02, planned=2)
    assert [look.low for look in found] == [0, 0]
    assert math.isnan(found[1].mean)
    assert monitor([], margin=0.02) == []


@pytest.mark.parametrize(
    ("looks", "options"),
    [
        ([[1.2]], {"margin": 0.02}),
        ([[math.nan]], {"margin": 0.02}),
        ([[0.5]], {"margin": 0.0}),
        ([[0.5]], {"margin": 0.02, "alpha": 1.0}),
        ([[0.5], [0.5]], {"margin": 0.02, "planned": 1}),
    ],
)
def test_impossible_arguments_are_refused(
    looks: list[list[float]], options: dict[str, float]
) -> None:
    with pytest.raises(UsageError):
        monitor(looks, **options)  # type: ignore[arg-type]
