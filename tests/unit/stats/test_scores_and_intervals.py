"""Estimates and intervals, checked by hand, with other libraries and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit
from statsmodels.stats.proportion import proportion_confint

from forgetmap.simulation.answers import Habits
from forgetmap.stats.clusters import cluster_variance
from forgetmap.stats.intervals import (
    agree_with_test,
    between_interval,
    mean_interval,
    score_interval,
    weighted_interval,
)
from forgetmap.stats.mean_scores import (
    ScoreSums,
    latent_sums,
    matched_sums,
    raw_sums,
    repeated_guesses,
    score_sums,
    upper_sums,
)
from forgetmap.stats.tests import luck_p
from simulated_cells import Shares, Traits, cell_probabilities, draw_cells, draw_choices

DATA_SETS = 4000
MIXED = (latent_sums(60, 5, 20, 2), latent_sums(80, 9, 22, 4), latent_sums(30, 2, 0, np.inf))


def as_tuple(interval: object) -> tuple[float, float, float]:
    return tuple(float(getattr(interval, name)) for name in ("value", "low", "high"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        (latent_sums(100, 15, 33, 4), (0.053333, -0.038619, 0.190664)),
        (MIXED[0] + MIXED[1] + MIXED[2], (-0.151634, -0.267178, 0.003974)),
        (matched_sums(100, 15, 20, 4), (0.066667, -0.030045, 0.207771)),
        (raw_sums(50, 2), (0.04, 0.008216, 0.137424)),
    ],
)
def test_worked_examples(sums: ScoreSums, expected: tuple[float, ...]) -> None:
    assert as_tuple(score_interval(sums)) == pytest.approx(expected, abs=1e-6)


def test_macro_of_three_tasks() -> None:
    found = as_tuple(weighted_interval(MIXED, [1 / 3] * 3))
    assert found == pytest.approx((-0.135185, -0.240531, 0.011830), abs=1e-6)


def test_one_group_with_weight_one_is_the_plain_interval() -> None:
    assert as_tuple(weighted_interval([MIXED[1]], [1.0])) == pytest.approx(
        as_tuple(score_interval(MIXED[1]))
    )


def test_scores_are_means_over_items() -> None:
    """The sums equal what a loop over items gives."""
    rng = np.random.default_rng(1)
    k = rng.choice([2.0, 4.0, 10.0, np.inf], size=500)
    state = rng.choice(["11", "10", "01", "00"], size=500)
    scores = []
    for options, cell in zip(k, state, strict=True):
        c = 1.0 if np.isinf(options) else options / (options - 1)
        h = 0.0 if np.isinf(options) else c**2 / options
        scores.append({"10": c, "00": -h}.get(str(cell), 0.0))
    sums = [
        latent_sums(
            (k == options).sum(),
            ((k == options) & (state == "10")).sum(),
            ((k == options) & (state == "00")).sum(),
            options,
        )
        for options in (2.0, 4.0, 10.0, np.inf)
    ]
    total = sums[0] + sums[1] + sums[2] + sums[3]
    assert float(total.mean) == pytest.approx(np.mean(scores))
    assert float(total.s2) == pytest.approx(np.sum(np.square(scores)))


def test_open_ended_items_make_all_estimators_equal() -> None:
    raw = raw_sums(40, 7)
    for other in (
        upper_sums(40, 7, np.inf),
        latent_sums(40, 7, 12, np.inf),
        matched_sums(40, 7, 12, np.inf),
    ):
        assert float(other.mean) == pytest.approx(float(raw.mean))


def test_raw_interval_is_close_to_wilson_for_many_flips() -> None:
    ours = as_tuple(score_interval(raw_sums(1000, 200)))
    wilson = proportion_confint(200, 1000, method="wilson")
    assert ours[1:] == pytest.approx(wilson, abs=5e-4)


def test_raw_lower_limit_is_never_far_below_zero() -> None:
    assert float(score_interval(raw_sums(50, 0)).low) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("k", [2, 3, 4, 10, np.inf])
@pytest.mark.parametrize("items", [50, 300])
@pytest.mark.parametrize("lost", [0.0, 0.05, 0.2])
def test_latent_recovers_the_truth_and_covers_it(k: float, items: int, lost: float) -> None:
    shares = Shares(known=0.5, lost=lost, gained=0.02)
    cells = draw_cells(np.random.default_rng(7), DATA_SETS, items, k, shares)
    found = score_interval(latent_sums(items, cells.n10_D, cells.n00_D, k))
    error = found.value.std() / np.sqrt(DATA_SETS)
    assert abs(found.value.mean() - lost) <= 4 * error + 1e-12
    # 93 % less three Monte Carlo standard errors.
    assert found.contains(lost).mean() >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / DATA_SETS)


@pytest.mark.parametrize("persistence", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("moved", [None, (0.1, 0.15, 0.2, 0.55)])
def test_matched_survives_what_breaks_latent(
    persistence: float, moved: tuple[float, ...] | None
) -> None:
    habits = Habits(persistence=persistence, letter_bias=(0.55, 0.2, 0.15, 0.1), moved_bias=moved)
    shares = Shares(known=0.6, lost=0.05, gained=0.02)
    cells = draw_choices(np.random.default_rng(3), 400, 2000, 4, shares, habits)
    matched = matched_sums(2000, cells.n10_D, cells.different_D, 4).mean
    assert matched.mean() == pytest.approx(0.05, abs=4 * matched.std() / np.sqrt(400))
    latent = latent_sums(2000, cells.n10_D, cells.n00_D, 4).mean
    upper = upper_sums(2000, cells.n10_D, 4).mean
    assert abs(latent.mean() - 0.05) > 0.005
    assert (latent <= upper).all()


def test_elimination_is_where_matched_reads_high() -> None:
    shares = Shares(known=0.5, lost=0.0)
    cells = draw_choices(
        np.random.default_rng(4), 200, 2000, 4, shares, Habits(), Traits(eliminated=2)
    )
    assert matched_sums(2000, cells.n10_D, cells.different_D, 4).mean.mean() > 0.05


def test_attractive_wrong_option_is_where_matched_reads_low() -> None:
    shares = Shares(known=0.5, lost=0.05)
    cells = draw_choices(
        np.random.default_rng(5), 200, 2000, 4, shares, Habits(), Traits(attractive=0.5)
    )
    assert matched_sums(2000, cells.n10_D, cells.different_D, 4).mean.mean() < 0.04


def test_vanished_answers_count_for_matched() -> None:
    """All lost items fall silent, and so do unknown ones: luck is subtracted at 1/(k-1)."""
    rng = np.random.default_rng(6)
    items, lost, known = 200_000, 0.1, 0.6
    unknown = items * (1 - known)
    lucky = rng.binomial(int(unknown), 0.25)
    sums = matched_sums(items, 0, 0, 4, to_none=lost * items + lucky, wrong_to_none=unknown - lucky)
    assert float(sums.mean) == pytest.approx(lost, abs=0.004)


def test_repeated_guesses_are_estimated() -> None:
    shares = Shares(known=0.4, lost=0.05)
    for persistence in (0.0, 0.5, 1.0):
        habits = Habits(persistence=persistence)
        cells = draw_choices(np.random.default_rng(8), 50, 5000, 4, shares, habits)
        same = cells.n00_D - cells.different_D
        never = repeated_guesses(same.sum(), cells.n00_D.sum(), 4)
        # Lost items are redrawn, which pulls the share down a little.
        assert float(never) == pytest.approx(persistence, abs=0.02)


def test_interval_and_test_agree_near_zero() -> None:
    shares = Shares(known=0.5, lost=0.0, gained=0.02)
    cells = draw_cells(np.random.default_rng(9), DATA_SETS, 100, 4, shares)
    p = luck_p(cells.n10_D, cells.n10_D + cells.n00_D, 0.25)
    found = agree_with_test(score_interval(latent_sums(100, cells.n10_D, cells.n00_D, 4)), p)
    assert ((found.low > 0) <= (p <= 0.025)).all()
    assert (found.low > 0).mean() <= 0.03


def test_macro_interval_covers_unequal_tasks() -> None:
    rng = np.random.default_rng(10)
    settings = [(2, 40, 0.0), (4, 100, 0.05), (10, 60, 0.1), (np.inf, 200, 0.02)]
    truth = np.mean([lost for _, _, lost in settings])
    parts = []
    for k, items, lost in settings:
        cells = draw_cells(rng, DATA_SETS, items, k, Shares(0.6, lost))
        parts.append(latent_sums(items, cells.n10_D, cells.n00_D, k))
    found = weighted_interval(parts, [0.25] * 4)
    assert 0.93 <= found.contains(truth).mean() <= 0.99


def test_between_interval_is_the_t_interval() -> None:
    from scipy.stats import t

    values = np.array([0.1, 0.2, 0.05, 0.3])
    found = as_tuple(between_interval(values))
    expected = t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2)
    assert found[1:] == pytest.approx(expected)
    assert np.isnan(between_interval(np.array([0.1])).low)


def test_mean_interval_without_pseudo_observation_is_the_t_interval() -> None:
    from scipy.stats import t

    values = np.random.default_rng(0).normal(size=30)
    found = as_tuple(mean_interval(30, values.sum(), (values**2).sum(), pseudo=0.0))
    expected = t.interval(0.95, 29, values.mean(), values.std(ddof=1) / np.sqrt(30))
    assert found[1:] == pytest.approx(expected)


def test_a_bounded_mean_in_few_clusters_is_covered() -> None:
    """A fifth of 25 clusters differs: around the mean as it is, t intervals cover too little."""
    rng, clusters, size, differs = np.random.default_rng(5), 25, 20, 0.2
    covered = wald = 0
    for _ in range(1_000):
        totals = np.where(rng.random(clusters) < differs, 0.5 * size, 0.0)
        n, squares = clusters * size, 0.5 * totals.sum()
        variance = cluster_variance(np.full(clusters, size), totals, squares=squares)
        _, low, high = as_tuple(
            mean_interval(n, totals.sum(), squares, clusters=variance, bound=0.5)
        )
        half = stdtrit(variance.freedom, 0.975) * variance.variance**0.5
        covered += low <= 0.5 * differs <= high
        wald += abs(totals.sum() / n - 0.5 * differs) <= half
    assert 0.93 <= covered / 1_000 <= 0.985
    assert wald / 1_000 < 0.93


def test_a_bounded_mean_at_its_end_keeps_an_interval() -> None:
    variance = cluster_variance(np.full(25, 4), np.zeros(25), squares=0.0)
    value, low, high = as_tuple(mean_interval(100, 0.0, 0.0, clusters=variance, bound=0.5))
    assert low <= value == 0.0 < high


def test_raw_rate_covers_the_visible_rate() -> None:
    shares = Shares(known=0.5, lost=0.05, gained=0.02)
    cells = draw_cells(np.random.default_rng(11), DATA_SETS, 100, 4, shares)
    covered = score_interval(raw_sums(100, cells.n10_D)).contains(cell_probabilities(4, shares)[1])
    assert 0.925 <= covered.mean() <= 0.975


def test_a_wrong_constant_is_caught() -> None:
    """The negative control: luck subtracted at 1/k^2 instead of c^2/k misses the truth."""
    shares = Shares(known=0.5, lost=0.05, gained=0.02)
    cells = draw_cells(np.random.default_rng(12), DATA_SETS, 1000, 4, shares)
    wrong = score_sums(1000, cells.n10_D, cells.n00_D, c=4 / 3, h=1 / 16)
    assert score_interval(wrong).contains(0.05).mean() < 0.5
