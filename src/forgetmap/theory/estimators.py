"""Estimators of overlap, divergence and retained mass from log-probabilities.

P is the model before (or the old behaviour), Q the model after; `ratio` is always log P(y) - log
Q(y) of one completion y, summed over its tokens, with the same tokenisation, at temperature 1 and
with the end token scored. Each quantity is a mean of terms, one per completion: the functions named
`..._terms` return the terms, to be averaged here (`mean`), in a stream (`Running`) or over prompts
(`over_prompts`). A completion that one of the two models cannot write has an infinite ratio, which
is allowed; NaN and probabilities above 1 are errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.errors import FieldError

Floats = NDArray[np.float64]
Kind = Literal["k1", "k2", "k3"]

ROUNDING = 1e-4
"""Largest excess above 0 of a log-probability summed in single precision."""
RATIO_LIMIT = 700.0
"""Ratio beyond which exp overflows; every term equals its limit there."""
CHUNK = 4_000_000
"""Random numbers drawn at once in a bootstrap."""


@dataclass(frozen=True)
class SampleEstimate:
    """A mean with its uncertainty.

    Attributes:
        value: the mean.
        standard_error: standard error of the mean; NaN for a single sample.
        samples: number of terms (or prompts).
        effective: effective sample size, (sum w)^2 / sum w^2, of the terms; if it is far below
            `samples`, few completions dominate, and neither value nor error is reliable.
    """

    value: float
    standard_error: float
    samples: int
    effective: float


@dataclass(frozen=True)
class SampleInterval:
    """A mean over prompts with its interval from a cluster bootstrap."""

    value: float
    low: float
    high: float
    prompts: int
    samples: int


@dataclass(frozen=True)
class OldMass:
    """The weight of the old model in a mixture of two.

    Attributes:
        value: maximum likelihood estimate, in [0, 1].
        standard_error: from the information at the estimate; infinite if the two models are
            indistinguishable.
        samples: number of completions.
        overlap: mean product of the two responsibilities: the information lost by overlap.
    """

    value: float
    standard_error: float
    samples: int
    overlap: float


# ------------------------------------------------------------------------------------------ input


def log_ratio(
    log_p: ArrayLike,
    log_q: ArrayLike,
    tokens_p: ArrayLike | None = None,
    tokens_q: ArrayLike | None = None,
) -> Floats:
    """Return log P - log Q per completion, and check both.

    Args:
        log_p: log-probability of each completion under P.
        log_q: the same completions under Q.
        tokens_p: number of tokens scored under P, to detect another tokenisation.
        tokens_q: the same under Q.

    Raises:
        FieldError: a value is NaN or above 0, both models give probability 0, or the two have
            different numbers of tokens.
    """
    p, q = check_log_probs(log_p, "log_p"), check_log_probs(log_q, "log_q")
    if p.shape != q.shape:
        raise FieldError(
            f"log_p has shape {p.shape}, log_q has {q.shape}",
            field="log_q",
            hint="score the same completions with both models.",
        )
    _check_tokens(tokens_p, tokens_q)
    neither = np.isneginf(p) & np.isneginf(q)
    if neither.any():
        raise FieldError(
            "both models assign this completion the probability 0, so it cannot have been sampled",
            field="log_p",
            line=_first(neither),
            hint="remove completions that neither model can write.",
        )
    return np.asarray(p - q, dtype=np.float64)


def check_log_probs(values: ArrayLike, name: str) -> Floats:
    """Return the values as an array, and check that they can be log-probabilities.

    Args:
        values: log-probabilities of sequences or tokens; minus infinity is a probability of 0.
        name: their name in an error.

    Raises:
        FieldError: there are none, one is NaN, or one is above 0.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise FieldError(
            "no log-probabilities", field=name, hint="pass those of at least one completion."
        )
    for wrong, what in (
        (np.isnan(array), "not a number"),
        (array > ROUNDING, "a log-probability above 0"),
    ):
        if wrong.any():
            line = _first(wrong)
            raise FieldError(
                f"value {line} is {what} ({array.ravel()[line - 1]:g})",
                field=name,
                line=line,
                hint="use natural logarithms of probabilities, not logits, losses or densities.",
            )
    return np.minimum(array, 0.0)


def _check_tokens(tokens_p: ArrayLike | None, tokens_q: ArrayLike | None) -> None:
    if tokens_p is None or tokens_q is None:
        return
    p, q = np.asarray(tokens_p), np.asarray(tokens_q)
    if p.shape != q.shape or (p != q).any():
        line = _first(p != q) if p.shape == q.shape else 1
        raise FieldError(
            f"completion {line} has different numbers of tokens under P and Q, so the tokenisers "
            "differ",
            field="tokens_q",
            line=line,
            hint="compare models with the same tokeniser.",
        )


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask.ravel())[0]) + 1


# ---------------------------------------------------------------------------------------- overlap


def overlap_terms(ratio: ArrayLike) -> Floats:
    """Return terms of the Bhattacharyya coefficient, the integral of sqrt(P Q): sech(ratio / 2).

    Over samples half from P and half from Q; the variance is at most BC (1 - BC) / n.
    """
    return 1 / np.cosh(_limited(ratio) / 2)


def one_sided_overlap_terms(ratio: ArrayLike) -> Floats:
    """Return terms of the Bhattacharyya coefficient over samples from P alone: exp(-ratio / 2).

    For use if Q cannot be sampled; the variance is (1 - BC^2) / n.
    """
    return np.exp(-_limited(ratio) / 2)


def total_variation_terms(ratio: ArrayLike) -> Floats:
    """Return terms of the total variation distance, over samples half from P and half from Q.

    1 minus their mean is the overlap coefficient.
    """
    return np.abs(np.tanh(_limited(ratio) / 2))


def misassignment_terms(ratio: ArrayLike, new_share: float = 0.5) -> Floats:
    """Return the probability that a completion of the old model P is assigned to the new model Q.

    Args:
        ratio: ratio of completions sampled from P.
        new_share: prior weight of Q.
    """
    _check_share(new_share, "new_share")
    return sigmoid(math.log(new_share / (1 - new_share)) - _limited(ratio))


def pooled(terms: ArrayLike, from_p: ArrayLike) -> SampleEstimate:
    """Return the mean under (P + Q) / 2 of terms of samples from either, whatever their numbers.

    Args:
        terms: one per completion, such as `overlap_terms`.
        from_p: whether P (rather than Q) wrote it.

    Raises:
        FieldError: one of the two has no completions.
    """
    values, first = np.asarray(terms, dtype=np.float64), np.asarray(from_p, dtype=bool)
    if values.shape != first.shape or first.all() or not first.any():
        raise FieldError(
            f"{int(first.sum())} of {first.size} completions are from P",
            field="from_p",
            hint="sample completions from both models.",
        )
    of_p, of_q = mean(values[first]), mean(values[~first])
    error = math.hypot(of_p.standard_error, of_q.standard_error) / 2
    return SampleEstimate(
        (of_p.value + of_q.value) / 2, error, values.size, effective_size(np.abs(values))
    )


def classifier_overlap_terms(new_probability: ArrayLike) -> Floats:
    """Return 2 sqrt(c (1 - c)) of a calibrated classifier c(y) = P(new | y) on pooled completions.

    For fine-tuning data without a model. Differences that the classifier does not detect are
    ignored, so the mean is an upper bound of the overlap. Report `calibration_error` with it.
    """
    chance = np.asarray(new_probability, dtype=np.float64)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise FieldError(
            "a probability lies outside [0, 1]",
            field="new_probability",
            hint="use calibrated probabilities.",
        )
    return 2 * np.sqrt(chance * (1 - chance))


def calibration_error(new_probability: ArrayLike, is_new: ArrayLike, bins: int = 10) -> float:
    """Return the mean distance, over bins of equal size, of predicted and observed frequency."""
    chance, truth = np.asarray(new_probability, float), np.asarray(is_new, float)
    order = np.argsort(chance, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size]
    gaps = [part.size * abs(chance[part].mean() - truth[part].mean()) for part in parts]
    return float(sum(gaps) / chance.size)


def effective_separation(overlap: float) -> float:
    """Return the separation, in standard deviations, of two Gaussians with this overlap."""
    return math.inf if overlap <= 0 else math.sqrt(max(0.0, -8 * math.log(overlap)))


def misassignment_bound(overlap: float, new_share: float = 0.5) -> float:
    """Return the largest misassignment of old completions for this Bhattacharyya coefficient."""
    _check_share(new_share, "new_share")
    return 0.5 * math.sqrt(new_share / (1 - new_share)) * overlap


# ------------------------------------------------------------------------------------- divergence


def kl_terms(ratio: ArrayLike, kind: Kind = "k1") -> Floats:
    """Return terms of KL(P||Q) over samples from P; with minus the ratio, KL(Q||P) over Q.

    Args:
        ratio: log P - log Q.
        kind: `k1` is the ratio itself, unbiased. `k3` = r - 1 - log r with r = Q / P is unbiased
            and never negative, but better only below 0.628 nats per sequence and useless far above.
            `k2` is half the squared ratio, biased.
    """
    log_r = -np.asarray(ratio, dtype=np.float64)
    if kind == "k1":
        return -log_r
    if kind == "k2":
        return log_r**2 / 2
    return np.expm1(np.minimum(log_r, RATIO_LIMIT)) - log_r


def token_kl(log_p: ArrayLike, log_q: ArrayLike) -> Floats:
    """Return the KL between the next-token distributions at every position.

    Summed over the positions of a completion of P it is a Rao-Blackwellised term of KL(P||Q):
    unbiased, and of far smaller variance than `kl_terms`.

    Args:
        log_p: log-probabilities of all tokens under P, vocabulary last.
        log_q: the same under Q.

    Returns:
        One value per position, in nats.
    """
    p, q = check_log_probs(log_p, "log_p"), check_log_probs(log_q, "log_q")
    if p.shape != q.shape:
        raise FieldError(
            f"the vocabularies differ: log_p has shape {p.shape}, log_q has {q.shape}",
            field="log_q",
            hint="compare models with the same tokeniser.",
        )
    for name, logs in (("log_p", p), ("log_q", q)):
        _check_sums_to_one(logs, name)
    return _kl_of_rows(p, q)


def top_token_kl(log_p: ArrayLike, log_q: ArrayLike) -> Floats:
    """Return a lower bound of `token_kl` from the same tokens under both; all others count as one.

    Args:
        log_p: log-probabilities of the listed tokens under P, tokens last.
        log_q: log-probabilities of the same tokens under Q.
    """
    p, q = check_log_probs(log_p, "log_p"), check_log_probs(log_q, "log_q")
    return _kl_of_rows(_with_rest(p), _with_rest(q))


def _with_rest(logs: Floats) -> Floats:
    rest = np.maximum(1 - np.exp(logs).sum(axis=-1, keepdims=True), 0.0)
    with np.errstate(divide="ignore"):
        return np.concatenate([logs, np.log(rest)], axis=-1)


def _kl_of_rows(p: Floats, q: Floats) -> Floats:
    there = np.isfinite(p)
    gap = np.where(there, p, 0.0) - np.where(there, q, 0.0)
    return np.asarray(np.maximum((np.exp(p) * gap).sum(axis=-1), 0.0))


def _check_sums_to_one(logs: Floats, name: str) -> None:
    off = np.abs(np.exp(logs).sum(axis=-1) - 1) > 1e-3  # half precision
    if off.any():
        raise FieldError(
            "the probabilities of all tokens do not sum to 1",
            field=name,
            line=_first(off),
            hint="pass the whole vocabulary, or use top_token_kl for the most likely tokens.",
        )


# --------------------------------------------------------------------------------- retained mass


def bernoulli_kl(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the KL between two coins: the part of a divergence that one event shows."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        heads = np.where(a > 0, a * np.log(a / b), 0.0)
        tails = np.where(a < 1, (1 - a) * np.log((1 - a) / (1 - b)), 0.0)
    return np.asarray(heads + tails)


def retention_floor(base_mass: ArrayLike, kl: ArrayLike) -> Floats:
    """Return the smallest probability of a behaviour after, by the data processing inequality.

    Holds for any models and any behaviour. Use an upper confidence bound of KL(P||Q) on that
    prompt, not the mean.

    Args:
        base_mass: probability of the behaviour under the model before.
        kl: KL(before||after) on the same prompt, in nats.
    """
    mass, budget = _checked_budget(base_mass, kl)
    low, high = np.full(mass.shape, -800.0), np.log(np.maximum(mass, 1e-300))
    for _ in range(80):
        middle = (low + high) / 2
        too_far = bernoulli_kl(mass, np.exp(middle)) > budget
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return np.where(mass > 0, np.exp(low), 0.0)


def simple_retention_floor(base_mass: ArrayLike, kl: ArrayLike) -> Floats:
    """Return a closed form below `retention_floor`, which decreases like exp(-KL / mass)."""
    mass, budget = _checked_budget(base_mass, kl)
    safe = np.maximum(mass, 1e-300)
    kept = np.where(mass < 1, (1 - safe) * np.log1p(-np.minimum(safe, 1 - 1e-16)), 0.0)
    return np.where(mass > 0, mass * np.exp((kept - budget) / safe), 0.0)


def reverse_retention_floor(base_mass: ArrayLike, kl: ArrayLike) -> Floats:
    """Return the same from KL(after||before): 0 once that exceeds -log(1 - base_mass)."""
    mass, budget = _checked_budget(base_mass, kl)
    low, high = np.zeros(mass.shape), mass.copy()
    for _ in range(80):
        middle = (low + high) / 2
        too_far = bernoulli_kl(middle, mass) > budget
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return low


def _checked_budget(base_mass: ArrayLike, kl: ArrayLike) -> tuple[Floats, Floats]:
    mass, budget = np.broadcast_arrays(np.asarray(base_mass, float), np.asarray(kl, float))
    if not ((mass >= 0) & (mass <= 1)).all():
        raise FieldError(
            "a probability lies outside [0, 1]",
            field="base_mass",
            hint="use the share of completions that show the behaviour.",
        )
    if not (budget >= 0).all():
        raise FieldError(
            "a KL divergence is negative or not a number",
            field="kl",
            hint="use an upper confidence bound, or 0 if the estimate is negative.",
        )
    return mass, budget


def old_mass(log_old: ArrayLike, log_new: ArrayLike) -> OldMass:
    """Return the maximum likelihood weight of the old model in a mixture of an old and a new one.

    Args:
        log_old: log-probability (or density) of each completion of the mixed model under the old.
        log_new: the same under the new.
    """
    ratio = np.asarray(log_old, dtype=np.float64) - np.asarray(log_new, dtype=np.float64)
    if ratio.size == 0 or np.isnan(ratio).any():
        raise FieldError(
            "no log-ratio can be computed from these",
            field="log_old",
            hint="score at least one completion with both models, without NaN.",
        )
    odds = np.exp(_limited(ratio))
    mass = _root_of_score(odds)
    return OldMass(mass, *_information(odds, mass))


def _root_of_score(odds: Floats) -> float:
    """Return the root of the derivative of the concave log-likelihood, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.mean((odds - 1) / (1 + middle * (odds - 1))) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _information(odds: Floats, mass: float) -> tuple[float, int, float]:
    responsible = mass * odds / (1 + mass * (odds - 1))
    overlap = float(np.mean(responsible * (1 - responsible)))
    spread = mass * (1 - mass)
    information = max(spread - overlap, 0.0) * odds.size
    error = spread / math.sqrt(information) if information > 0 else math.inf
    return error, odds.size, overlap


# ---------------------------------------------------------------------------------------- averages


def mean(terms: ArrayLike) -> SampleEstimate:
    """Return the mean of independent terms."""
    values = np.asarray(terms, dtype=np.float64).ravel()
    if values.size == 0:
        raise FieldError("no terms to average", field="terms", hint="pass at least one completion.")
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return SampleEstimate(
        float(values.mean()), float(error), values.size, effective_size(np.abs(values))
    )


@dataclass
class Running:
    """A mean that is updated in a stream, in constant memory; parts can be merged."""

    samples: int = 0
    value: float = 0.0
    squares: float = 0.0
    total: float = 0.0
    total_squares: float = 0.0

    def add(self, terms: ArrayLike) -> Self:
        """Add further terms."""
        values = np.asarray(terms, dtype=np.float64).ravel()
        if values.size:
            centre = float(values.mean())
            part = Running(values.size, centre, float(((values - centre) ** 2).sum()))
            part.total, part.total_squares = float(np.abs(values).sum()), float((values**2).sum())
            self.merge(part)
        return self

    def merge(self, other: Running) -> Self:
        """Add the terms of another."""
        together = self.samples + other.samples
        if together == 0:
            return self
        gap = other.value - self.value
        self.squares += other.squares + gap**2 * self.samples * other.samples / together
        self.value += gap * other.samples / together
        self.samples = together
        self.total += other.total
        self.total_squares += other.total_squares
        return self

    def estimate(self) -> SampleEstimate:
        """Return the mean so far."""
        if self.samples == 0:
            raise FieldError("no terms to average", field="terms", hint="add terms first.")
        many = self.samples > 1
        error = math.sqrt(self.squares / (self.samples - 1) / self.samples) if many else math.nan
        size = self.total**2 / self.total_squares if self.total_squares else 0.0
        return SampleEstimate(self.value, error, self.samples, size)


def over_prompts(
    terms: ArrayLike,
    prompts: ArrayLike,
    *,
    level: float = 0.95,
    replicates: int = 2_000,
    seed: int = 0,
) -> SampleInterval:
    """Return the mean over prompts of the means of prompts, with a cluster-bootstrap interval.

    Args:
        terms: one per completion.
        prompts: label of the prompt of each completion.
        level: confidence level of the interval.
        replicates: number of bootstrap samples of prompts.
        seed: seed of the draws.
    """
    values = np.asarray(terms, dtype=np.float64).ravel()
    _, groups = np.unique(np.asarray(prompts).ravel(), return_inverse=True)
    if values.size == 0 or values.size != groups.size:
        raise FieldError(
            f"{values.size} terms, but {groups.size} prompts",
            field="prompts",
            hint="pass the prompt of each term.",
        )
    means = np.bincount(groups, values) / np.bincount(groups)
    drawn = _resampled_means(means, replicates, np.random.default_rng(seed))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return SampleInterval(float(means.mean()), float(low), float(high), means.size, values.size)


def _resampled_means(means: Floats, replicates: int, random: np.random.Generator) -> Floats:
    rows = max(1, CHUNK // means.size)
    parts = [
        means[random.integers(0, means.size, (min(rows, replicates - done), means.size))].mean(1)
        for done in range(0, replicates, rows)
    ]
    return np.concatenate(parts)


def effective_size(weights: ArrayLike) -> float:
    """Return (sum w)^2 / sum w^2, the equivalent number of equal weights."""
    values = np.asarray(weights, dtype=np.float64)
    largest = float(values.max(initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return 0.0 if largest == 0 else 1.0
    scaled = values / largest
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def effective_size_of_logs(log_weights: ArrayLike) -> float:
    """Return the same from logarithms of importance weights."""
    logs = np.asarray(log_weights, dtype=np.float64)
    return effective_size(np.exp(logs - logs.max()))


def sigmoid(value: ArrayLike) -> Floats:
    """Return 1 / (1 + exp(-value)), without overflow and precise for small values."""
    return np.asarray(1 / (1 + np.exp(np.minimum(-np.asarray(value, float), RATIO_LIMIT))))


def _limited(ratio: ArrayLike) -> Floats:
    return np.clip(np.asarray(ratio, dtype=np.float64), -RATIO_LIMIT, RATIO_LIMIT)


def _check_share(share: float, name: str) -> None:
    if not 0 < share < 1:
        raise FieldError(
            f"a share of {share:g} lies outside 0 to 1", field=name, hint="use 0.5, for example."
        )
