"""Shrinkage over tasks, checked against its formulas and a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import brentq
from statsmodels.stats.meta_analysis import combine_effects

from forgetmap.stats import latent_sums, raw_sums, score_variance, shrink
from forgetmap.stats.intervals import score_interval
from forgetmap.stats.shrinkage import between_variance


def losses(rng: np.random.Generator, tasks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth = rng.normal(0.03, 0.02, tasks)
    variances = rng.uniform(0.01, 0.03, tasks) ** 2
    return truth, rng.normal(truth, np.sqrt(variances)), variances


def test_spread_between_tasks_agrees_with_statsmodels() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        _, values, variances = losses(rng, 12)
        theirs = combine_effects(values, variances, method_re="pm", use_t=False).tau2
        assert between_variance(values, variances) == pytest.approx(max(theirs, 0), abs=1e-7)


def test_spread_solves_its_equation() -> None:
    _, values, variances = losses(np.random.default_rng(1), 30)

    def excess(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        centre = (weights * values).sum() / weights.sum()
        return float((weights * (values - centre) ** 2).sum() - 29)

    assert between_variance(values, variances) == pytest.approx(brentq(excess, 0, 1), rel=1e-9)


def test_one_task_by_hand() -> None:
    _, values, variances = losses(np.random.default_rng(2), 9)
    found = shrink(values, variances, margin=0.02)
    assert found is not None
    tau2, t = found.spread, 9
    mu = (values / (variances + tau2)).sum() / (1 / (variances + tau2)).sum()
    v, theta = variances[3], values[3]
    b = 6 / 8 * v / (v + tau2)
    mean = theta - b * (theta - mu)
    ratio = (variances.mean() + tau2) / (v + tau2)
    variance = v * (1 - b * 8 / t) + 2 / 6 * b**2 * (theta - mu) ** 2 * ratio
    assert found.interval.value[3] == pytest.approx(mean)
    assert (found.interval.high - found.interval.low)[3] == pytest.approx(
        3.92 * variance**0.5, rel=1e-4
    )
    assert found.exceeds[3] == pytest.approx(scipy_stats.norm.sf(0.02, mean, variance**0.5))


def test_few_tasks_and_tasks_without_estimate() -> None:
    assert shrink([0.1, 0.2, np.nan, 0.3], [0.1] * 4, margin=0.02) is None
    _, values, variances = losses(np.random.default_rng(3), 6)
    found = shrink([*values, np.nan], [*variances, np.nan], margin=0.02)
    alone = shrink(values, variances, margin=0.02)
    assert found is not None
    assert alone is not None
    assert found.interval.value[:6] == pytest.approx(alone.interval.value)
    assert np.isnan(found.exceeds[6])


def test_equal_tasks_are_drawn_to_their_mean() -> None:
    found = shrink([0.01, 0.012, 0.011, 0.009, 0.01], [0.01] * 5, margin=0.02)
    assert found is not None
    assert found.spread == 0
    assert np.ptp(found.interval.value) < 0.003


def test_intervals_cover_and_errors_shrink() -> None:
    rng = np.random.default_rng(4)
    covered, closer, called = [], [], []
    for _ in range(300):
        truth, values, variances = losses(rng, 20)
        found = shrink(values, variances, margin=0.02)
        assert found is not None
        covered.append(found.interval.contains(truth).mean())
        closer.append(((values - truth) ** 2).mean() - ((found.interval.value - truth) ** 2).mean())
        called.append((found.exceeds.mean(), (truth > 0.02).mean()))
    assert 0.93 < np.mean(covered) < 0.98
    assert np.mean(closer) > 0
    said, true = np.mean(called, axis=0)
    assert said == pytest.approx(true, abs=0.02)


def test_variance_is_that_of_the_interval_and_never_zero() -> None:
    assert float(score_variance(raw_sums(100, 0))) > 0
    sums = latent_sums(100, 15, 33, 4)
    interval = score_interval(sums, z=0.01)  # so narrow that V hardly changes within
    half = float(interval.high - interval.low) / 2
    assert float(score_variance(sums)) == pytest.approx((half / 0.01) ** 2, rel=1e-3)
    assert float(score_variance(sums, inflate=3.0)) == pytest.approx(
        3 * float(score_variance(sums))
    )


def test_limits_hold_where_variances_are_those_at_the_mean_of_all_tasks() -> None:
    random = np.random.default_rng(2)
    sizes = np.geomspace(30, 600, 20).astype(int)
    covered: dict[str, list[float]] = {"own": [], "mean": []}
    for _ in range(600):
        truth = np.clip(random.normal(0.06, 0.02, sizes.size), 0, 1)
        sums = raw_sums(sizes, random.binomial(sizes, truth))
        first = shrink(sums.mean, score_variance(sums), margin=0.02)
        assert first is not None
        again = shrink(sums.mean, score_variance(sums, at=first.centre), margin=0.02)
        assert again is not None
        for name, made in (("own", first), ("mean", again)):
            inside = (made.interval.low <= truth) & (truth <= made.interval.high)
            covered[name].append(float(inside.mean()))
    assert np.mean(covered["own"]) < 0.93 < np.mean(covered["mean"]) < 0.98
