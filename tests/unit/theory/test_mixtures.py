"""Mixtures, the three quadratures, objectives and flows, checked against other methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.stats import norm

from forgetmap.errors import ConvergenceError, FieldError, UsageError
from forgetmap.theory import flows, formulas, mixtures, objectives
from forgetmap.theory.flows import follow
from forgetmap.theory.mixtures import Mixture, check_share, state, target_mixture
from forgetmap.theory.objectives import (
    Entropic,
    ForwardKL,
    MinusReward,
    NewMembership,
    Objective,
    OffPolicyRegression,
    ReverseKL,
    kl_regularised,
)
from forgetmap.theory.quadrature import GaussHermite, Grid, MonteCarlo

TARGET = target_mixture(0.3, 4.0)
REWARD = NewMembership(TARGET, np.array(1.5))
BASE = Mixture.of([0.5, 0.5], [0.0, 3.5])
OBJECTIVES: list[Objective] = [
    ForwardKL(TARGET),
    ForwardKL(Mixture.of([1.0], [4.0])),
    ReverseKL(TARGET),
    ReverseKL(Mixture.of([1.0], [4.0])),
    ReverseKL(Mixture.of([0.2, 0.5, 0.3], [0.0, 4.0, 3.0])),
    ReverseKL(kl_regularised(BASE, REWARD, 0.5)),
    MinusReward(REWARD),
    Entropic(REWARD, np.array(2.0), BASE, np.array(0.5)),
    OffPolicyRegression(REWARD, state(0.6, 0.1, 3.8), 1.0, 0.5),
]


def density(x: float, weight: float, old: float, new: float) -> float:
    return float(weight * norm.pdf(x, old) + (1 - weight) * norm.pdf(x, new))


def test_divergences_are_those_of_adaptive_integration() -> None:
    def gap(x: float, sign: int) -> float:
        p, q = density(x, 0.3, 0.0, 4.0), density(x, 0.4, 0.3, 3.3)
        return float((p if sign > 0 else q) * sign * np.log(p / q))

    model = state(0.4, 0.3, 3.3)
    forward = quad(gap, -12, 16, args=(1,), limit=400)[0]
    reverse = quad(gap, -12, 16, args=(-1,), limit=400)[0]
    assert float(ForwardKL(TARGET).value(model)) == pytest.approx(forward, abs=1e-9)
    assert float(ReverseKL(TARGET).value(model)) == pytest.approx(reverse, abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_gradients_are_those_of_differences(objective: Objective) -> None:
    model = state(0.4, 0.3, 3.3)
    slopes = approx_fprime(model, lambda each: float(objective.value(each)), 1e-6)
    np.testing.assert_allclose(objective.gradient(model), slopes, atol=2e-6)


def test_cells_are_followed_as_if_alone() -> None:
    apart = np.array([3.0, 5.0])
    together = follow(ForwardKL(Mixture.of([1.0], [apart])), state(0.5, 0.0, apart - 1), [50.0])
    for place, separation in enumerate(apart):
        alone = follow(
            ForwardKL(Mixture.of([1.0], [separation])), state(0.5, 0.0, separation - 1), [50.0]
        )
        np.testing.assert_allclose(together.end[:, place], alone.end, atol=1e-6)


def test_three_quadratures_agree() -> None:
    mean, wide = np.array([0.4]), np.array([[1.3]])

    def share(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(2.5 * x[:, 0] - 1)))

    grid = float(Grid().expect(share, mean, wide))
    assert float(GaussHermite().expect(share, mean, wide)) == pytest.approx(grid, abs=1e-8)
    plane = GaussHermite().expect(share, np.array([0.4, -1.0]), np.array([[1.3, 0.5], [0.5, 2.0]]))
    assert float(plane) == pytest.approx(grid, abs=1e-8)
    drawn, error = MonteCarlo(200_000, seed=3).expect_with_error(share, mean, wide)
    assert abs(drawn - grid) < 4 * error
    exact = quad(lambda z: share(np.array([[0.4 + np.sqrt(1.3) * z]]))[0] * norm.pdf(z), -12, 12)[0]
    assert grid == pytest.approx(exact, abs=1e-8)


def test_quadratures_refuse_dimensions_they_cannot_do() -> None:
    flat = np.zeros(3), np.eye(3)
    for rule in (Grid(), GaussHermite()):
        with pytest.raises(UsageError):
            rule.expect(lambda x: x[:, 0], *flat)


def test_the_plane_reduces_to_the_axis() -> None:
    covariance = np.array([[2.0, 0.6], [0.6, 1.0]])
    old, new = np.array([0.0, 1.0]), np.array([3.0, 0.0])
    separation = np.sqrt((new - old) @ np.linalg.solve(covariance, new - old))
    overlap = mixtures.overlap(old, covariance, new, covariance)
    assert overlap == pytest.approx(float(formulas.gaussian_overlap(separation)))
    assert target_mixture(0.3, separation).means[1] == pytest.approx(separation)


def test_region_mass_is_a_distribution_function() -> None:
    found = float(mixtures.region_mass(state(0.4, 0.2, 3.7), 4.0))
    assert found == pytest.approx(0.4 * norm.cdf(1.8) + 0.6 * norm.cdf(-1.7))


def test_exchanged_labels_are_no_drift() -> None:
    swapped = mixtures.match_components(state(0.4, 5.0, 0.1), 5.0)
    assert swapped[1] == pytest.approx(0.1)
    assert 1 / (1 + np.exp(-swapped[0])) == pytest.approx(0.6)


def test_gated_gradient_is_the_gradient() -> None:
    random = np.random.default_rng(5)
    model = state(random.uniform(0.1, 0.9, 20), random.normal(0, 1, 20), random.normal(4, 1, 20))
    closed = objectives.overlap_gated_gradient(model, TARGET)
    np.testing.assert_allclose(closed, ReverseKL(TARGET).gradient(model)[1:], atol=1e-12)


def test_geometries_move_the_weight_at_their_own_pace() -> None:
    loss, start = ForwardKL(Mixture.of([1.0], [8.0])), state(0.5, 0.0, 8.0)
    speed = {
        geometry: float(flows.velocity(loss, "weight", geometry)(start)[0])
        for geometry in ("logit", "natural", "euclid")
    }
    assert speed["natural"] == pytest.approx(speed["logit"] / 0.25)
    assert speed["euclid"] == pytest.approx(speed["logit"] / 0.25**2)


def test_masks_hold_what_is_not_trained() -> None:
    loss, start = ForwardKL(Mixture.of([1.0], [3.0])), state(0.5, 0.0, 2.0)
    assert follow(loss, start, [5.0], trained="weight").end[1:].tolist() == [0.0, 2.0]
    held = follow(loss, start, [5.0], trained="weight+new").end
    assert held[1] == 0.0
    assert held[2] > 2.0


def test_an_event_ends_the_flow() -> None:
    loss = ForwardKL(Mixture.of([1.0], [6.0]))
    path = follow(loss, state(0.5, 0.0, 6.0), [1e4], stop=lambda model: float(model[0]) + 2)
    assert path.stopped is not None
    assert path.end[0] == pytest.approx(-2, abs=1e-6)


def test_flows_that_blow_up_say_so() -> None:
    loss, start = ForwardKL(Mixture.of([1.0], [8.0])), state(0.5, 0.0, 8.0)
    with pytest.raises(ConvergenceError, match="a parameter became infinite"):
        follow(loss, start, [0.1, 1.0], trained="weight", geometry="euclid")


def test_descent_that_runs_away_says_so() -> None:
    with pytest.raises(ConvergenceError, match="diverged within"):
        flows.descend(lambda model, _: -model * 1e200, state(0.4, 1.0, 2.0), 3, 1e200, seed=0)


@pytest.mark.parametrize("times", [[], [0.0], [2.0, 1.0], [np.nan]])
def test_times_must_grow(times: list[float]) -> None:
    with pytest.raises(UsageError):
        follow(ForwardKL(TARGET), state(0.5, 0.0, 4.0), times)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, np.nan])
def test_shares_outside_their_range_are_named(share: float) -> None:
    with pytest.raises(FieldError, match="old_share is"):
        check_share(share, "old_share")
