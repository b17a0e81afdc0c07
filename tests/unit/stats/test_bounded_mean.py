from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from forgetmap.errors import UsageError
from forgetmap.stats import betting_upper_limit

BETS = {0.99: 1 / 4, 1.0: 1 / 4} | {
    f / 100: 1 / 30 for f in (1, 2, 4, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 95)
}


def fortune(values: list[float], mean: float) -> float:
    """The definition, by plain multiplication."""
    return sum(
        weight * float(np.prod([1 + bet * (mean - value) / (1 - mean) for value in values]))
        for bet, weight in BETS.items()
    )


@pytest.mark.parametrize(
    "values",
    [[0.0] * 30, [0.1, 0.5, 0.2, 0.9, 0.3], [0.0] * 40 + [1.0], [0.02] * 25, [0.7]],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_limit_is_where_the_bets_reach_one_over_alpha(
    values: list[float], alpha: float
) -> None:
    root = brentq(lambda mean: fortune(values, mean) - 1 / alpha, np.mean(values), 1 - 1e-4)
    assert float(betting_upper_limit(values, alpha)) == pytest.approx(root, abs=1e-9)


def test_many_data_sets_at_once_and_any_order() -> None:
    random = np.random.default_rng(0)
    draws = random.uniform(size=(3, 4, 20))
    limits = betting_upper_limit(draws)
    assert limits.shape == (3, 4)
    assert limits[1, 2] == pytest.approx(float(betting_upper_limit(draws[1, 2, ::-1])), abs=1e-12)


def test_the_ends_of_the_range() -> None:
    assert float(betting_upper_limit([1.0, 1.0, 1.0])) == 1
    assert float(betting_upper_limit([])) == 1
    # The boldest bet alone: 1 / (4 (1 - m)^100) = 20.
    assert 0.03 < float(betting_upper_limit([0.0] * 100)) < 1 - 80 ** (-1 / 100)


@pytest.mark.parametrize("wrong", [[-0.1, 0.2], [0.2, 1.1], [float("nan")]])
def test_values_outside_the_range_are_refused(wrong: list[float]) -> None:
    with pytest.raises(UsageError, match="outside"):
        betting_upper_limit(wrong)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_level_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        betting_upper_limit([0.1], alpha)
