"""Estimators from log-probabilities, on distributions that can be enumerated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forgetmap.errors import FieldError
from forgetmap.theory import estimators

P = np.array([0.5, 0.3, 0.15, 0.05])
Q = np.array([0.1, 0.2, 0.3, 0.4])
RATIO = np.log(P / Q)


def test_terms_average_to_their_definitions() -> None:
    half = (P + Q) / 2
    overlap = float(np.sqrt(P * Q).sum())
    assert half @ estimators.overlap_terms(RATIO) == pytest.approx(overlap)
    assert P @ estimators.one_sided_overlap_terms(RATIO) == pytest.approx(overlap)
    distance = np.abs(P - Q).sum() / 2
    assert half @ estimators.total_variation_terms(RATIO) == pytest.approx(distance)
    taken = P @ estimators.misassignment_terms(RATIO, 0.7)
    assert taken == pytest.approx((P * 0.7 * Q / (0.3 * P + 0.7 * Q)).sum())
    assert taken <= estimators.misassignment_bound(overlap, 0.7)


def test_kl_terms_average_to_the_divergence() -> None:
    truth = float((P * np.log(P / Q)).sum())
    assert P @ estimators.kl_terms(RATIO, "k1") == pytest.approx(truth)
    assert P @ estimators.kl_terms(RATIO, "k3") == pytest.approx(truth)
    assert Q @ estimators.kl_terms(-RATIO, "k3") == pytest.approx((Q * np.log(Q / P)).sum())
    assert (estimators.kl_terms(RATIO, "k3") >= 0).all()
    np.testing.assert_allclose(estimators.kl_terms(RATIO, "k2"), RATIO**2 / 2)


def test_token_kl_and_its_lower_bound() -> None:
    logs = np.log(np.stack([P, Q])), np.log(np.stack([Q, P]))
    found = estimators.token_kl(*logs)
    np.testing.assert_allclose(found, [(P * RATIO).sum(), -(Q * RATIO).sum()])
    fewer = estimators.top_token_kl(logs[0][:, :2], logs[1][:, :2])
    lumped = [P[0], P[1], P[2] + P[3]], [Q[0], Q[1], Q[2] + Q[3]]
    expected = sum(p * math.log(p / q) for p, q in zip(*lumped, strict=True))
    assert fewer[0] == pytest.approx(expected)
    assert (fewer <= found).all()


def test_tokens_of_probability_zero_cost_nothing() -> None:
    log_p = np.log([[0.5, 0.5, 1e-300]])
    log_p[0, 2] = -np.inf
    assert estimators.token_kl(log_p, np.log([[0.25, 0.25, 0.5]]))[0] == pytest.approx(math.log(2))


def test_impossible_completions_are_taken_as_they_are() -> None:
    ratio = estimators.log_ratio([-1.0, -np.inf], [-2.0, -3.0])
    assert ratio[1] == -np.inf
    assert estimators.overlap_terms(ratio)[1] == pytest.approx(0.0, abs=1e-100)
    assert estimators.misassignment_terms(ratio)[1] == pytest.approx(1.0)


def test_pooling_weighs_both_models_alike_whatever_their_numbers() -> None:
    found = estimators.pooled([0.2, 0.4, 0.9], [True, True, False])
    assert found.value == pytest.approx((0.3 + 0.9) / 2)
    with pytest.raises(FieldError, match="3 of 3"):
        estimators.pooled([0.2, 0.4, 0.9], [True, True, True])


@pytest.mark.parametrize(
    ("log_p", "log_q", "said"),
    [
        ([-1.0, np.nan], [-1.0, -1.0], "log_p.*value 2 is not a number"),
        ([-1.0, -1.0], [-1.0, 0.5], "log_q.*above 0"),
        ([-1.0], [-1.0, -2.0], "shape"),
        ([], [], "no log-probabilities"),
        ([-np.inf], [-np.inf], "both models assign this completion the probability 0"),
    ],
)
def test_bad_log_probabilities_are_named(log_p: list[float], log_q: list[float], said: str) -> None:
    with pytest.raises(FieldError, match=said):
        estimators.log_ratio(log_p, log_q)


def test_other_tokenisations_are_noticed() -> None:
    with pytest.raises(FieldError, match="completion 2 has different numbers of tokens"):
        estimators.log_ratio([-1.0, -2.0], [-1.0, -2.0], [3, 4], [3, 5])
    with pytest.raises(FieldError, match="vocabularies differ"):
        estimators.token_kl(np.log([[0.5, 0.5]]), np.log([[0.4, 0.3, 0.3]]))
    with pytest.raises(FieldError, match="do not sum to 1"):
        estimators.token_kl(np.log([[0.5, 0.2]]), np.log([[0.4, 0.6]]))


def test_retention_floor_spends_the_whole_divergence() -> None:
    for mass, kl in ((0.5, 0.3), (0.05, 0.2), (0.9, 2.0)):
        floor = float(estimators.retention_floor(mass, kl))
        spent = mass * math.log(mass / floor) + (1 - mass) * math.log((1 - mass) / (1 - floor))
        assert spent == pytest.approx(kl, rel=1e-6)
        assert floor < mass
        assert float(estimators.simple_retention_floor(mass, kl)) <= floor
    assert float(estimators.retention_floor(0.4, 0.0)) == pytest.approx(0.4)
    assert float(estimators.retention_floor(0.0, 1.0)) == 0.0


def test_reverse_floor_goes_blind() -> None:
    limit = -math.log(1 - 0.3)
    assert float(estimators.reverse_retention_floor(0.3, limit * 0.5)) > 0
    assert float(estimators.reverse_retention_floor(0.3, limit * 1.01)) == 0.0


@pytest.mark.parametrize(("mass", "kl"), [(1.2, 0.1), (-0.1, 0.1), (0.5, -0.1), (0.5, np.nan)])
def test_bad_certificates_are_refused(mass: float, kl: float) -> None:
    with pytest.raises(FieldError):
        estimators.retention_floor(mass, kl)


def test_old_mass_is_the_maximum_of_the_likelihood() -> None:
    random = np.random.default_rng(0)
    x = np.where(random.random(4000) < 0.3, 0.0, 3.0) + random.standard_normal(4000)
    found = estimators.old_mass(-0.5 * x**2, -0.5 * (x - 3) ** 2)
    ratio = np.exp(-0.5 * x**2 + 0.5 * (x - 3) ** 2)
    grid = np.linspace(0.001, 0.999, 999)
    likelihood = np.log1p(grid[:, None] * (ratio - 1)).sum(axis=1)
    assert found.value == pytest.approx(grid[likelihood.argmax()], abs=1e-3)
    assert abs(found.value - 0.3) < 4 * found.standard_error


def test_models_that_cannot_be_told_apart_have_no_old_mass() -> None:
    assert estimators.old_mass([-1.0, -2.0], [-1.0, -2.0]).standard_error == math.inf


def test_a_stream_gives_what_the_whole_gives() -> None:
    values = np.random.default_rng(1).exponential(size=1000)
    running = estimators.Running()
    for part in np.array_split(values, 7):
        running.add(part)
    streamed, whole = running.estimate(), estimators.mean(values)
    assert streamed.value == pytest.approx(whole.value)
    assert streamed.standard_error == pytest.approx(whole.standard_error)
    assert streamed.effective == pytest.approx(whole.effective)


def test_prompts_are_drawn_whole() -> None:
    """Ten prompts whose completions agree are ten observations, not a thousand."""
    level = np.random.default_rng(2).random(10)
    found = estimators.over_prompts(np.repeat(level, 100), np.repeat(np.arange(10), 100))
    assert found.prompts == 10
    assert found.value == pytest.approx(level.mean())
    spread = level.std() / math.sqrt(10)
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.15)
    again = estimators.over_prompts(np.repeat(level, 100), np.repeat(np.arange(10), 100))
    assert found == again


def test_effective_size() -> None:
    assert estimators.effective_size(np.ones(7)) == pytest.approx(7)
    assert estimators.effective_size([1, 0, 0]) == pytest.approx(1)
    assert estimators.effective_size_of_logs([1000.0, 1000.0]) == pytest.approx(2)


def test_effective_separation_inverts_the_overlap() -> None:
    assert estimators.effective_separation(math.exp(-(3.0**2) / 8)) == pytest.approx(3.0)
    assert estimators.effective_separation(0.0) == math.inf
