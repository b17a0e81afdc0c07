from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats.studentised import TermGroup, studentised_bootstrap


def test_limits_are_those_of_a_loop() -> None:
    terms = np.random.default_rng(1).exponential(size=12)
    found = studentised_bootstrap([TermGroup(terms[None])], seed=3, resamples=1000)
    counts = np.random.default_rng((3, 0)).multinomial(12, np.full(12, 1 / 12), 1000)
    mean, error = terms.mean(), terms.std(ddof=1) / np.sqrt(12)
    scores = []
    for each in counts:
        drawn = np.repeat(terms, each)
        scores.append((drawn.mean() - mean) / (drawn.std(ddof=1) / np.sqrt(12)))
    low, high, upper = np.quantile(scores, [0.975, 0.025, 0.05])
    assert found.value[0] == pytest.approx(mean)
    assert found.low[0] == pytest.approx(mean - low * error)
    assert found.high[0] == pytest.approx(mean - high * error)
    assert found.upper[0] == pytest.approx(mean - upper * error)


def test_independent_parts_add_up() -> None:
    random = np.random.default_rng(2)
    one, other = random.normal(3, 1, (2, 30)), random.normal(5, 2, (2, 50))
    found = studentised_bootstrap([TermGroup(one, 0.5), TermGroup(other, 0.5)], seed=1)
    assert found.value == pytest.approx((one.mean(1) + other.mean(1)) / 2)
    error = np.sqrt(one.var(1, ddof=1) / 30 + other.var(1, ddof=1) / 50) / 2
    assert (found.high - found.low) / 2 == pytest.approx(2 * error, rel=0.15)


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_terms_that_are_nearly_all_the_same_have_no_interval(odd: int) -> None:
    terms = np.full((1, 9), 0.25)
    terms[0, :odd] = 0.5
    found = studentised_bootstrap([TermGroup(terms)])
    assert found.value[0] == pytest.approx(0.25 + 0.25 * odd / 9)
    assert np.isnan([found.low[0], found.high[0], found.upper[0]]).all()
    terms[0, :3] = 0.5
    assert not np.isnan(studentised_bootstrap([TermGroup(terms)]).low[0])


def test_one_term_has_no_interval() -> None:
    found = studentised_bootstrap([TermGroup(np.array([[0.25]]))])
    assert found.value[0] == 0.25
    assert np.isnan([found.low[0], found.high[0], found.upper[0]]).all()


def test_the_same_seed_gives_the_same_limits() -> None:
    terms = np.random.default_rng(0).normal(size=(1, 20))
    first, second, other = (
        studentised_bootstrap([TermGroup(terms)], seed=seed) for seed in (1, 1, 2)
    )
    assert first.low[0] == second.low[0]
    assert first.low[0] != other.low[0]
