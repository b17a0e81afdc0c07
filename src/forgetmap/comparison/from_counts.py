"""From the counts of a group to the sums of every estimator that is a mean of item scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import add

from forgetmap.comparison.choice_counts import PAIR, ByOptions, OptionCounts
from forgetmap.stats import (
    Published,
    ScoreSums,
    detectable,
    knowledge_scale,
    latent_sums,
    matched_sums,
    mixed_luck_p,
    published,
    raw_sums,
    upper_sums,
)


def total_sums(parts: Iterable[ScoreSums]) -> ScoreSums | None:
    """The sum of several groups; None of none."""
    parts = list(parts)
    return reduce(add, parts) if parts else None


def raw(counts: ByOptions) -> ScoreSums | None:
    """Sums of the raw score."""
    return total_sums(raw_sums(each.n, each.n10) for each in counts.values())


def upper(counts: ByOptions) -> ScoreSums | None:
    """Sums of the upper end of the bracket."""
    return total_sums(upper_sums(each.n, each.n10, k) for k, each in counts.items())


def latent(counts: ByOptions) -> ScoreSums | None:
    """Sums of the lower end of the bracket."""
    return total_sums(latent_sums(each.n, each.n10, each.n00, k) for k, each in counts.items())


def matched(counts: ByOptions) -> ScoreSums | None:
    """Sums of `matched`; two-option items, which it cannot tell, count with their latent score."""
    return total_sums(_matched(k, each) for k, each in counts.items())


def matched_upper(counts: ByOptions) -> ScoreSums | None:
    """The same with the upper end of the bracket for two-option items."""
    return total_sums(
        upper_sums(each.n, each.n10, k) if k == PAIR else _matched(k, each)
        for k, each in counts.items()
    )


def _matched(k: float, counts: OptionCounts) -> ScoreSums:
    if k == PAIR:
        return latent_sums(counts.n, counts.n10, counts.n00, k)
    if math.isinf(k):
        return raw_sums(counts.n, counts.n10)
    return matched_sums(
        counts.n,
        counts.n10 - counts.lost_to_none,
        counts.different,
        k,
        to_none=counts.lost_to_none,
        wrong_to_none=counts.wrong_to_none,
    )


def lost_p(counts: ByOptions, *, use_options: bool) -> float | None:
    """Mid-p that nothing was lost; open-ended items say nothing about luck and are left out."""
    closed = {k: each for k, each in counts.items() if not math.isinf(k) and each.n}
    if not closed:
        return None
    found, trials, chances = [], [], []
    for k, each in closed.items():
        by_options = use_options and k > PAIR
        lost = each.n10 - each.lost_to_none if by_options else each.n10
        found.append(lost)
        trials.append(lost + (each.different if by_options else each.n00))
        chances.append(1 / (k - 1) if by_options else 1 / k)
        if by_options and each.lost_to_none + each.wrong_to_none:
            found.append(each.lost_to_none)
            trials.append(each.lost_to_none + each.wrong_to_none)
            chances.append(1 / k)
    return mixed_luck_p(found, trials, chances)


def known_share(counts: ByOptions) -> float | None:
    """Share of items known before beyond guessing: the mean of c (a - 1/k)."""
    n = sum(each.n for each in counts.values())
    if not n:
        return None
    known = 0.0
    for k, each in counts.items():
        luck = 0.0 if math.isinf(k) else each.n / k
        known += float(knowledge_scale(k)) * (each.n11 + each.n10 - luck)
    return known / n


def as_published(counts: ByOptions) -> Published | None:
    """The published adjustment of one group, with k averaged over items by its luck 1/(k-1)."""
    n = sum(each.n for each in counts.values())
    if not n:
        return None
    n11, n10, n01 = (
        sum(getattr(each, name) for each in counts.values()) for name in ("n11", "n10", "n01")
    )
    k = average_options(counts)
    return published((n11 + n10) / n, (n11 + n01) / n, n10 / n, n01 / n, k)


def average_options(counts: ByOptions) -> float:
    """The k of which the luck 1/(k-1) is the mean over the items; `inf` if all are open-ended."""
    n = sum(each.n for each in counts.values())
    luck = sum(0.0 if math.isinf(k) else each.n / (k - 1) for k, each in counts.items())
    return 1 + n / luck if luck else math.inf


def detectable_loss(counts: ByOptions, *, use_options: bool) -> float | None:
    """The smallest loss found four times in five; None where all that is known would not do."""
    sums = (matched if use_options else latent)(counts)
    known = known_share(counts)
    if sums is None or known is None:
        return None
    n = float(sums.n)
    c, spread = float(sums.c) / n, float(sums.a) / n
    h = sum(_subtracted(k, use_options=use_options) * each.n for k, each in counts.items()) / n
    loss = float(detectable(n, c=c, h=h, share_e=spread / (h * (c + h)) if h else 0.0))
    return loss if loss <= known else None


def _subtracted(k: float, *, use_options: bool) -> float:
    if math.isinf(k):
        return 0.0
    c = k / (k - 1)
    return c / (k - 2) if use_options and k > PAIR else c**2 / k
