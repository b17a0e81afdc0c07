"""Claims about estimators from log-probabilities, on distributions whose truth is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from forgetmap.theory import estimators, formulas, methods, mixtures
from forgetmap.theory.claims.registry import (
    Check,
    Perturbation,
    at_least,
    at_most,
    claim,
    close,
    near,
)
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.methods import Setting
from forgetmap.theory.mixtures import Mixture, state
from forgetmap.theory.objectives import ForwardKL

RUNS, SAMPLES = 400, 2000


def gaussian_ratios(apart: float, seed: int, runs: int = RUNS, size: int = SAMPLES) -> Floats:
    """Return log P/Q of samples from P for two unit Gaussians; under Q it is mirrored."""
    random = np.random.default_rng(seed)
    return np.asarray(apart**2 / 2 + apart * random.standard_normal((runs, size)))


@claim(
    "E1",
    "The one-sided estimate of overlap is unbiased, with a variance that is always finite.",
    "mean of exp(-D/2) over P;  Var = (1 - BC^2)/n",
    control=Perturbation("estimators.one_sided_overlap_terms"),
)
def _one_sided_overlap() -> list[Check]:
    checks = []
    for apart in (1.0, 2.0, 3.0):
        truth = float(formulas.gaussian_overlap(apart))
        ratios = gaussian_ratios(apart, 20, runs=1600)
        means = estimators.one_sided_overlap_terms(ratios).mean(axis=1)
        law = math.sqrt((1 - truth**2) / SAMPLES) / truth
        checks.append(_unbiased(f"BC, d={apart:g}", means, truth))
        checks.append(close(f"relative sd, BC={truth:.3f}", means.std() / truth, law, 0.1))
    return checks


def _unbiased(name: str, means: Floats, truth: float) -> Check:
    return near(name, means.mean(), truth, 4 * float(means.std()) / math.sqrt(means.size))


@claim(
    "E2",
    "The pooled estimate of overlap is bounded, unbiased and many times more precise where overlap "
    "is small.",
    "mean of sech(D/2) over P and Q;  Var <= BC (1 - BC)/n",
    control=Perturbation("estimators.overlap_terms"),
)
def _pooled_overlap() -> list[Check]:
    checks = []
    for apart, known in ((5.0, 0.066), (6.0, 0.128)):
        truth = float(formulas.gaussian_overlap(apart))
        of_p = gaussian_ratios(apart, 21, size=SAMPLES // 2)
        of_q = -gaussian_ratios(apart, 22, size=SAMPLES // 2)
        terms = estimators.overlap_terms(np.concatenate([of_p, of_q], axis=1))
        means = terms.mean(axis=1)
        relative = float(means.std() / truth)
        checks += [
            _unbiased(f"BC, d={apart:g}", means, truth),
            close(f"relative sd, BC={truth:.3f}", relative, known, 0.1),
            at_most(f"relative sd over its bound, BC={truth:.3f}",
                    relative / math.sqrt((1 / truth - 1) / SAMPLES), 1.0),
        ]  # fmt: skip
    one_sided = estimators.one_sided_overlap_terms(gaussian_ratios(5.0, 23)).mean(axis=1)
    times = float(one_sided.std() / formulas.gaussian_overlap(5.0)) / checks[1].measured
    return [*checks, at_least("one-sided sd over pooled, d=5", times, 4.0)]


@claim(
    "E3",
    "Misassignment can be estimated from samples of the old model, and stays below the bound "
    "given by the overlap.",
    "mean of sigmoid(logit w_n/w_o - D) <= 1/2 sqrt(w_n/w_o) BC;  d_eff = sqrt(-8 ln BC)",
    control=Perturbation("estimators.misassignment_terms"),
)
def _misassignment_from_samples() -> list[Check]:
    checks = []
    for apart, share in ((1.0, 0.5), (2.0, 0.7), (3.0, 0.5)):
        odds = math.log(share / (1 - share))
        means = estimators.misassignment_terms(gaussian_ratios(apart, 24), share).mean(axis=1)
        overlap = float(formulas.gaussian_overlap(apart))
        checks += [
            _unbiased(f"eps, d={apart:g}", means, float(formulas.misassignment(apart, odds))),
            at_most(f"eps over bound, d={apart:g}",
                    means.mean() / estimators.misassignment_bound(overlap, share), 1.0),
            near(f"effective separation, d={apart:g}",
                 estimators.effective_separation(overlap), apart, 1e-9),
        ]  # fmt: skip
    return checks


@claim(
    "E4",
    "For data without a model a calibrated classifier gives an upper bound of the overlap: it "
    "cannot separate what it does not observe.",
    "BC <= mean of 2 sqrt(c (1 - c))",
    control=Perturbation("estimators.classifier_overlap_terms"),
)
def _classifier_bounds_overlap() -> list[Check]:
    random = np.random.default_rng(25)
    seen, hidden = 1.5, 2.0
    is_new = np.arange(200_000) % 2 == 1
    x = np.where(is_new, seen, 0.0) + random.standard_normal(is_new.size)
    chance = sigmoid(seen * x - seen**2 / 2)
    bound = float(estimators.classifier_overlap_terms(chance).mean())
    truth = float(formulas.gaussian_overlap(math.hypot(seen, hidden)))
    return [
        near("bound, one of two features seen", bound, 0.755, 5e-3),
        near("truth", truth, 0.458, 1e-3),
        at_least("bound over truth", bound / truth, 1.0),
        at_most("calibration error", estimators.calibration_error(chance, is_new), 0.01),
    ]


@dataclass(frozen=True)
class MarkovChains:
    """Two Markov chains over four tokens with a known divergence."""

    p: Floats
    q: Floats
    length: int = 12

    @classmethod
    def draw(cls, seed: int) -> MarkovChains:
        """Draw two chains that differ by noise in their log-odds."""
        random = np.random.default_rng(seed)
        logits = random.normal(0, 1, (4, 4))
        noisy = logits + random.normal(0, 0.45, (4, 4))
        p, q = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (logits, noisy))
        return cls(p, q)

    def exact(self) -> float:
        """Return the KL of whole sequences that start at token 0."""
        chances, total = np.eye(4)[0], 0.0
        steps = (self.p * np.log(self.p / self.q)).sum(axis=1)
        for _ in range(self.length):
            total += float(chances @ steps)
            chances = chances @ self.p
        return total

    def sample(self, count: int, seed: int) -> tuple[Floats, Floats]:
        """Return the ratio of whole sequences, and the sum of per-token divergences on the way."""
        random = np.random.default_rng(seed)
        at = np.zeros(count, dtype=int)
        ratio, smooth = np.zeros(count), np.zeros(count)
        per_token = estimators.token_kl(np.log(self.p), np.log(self.q))
        for _ in range(self.length):
            smooth += per_token[at]
            ends = self.p[at].cumsum(axis=1)
            chosen = np.minimum((random.random(count)[:, None] > ends).sum(axis=1), 3)
            ratio += np.log(self.p[at, chosen] / self.q[at, chosen])
            at = chosen
        return ratio, smooth


@claim(
    "E5",
    "Forward KL from samples: summing the divergence per token is unbiased and far more precise "
    "than ratios of sequences; k3 helps only below 0.63 nats per sequence.",
    "sum_t KL(P(.|prefix)||Q(.|prefix));  Var k1 = s^2, Var k3 = exp(s^2) - 1 - s^2",
    control=Perturbation("estimators.token_kl"),
)
def _forward_kl_from_samples() -> list[Check]:
    threshold = near("k3 threshold, nats", formulas.k3_threshold(), 0.628, 0.002)
    return [*_kl_checks(MarkovChains.draw(26)), threshold, *_threshold_checks()]


def _kl_checks(chain: MarkovChains) -> list[Check]:
    truth = chain.exact()
    ratio, smooth = chain.sample(200_000, 27)
    checks = []
    for name, terms in (
        ("per token", smooth),
        ("k1", ratio),
        ("k3", estimators.kl_terms(ratio, "k3")),
    ):
        error = float(terms.std()) / math.sqrt(terms.size)
        checks.append(near(f"KL, {name}", terms.mean(), truth, 4 * error))
    top = estimators.top_token_kl(np.log(chain.p[:, :2]), np.log(chain.q[:, :2]))
    full = estimators.token_kl(np.log(chain.p), np.log(chain.q))
    return [
        *checks,
        at_most("sd per token over sd of k1", smooth.std() / ratio.std(), 0.25),
        at_most("KL of two listed tokens over all", (top / full).max(), 1.0),
    ]


def _threshold_checks() -> list[Check]:
    """Check both sides of the threshold, on log-normal ratios."""
    checks = []
    for nats, better in ((0.5, "k3"), (0.75, "k1")):
        apart = math.sqrt(2 * nats)
        ratio = gaussian_ratios(apart, 28).ravel()
        spread = {kind: float(estimators.kl_terms(ratio, kind).std()) for kind in ("k1", "k3")}
        other = "k1" if better == "k3" else "k3"
        checks.append(at_most(f"{better} over {other} at {nats:g} nats",
                              spread[better] / spread[other], 1.0))  # fmt: skip
    return checks


@claim(
    "E6",
    "Reverse KL from samples of the new model, in the same way.",
    "KL(Q||P) by the same terms over Q",
    control=Perturbation("estimators.token_kl"),
)
def _reverse_kl_from_samples() -> list[Check]:
    chain = MarkovChains.draw(26)
    return _kl_checks(MarkovChains(chain.q, chain.p))


@claim(
    "E7",
    "If only the weight of two modes changes, forward KL from the model before shows the lost "
    "mass, and reverse KL saturates; moved means add to both without bound.",
    "KL(q0||q) ~ KL_Bern(beta0||beta) + beta0 |dm_o|^2/2 + (1-beta0) |dm_n|^2/2",
    control=Perturbation("formulas.mode_kl"),
)
def _forward_kl_shows_lost_mass() -> list[Check]:
    before, checks = state(0.5, 0.0, 8.0), []
    for weight, old, new in ((0.3, 0.2, 0.1), (0.1, 0.0, 0.3), (0.6, 0.3, 0.0), (0.4, 0.1, 0.1)):
        after = state(weight, old, 8.0 - new)
        forward, back = _kl(before, after), _kl(after, before)
        law = float(formulas.mode_kl(0.5, weight, old, new))
        mirrored = float(formulas.mode_kl(weight, 0.5, old, new))
        checks.append(close(f"forward, beta={weight:g}", law, forward, 2e-3))
        checks.append(close(f"reverse, beta={weight:g}", mirrored, back, 4e-3))
    whole, gone, far = state(0.5, 0.0, 6.0), state(1e-4, 0.0, 6.0), state(1e-4, 0.0, 10.0)
    return [
        *checks,
        near("forward at beta=1e-4, d=6", _kl(whole, gone), 3.77, 0.05),
        near("reverse at beta=1e-4, d=6", _kl(gone, whole), 0.688, 2e-3),
        at_most("reverse at beta=1e-4, limit", _kl(gone, whole), math.log(2)),
        at_least("reverse at beta=1e-4, new mean 4 farther", _kl(far, whole), 8.0),
    ]


def _kl(first: Floats, second: Floats) -> float:
    return float(ForwardKL(Mixture.of_state(first)).value(second))


@claim(
    "E8",
    "Forward KL certifies retention without any model: a behaviour of base probability beta0 "
    "keeps at least the probability at which it would account for the whole divergence.",
    "pi(A) >= q with KL_Bern(beta0||q) = KL(pi0||pi)",
    control=Perturbation("estimators.retention_floor"),
)
def _divergence_certifies_retention() -> list[Check]:
    margins, loose = [], []
    for apart in (3.0, 5.0, 8.0):
        setting = Setting(apart, start_offset=0.0)
        times = np.logspace(-1, 3, 25)
        for path in (methods.sft(setting, times), methods.rl(setting, times, sees_old=False)):
            before = _region(setting.start, apart)
            kl = ForwardKL(setting.base).value(path.states)
            floor = estimators.retention_floor(before, np.maximum(kl, 0.0))
            margins.append((floor / path.old_mass(apart)).max())
            simple = estimators.simple_retention_floor(before, np.maximum(kl, 0.0))
            loose.append((simple / floor).max())
    far = ForwardKL(Mixture.of_state(state(0.5, 0.0, 8.0)))
    tight = _tightness(far)
    return [
        at_most("floor over true mass, worst", max(margins), 1.0, 1e-9),
        at_most("closed form over floor, worst", max(loose), 1.0, 1e-9),
        near("floor over true mass where only the weight moves", tight, 1.0, 0.03),
        at_most("the same, never above", tight, 1.0, 1e-9),
    ]


def _region(model: Floats, apart: float) -> float:
    return float(mixtures.region_mass(model, apart))


def _tightness(loss: ForwardKL) -> float:
    after = state(0.0539, 0.0, 8.0)
    before = _region(state(0.5, 0.0, 8.0), 8.0)
    floor = float(estimators.retention_floor(before, loss.value(after)))
    return floor / _region(after, 8.0)


@claim(
    "E9",
    "Old mass can be estimated from log-probabilities of an old and a new reference model, with "
    "the precision that their overlap allows.",
    "sd = sqrt(1/(n I)),  I = (beta(1-beta) - W)/(beta(1-beta))^2",
    control=Perturbation("estimators._root_of_score"),
    cost=4,
)
def _old_mass_from_references() -> list[Check]:
    checks = []
    for apart, known in ((2.0, 0.0105), (4.0, 0.0070), (6.0, 0.0067)):
        estimates = [_estimate(apart, seed) for seed in range(300)]
        values = np.array([estimate.value for estimate in estimates])
        mean_error = float(np.mean([estimate.standard_error for estimate in estimates]))
        law = math.sqrt(1 / (SAMPLES * _information(apart)))
        checks += [
            _unbiased(f"beta, d={apart:g}", values, 0.1),
            close(f"sd, d={apart:g}", values.std(), law, 0.1),
            close(f"stated sd, d={apart:g}", mean_error, law, 0.1),
            close(f"sd, d={apart:g}, known", law, known, 0.1),
        ]
    return checks


def _information(apart: float) -> float:
    spread = 0.09
    return (spread - formulas.shared_mass(0.1, apart)) / spread**2


def _estimate(apart: float, seed: int) -> estimators.OldMass:
    mixture = Mixture.of([0.1, 0.9], [0.0, apart])
    x = mixture.sample(SAMPLES, np.random.default_rng([29, seed]))
    return estimators.old_mass(-0.5 * x**2, -0.5 * (x - apart) ** 2)
