"""How much luck would explain a loss, compared with the interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forgetmap.stats import (
    LuckPart,
    guess_rate_latent,
    guess_rate_matched,
    luck_needed,
    luck_needed_by_test,
)
from forgetmap.stats.intervals import score_interval
from forgetmap.stats.mean_scores import ScoreSums, score_sums
from forgetmap.stats.tests import mixed_luck_p

Z = 1.96


def lower_limit(parts: list[LuckPart], t: float, *, z: float, inflate: float = 1.0) -> float:
    """Of the mean of s(t), with n10 - 3/4, from the interval that is shown."""
    sums = [
        score_sums(part.n, part.n10, part.n_e, c=part.scale, h=t * part.scale * part.u)
        for part in parts
    ]
    total = sum(sums[1:], sums[0])
    cbar = total.c / total.n
    shifted = ScoreSums(
        n=total.n,
        s=total.s - 0.75 * inflate * cbar,
        s2=total.s2 - 0.75 * inflate * cbar**2,
        c=total.c,
        a=total.a,
        b=total.b,
    )
    low = float(score_interval(shifted, z=z, inflate=inflate).low)
    return min(low, 0.0) if float(shifted.s) <= 0 else low


def random_mix(rng: np.random.Generator) -> list[LuckPart]:
    parts = []
    for _ in range(int(rng.integers(1, 5))):
        k = float(rng.choice([2, 3, 4, 5, 10, np.inf]))
        n = int(rng.integers(20, 800))
        n10, n_e, _ = rng.multinomial(n, rng.dirichlet([1.0, 1.0, 1.5]))
        u = 0.0 if math.isinf(k) else float(rng.choice([1 / (k - 1), 1 / max(k - 2, 1)]))
        parts.append(LuckPart(k, n, int(n10), int(n_e), u))
        if rng.random() < 0.3 and not math.isinf(k):
            vanished = int(rng.integers(0, 20)), int(rng.integers(0, 40))
            parts.append(LuckPart(k, 0, *vanished, u=1 / (k - 1), c=1.0))
    return parts


def test_values_of_the_design() -> None:
    latent = luck_needed([LuckPart(4, 300, 60, 90, 1 / 3)], z=Z)
    assert guess_rate_latent(latent, 4) == pytest.approx(0.3254, abs=5e-5)
    matched = luck_needed([LuckPart(4, 300, 60, 60, 1 / 2)], z=Z)
    assert matched == pytest.approx(1.4136, abs=5e-5)
    assert guess_rate_matched(matched, 4) == pytest.approx(0.2928, abs=5e-5)


@pytest.mark.parametrize(("n10", "n_e"), [(60, 90), (20, 0), (5, 12), (400, 30)])
def test_one_k_has_a_short_form(n10: int, n_e: int) -> None:
    """c cancels: A = nE^2 - z^2(nE+1), B = 2 m nE + z^2(nE+1), G = m^2 - z^2/4, t* = root / u."""
    m, z2 = n10 - 0.75, Z**2
    a, b, g = n_e**2 - z2 * (n_e + 1), 2 * m * n_e + z2 * (n_e + 1), m**2 - z2 / 4
    root = 2 * g / (b + math.sqrt(b**2 - 4 * a * g))
    found = luck_needed([LuckPart(5, 1000, n10, n_e, 1 / 4)], z=Z)
    assert found == pytest.approx(root * 4)


def test_lower_limit_is_zero_at_the_luck_needed() -> None:
    rng = np.random.default_rng(1)
    finite = 0
    for _ in range(600):
        parts, z = random_mix(rng), float(rng.choice([1.645, 1.96, 2.5758]))
        inflate = float(rng.choice([1.0, 1.0, 1.7, 4.0]))
        t = luck_needed(parts, z=z, inflate=inflate)
        if 0 < t < math.inf:
            finite += 1
            assert abs(lower_limit(parts, t, z=z, inflate=inflate)) < 1e-9
        assert (t > 1) == (lower_limit(parts, 1.0, z=z, inflate=inflate) > 0)
    assert finite > 300


def test_answering_part_alone() -> None:
    parts = [LuckPart(4, 500, 30, 20, 1 / 3, c=1.0)]
    t = luck_needed(parts, z=Z)
    assert t > 1
    assert abs(lower_limit(parts, t, z=Z)) < 1e-12


def test_no_flip_needs_no_luck_and_open_items_have_no_limit() -> None:
    assert luck_needed([], z=Z) == 0
    assert luck_needed([LuckPart(4, 100, 0, 20, 1 / 3)], z=Z, inflate=50) == 0
    assert luck_needed([LuckPart(4, 100, 1, 20, 1 / 3)], z=Z) == 0
    assert luck_needed([LuckPart(math.inf, 100, 9, 0, 0.0)], z=Z) == math.inf


def test_guess_rates() -> None:
    assert guess_rate_latent(1, 4) == pytest.approx(1 / 4)
    assert guess_rate_matched(1, 4) == pytest.approx(1 / 4)
    assert guess_rate_latent(math.inf, 4) == 1
    assert guess_rate_matched(math.inf, 4) == 1 / 2
    # Two of four options ruled out: gold is hit half of the time.
    k, t = 4, 3.0
    ruled_out = (k - 2) * (1 - 1 / t)
    assert guess_rate_matched(t, k) == pytest.approx(1 / (k - ruled_out))


def test_luck_needed_by_the_test() -> None:
    parts = [LuckPart(4, 300, 60, 60, 1 / 2), LuckPart(3, 100, 12, 9, 1.0)]
    t = luck_needed_by_test(parts, size=0.025)
    chances = [t * part.u / (1 + t * part.u) for part in parts]
    assert mixed_luck_p([60, 12], [120, 21], chances) == pytest.approx(0.025, abs=1e-6)
    assert (t > 1) == (mixed_luck_p([60, 12], [120, 21], [1 / 3, 1 / 2]) <= 0.025)
    assert luck_needed_by_test([LuckPart(4, 10, 0, 5, 0.5)], size=0.025) == 0
    assert luck_needed_by_test([LuckPart(math.inf, 10, 3, 0, 0.0)], size=0.025) == math.inf
    # All of nine flips by luck: p^9 / 2 = .025.
    chance = 0.05 ** (1 / 9)
    found = luck_needed_by_test([LuckPart(4, 100, 9, 0, 0.5)], size=0.025)
    assert found == pytest.approx(chance / (1 - chance) / 0.5)
    assert luck_needed_by_test([LuckPart(math.inf, 10, 0, 0, 0.0)], size=0.025) == 0
