"""Claims about replaying old data, and about batches too small to contain any."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from forgetmap.theory import flows, formulas, methods
from forgetmap.theory.claims.registry import (
    FITS,
    Check,
    Perturbation,
    at_least,
    at_most,
    claim,
    close,
    near,
)
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.methods import Sampled, Setting
from forgetmap.theory.mixtures import Mixture, logit, state
from forgetmap.theory.objectives import ForwardKL, ReverseKL
from forgetmap.theory.quadrature import nodes


@claim(
    "P1",
    "Forward KL keeps exactly as much old mass as there is old data in training; a biased buffer "
    "moves the old mean by its bias.",
    "beta* = l, m_o* = mu_o;  from base replay beta* = l beta0;  rate l (1 - l) - W",
    control=Perturbation("mixtures.old_responsibility"),
    provenance=FITS,
    cost=3,
)
def _replay_fraction_is_retention() -> list[Check]:
    checks = []
    for apart in (4.0, 6.0):
        fractions = np.array([0.01, 0.05, 0.2, 0.5])
        for fraction in fractions:
            path = methods.replay(Setting(apart), [3e3], fraction)
            checks.append(near(f"beta*, fraction {fraction:g}, d={apart:g}", path.old_weight[0],
                               float(formulas.replay_weight(fraction)), 1e-5))  # fmt: skip
    for fraction, rate in ((0.01, 0.009739), (0.05, 0.04710), (0.2, 0.15921)):
        checks.append(close(f"rate, fraction {fraction:g}, d=6", _rate(fraction), rate, 2e-3))
    biased = methods.replay(Setting(5.0), [3e3], 0.2, 0.5)
    checks.append(near("m_o* of a buffer 0.5 off", biased.end[1], 0.5, 1e-5))
    for bias, expected in ((0.25, 0.197), (0.5, 0.193), (1.0, 0.177)):
        setting = Setting(5.0, trained="weight", start_offset=0.0)
        path = methods.replay(setting, [3e3], 0.2, bias)
        checks.append(near(f"beta* of a buffer {bias:g} off", path.old_weight[0], expected, 1e-3))
    return [*checks, near("beta* from base replay", _from_base(0.4, 0.3), 0.12, 1e-6)]


def _rate(fraction: float) -> float:
    """Return the decay rate of a small error of the weight if the components are right."""
    setting = Setting(6.0, start_weight=fraction * 1.01, start_offset=0.0, trained="weight")
    times = np.array([1.0, 3.0]) / fraction
    left = logit(methods.replay(setting, times, fraction).old_weight) - logit(fraction)
    return float(np.log(left[0] / left[1]) / (times[1] - times[0]))


def _from_base(fraction: float, base: float) -> float:
    old = fraction * base
    data = Mixture.of([old, 1 - fraction, fraction - old], [0.0, 5.0, 5.0])
    setting = Setting(5.0)
    return float(sigmoid(setting.follow(ForwardKL(data), [3e3]).end[0]))


WRONG = np.array([0.0, 0.7, 5.0])
"""Components that cannot fit: an old mean 0.7 off, a new one 1 off, at separation 6."""


@claim(
    "P2",
    "With importance weights, replay leaves the population objective of reverse KL unchanged, "
    "and the weights stay bounded; without them the optimum moves if the target cannot be "
    "fitted.",
    "w = q/b <= 1/(1 - rho);  E_b[w l grad log q] = grad KL(q||p*)",
    control=Perturbation("formulas.importance_weight"),
    provenance=FITS,
    cost=4,
)
def _weighted_replay_changes_nothing() -> list[Check]:
    best = _misfit_optimum()
    checks = [near("beta* of the misfit, exact", sigmoid(best[0]), 0.34873, 2e-5)]
    for replay in (0.05, 0.2, 0.5):
        sampled = Sampled(6.0, old_share=0.3, batch=400_000, replay=replay)
        x = sampled.samples(best, np.random.default_rng(8))
        most = sampled.weights(x, best).max()
        checks.append(at_most(f"largest weight, rho={replay:g}", most, 1 / (1 - replay), 1e-12))
        checks.append(
            at_most(f"weighted: |pull| in s.e., rho={replay:g}", _pull(sampled, best), 4.0)
        )
    plain = Sampled(6.0, old_share=0.3, batch=400_000, replay=0.2, weighted=False)
    return [*checks, at_least("not weighted: |pull| in s.e.", _pull(plain, best), 5.0)]


def _misfit_optimum() -> Floats:
    loss = ReverseKL(Setting(6.0, old_share=0.3).target)
    return methods.minimiser(loss, WRONG, "weight")


def _pull(sampled: Sampled, model: Floats) -> float:
    terms = sampled.reverse_terms(model, np.random.default_rng(9))[0]
    return float(abs(terms.mean()) / (terms.std() / np.sqrt(terms.size)))


@claim(
    "P3",
    "Replay geometrically reduces the probability that a batch contains no old sample.",
    "P = ((1 - rho)(1 - beta))^N;  N >= log(1/P) / -log((1 - rho)(1 - beta))",
    control=Perturbation("formulas.starvation"),
)
def _batches_starve() -> list[Check]:
    random = np.random.default_rng(10)
    checks, tries = [], 400_000
    cases = ((0.1, 16, 0.0), (0.02, 64, 0.0), (0.005, 64, 0.0), (0.02, 64, 0.05))
    for weight, batch, replay in cases:
        seen = 1 - (1 - replay) * (1 - weight)
        share_missed = float((random.binomial(batch, seen, tries) == 0).mean())
        law = float(formulas.starvation(weight, batch, replay))
        error = np.sqrt(law * (1 - law) / tries)
        name = f"P, beta={weight:g}, N={batch}, rho={replay:g}"
        checks.append(near(name, law, share_missed, 4 * error))
    size = formulas.batch_for(0.01, 0.02, 0.05)
    enough, short = (float(formulas.starvation(0.02, size - less, 0.05)) for less in (0, 1))
    return [
        *checks,
        at_most("P at the planned N", enough, 0.01),
        at_least("P below it", short, 0.01),
    ]


@claim(
    "P4",
    "Weighted replay reduces the gradient variance of the old component by the factor by which "
    "old samples become more frequent, and increases second moments of the new one by at most "
    "1/(1 - rho).",
    "ratio = beta / ((1 - rho) beta + rho);  E_b[(w f)^2] <= E_q[f^2] / (1 - rho)",
    control=Perturbation("formulas.replay_variance_ratio"),
    cost=2,
)
def _replay_cuts_variance() -> list[Check]:
    checks = []
    model = state(0.02, 0.0, 8.0)
    plain = Sampled(8.0, batch=400_000).reverse_terms(model, np.random.default_rng(11))
    for replay in (0.05, 0.2, 0.5):
        law = float(formulas.replay_variance_ratio(0.02, replay))
        old, new = _moment_ratios(replay)
        drawn = Sampled(8.0, batch=400_000, replay=replay)
        terms = drawn.reverse_terms(model, np.random.default_rng(12))
        ratio = float(terms[1].var() / plain[1].var())
        checks += [
            close(f"old second moment, rho={replay:g}", old, law, 0.01),
            close(f"old variance from samples, rho={replay:g}", ratio, law, 0.2),
            at_most(f"new second moment, rho={replay:g}", new, 1 / (1 - replay), 1e-12),
        ]
    return checks


def _moment_ratios(replay: float) -> tuple[float, float]:
    """Return ratios of second moments of both mean gradients, with replay over without."""
    model = state(0.02, 0.0, 8.0)
    sampled, at = Sampled(8.0, replay=replay), nodes()
    target = Setting(8.0).target
    with_replay, without = np.zeros(2), np.zeros(2)
    for weight, mean in ((0.02, 0.0), (0.98, 8.0)):
        x = mean + at.z
        excess = Mixture.of_state(model).log_density(x) - target.log_density(x)
        share = Mixture.of_state(model).shares(x)
        squares = (excess * share * np.stack([x - model[1], x - model[2]])) ** 2
        without += weight * at.mean(squares)
        with_replay += weight * at.mean(squares * sampled.weights(x[None], model))
    return float(with_replay[0] / without[0]), float(with_replay[1] / without[1])


@claim(
    "P5",
    "Batches without old samples do not bias recovery if densities are exact: replay does not "
    "change the median recovery time, but reduces its spread.",
    "median of the recovery time is that of the mean gradient; the 5-95 % range shrinks",
    control=Perturbation("formulas.importance_weight"),
    cost=8,
)
def _replay_narrows_recovery() -> list[Check]:
    typical = _mean_recovery()
    ranges, checks = [], []
    for replay in (0.0, 0.05, 0.2):
        steps = _recoveries(replay)
        low, high = np.quantile(steps, [0.05, 0.95])
        ranges.append(float(high - low))
        share = 0.05 if replay == 0 else 0.025
        checks.append(close(f"median steps, rho={replay:g}", np.median(steps), typical, share))
    return [
        *checks,
        at_most("range with rho=0.05 over without", ranges[1] / ranges[0], 0.5),
        at_most("range with rho=0.2 over without", ranges[2] / ranges[0], 0.3),
    ]


RATE = 0.5


def _mean_recovery() -> int:
    loss = ReverseKL(Setting(8.0).target)
    model, steps = state(0.005, 0.0, 8.0), 0
    while sigmoid(model[0]) < 0.25:
        model[0] -= RATE * loss.gradient(model)[0]
        steps += 1
    return steps


def _recoveries(replay: float) -> Floats:
    sampled = Sampled(8.0, batch=32, replay=replay)
    start = np.repeat(state(0.005, 0.0, 8.0)[:, None], 400, axis=1)
    mask = flows.mask_of("weight", start.ndim)
    path = flows.descend(lambda m, r: mask * sampled.reverse(m, r), start, 220, RATE, seed=13)
    reached = path.old_weight >= 0.25
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1), np.nan)


@claim(
    "P6",
    "A model trained on its own finite samples loses one mode by chance; anchoring part of "
    "every batch bounds the random walk.",
    "lost with probability 1 - beta0, in about -2N (b ln b + (1-b) ln(1-b)) rounds;  anchored "
    "variance a(1-a)/N / (1 - (1-l)^2 (1 - 1/N))",
    control=Perturbation("formulas.absorption_time"),
)
def _self_training_drifts() -> list[Check]:
    checks = []
    for batch, start in ((50, 0.5), (50, 0.1)):
        lost, rounds = _until_absorbed(batch, start)
        law = formulas.absorption_time(batch, start)
        checks.append(near(f"old mode lost, beta0={start:g}", lost, 1 - start, 1e-9))
        checks.append(close(f"rounds, beta0={start:g}", law, rounds, 0.05))
        spread = formulas.neutral_variance(10, batch, start)
        checks.append(
            close(f"variance at 10, beta0={start:g}", spread, _spread(batch, start), 1e-6)
        )
    for anchor in (0.05, 0.1, 0.5):
        law = formulas.anchored_variance(0.5, 50, anchor)
        checks.append(close(f"variance, anchor {anchor:g}", law, _wandering(50, anchor), 0.05))
    return checks


def _chain(batch: int, anchor: float = 0.0) -> Floats:
    """Return the transition matrix of the number of old samples in successive batches."""
    counts = np.arange(batch + 1)
    chance = (1 - anchor) * counts / batch + anchor * 0.5
    return np.asarray(binom.pmf(counts, batch, chance[:, None]))


def _until_absorbed(batch: int, start: float) -> tuple[float, float]:
    moves = _chain(batch)
    inside = np.eye(batch - 1) - moves[1:-1, 1:-1]
    index = round(start * batch) - 1
    rounds = np.linalg.solve(inside, np.ones(batch - 1))
    lost = np.linalg.solve(inside, moves[1:-1, 0])
    return float(lost[index]), float(rounds[index])


def _spread(batch: int, start: float) -> float:
    return _variance(np.linalg.matrix_power(_chain(batch), 10)[round(start * batch)])


def _wandering(batch: int, anchor: float) -> float:
    return _variance(np.linalg.matrix_power(_chain(batch, anchor), 2000)[batch // 2])


def _variance(chances: Floats) -> float:
    weights = np.linspace(0, 1, chances.size)
    return float(chances @ weights**2 - (chances @ weights) ** 2)
