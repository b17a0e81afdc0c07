"""Power: the smallest detectable loss, and the number of items to detect a given one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.stats.intervals import UNSURE, normal_quantile
from forgetmap.stats.repeats import excess_scores
from forgetmap.stats.results import Interval, Reals
from forgetmap.stats.tests import binomial_weights

POWER = 0.8
SIZE = 0.025
"""One-sided size: a loss is claimed if the lower end of a two-sided 95 % interval is above 0."""
MAX_ITERATIONS = 200
CONVERGED = 1e-13
"""Relative change at which the iteration stops; a fixed number of steps took 4 ms a task."""
MAX_ITEMS = 1 << 40
SPREAD_DOUBT = 1.08
"""Ratio of the scatter of a lower bound to that of the mean, because its spread is estimated
too."""

UPPER_DOUBT = 1.15
"""The same ratio for the upper bound, if nothing was lost."""


def detectable(
    n: ArrayLike,
    *,
    c: ArrayLike,
    h: ArrayLike,
    share_e: ArrayLike,
    noise_floor: float = 0.0,
    size: float = SIZE,
    power: float = POWER,
) -> Reals:
    """Return the smallest loss that is claimed with this power.

    It is claimed if the test of luck rejects and the lower bound (of n10 - 3/4 flips) is above the
    noise floor f. theta is the larger of the two losses needed, limit + z_b sqrt(V/n):
    z_a sqrt((v + h theta)/n) + (c - h)+ (z_a^2 - 1)/(6n), the binomial test with its skewness,
    V = v + c theta - theta^2; and f + .75 c/n + z_a e, e^2 = (v + c f - f^2)/n + q0, with V wider
    by p_E g (2h + 2 theta + g (1 - p_E)), g = z_a h(c+h)/(2 n e), as e is estimated too.
    v = h(c+h) p_E with p_E the share of items in E when nothing is lost, q0 as in `score_interval`.
    Delivered power .79 to .85 for k of 2 to 10, 50 to 3,000 items and f of 0 and .005. For
    open-ended items (h = 0) it is exact (`raw_detectable`).

    Args:
        n: number of items.
        c: factor c of the score (see `mean_scores`).
        h: factor h of the score.
        share_e: share of items in E if nothing is lost.
        noise_floor: share of answers that may flip one way without a loss.
        size: size of the test, one-sided.
        power: required power.
    """
    from scipy.special import ndtri  # heavy, only here

    n, c, h, share_e = (np.asarray(x, float) for x in (n, c, h, share_e))
    z_a, z_b = float(ndtri(1 - size)), float(ndtri(power))
    v = h * (c + h) * share_e
    with np.errstate(invalid="ignore", divide="ignore"):
        q0 = (h * (c + h) + c**2 / 4) / n**2
        error = np.sqrt((v + c * noise_floor - noise_floor**2) / n + q0)
        floor = noise_floor + UNSURE * c / n + z_a * error
        # The error is estimated from the same items in E: the more of them, the larger the error
        # and the smaller s.
        slope = z_a * h * (c + h) / (2 * n * error)
        skewed = np.maximum(c - h, 0.0) * (z_a**2 - 1) / (6 * n)
        theta = (z_a + z_b) * np.sqrt(v / n)
        for _ in range(MAX_ITERATIONS):
            spread = np.maximum(v + c * theta - theta**2, 0.0)
            wider = spread + share_e * slope * (2 * h + 2 * theta + slope * (1 - share_e))
            test = z_a * np.sqrt((v + h * theta) / n) + skewed + z_b * np.sqrt(spread / n)
            last, theta = theta, np.maximum(test, floor + z_b * np.sqrt(wider / n))
            if not np.any(np.abs(theta - last) > CONVERGED * theta):
                break
    raw = c * raw_detectable(n, noise_floor=noise_floor, size=size, power=power)
    return np.asarray(np.where(h > 0, theta, raw))


def raw_detectable(
    n: ArrayLike, *, noise_floor: float = 0.0, size: float = SIZE, power: float = POWER
) -> Reals:
    """Return the smallest loss of open-ended items that is claimed with this power; exact.

    Claimed from x flips on, the first with (x - .75)/n above f + z sqrt(f (1 - f)/n + 1/(4 n^2)):
    the loss p with P(X >= x) = power, X binomial(n, p). `inf` if n flips are not enough.
    """
    from scipy.special import betaincinv, ndtri

    n = np.asarray(n, float)
    variance = n * noise_floor * (1 - noise_floor) + 1 / 4
    flips = np.floor(UNSURE + n * noise_floor + float(ndtri(1 - size)) * np.sqrt(variance)) + 1
    enough = flips <= n
    at_least = np.where(enough, flips, 1.0), np.where(enough, n - flips + 1, 1.0)
    return np.asarray(np.where(enough, betaincinv(*at_least, power), np.inf))


def items_needed(
    loss: float,
    *,
    c: float,
    h: float,
    share_e: float,
    noise_floor: float = 0.0,
    size: float = SIZE,
    power: float = POWER,
) -> int:
    """Return the smallest number of items that detects this loss; the inverse of `detectable`."""

    def detectable_with(n: int) -> float:
        kind = {"c": c, "h": h, "share_e": share_e, "noise_floor": noise_floor}
        return float(detectable(n, **kind, size=size, power=power))

    return _least_items(detectable_with, loss)


def items_needed_raw(
    loss: float, noise_floor: float = 0.0, *, size: float = SIZE, power: float = POWER
) -> int:
    """Return the number of open-ended items that detects a loss; the inverse of `raw_detectable`.

    More than `MAX_ITEMS` if the loss does not exceed the noise floor.
    """
    return _least_items(
        lambda n: float(raw_detectable(n, noise_floor=noise_floor, size=size, power=power)), loss
    )


def items_to_decide(
    loss: float, error: float, n: float, margin: float, *, floor: float = 0.0
) -> int | None:
    """Return the items that decide with 80 % power: N (2.80 SE / max(theta, margin - theta))^2.

    A planning figure: assumes that the estimate is true, and that the error shrinks with the root
    of the items. Always more than N, which did not decide: otherwise 111 items would seem enough
    after 200 open-ended items without a flip.

    Args:
        loss: theta, the estimate.
        error: SE, a quarter of the 95 % interval (its width / 3.92).
        n: number of items behind it.
        margin: largest acceptable loss.
        floor: noise floor that is subtracted from the lower bound.

    Returns:
        None if no number of items is enough: the loss is within the noise, and beyond the margin.
    """
    from scipy.special import ndtri

    distance = max(loss - floor, margin - loss)
    if distance <= 0:
        return None
    needed = n * (float(ndtri(1 - SIZE) + ndtri(POWER)) * error / distance) ** 2
    return math.ceil(max(needed, n + 1))


def repeats_detectable(
    n: ArrayLike, repeats: int, *, churn: ArrayLike, size: float = SIZE, power: float = POWER
) -> Reals:
    """Return the smallest share from right to wrong that `excess` detects, given a noise floor.

    The t interval of `mean_interval` is above 0 from the mean score m on with
    m^2 = t^2 ((v0 + m - m^2)/n + 1/n^2); theta = m + 1.08 z_b sqrt((v0 + theta - theta^2)/n). v0 is
    the variance of an item score when nothing changes: all noise is taken to sit on items that are
    right half of the time, the worst case. Delivered power .78 to .84 with 2 to 8 repeats, 50 to
    3,000 items and noise floors up to .15.
    """
    from scipy.special import ndtri, stdtrit

    n, churn = np.asarray(n, float), np.asarray(churn, float)
    t2 = stdtrit(np.maximum(n - 1, 1), 1 - size) ** 2 / n
    v0 = np.minimum(churn / 0.25, 1.0) * _coin_variance(repeats)
    limit = (t2 + np.sqrt(t2**2 + 4 * (1 + t2) * t2 * (v0 + 1 / n))) / (2 * (1 + t2))
    theta = limit
    for _ in range(MAX_ITERATIONS):
        variance = v0 + np.maximum(theta - theta**2, 0.0)
        last, theta = theta, limit + SPREAD_DOUBT * float(ndtri(power)) * np.sqrt(variance / n)
        if not np.any(np.abs(theta - last) > CONVERGED * theta):
            break
    return np.asarray(theta)


def repeated_items_needed(
    loss: float, repeats: int, *, churn: float, size: float = SIZE, power: float = POWER
) -> int:
    """Return the smallest number of items that detects a loss; inverse of `repeats_detectable`."""
    return _least_items(
        lambda n: float(repeats_detectable(n, repeats, churn=churn, size=size, power=power)), loss
    )


def detectable_excess(interval: Interval, *, size: float = SIZE, power: float = POWER) -> Reals:
    """Return the smallest `excess` detected with this power, from the width of its interval."""
    from scipy.special import ndtri

    error = (interval.high - interval.low) / (2 * normal_quantile())
    return np.asarray((ndtri(1 - size) + ndtri(power)) * error)


def items_for_no_loss(
    margin: float, *, c: float, h: float, share_e: float, lucky: float = 0.0, size: float = SIZE
) -> int:
    """Return the items for an upper bound below the margin with 80 % power, if nothing was lost.

    Args:
        margin: largest acceptable loss.
        c: factor c of the score at the upper end.
        h: factor h of that score.
        share_e: share of items in E.
        lucky: share of items forgotten by luck alone, if the score does not remove them.
        size: one-sided size of the upper bound.
    """
    from scipy.special import ndtr, ndtri  # heavy, only here

    z, within = float(ndtri(1 - size)), h * (c + h)
    value = c * lucky
    spread = within * share_e + c**2 * lucky - value**2
    if value >= margin:
        return MAX_ITEMS

    def is_enough(n: int) -> bool:
        limit = (c * margin - margin**2 + within * share_e) / n + (within + c**2 / 4) / n**2
        room = margin - value - z * limit**0.5
        if not spread:
            return bool(room > 0)
        return float(ndtr(room / (spread / n) ** 0.5)) >= POWER

    return _first_enough(is_enough)


def repeated_items_for_no_loss(
    margin: float, repeats: int, *, noise: float, size: float = SIZE
) -> int:
    """Return the items for an upper bound of `excess` below the margin, if nothing was lost.

    z_a sqrt(v0/n + 1/n^2) + 1.15 z_b sqrt(v0/n) < margin, v0 as in `repeats_detectable`. Delivered
    power .78 to .82.
    """
    from scipy.special import ndtri

    z_a, z_b = float(ndtri(1 - size)), UPPER_DOUBT * float(ndtri(POWER))
    v0 = min(noise / 0.25, 1.0) * _coin_variance(repeats)
    return _first_enough(
        lambda n: z_a * (v0 / n + 1 / n**2) ** 0.5 + z_b * (v0 / n) ** 0.5 < margin
    )


def _least_items(detectable_with: Callable[[int], float], loss: float) -> int:
    """Return the smallest number of items that detects this loss."""
    return _first_enough(lambda n: detectable_with(n) <= loss)


def _first_enough(is_enough: Callable[[int], bool]) -> int:
    """Return the smallest sufficient number of items, at least two, by bisection."""
    low, high = 1, 2
    while not is_enough(high) and high <= MAX_ITEMS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _coin_variance(repeats: int) -> float:
    """Return the variance of an item score of `excess` if both models are right half the time."""
    counts = np.arange(repeats + 1)
    weight = binomial_weights(counts, repeats, 0.5)
    score = excess_scores(counts[:, None], repeats, counts[None, :], repeats).lost
    joint = weight[:, None] * weight[None, :]
    return float((joint * score**2).sum() - (joint * score).sum() ** 2)
