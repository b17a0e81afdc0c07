"""Planned losses are detected in four of five cases by the rule of the verdict."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from forgetmap.stats import excess_scores, mean_interval, permutation_moments, score_interval
from forgetmap.stats.mean_scores import latent_sums, matched_sums
from forgetmap.stats.power import detectable, repeats_detectable
from forgetmap.stats.tests import change_p, luck_p

DATA_SETS = 10_000


@pytest.mark.parametrize("floor", [0.0, 0.005])
@pytest.mark.parametrize(
    ("k", "options"), [(2, False), (3, True), (4, True), (4, False), (10, True)]
)
def test_losses_from_counts(k: int, options: bool, floor: float) -> None:
    """Never-known items are guessed anew; a lost item is right afterwards one time in k."""
    rng = np.random.default_rng(k)
    c = k / (k - 1)
    h, pairs = (c / (k - 2), (k - 1) * (k - 2)) if options else (c**2 / k, (k - 1) ** 2)
    for items, known in product((50, 300, 3000), (0.4, 0.7, 0.9)):
        share = (1 - known) * pairs / k**2
        loss = float(detectable(items, c=c, h=h, share_e=share, noise_floor=floor))
        if loss > known:
            continue
        flips = loss / c + (1 - known) * (k - 1) / k**2
        n10, e, _ = rng.multinomial(items, [flips, share, 1 - flips - share], size=DATA_SETS).T
        sums = (matched_sums if options else latent_sums)(items, n10, e, k)
        low = score_interval(sums, at_least=True).low
        p = luck_p(n10, n10 + e, h / (c + h))
        power = ((low > floor) & (p <= 0.025)).mean()
        assert 0.78 <= power <= 0.86, (items, known, power)


@pytest.mark.parametrize("repeats", [2, 5])
def test_losses_from_repeats(repeats: int) -> None:
    """Noise sits on items that are right half of the time; other items are lost for good."""
    rng = np.random.default_rng(repeats)
    moments = permutation_moments(np.arange(2 * repeats + 1), repeats, repeats)
    for items, churn in product((50, 300, 1000), (0.02, 0.15)):
        loss, coins = float(repeats_detectable(items, repeats, churn=churn)), churn / 0.25
        flipping = rng.random((2000, items)) < coins
        gone = ~flipping & (rng.random(flipping.shape) < loss / (1 - coins))
        before = rng.binomial(repeats, np.where(flipping, 0.5, 1.0))
        after = rng.binomial(repeats, np.where(flipping, 0.5, np.where(gone, 0.0, 1.0)))
        scores = excess_scores(before, repeats, after, repeats).lost
        low = mean_interval(items, scores.sum(1), (scores**2).sum(1)).low
        p = change_p(scores.sum(1), *(moment[before + after].sum(1) for moment in moments))
        power = ((low > 0) & (p <= 0.025)).mean()
        assert 0.76 <= power <= 0.87, (items, churn, power)
