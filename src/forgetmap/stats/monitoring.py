"""Repeated tests during training with a controlled false alarm rate.

Item scores are in [0, 1], such as 1 for an item that was right before and is wrong now. The valid
bound depends on the items. Fresh random items at each look are new evidence, and the evidence of
all looks multiplies. The same items at each look are not: each look is tested on its own, at a
share of the error rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.errors import UsageError
from forgetmap.stats.bounded_mean import BISECTIONS, SHARES, WEIGHTS
from forgetmap.stats.results import Reals


@dataclass(frozen=True, slots=True)
class MonitorLook:
    """The result of one look.

    Attributes:
        look: number of the look, from 1.
        items: number of items scored at this look.
        mean: share lost at this look; nan without items.
        low: lower bound of the mean loss, valid at all looks together. Fresh items: of the largest
            mean loss of all looks so far. The same items: of this look.
        alpha: error rate of this look.
        alarm: the loss exceeds the margin; with fresh items now or at an earlier look.
    """

    look: int
    items: int
    mean: float
    low: float
    alpha: float
    alarm: bool


def loss_evidence(scores: ArrayLike, margin: float) -> float:
    """Return the logarithm of the evidence (e-value) that the mean loss exceeds the margin.

    e = sum_j v_j prod_i (1 + f_j (X_i - margin) / margin), with the bets f and weights v of
    `betting_upper_limit`. At most 1 on average as long as no mean loss exceeds the margin, for any
    distribution; over fresh items of all looks it reaches 1 / alpha in at most alpha of all
    trainings, for any number of looks. Alarm at log(1 / alpha).

    Args:
        scores: item scores in [0, 1], each drawn independently; all looks together.
        margin: largest acceptable loss, in (0, 1).

    Raises:
        UsageError: a score or the margin is out of range.

    References:
        Ville, Étude critique de la notion de collectif, 1939; Waudby-Smith and Ramdas, Estimating
        means of bounded random variables by betting, 2024.
    """
    _check("the margin", margin)
    return _log_evidence(*_checked_counts(scores), margin)


def look_alpha(look: int, alpha: float, looks: int | None = None) -> float:
    """Return the error rate of a look at the same items: alpha / (l (l + 1)), or alpha / looks.

    The second if the number of looks is planned. Either way the rates of all looks add up to at
    most alpha (Bonferroni), whatever their dependence.

    Raises:
        UsageError: more looks than planned.
    """
    if looks is None:
        return alpha / (look * (look + 1))
    if look > looks:
        raise UsageError(
            f"look {look} of {looks} planned", hint="plan more looks, or no fixed number."
        )
    return alpha / looks


def lower_loss_limit(scores: ArrayLike, alpha: float) -> float:
    """Return the largest mean loss such that it and all below are ruled out; 0 if none is.

    Args:
        scores: item scores of one look in [0, 1], each drawn independently.
        alpha: one-sided error rate: how often the bound may be above the mean.

    Raises:
        UsageError: a score or alpha is out of range.
    """
    _check("alpha", alpha)
    return _lower_limit(*_checked_counts(scores), alpha)


def monitor(
    looks: Sequence[ArrayLike],
    *,
    margin: float,
    alpha: float = 0.05,
    fresh: bool = False,
    planned: int | None = None,
) -> list[MonitorLook]:
    """Return bound and alarm of each look; any false alarm has a probability of at most alpha.

    Args:
        looks: item scores of each look, in order; in [0, 1].
        margin: largest acceptable mean loss.
        alpha: probability of any false alarm.
        fresh: whether each look has its own items, drawn at random.
        planned: number of looks, if it is fixed in advance; for the same items only.

    Raises:
        UsageError: scores, margin or alpha out of range, or more looks than planned.
    """
    _check("the margin", margin)
    _check("alpha", alpha)
    return (
        _fresh_looks(looks, margin, alpha) if fresh else _own_looks(looks, margin, alpha, planned)
    )


def _own_looks(
    looks: Sequence[ArrayLike], margin: float, alpha: float, planned: int | None
) -> list[MonitorLook]:
    results = []
    for number, scores in enumerate(looks, 1):
        values, counts = _checked_counts(scores)
        rate = look_alpha(number, alpha, planned)
        low = _lower_limit(values, counts, rate)
        results.append(_result(number, values, counts, (low, rate), alarm=low > margin))
    return results


def _fresh_looks(looks: Sequence[ArrayLike], margin: float, alpha: float) -> list[MonitorLook]:
    """Return looks with a bound that never decreases: items without loss do not lower it."""
    results = []
    low, pooled = 0.0, np.empty(0)
    for number, scores in enumerate(looks, 1):
        values, counts = _checked_counts(scores)
        pooled = np.concatenate([pooled, np.asarray(scores, float).ravel()])
        low = max(low, _lower_limit(*_checked_counts(pooled), alpha))
        results.append(_result(number, values, counts, (low, alpha), alarm=low > margin))
    return results


def _result(
    number: int, values: Reals, counts: Reals, bound: tuple[float, float], *, alarm: bool
) -> MonitorLook:
    items = int(counts.sum())
    mean = float(values @ counts) / items if items else float("nan")
    low, rate = bound
    return MonitorLook(number, items, mean, low, rate, alarm)


def _lower_limit(values: Reals, counts: Reals, alpha: float) -> float:
    """Return the largest mean such that it and all below are ruled out; 0 if none is."""
    if not values @ counts:
        return 0.0
    low, high = 0.0, float(values @ counts / counts.sum())  # no bet wins against their mean
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_ruled_out = _log_evidence(values, counts, middle) >= -np.log(alpha)
        low, high = (middle, high) if is_ruled_out else (low, middle)
    return low


def _log_evidence(values: Reals, counts: Reals, margin: float) -> float:
    with np.errstate(divide="ignore"):  # a bet of everything can lose everything
        logs = np.log1p(SHARES[:, None] * (values - margin) / margin) @ counts
    return float(np.logaddexp.reduce(logs + np.log(WEIGHTS)))


def _checked_counts(scores: ArrayLike) -> tuple[Reals, Reals]:
    """Return distinct scores and their counts; most scores are 0 or 1."""
    values, counts = np.unique(np.asarray(scores, float), return_counts=True)
    if not ((values >= 0) & (values <= 1)).all():
        raise UsageError(
            "an item score lies outside [0, 1]", hint="scale the scores to that range."
        )
    return values, counts.astype(float)


def _check(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise UsageError(f"{name} is {value:g}", hint="give a number between 0 and 1.")
