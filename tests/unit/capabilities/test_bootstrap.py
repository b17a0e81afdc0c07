from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from forgetmap.capabilities.bootstrap import limits, shared_sums, two_sided_p, widening


def test_limits_widen_as_students_law_asks_for() -> None:
    expected = stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975) * np.sqrt(10 / 9)
    assert widening(np.ones(10)) == pytest.approx(expected)
    assert widening(np.ones(10_000)) == pytest.approx(1, abs=1e-3)


def test_units_of_unequal_sizes_count_as_fewer() -> None:
    equal, unequal = widening(np.full(6, 10.0)), widening(np.array([50.0, 2, 2, 2, 2, 2]))
    assert equal is not None
    assert unequal is not None
    assert unequal > equal


@pytest.mark.parametrize("sizes", [[7.0], [7.0, 0.0], []])
def test_a_single_unit_has_no_spread(sizes: list[float]) -> None:
    assert widening(np.array(sizes)) is None


def test_p_is_small_if_and_only_if_the_limits_leave_out_zero() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        draws = random.normal(random.normal(0, 2), 1, int(random.integers(50, 400)))
        ends = limits(draws)
        assert ends is not None
        assert (two_sided_p(draws) <= 0.05) == (not ends[0] <= 0 <= ends[1])


def test_p_goes_below_what_draws_can_count() -> None:
    draws = np.random.default_rng(1).normal(8, 1, 200)
    assert two_sided_p(draws) == pytest.approx(2 * stats.norm.sf(draws.mean() / draws.std()))
    assert two_sided_p(np.zeros(100)) == 1
    assert two_sided_p(np.full(10, np.nan)) == 1
    assert limits(np.full(10, np.nan)) is None


def test_a_shared_unit_has_the_same_weights_everywhere() -> None:
    rows = np.array([[1.0], [10.0], [100.0]])
    keys = np.array([5, 6, 7], np.uint64)
    together = shared_sums(rows, keys, 3, 500)
    apart = sum(shared_sums(rows[[at]], keys[[at]], 3, 500) for at in range(3))
    assert np.array_equal(together, apart)
    assert together.mean() == pytest.approx(111, rel=0.1)
    assert not np.array_equal(together, shared_sums(rows, keys, 4, 500))
