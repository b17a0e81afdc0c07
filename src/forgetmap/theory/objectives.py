"""Objectives of the methods, with exact gradients in (b, m_o, m_n) over any number of cells.

Every objective has `value(state)` and `gradient(state)`; expectations are sums over quadrature
nodes around each component. Gradients of divergences from the model use Stein's lemma, so that the
pull on a mean is an expectation of slopes under that component alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.theory import mixtures
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.mixtures import Mixture
from forgetmap.theory.quadrature import Nodes, Quadrature, nodes

Reward = Callable[[Floats], Floats]


class Objective(Protocol):
    """An objective to minimise."""

    def value(self, model: Floats) -> Floats:
        """Return the value at a state."""
        ...

    def gradient(self, model: Floats) -> Floats:
        """Return the gradient in (b, m_o, m_n)."""
        ...


class Target(Protocol):
    """A density, up to a constant, with a known derivative."""

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the log-density at points and its derivative."""
        ...


@dataclass(frozen=True)
class ForwardKL:
    """KL(target||model): fitting samples of the target, as supervised fine-tuning does."""

    target: Mixture
    nodes: Nodes = field(default_factory=nodes)

    def value(self, model: Floats) -> Floats:
        """Return the value in nats."""
        total: Floats = np.zeros(model.shape[1:])
        q = Mixture.of_state(model)
        for weight, mean in zip(self.target.weights, self.target.means, strict=True):
            x = self.nodes.around(mean)
            total = total + weight * self.nodes.mean(self.target.log_density(x) - q.log_density(x))
        return total

    def gradient(self, model: Floats) -> Floats:
        """Return (beta - R, -E[r_o (x - m_o)], -E[r_n (x - m_n)]), R the mean r_o of the data."""
        b, old, new = model
        data, on_old, pull_old = np.zeros((3, *model.shape[1:]))
        for weight, mean in zip(self.target.weights, self.target.means, strict=True):
            x = self.nodes.around(mean)
            r_old = mixtures.old_responsibility(x, model)
            on_old = on_old + weight * self.nodes.mean(r_old)
            pull_old = pull_old + weight * self.nodes.mean(r_old * x)
            data = data + weight * mean
        pull_new = data - pull_old
        return np.stack(
            [
                sigmoid(b) - on_old,
                on_old * old - pull_old,
                (1 - on_old) * new - pull_new,
            ]
        )


@dataclass(frozen=True)
class ReverseKL:
    """KL(model||target): the effect of rewards that are the log of a target density."""

    target: Target
    nodes: Nodes = field(default_factory=nodes)

    def value(self, model: Floats) -> Floats:
        """Return the value in nats, up to the constant of the target."""
        beta = sigmoid(model[0])
        old, new = self.nodes.mean(self._excess_and_slope(model)[0])
        return np.asarray(beta * old + (1 - beta) * new)

    def gradient(self, model: Floats) -> Floats:
        """Return beta E_{q_o}[slope of log q/target] by Stein's lemma; likewise for the new one."""
        beta = sigmoid(model[0])
        excess, slope = self._excess_and_slope(model)
        of_old, of_new = self.nodes.mean(excess)
        pull_old, pull_new = self.nodes.mean(slope)
        return np.stack(
            [beta * (1 - beta) * (of_old - of_new), beta * pull_old, (1 - beta) * pull_new]
        )

    def _excess_and_slope(self, model: Floats) -> tuple[Floats, Floats]:
        """Return log q/target and its derivative, at points around both components."""
        x = self.nodes.around(model[1:])
        old, new = model[1][..., None], model[2][..., None]
        log_q, r_new = mixtures.log_density_and_new(x, model)
        log_p, score = self.target.log_and_score(x)
        return log_q - log_p, old - x + r_new * (new - old) - score


def model_log_density(x: Floats, model: Floats) -> Floats:
    """Return the log-density of a model."""
    return mixtures.log_density_and_new(x, model)[0]


def overlap_gated_gradient(model: Floats, target: Mixture, at: Nodes | None = None) -> Floats:
    """Return the pulls of KL(model||target) on both means: restoring force and misassignment.

    (m_o - mu_o) + eps_q (m_n - m_o) - eps_p (mu_n - mu_o), times beta; the new one mirrored. All
    but the first term have a factor that is the probability of assigning samples of one component
    to the other.
    """
    at = at or nodes()
    beta, old, new = sigmoid(model[0]), model[1], model[2]
    mu_old, mu_new = target.means
    at_old, at_new = at.around(old), at.around(new)
    eps_q = misassigned(mixtures.new_responsibility(at_old, model), at)
    eps_p = misassigned(target.shares(at_old)[1], at)
    back_q = misassigned(mixtures.old_responsibility(at_new, model), at)
    back_p = misassigned(target.shares(at_new)[0], at)
    return np.stack(
        [
            beta * ((old - mu_old) + eps_q * (new - old) - eps_p * (mu_new - mu_old)),
            (1 - beta) * ((new - mu_new) + back_q * (old - new) - back_p * (mu_old - mu_new)),
        ]
    )


def misassigned(responsibility: Floats, at: Nodes) -> Floats:
    """Return the probability that samples of a component are assigned to the other."""
    return at.mean(responsibility)


# ---------------------------------------------------------------------------------------- rewards


@dataclass(frozen=True)
class Tilted:
    """A density times exp(reward * scale), not normalised."""

    base: Mixture
    reward: NewMembership
    scale: Floats

    def log_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log-density and derivative, up to the constant."""
        log, score = self.base.log_and_score(x)
        reward, slope = self.reward.with_slope(x)
        scale = self.scale[..., None]
        return log + scale * reward, score + scale * slope


@dataclass(frozen=True)
class NewMembership:
    """A reward for new behaviour: gap times the target's responsibility of the new mode."""

    target: Mixture
    gap: Floats

    def __call__(self, x: Floats) -> Floats:
        """Return the reward."""
        return np.asarray(self.gap[..., None] * self._new(x))

    def with_slope(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the reward and its derivative."""
        share, gap = self._new(x), self.gap[..., None]
        apart = (self.target.means[1] - self.target.means[0])[..., None]
        return gap * share, gap * apart * share * (1 - share)

    def _new(self, x: Floats) -> Floats:
        return mixtures.new_responsibility(x, self._as_state)

    @cached_property
    def _as_state(self) -> Floats:
        return np.stack([self.target.log_odds, *self.target.means])


def kl_regularised(base: Mixture, reward: NewMembership, temperature: ArrayLike) -> Tilted:
    """Return the target of expected reward minus temperature times KL(model||base)."""
    mixtures.check_positive(temperature, "temperature")
    return Tilted(base, reward, 1 / np.asarray(temperature, float))


@dataclass(frozen=True)
class MinusReward:
    """Minus the expected reward: plain policy gradient."""

    reward: Reward
    nodes: Nodes = field(default_factory=nodes)

    def value(self, model: Floats) -> Floats:
        """Return the value at a state."""
        beta = sigmoid(model[0])
        old, new = (self.nodes.mean(self.reward(self.nodes.around(mean))) for mean in model[1:])
        return np.asarray(-beta * old - (1 - beta) * new)

    def gradient(self, model: Floats) -> Floats:
        """Return the score-function gradient."""
        of_old, of_new = (self.reward(self.nodes.around(mean)) for mean in model[1:])
        return -_gradient_of_mean(model, of_old, of_new, self.nodes)


def _gradient_of_mean(model: Floats, of_old: Floats, of_new: Floats, at: Nodes) -> Floats:
    """Return the gradient of E_model[f] by the score function, from f at both sets of nodes."""
    beta = sigmoid(model[0])
    return np.stack(
        [
            beta * (1 - beta) * (at.mean(of_old) - at.mean(of_new)),
            beta * at.mean(of_old * at.z),
            (1 - beta) * at.mean(of_new * at.z),
        ]
    )


@dataclass(frozen=True)
class Entropic:
    """Minus log E[exp(eta R)], plus strength times KL(model||base): TTT-Discover in expectation."""

    reward: Reward
    eta: Floats
    base: Mixture
    strength: Floats
    nodes: Nodes = field(default_factory=nodes)

    def value(self, model: Floats) -> Floats:
        """Return the value at a state."""
        beta = sigmoid(model[0])
        old, new = (self.nodes.mean(self._tilt(mean)) for mean in model[1:])
        pull = ReverseKL(self.base, self.nodes).value(model)
        return np.asarray(-np.log(beta * old + (1 - beta) * new) + self.strength * pull)

    def gradient(self, model: Floats) -> Floats:
        """Return a forward pull towards the tilted model, and the pull of KL back."""
        beta = sigmoid(model[0])
        tilt_old, tilt_new = (self._tilt(mean) for mean in model[1:])
        both = beta * self.nodes.mean(tilt_old) + (1 - beta) * self.nodes.mean(tilt_new)
        gain = _gradient_of_mean(model, tilt_old, tilt_new, self.nodes)
        return self.strength * ReverseKL(self.base, self.nodes).gradient(model) - gain / both

    def _tilt(self, mean: Floats) -> Floats:
        return np.exp(self.eta[..., None] * self.reward(self.nodes.around(mean)))


@dataclass(frozen=True)
class OffPolicyRegression:
    """E_lag[(t2 log(q/q_lag) - (R - V))^2], V = t1 log E_lag[exp(R/t1)]: OAPL in expectation."""

    reward: Reward
    lagged: Floats
    t1: float
    t2: float
    nodes: Nodes = field(default_factory=nodes)

    def value(self, model: Floats) -> Floats:
        """Return the value at a state."""
        return self._expect(lambda x: self._gap(x, model) ** 2)

    def gradient(self, model: Floats) -> Floats:
        """Return the gradient by the chain rule through log q."""
        b, old, new = model

        def pull(x: Floats) -> Floats:
            r_old = mixtures.old_responsibility(x, model)
            parts = (
                r_old - sigmoid(b)[..., None],
                r_old * (x - old[..., None]),
                (1 - r_old) * (x - new[..., None]),
            )
            return np.asarray(2 * self.t2 * self._gap(x, model) * np.stack(parts))

        return self._expect(pull)

    @cached_property
    def baseline(self) -> Floats:
        """V."""
        return np.asarray(
            self.t1 * np.log(self._expect(lambda x: np.exp(self.reward(x) / self.t1)))
        )

    def _gap(self, x: Floats, model: Floats) -> Floats:
        moved = model_log_density(x, model) - self.lagged_log_density(x)
        return np.asarray(self.t2 * moved - (self.reward(x) - self.baseline[..., None]))

    def lagged_log_density(self, x: Floats) -> Floats:
        """Return the log-density of the policy that wrote the samples."""
        return model_log_density(x, self.lagged)

    def _expect(self, function: Callable[[Floats], Floats]) -> Floats:
        beta = sigmoid(self.lagged[0])
        old, new = (self.nodes.mean(function(self.nodes.around(m))) for m in self.lagged[1:])
        return np.asarray(beta * old + (1 - beta) * new)


# ------------------------------------------------------------------------------- any dimension


@dataclass(frozen=True)
class Pair:
    """Two Gaussians of any dimension and covariance, the old one first."""

    old_weight: float
    means: tuple[Floats, Floats]
    covariances: tuple[Floats, Floats]

    def logs(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the weighted log-density of both at points (n, d)."""
        shares = self.old_weight, 1 - self.old_weight
        parts = zip(shares, self.means, self.covariances, strict=True)
        old, new = (np.log(w) + mixtures.log_gaussian(x, m, c) for w, m, c in parts)
        return old, new

    def slopes(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of the log-density of each component."""
        parts = zip(self.means, self.covariances, strict=True)
        old, new = (np.asarray(np.linalg.solve(c, (m - x).T).T, np.float64) for m, c in parts)
        return old, new

    def new_share(self, x: Floats) -> Floats:
        """Return the responsibility of the new component."""
        old, new = self.logs(x)
        return sigmoid(new - old)


def pair_kl(model: Pair, target: Pair, rule: Quadrature) -> float:
    """Return KL(model||target)."""
    total = 0.0
    shares = model.old_weight, 1 - model.old_weight
    for share, mean, covariance in zip(shares, model.means, model.covariances, strict=True):
        total += share * float(
            rule.expect(
                lambda x: np.logaddexp(*model.logs(x)) - np.logaddexp(*target.logs(x)),
                mean,
                covariance,
            )
        )
    return total


def pair_pull(model: Pair, target: Pair, rule: Quadrature) -> Floats:
    """Return the gradient of KL(model||target) in the model's old mean, for any covariances.

    Except for the restoring slope of the target's own old mode every term has a responsibility as a
    factor.
    """

    def terms(x: Floats) -> Floats:
        q_old, q_new = model.slopes(x)
        p_old, p_new = target.slopes(x)
        r_new, s_new = model.new_share(x)[:, None], target.new_share(x)[:, None]
        return q_old - p_old + r_new * (q_new - q_old) - s_new * (p_new - p_old)

    return model.old_weight * rule.expect(terms, model.means[0], model.covariances[0])
