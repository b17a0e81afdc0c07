"""Closed forms of the two-mode model: what the claims test and the advisers use.

`old_weight` is the weight of the model on the old mode, `separation` the distance of the modes in
standard deviations. Temperatures and strengths have names of their own; none is called beta.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from forgetmap.theory.estimators import Floats, bernoulli_kl, sigmoid
from forgetmap.theory.mixtures import logit
from forgetmap.theory.quadrature import nodes

MOST_STEPS = 1000
"""Maximum number of steps to a root; halving the widest interval of floats takes a few hundred."""

# ------------------------------------------------------------------- forward KL on new data only


def new_only_curvature(separation: ArrayLike) -> Floats:
    """Return the second derivative at 0 of KL(new||model) in the old weight: a chi-square."""
    return np.asarray(np.expm1(np.asarray(separation, float) ** 2))


def sft_time(old_weight: ArrayLike, start: float) -> Floats:
    """Return the time at which the logit flow of separated modes reaches this weight."""

    def clock(weight: ArrayLike) -> Floats:
        return 1 / np.asarray(weight, float) - logit(weight)

    return clock(old_weight) - clock(start)


def sft_weight(time: float, start: float) -> float:
    """Return the inverse of `sft_time`: about 1/t."""
    low = logit(start) - time - 1
    root = brentq(lambda b: float(sft_time(sigmoid(b), start)) - time, max(low, -700), logit(start))
    return float(sigmoid(root))


def sft_late_weight(time: ArrayLike, separation: ArrayLike) -> Floats:
    """Return the weight in the last phase of the logit flow, with tails: about 1/sqrt(t)."""
    return np.asarray((2 * new_only_curvature(separation) * np.asarray(time, float)) ** -0.5)


def data_on_old(old_weight: ArrayLike, separation: ArrayLike) -> Floats:
    """Return the responsibility of a light old component for new data, approximately."""
    weight, apart = np.asarray(old_weight, float), np.asarray(separation, float)
    return np.asarray(weight * ndtr((-np.log(weight) - apart**2 / 2) / apart))


def natural_weight(time: ArrayLike, start: float) -> Floats:
    """Return the old weight of separated modes in the natural geometry: exponential decay."""
    return np.asarray(start * np.exp(-np.asarray(time, float)))


def euclid_weight(time: ArrayLike, start: float) -> Floats:
    """Return the old weight of separated modes if beta is the parameter: 0 in finite time."""
    left = np.maximum(euclid_end(start) - np.asarray(time, float), 0.0)
    return np.asarray(1 - np.sqrt(1 - 2 * left))


def euclid_end(start: float) -> float:
    """Return the time at which the last old mass is gone in that geometry."""
    return start - start**2 / 2


# ------------------------------------------------------------------------------------- overlap


def gaussian_overlap(separation: ArrayLike) -> Floats:
    """Return the Bhattacharyya coefficient of two modes of equal covariance."""
    return np.asarray(np.exp(-(np.asarray(separation, float) ** 2) / 8))


def misassignment(separation: ArrayLike, log_odds: ArrayLike = 0.0) -> Floats:
    """Return the exact probability that samples of one mode are assigned to the other.

    Args:
        separation: separation of the modes.
        log_odds: log of the weight of the other mode over that of this one.
    """
    apart, odds = np.asarray(separation, float)[..., None], np.asarray(log_odds, float)[..., None]
    at = nodes()
    return at.mean(sigmoid(odds - apart**2 / 2 + apart * at.z))


def misassignment_bound(separation: ArrayLike, log_odds: ArrayLike = 0.0) -> Floats:
    """Return half the root of the odds times the overlap, a bound for any two densities."""
    return 0.5 * np.exp(np.asarray(log_odds, float) / 2) * gaussian_overlap(separation)


def misassignment_asymptote(separation: ArrayLike, log_odds: ArrayLike = 0.0) -> Floats:
    """Return the limit of `misassignment` for large separation."""
    apart, odds = np.asarray(separation, float), np.asarray(log_odds, float)
    scale = np.sqrt(np.pi / 2) / apart * np.exp(odds / 2 - odds**2 / (2 * apart**2))
    return np.asarray(scale * gaussian_overlap(apart))


# ---------------------------------------------------------------- reverse KL to the true mixture


def recovery_time(start: float, end: float, old_share: float) -> float:
    """Return how long separated modes take from weight `start` to `end` under reverse KL."""
    goal = float(logit(old_share))

    def pace(b: float) -> float:
        weight = float(sigmoid(b))
        return 1 / (weight * (1 - weight) * (goal - b))

    return float(quad(pace, float(logit(start)), float(logit(end)), limit=400)[0])


def fisher(old_share: float, separation: float) -> Floats:
    """Return the Fisher information of (b, m_o, m_n) at the optimum, which sets the speed near it.

    Every deviation from its limit is an average with a factor s_o s_n, the overlap of both modes.
    """
    at, both = nodes(), np.zeros((3, 3))
    for share, mean in ((old_share, 0.0), (1 - old_share, separation)):
        x = mean + at.z
        s_old = sigmoid(logit(old_share) - separation * (x - separation / 2))
        gate = s_old * (1 - s_old)
        to_old, to_new = x, x - separation
        parts = [
            [-gate, -gate * to_old, gate * to_new],
            [-gate * to_old, -gate * to_old**2, gate * to_old * to_new],
            [gate * to_new, gate * to_old * to_new, -gate * to_new**2],
        ]
        both += share * at.mean(np.asarray(parts))
    return fisher_limit(old_share) + both


def fisher_limit(old_share: float) -> Floats:
    """Return the same for modes that do not overlap."""
    return np.diag([old_share * (1 - old_share), old_share, 1 - old_share])


def shared_mass(old_share: float, separation: float) -> float:
    """Return W = E[s_o s_n] under the target: the curvature of the weight lost by overlap."""
    return float(old_share * (1 - old_share) - fisher(old_share, separation)[0, 0])


def slowest_rate(old_share: float, separation: float) -> float:
    """Return the smallest eigenvalue of the Fisher information: convergence like exp(-rate t)."""
    return float(np.linalg.eigvalsh(fisher(old_share, separation))[0])


def anchored_weight(start: ArrayLike, gap: ArrayLike, temperature: ArrayLike) -> Floats:
    """Return the final old weight of expected reward with a KL anchor.

    Args:
        start: old weight of the base model.
        gap: reward of new minus reward of old behaviour.
        temperature: strength of the KL penalty to the base model.
    """
    return sigmoid(logit(start) - np.asarray(gap, float) / np.asarray(temperature, float))


def temperature_for(start: float, gap: float, floor: float) -> float:
    """Return the smallest KL strength of `anchored_weight` that keeps a floor."""
    return gap / float(logit(start) - logit(floor))


# ---------------------------------------------------------------------------------------- replay


def replay_weight(fraction: ArrayLike, old_in_replay: ArrayLike = 1.0) -> Floats:
    """Return the final old weight of training on new data with a replayed fraction."""
    return np.asarray(np.asarray(fraction, float) * np.asarray(old_in_replay, float))


def importance_weight(model: ArrayLike, behaviour: ArrayLike) -> Floats:
    """Return the weight of a replayed sample: density of the model over the sampler, from logs."""
    return np.asarray(np.exp(np.asarray(model, float) - np.asarray(behaviour, float)))


def starvation(old_weight: ArrayLike, batch: ArrayLike, replay: ArrayLike = 0.0) -> Floats:
    """Return the probability that a batch contains no old sample."""
    missed = (1 - np.asarray(replay, float)) * (1 - np.asarray(old_weight, float))
    return np.asarray(missed ** np.asarray(batch, float))


def batch_for(chance: float, old_weight: float, replay: float = 0.0) -> int:
    """Return the smallest batch that lacks old samples with at most this probability."""
    missed = math.log1p(-replay) + math.log1p(-old_weight)
    return math.ceil(math.log(chance) / missed - 1e-9)


def replay_variance_ratio(old_weight: ArrayLike, replay: ArrayLike) -> Floats:
    """Return the variance ratio of the old component's gradient, weighted replay over none."""
    weight, share = np.asarray(old_weight, float), np.asarray(replay, float)
    return np.asarray(weight / ((1 - share) * weight + share))


def absorption_time(batch: float, start: float) -> float:
    """Return the mean number of rounds until training on own samples has lost one of two modes."""
    return -2 * batch * (start * math.log(start) + (1 - start) * math.log(1 - start))


def neutral_variance(rounds: float, batch: float, start: float) -> float:
    """Return the variance of the old weight after rounds of training on own samples."""
    return start * (1 - start) * -math.expm1(rounds * math.log1p(-1 / batch))


def anchored_variance(old_share: float, batch: float, anchor: float) -> float:
    """Return the stationary variance if a fraction of every batch is drawn from the target."""
    noise = old_share * (1 - old_share) / batch
    return noise / (1 - (1 - anchor) ** 2 * (1 - 1 / batch))


# ------------------------------------------------------------------------------ self-distillation


def distillation_rate(curvature: float, refresh: float, anchor: float) -> float:
    """Return the slowest rate of a student that follows an anchored moving-average teacher."""
    both = curvature + refresh
    return (both - math.sqrt(both**2 - 4 * curvature * refresh * anchor)) / 2


def lasting_displacement(shift: float, curvature: float, refresh: float) -> float:
    """Return the lasting part of a perturbation of the student, in log-odds, without an anchor."""
    return shift * refresh / (curvature + refresh)


# ----------------------------------------------------------------------------------- TTT-Discover


def entropic_weight(start: float, ratio: float, strength: float) -> float:
    """Return the fixed point of the old weight of the entropic objective with a KL anchor.

    Args:
        start: old weight of the base model.
        ratio: E_old[exp(eta R)] / E_new[exp(eta R)], below 1 if new behaviour is better.
        strength: strength of the KL penalty.
    """
    goal = float(logit(start))

    def excess(b: float) -> float:
        weight = float(sigmoid(b))
        return b - goal + (1 - ratio) / (strength * (1 - weight * (1 - ratio)))

    low = goal - 1 / (strength * (1 - start)) - 1
    high = goal + max(ratio - 1, 0.0) / strength + 1
    return float(sigmoid(brentq(excess, low, high, maxiter=MOST_STEPS)))


def strength_for(start: float, ratio: float, floor: float) -> float:
    """Return the smallest KL strength of `entropic_weight` that keeps a floor."""
    gap = float(logit(start) - logit(floor))
    return (1 - ratio) / ((1 - floor * (1 - ratio)) * gap)


def sloped_drift(eta: float, slope: float, strength: float, old_tilt: float, tilt: float) -> float:
    """Return the shift of the old mean by a slope of rewards on old behaviour, for any overlap."""
    return eta * slope / strength * old_tilt / tilt


def tilted_share(new_share: float, budget: float = math.log(2)) -> float:
    """Return the share of new samples after a tilt that costs this KL; 1 if it cannot be spent."""
    if -math.log(new_share) <= budget:
        return 1.0
    root = brentq(
        lambda share: float(bernoulli_kl(share, new_share)) - budget, new_share, 1 - 1e-15
    )
    return float(root)


def leave_one_out_bias(variance: float, mean: float, group: int) -> float:
    """Return the mean of the leave-one-out advantage, to first order, which should be 0."""
    return variance / ((group - 1) * mean**2)


# ------------------------------------------------------------------------------------------- OAPL


def oapl_weight(start: ArrayLike, drop: ArrayLike, refreshes: ArrayLike) -> Floats:
    """Return the old weight after this many refreshes, each lowering the log-odds by `drop`."""
    return sigmoid(logit(start) - np.asarray(drop, float) * np.asarray(refreshes, float))


def oapl_refreshes(start: float, floor: float, drop: float) -> int:
    """Return the number of refreshes that keep the floor."""
    return math.floor(float(logit(start) - logit(floor)) / drop + 1e-9)


def oapl_sharp_log_weight(lagged: float, shortfall: float, t2: float) -> float:
    """Return the log of the old weight after one refresh with a small second temperature.

    Args:
        lagged: old weight of the lagged policy.
        shortfall: V - R_old, the distance of old rewards below the soft maximum.
        t2: the second temperature.
    """
    return math.log(lagged) - shortfall / t2


def mode_value(old_weight: float, old_reward: float, new_reward: float, t1: float) -> float:
    """Return V of two flat modes: t1 log E[exp(R/t1)]."""
    parts = math.log(old_weight) + old_reward / t1, math.log1p(-old_weight) + new_reward / t1
    return t1 * float(np.logaddexp(*parts))


# ------------------------------------------------------------------------------------- divergence


def mode_kl(
    before: ArrayLike, after: ArrayLike, old_shift: ArrayLike, new_shift: ArrayLike
) -> Floats:
    """Return KL(before||after) of separated modes: parts of the weights and the moved means."""
    weight = np.asarray(before, float)
    moved = weight * np.asarray(old_shift, float) ** 2
    moved = moved + (1 - weight) * np.asarray(new_shift, float) ** 2
    return cast("Floats", bernoulli_kl(weight, after) + moved / 2)


def k3_threshold() -> float:
    """Return the KL per sequence in nats above which k3 is noisier than k1 (log-normal ratios)."""
    squared = brentq(lambda s: math.expm1(s) - 2 * s, 0.5, 3.0)
    return float(squared) / 2
