"""Limits of a loss that hold for any noise, guessing or temperature.

p and q are the probabilities that an item is answered right before and after. The loss is the mean
of max(p - q, 0) over the items: how many right answers of 100 items are gone. For any coupling of
the answers,

    mean(p - q)  <=  loss  <=  P(right before, wrong after),

so the drop in accuracy proves a loss and the counted flips limit it (Frechet). More can only be
proven by weights that do not depend on the noise of the answers they weigh: if s is such a weight
in [0, 1], then E mean s (x - y) <= loss. Every lower limit here is that of a mean of item scores
s (x - y); what differs is where the weight comes from: the other half of the items (`halve_tasks`),
other answers (`repeat_scores`), an earlier stage, or the first answers, when flips are asked again.

docs/statistics.md has the formulas, docs/truth.md how often the limits fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.stats.results import Reals

Integers = NDArray[np.int64]
"""An array of whole numbers."""
SURE, SPARSE = 20, 4
"""Lost clusters from which on their spread is trusted; below, the weight of the worst case is
SPARSE / (SPARSE + clusters)."""
UNSEEN = 0.025
"""Probability with which all clusters that could be lost may be missing in the sample."""
MIN_TASKS = 8
"""Tasks from which on their halves can carry a limit."""
UNSURE = 0.75
"""Flips that are subtracted before a lower limit is used as "at least"."""


def normal_quantile_above(a: float) -> float:
    """Return the standard normal quantile that is exceeded with probability a."""
    return -NormalDist().inv_cdf(a)


@dataclass(frozen=True)
class ItemSample:
    """Kinds of items over which scores are averaged; every kind stands for `count` items.

    Attributes:
        count: number of items of each kind.
        cluster: index of the cluster of each kind, -1 for items that are alone; None if all are.
        factor: weight of each kind in a mean over tasks, with mean 1 over the items; None for 1.
        step: largest share of one item in the mean; by default that of the largest factor.
    """

    count: Reals
    cluster: Integers | None = None
    factor: Reals | None = None
    step: float | None = None

    @cached_property
    def n(self) -> float:
        """Number of items."""
        return float(self.count.sum())

    def mean(self, scores: Reals) -> float:
        """Return the mean score."""
        return float(self.count @ self._weighted(scores)) / self.n

    def mean_square(self, scores: Reals) -> float:
        """Return the mean of the squared scores."""
        return float(self.count @ self._weighted(scores) ** 2) / self.n

    def lower(self, scores: Reals, a: float, largest: float = 1.0) -> float:
        """Return the lower limit T of a mean, with one-sided error a; -inf without a spread.

        mean - t sqrt(D (sum (e - mean)^2 + h^2) / (N (N - 1))), h the largest possible |e|.
        """
        spread = self._spread(scores, largest)
        if spread is None:
            return -math.inf
        return spread.mean - _t(spread.freedom, a) * math.sqrt(spread.effect * spread.variance)

    def p_value(self, scores: Reals, largest: float = 1.0) -> float:
        """Return the smallest a at which `lower` is above 0."""
        from scipy.special import stdtr

        spread = self._spread(scores, largest)
        if spread is None:
            return 1.0
        error = math.sqrt(spread.effect * spread.variance)
        return float(stdtr(spread.freedom, -spread.mean / error))

    def upper_t(self, scores: Reals, a: float, largest: float = 1.0) -> float:
        """Return the plain upper t limit of a mean."""
        spread = self._spread(scores, largest)
        if spread is None:
            return math.inf
        return spread.mean + _t(spread.freedom, a) * math.sqrt(spread.effect * spread.variance)

    def upper(self, scores: Reals, a: float, largest: float = 1.0, *, unseen: bool = True) -> float:
        """Return the upper limit V of the mean of a loss, which leaves room for what was not seen.

        With the losses l = mean max(e, 0), the gains l - mean e, and v the variance of the mean:
        the larger root r of (r - l)^2 = t^2 (v + g s ((r - r^2) - (l - l^2))), minus the gains.
        A plain t limit has no room where nothing was seen: it is below the truth in up to .14 of
        data sets.

        Args:
            scores: item scores, at most 1.
            a: one-sided error.
            largest: largest possible |score|.
            unseen: allow for passages that were not seen; without it the limit is about these.
        """
        spread = self._spread(scores, largest)
        if spread is None:
            return 1.0
        lost = self.mean(np.maximum(scores, 0.0))
        t2 = _t(spread.freedom, a) ** 2
        slope = t2 * (spread.worst if unseen else spread.effect) * self._step
        constant = t2 * spread.effect * spread.variance - slope * (lost - lost**2)
        root = float(_larger_root(1 + slope, 2 * lost + slope, lost**2 - constant))
        return root - (lost - spread.mean)

    def design_effect(self, scores: Reals) -> float:
        """Return how much clusters widen the variance of a mean; 1 without clusters."""
        spread = self._spread(scores, 1.0)
        return 1.0 if spread is None else spread.effect

    @cached_property
    def largest_share(self) -> float:
        """Share of the items in the largest cluster."""
        return float(self._sizes.max()) / self.n if self._sizes.size else 1 / self.n

    @cached_property
    def clusters(self) -> float:
        """Number of clusters; an item that is alone is one."""
        return float((self._sizes > 0).sum() + self._alone.sum())

    @cached_property
    def _step(self) -> float:
        if self.step is not None:
            return self.step
        return 1 / self.n if self.factor is None else float(self.factor.max()) / self.n

    @cached_property
    def _shares(self) -> tuple[Reals, Reals]:
        """Share of each cluster, and of one item of each kind, in the mean."""
        factor = np.ones(self.count.size) if self.factor is None else self.factor
        own = self.cluster >= 0  # type: ignore[operator]  # there are clusters
        in_clusters = np.bincount(self.cluster[own], (self.count * factor)[own])  # type: ignore[index]
        return in_clusters / self.n, factor / self.n

    @cached_property
    def _equal_clusters(self) -> float:
        """Number of equal clusters that would leave as much open as these, if none is lost.

        The most that can be lost while none of the clusters is seen lost in .025 of samples is the
        sum of (share - level) over the clusters whose share is above the level, where the product
        of level / share is .025. For equal clusters it is their number.
        """
        in_clusters, alone = self._shares
        shares = np.concatenate([in_clusters, alone[self._alone > 0]])
        number = np.concatenate([np.ones(in_clusters.size), self._alone[self._alone > 0]])
        order = np.argsort(-shares)
        order = order[shares[order] > 0]
        shares, number = shares[order], number[order]
        total = np.cumsum(number)
        level = np.exp((np.cumsum(number * np.log(shares)) + math.log(UNSEEN)) / total)
        last = np.flatnonzero(level < shares)[-1]
        most = float((number * shares)[: last + 1].sum() - total[last] * level[last])
        return math.log(UNSEEN) / math.log1p(-most)

    @cached_property
    def _sizes(self) -> Reals:
        if self.cluster is None:
            return np.zeros(0)
        own = self.cluster >= 0
        return np.asarray(np.bincount(self.cluster[own], self.count[own]), float)

    @cached_property
    def _alone(self) -> Reals:
        """Number of items of each kind that are not in a cluster."""
        return self.count if self.cluster is None else np.where(self.cluster < 0, self.count, 0.0)

    @cached_property
    def _freedom(self) -> float:
        """Bell-McCaffrey degrees of freedom of the CR2 variance, which depend on sizes only."""
        alone = float(self._alone.sum())
        shares = self._sizes / self.n
        a, a1 = shares**2 / (1 - shares), 1 / (self.n * (self.n - 1))
        squares = float((shares**2).sum()) + alone / self.n**2
        return float(1 / (squares + (a.sum() + alone * a1) ** 2 - (a**2).sum() - alone * a1**2))

    def _weighted(self, scores: Reals) -> Reals:
        return scores if self.factor is None else scores * self.factor

    def _spread(self, scores: Reals, largest: float) -> _Spread | None:
        """Return mean and variance; None where they cannot be known."""
        # The same scores have a lower and an upper limit and a p-value.
        for known, size, spread in self._last:
            if known is scores and size == largest:
                return spread
        self._last[:] = [(scores, largest, self._compute_spread(scores, largest))]
        return self._last[0][2]

    @cached_property
    def _last(self) -> list[tuple[Reals, float, _Spread | None]]:
        """Scores, largest score and spread of the last call."""
        return []

    def _compute_spread(self, scores: Reals, largest: float) -> _Spread | None:
        n, weighted = self.n, self._weighted(scores)
        if n < 2 or self.clusters < 2:
            return None
        if self.factor is not None:
            largest = largest * float(self.factor.max())
        mean = float(self.count @ weighted) / n
        around = weighted - mean
        squares = float(self.count @ around**2)
        variance = (squares + largest**2) / (n * (n - 1))
        if not self._sizes.size:
            return _Spread(mean, variance, 1.0, n - 1, 1.0)
        own = self.cluster >= 0  # type: ignore[operator]  # there are clusters
        index = self.cluster[own]  # type: ignore[index]
        sums = np.bincount(index, (self.count * around)[own])
        robust = float((sums**2 / (1 - self._sizes / n)).sum())
        robust += float(self._alone @ around**2) / (1 - 1 / n)
        # The variance of independent items is squares / (N (N - 1)): items that are alone give 1.
        effect = max(1.0, robust * (1 - 1 / n) / squares) if squares > 1e-12 * n else 1.0
        # A single item that flipped may be noise: it says nothing about passages not seen lost.
        is_lost = (np.bincount(index, (self.count * scores)[own]) > self._sizes / 2) & (
            self._sizes > 1
        )
        weight = float(self._shares[0] @ is_lost)
        lost = min(float(is_lost.sum()), weight * self._equal_clusters)
        room = 0.0 if lost >= SURE else SPARSE / (SPARSE + lost)
        worst = max(effect, 1 + (1 / (self._equal_clusters * self._step) - 1) * room)
        return _Spread(mean, variance, effect, self._freedom, worst)


class _Spread(NamedTuple):
    """Mean of scores, its variance if items were independent, and what clusters add."""

    mean: float
    variance: float
    effect: float
    freedom: float
    worst: float


@dataclass(frozen=True)
class PairedAnswers:
    """Right answers to kinds of items before and after, with the items of each kind.

    Attributes:
        right_before: right answers to each kind.
        answers_before: all answers to it.
        right_after: the same for the model after.
        answers_after: the same for the model after.
        sample: number of items of each kind, and their clusters.
    """

    right_before: Reals
    answers_before: Reals
    right_after: Reals
    answers_after: Reals
    sample: ItemSample

    @cached_property
    def x(self) -> Reals:
        """Share of right answers before."""
        return self.right_before / self.answers_before

    @cached_property
    def y(self) -> Reals:
        """Share of right answers after."""
        return self.right_after / self.answers_after

    @cached_property
    def change(self) -> Reals:
        """Share of right answers before minus after."""
        return self.x - self.y

    @cached_property
    def mirrored(self) -> PairedAnswers:
        """The same with before and after exchanged, so that gains become losses."""
        mirror = PairedAnswers(
            self.right_after, self.answers_after, self.right_before, self.answers_before,
            self.sample,
        )  # fmt: skip
        mirror.__dict__["mirrored"] = self
        return mirror

    @cached_property
    def has_repeats(self) -> bool:
        """Whether a model answered some item twice or more."""
        return bool(((self.answers_before > 1) | (self.answers_after > 1)).any())

    @cached_property
    def is_plain(self) -> bool:
        """Whether there is one answer per item and model, and no clusters or weights."""
        plain = self.sample.cluster is None and self.sample.factor is None
        return plain and not self.has_repeats

    @cached_property
    def flips(self) -> tuple[float, float]:
        """Expected items right before and wrong after, and wrong before and right after."""
        count = self.sample.count
        return (
            float(count @ (self.x * (1 - self.y))),
            float(count @ ((1 - self.x) * self.y)),
        )


# ---------------------------------------------------------------------------- lower limits


@dataclass(frozen=True)
class DropBound:
    """The lower limit L1: a drop in accuracy is a loss, whatever the noise is."""

    answers: PairedAnswers

    def lower(self, a: float) -> float:
        """Return the lower limit of the loss, with one-sided error a."""
        answers = self.answers
        if answers.is_plain:
            return float(plain_drop_lower(*answers.flips, answers.sample.n, a))
        return answers.sample.lower(answers.change, a)

    @property
    def p_value(self) -> float:
        """Smallest a at which the limit is above 0."""
        if self.answers.is_plain:
            return float(plain_drop_p(*self.answers.flips))
        return self.answers.sample.p_value(self.answers.change)


def plain_drop_lower(n10: ArrayLike, n01: ArrayLike, n: ArrayLike, a: float) -> Reals:
    """Return L1 of single answers; any argument but a may be an array.

    Smaller root of (theta - (n10 - 3/4 - n01)/N)^2 = z^2 ((2 n01 + 2.25)/N^2 + (theta -
    theta^2)/N), not above 0 where the exact one-sided McNemar test does not reject.
    """
    n10, n01, n = (np.asarray(value, float) for value in (n10, n01, n))
    z = normal_quantile_above(a)
    low = _smaller_root(*_drop_equation(n10 - UNSURE, n01, n, z))
    undecided = (_mcnemar_one_sided(n10, n01) > a) | (n10 == 0)
    return np.asarray(np.where(undecided, np.minimum(low, 0.0), low))


def plain_drop_p(n10: ArrayLike, n01: ArrayLike) -> Reals:
    """Return the smallest a at which `plain_drop_lower` is above 0."""
    from scipy.special import ndtr

    n10, n01 = np.asarray(n10, float), np.asarray(n01, float)
    by_root = ndtr(-(n10 - n01 - UNSURE) / np.sqrt(2 * n01 + 2.25))
    return np.asarray(np.maximum(by_root, _mcnemar_one_sided(n10, n01)))


def _drop_equation(lost: Reals, gained: Reals, n: Reals, z: float) -> tuple[Reals, Reals, Reals]:
    """Return the coefficients of the equation of the drop: alpha t^2 - beta t + gamma = 0."""
    z2, centre = z**2, (lost - gained) / n
    constant = centre**2 - z2 * (2 * gained + 2.25) / n**2
    return 1 + z2 / n, 2 * centre + z2 / n, constant


def _mcnemar_one_sided(n10: Reals, n01: Reals) -> Reals:
    """Return P(Bin(n10 + n01, 1/2) >= n10)."""
    from scipy.special import betainc

    # Expected flips of uneven repeats are not whole numbers; betainc interpolates.
    some = n10 > 0
    return np.asarray(np.where(some, betainc(np.where(some, n10, 1.0), n01 + 1, 0.5), 1.0))


class TaskHalvesBound(NamedTuple):
    """Estimate and standard error of the cross-fitted drop over tasks; 0 if nothing is chosen."""

    estimate: float
    error: float

    def lower(self, a: float) -> float:
        """Return the lower limit L2; -inf if no half chose a task."""
        if not self.error:
            return -math.inf
        return self.estimate - normal_quantile_above(a) * self.error

    @property
    def p_value(self) -> float:
        """Smallest a at which the limit is above 0."""
        return NormalDist().cdf(-self.estimate / self.error) if self.error else 1.0


def halve_tasks(
    answers: PairedAnswers, task: Integers, half: Integers, weights: Reals
) -> TaskHalvesBound:
    """Return the drop over tasks that the other half of the items chose.

    Tasks with mean/sqrt(var/n + 1e-4) > .5 in one half are added up in the other, and the other
    way round. Halves consist of whole clusters, so that run noise that clusters share does not
    choose its own tasks.

    Args:
        answers: all items.
        task: index of the task of each kind of item.
        half: half of each kind of item, 0 or 1.
        weights: weight of each task in the total; they add up to 1.
    """
    sample, size = answers.sample, weights.size
    change, count = answers.change, sample.count
    cluster = np.full(count.size, -1) if sample.cluster is None else sample.cluster
    parts = []
    for own in (half == 0, half == 1):
        n, total, squares = (
            np.bincount(task[own], values[own], minlength=size)
            for values in (count, count * change, count * change**2)
        )
        parts.append((own, n, total, squares))
    both = (parts[0][1] > 0) & (parts[1][1] > 0)
    estimate = error = 0.0
    for (_, n_a, total_a, squares_a), (own, n_b, _, _) in (parts, parts[::-1]):
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total_a / n_a
            chosen = both & (mean / np.sqrt((squares_a / n_a - mean**2) / n_a + 1e-4) > 0.5)
            share = np.where(chosen, weights / n_b, 0.0)
        if not chosen.any():
            continue
        scaled = share[task] * change
        estimate += float((count * scaled)[own].sum()) / 2
        grouped = own & (cluster >= 0)
        sums = np.bincount(cluster[grouped], (count * scaled)[grouped])
        alone = own & (cluster < 0)
        variance = float((sums**2).sum()) + float((count * scaled**2)[alone].sum())
        error += math.sqrt(variance + float(share.max()) ** 2) / 2
    return TaskHalvesBound(estimate, error)


def repeat_scores(answers: PairedAnswers) -> Reals | None:
    """Return the item scores of L3, whose mean is at most the loss; None without repeats.

    Both models twice or more: leave-one-out flips, the mean over pairs of answers of x_j - y_k
    where the other answers were more often right before than after. Only one model repeated: flips
    between the models minus those within that model. Items without the repeats score 0.
    """
    m, r_b, n, r_a = (
        answers.right_before, answers.answers_before, answers.right_after, answers.answers_after,
    )  # fmt: skip
    x, y = answers.x, answers.y
    with np.errstate(invalid="ignore", divide="ignore"):
        if ((r_b > 1) & (r_a > 1)).any():
            lost = x * (1 - y) * ((m - 1) / (r_b - 1) > n / (r_a - 1))
            gained = (1 - x) * y * (m / (r_b - 1) > (n - 1) / (r_a - 1))
            return np.asarray(np.where((r_b > 1) & (r_a > 1), lost - gained, 0.0))
        if (r_b > 1).any():
            within = m * (r_b - m) / (r_b * (r_b - 1))
            return np.asarray(np.where(r_b > 1, x * (1 - y) - within, 0.0))
        if (r_a > 1).any():
            within = n * (r_a - n) / (r_a * (r_a - 1))
            return np.asarray(np.where(r_a > 1, x * (1 - y) - within, 0.0))
    return None


@dataclass(frozen=True)
class ScoreBound:
    """A lower limit by the mean of item scores: repeats, confirmed flips, an earlier stage.

    Attributes:
        sample: the items, all of them.
        scores: their scores.
        largest: the largest possible |score|.
    """

    sample: ItemSample
    scores: Reals
    largest: float = 1.0

    def lower(self, a: float) -> float:
        """Return the lower limit of the loss."""
        return self.sample.lower(self.scores, a, self.largest)

    @property
    def p_value(self) -> float:
        """Smallest a at which the limit is above 0."""
        return self.sample.p_value(self.scores, self.largest)


# ---------------------------------------------------------------------------- upper limits


def flips_upper(answers: PairedAnswers, a: float) -> float:
    """Return the upper limit U of the loss: what went from right to wrong, noise included."""
    if answers.is_plain:
        n10, n = answers.flips[0], answers.sample.n
        return float(plain_flips_upper(n10, n, a))
    sample, change = answers.sample, answers.change
    high = sample.upper(np.maximum(change, 0.0), a)
    if not ((answers.answers_before > 1) & (answers.answers_after > 1)).all():
        return high
    # Passages that were not seen can have changed as well.
    upper = sample.upper_t if sample.cluster is None else sample.upper
    squared = upper(squared_change(answers), a)
    return min(high, (sample.upper(change, a) + math.sqrt(max(squared, 0.0))) / 2)


def squared_change(answers: PairedAnswers) -> Reals:
    """Return the unbiased squared change of each item; needs two answers of each model."""
    x, y = answers.x, answers.y
    within = x * (1 - x) / (answers.answers_before - 1) + y * (1 - y) / (answers.answers_after - 1)
    return np.asarray((x - y) ** 2 - within)


def drop_upper(answers: PairedAnswers, a: float, *, unseen: bool = True) -> float:
    """Return the upper limit Ud of the drop in accuracy."""
    if answers.is_plain:
        return float(plain_drop_upper(*answers.flips, answers.sample.n, a))
    return answers.sample.upper(answers.change, a, unseen=unseen)


def plain_flips_upper(n10: ArrayLike, n: ArrayLike, a: float) -> Reals:
    """Return U of single answers: Wilson's upper limit of n10/N with a quarter of a flip."""
    return _larger_root(*_flips_equation(np.asarray(n10, float), np.asarray(n, float), a))


def plain_flips_lower(n10: ArrayLike, n: ArrayLike, a: float) -> Reals:
    """Return the lower limit of the rate of flips, with three quarters of a flip off."""
    n10 = np.asarray(n10, float)
    low = _smaller_root(*_flips_equation(n10 - UNSURE, np.asarray(n, float), a))
    return np.asarray(np.where(n10 > UNSURE, low, np.minimum(low, 0.0)))


def plain_drop_upper(n10: ArrayLike, n01: ArrayLike, n: ArrayLike, a: float) -> Reals:
    """Return Ud of single answers."""
    n10, n01, n = (np.asarray(value, float) for value in (n10, n01, n))
    return _larger_root(*_drop_equation(n10, n01, n, normal_quantile_above(a)))


def flips_lower(answers: PairedAnswers, a: float) -> float:
    """Return the lower limit of the share that went from right to wrong, noise included."""
    if answers.is_plain:
        return float(plain_flips_lower(answers.flips[0], answers.sample.n, a))
    return answers.sample.lower(answers.x * (1 - answers.y), a)


def _flips_equation(lost: Reals, n: Reals, a: float) -> tuple[Reals, Reals, Reals]:
    z2 = normal_quantile_above(a) ** 2
    centre = lost / n
    return 1 + z2 / n, 2 * centre + z2 / n, centre**2 - z2 * 0.25 / n**2


# ---------------------------------------------------------------------------- roots and quantiles


def _larger_root(alpha: ArrayLike, beta: ArrayLike, gamma: ArrayLike) -> Reals:
    """Return the larger root of alpha t^2 - beta t + gamma."""
    return _root(alpha, beta, gamma, 1.0)


def _smaller_root(alpha: ArrayLike, beta: ArrayLike, gamma: ArrayLike) -> Reals:
    return _root(alpha, beta, gamma, -1.0)


def _root(alpha: ArrayLike, beta: ArrayLike, gamma: ArrayLike, sign: float) -> Reals:
    alpha, beta, gamma = (np.asarray(value, float) for value in (alpha, beta, gamma))
    inside = np.maximum(beta**2 - 4 * alpha * gamma, 0.0)
    return np.asarray((beta + sign * np.sqrt(inside)) / (2 * alpha))


def _t(freedom: float, a: float) -> float:
    """Return the t quantile that is exceeded with probability a."""
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, a))
