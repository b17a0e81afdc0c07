"""Claims about reverse KL to a target, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from forgetmap.theory import flows, formulas, methods, mixtures, objectives
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
from forgetmap.theory.estimators import Floats
from forgetmap.theory.methods import Setting
from forgetmap.theory.mixtures import state, target_mixture
from forgetmap.theory.objectives import Pair, ReverseKL
from forgetmap.theory.quadrature import GaussHermite, Grid, Quadrature, nodes
from forgetmap.theory.simulation import two_by_two

STEP = 1e-4


@claim(
    "R1",
    "Reverse KL moves a correct old mean only through samples of the old component that the "
    "model or the target assigns to the new one.",
    "dL/dm_o = beta ((m_o - mu_o) + eps_q (m_n - m_o) - eps_p (mu_n - mu_o))",
    control=Perturbation("objectives.misassigned"),
    provenance=FITS,
    cost=6,
)
def _pull_is_overlap_gated() -> list[Check]:
    return [
        at_most("1-D, closed form against differences", _axis_gap(), 1e-6),
        at_most("2-D, full covariance", _pair_gap(GaussHermite(), 2, 40, equal=True), 1e-6),
        at_most("1-D, unequal variances", _pair_gap(Grid(), 1, 50, equal=False), 1e-6),
    ]


def _axis_gap() -> float:
    random = np.random.default_rng(2)
    apart = random.uniform(1, 6, 200)
    target = target_mixture(random.uniform(0.05, 0.95, 200), apart)
    means = random.normal(0, 0.5, 200), apart + random.normal(0, 0.5, 200)
    model = state(random.uniform(0.05, 0.95, 200), *means)
    loss, worst = ReverseKL(target), 0.0
    for index, pull in enumerate(objectives.overlap_gated_gradient(model, target), start=1):
        moved = np.zeros((3, 1))
        moved[index] = STEP
        slope = (loss.value(model + moved) - loss.value(model - moved)) / (2 * STEP)
        worst = max(worst, float(np.abs(slope - pull).max()))
    return worst


def _pair_gap(rule: Quadrature, size: int, count: int, *, equal: bool) -> float:
    random = np.random.default_rng(3)
    worst = 0.0
    for _ in range(count):
        shared = _covariance(random, size)
        model, target = (_pair(random, size, shared if equal else None) for _ in range(2))
        pull = objectives.pair_pull(model, target, rule)
        for axis in range(size):
            step = np.eye(size)[axis] * STEP
            up, down = (_moved(model, sign * step) for sign in (1, -1))
            rise = objectives.pair_kl(up, target, rule) - objectives.pair_kl(down, target, rule)
            worst = max(worst, abs(rise / (2 * STEP) - pull[axis]))
    return worst


def _covariance(random: np.random.Generator, size: int) -> Floats:
    root = random.normal(0, 0.3, (size, size)) + np.eye(size)
    return np.asarray(root @ root.T)


def _pair(random: np.random.Generator, size: int, shared: Floats | None) -> Pair:
    both = [_covariance(random, size) if shared is None else shared for _ in range(2)]
    away = np.zeros(size)
    away[0] = random.uniform(1, 2.5)
    means = random.normal(0, 0.4, size), away + random.normal(0, 0.4, size)
    return Pair(random.uniform(0.1, 0.9), means, (both[0], both[1]))


def _moved(model: Pair, step: Floats) -> Pair:
    return replace(model, means=(model.means[0] + step, model.means[1]))


@claim(
    "R2",
    "The Bhattacharyya coefficient bounds misassignment; its exponent of 1/8 is tight, its "
    "constant is loose by a factor that grows with the separation.",
    "eps <= 1/2 sqrt(w_j/w_i) BC,  eps ~ sqrt(w_j/w_i) sqrt(pi/2)/d exp(-k^2/(2 d^2)) BC",
    control=Perturbation("formulas.misassignment"),
)
def _overlap_bounds_misassignment() -> list[Check]:
    random = np.random.default_rng(4)
    apart, odds = random.uniform(0.3, 10, 500), random.uniform(-3, 3, 500)
    ratio = formulas.misassignment(apart, odds) / formulas.misassignment_bound(apart, odds)
    checks = [at_most("eps over its bound, worst of 500", ratio.max(), 1.0)]
    table = (0.902, 0.741, 0.608, 0.507, 0.431, 0.374, 0.329, 0.293)
    for separation, expected in enumerate(table, start=1):
        even = formulas.misassignment(separation) / formulas.misassignment_bound(separation)
        checks.append(near(f"eps over bound, d={separation}", even, expected, 2e-3))
    for separation, expected in ((4, 1.24), (6, 1.12), (8, 1.07), (10, 1.05)):
        far = formulas.misassignment_asymptote(separation) / formulas.misassignment(separation)
        checks.append(near(f"asymptote over eps, d={separation}", far, expected, 0.01))
    return [*checks, at_most("unequal covariances, overlap", _overlap_gap(), 1e-9)]


def _overlap_gap() -> float:
    random = np.random.default_rng(5)
    worst = 0.0
    for _ in range(10):
        first, second = _covariance(random, 1), _covariance(random, 1)
        centre = random.normal(0, 1, 1)
        x = np.linspace(-30, 30, 20001)
        parts = (mixtures.log_gaussian(x[:, None], *mode) for mode in
                 ((np.zeros(1), first), (centre, second)))  # fmt: skip
        numeric = np.exp(sum(parts) / 2).sum() * (x[1] - x[0])
        worst = max(worst, abs(numeric - mixtures.overlap(np.zeros(1), first, centre, second)))
    return float(worst)


STARTS: tuple[dict[str, Any], ...] = (
    {"start_offset": 1.0},
    {"start_offset": 0.0, "start_weight": 0.8},
    {"start_offset": 0.0, "start_weight": 0.2},
    {"start_offset": 1.0, "old_share": 0.3},
    {"start_offset": -1.0, "old_share": 0.7},
    {"start_offset": 0.5, "start_weight": 0.9, "old_share": 0.3},
)


@claim(
    "R3",
    "Toward the true mixture the drift of the old mean is temporary and at most the largest "
    "misassignment on the way, which decays exponentially with the squared separation.",
    "sup |e| <= sup |eps_q (m_n - m_o) - eps_p (mu_n - mu_o)| = O(d exp(-d^2/8))",
    control=Perturbation("mixtures.log_density_and_new", part=1),
    provenance=FITS,
    cost=15,
)
def _drift_is_transient_and_small() -> list[Check]:
    rows = [_drift_row(Setting(float(d), **start)) for d in range(3, 10) for start in STARTS]
    drift, forcing, bound, final = np.array(rows).T
    far = np.repeat(np.arange(3, 10), len(STARTS)) >= 5
    checks = [
        at_most("drift over largest force, worst of 42", (drift / forcing).max(), 1.0),
        at_most("force over overlap bound, worst", (forcing / bound).max(), 1.0),
        at_most("drift over overlap bound, worst", (drift / bound).max(), 0.47),
        at_most("drift left at t=60, d>=5", final[far].max(), 3e-6),
    ]
    by_start = drift.reshape(7, len(STARTS))[:, 1]
    exponent = np.log(by_start[6] / by_start[5]) / (81 - 64)
    return [
        *checks,
        near("exponent per d^2, 8 to 9", exponent, -0.125, 0.005),
        *_in_two_dimensions(),
    ]


def _drift_row(setting: Setting) -> tuple[float, float, float, float]:
    path = methods.rl(setting, np.linspace(0.05, 60, 400))
    model, apart = path.states, float(np.asarray(setting.separation))
    target = setting.target
    at_old, between = nodes().around(model[1]), model[2] - model[1]
    eps_q = nodes().mean(mixtures.new_responsibility(at_old, model))
    eps_p = nodes().mean(target.shares(at_old)[1])
    odds = -model[0], float(-mixtures.logit(setting.old_share))
    bound_q = formulas.misassignment_bound(between, odds[0])
    bound_p = formulas.misassignment_bound(apart, odds[1]) * np.exp(model[1] * apart / 2)
    drift = np.abs(model[1])
    return (
        float(drift.max()),
        float(np.abs(eps_q * between - eps_p * apart).max()),
        float((bound_q * np.abs(between) + bound_p * apart).max()),
        float(drift[-1]),
    )


def _in_two_dimensions() -> list[Check]:
    """Check batches of 256 in the plane, five runs."""
    sampled = methods.Sampled(5.0, dimension=2)
    start = np.repeat(np.array([0.0, 0.0, 0.0, 4.0, 0.0])[:, None], 5, axis=1)
    reverse = flows.descend(sampled.reverse, start, 4000, 0.1, seed=6, every=10)
    forward = flows.descend(sampled.forward, start, 4000, 0.1, seed=7, every=4000)
    drift = np.hypot(*reverse.states[1:3])
    return [
        near("2-D batches, beta", reverse.old_weight[:, -1].mean(), 0.5, 0.005),
        at_most("2-D batches, largest drift", drift.max(axis=-1).mean(), 0.05),
        at_most("2-D batches, drift left", drift[:, -1].max(), 5e-3),
        at_most("2-D batches of SFT, beta", forward.old_weight[:, -1].mean(), 0.004),
        at_least("2-D batches of SFT, drift", forward.states[1, :, -1].mean(), 0.5),
    ]


@claim(
    "R4",
    "Toward the true mixture the old weight recovers from any start, but slowly from a small one.",
    "b' = -beta (1 - beta) (b - a);  time from beta0 ~ 1/(beta0 |logit beta0|)",
    control=Perturbation("formulas.recovery_time"),
)
def _weight_recovers() -> list[Check]:
    checks, goal = [], mixtures.logit(0.25)
    for start, expected in ((0.1, 5.09), (0.01, 30.80), (1e-3, 179.2), (1e-4, 1249.0)):
        setting = Setting(8.0, start_weight=start, start_offset=0.0, trained="weight")
        loss = ReverseKL(setting.target)
        path = flows.follow(
            loss, setting.start, [2e3], trained="weight", stop=lambda s: float(goal - s[0])
        )
        measured = path.stopped or np.nan
        checks.append(close(f"time from {start:g}", measured, expected, 1e-3))
        law = formulas.recovery_time(start, 0.25, 0.5)
        checks.append(close(f"time from {start:g}, integral", law, measured, 1e-3))
    for start in (0.01, 0.99):
        setting = Setting(
            3.0, start_weight=start, old_share=0.3, start_offset=0.0, trained="weight"
        )
        end = methods.rl(setting, [400.0]).old_weight[-1]
        checks.append(near(f"end from {start:g}", end, 0.3, 1e-6))
    return checks


@claim(
    "L1",
    "A new component that starts on the old mode's side stays there for a time that grows "
    "exponentially: the old behaviour is kept, and the new one is not learned.",
    "log escape time grows by 0.30 per unit of d^2",
    control=Perturbation("objectives.ReverseKL.gradient"),
    cost=12,
)
def _collapse_is_metastable() -> list[Check]:
    expected = {4.0: 24, 4.5: 55, 5.0: 217, 5.5: 1115, 6.0: 6498, 6.5: 42843, 7.0: 325200}
    times = {apart: _escape(apart) for apart in expected}
    late = [apart for apart in expected if apart >= 5.5]
    squares, logs = np.square(late), np.log([times[apart] for apart in late])
    slope = np.polyfit(squares, logs, 1)[0]
    checks = [close(f"escape, d={a:g}", times[a], expected[a], 0.02) for a in (4.0, 5.0, 6.0, 7.0)]
    stuck, free = (_left(8.0, share) for share in (0.45, 0.5))
    return [
        near("log-slope per d^2, 5.5 to 7", slope, 0.30, 0.02),
        *checks,
        at_least("KL at 3000 from 0.45 of the way, d=8", stuck, 0.5),
        at_most("KL at 3000 from half way, d=8", free, 1e-3),
    ]


def _escape(apart: float) -> float:
    loss = ReverseKL(target_mixture(0.5, apart))
    path = flows.follow(
        loss,
        state(0.5, 0.0, 0.3),
        [1e6],
        stop=lambda model: float(loss.value(model)) - 0.1,
        precision=1e-8,
    )
    return path.stopped or np.nan


def _left(apart: float, share: float) -> float:
    loss = ReverseKL(target_mixture(0.5, apart))
    path = flows.follow(loss, state(0.5, 0.0, share * apart), [3e3], precision=1e-7)
    return float(loss.value(path.end))


@claim(
    "L2",
    "Retention depends on the old mode in the target, not on the direction of KL: toward the "
    "new mode alone both directions forget, toward the mixture neither does.",
    "2x2 of direction and target",
    control=Perturbation("mixtures.log_density_and_new", part=1),
    cost=3,
)
def _target_must_show_the_old() -> list[Check]:
    expected = {3.0: (0.155, 2.94), 5.0: (0.0135, 4.40), 7.0: (8.2e-4, 4.86)}
    checks = []
    for apart, (weight, mean) in expected.items():
        ends = {
            name: (float(run.weight[-1]), float(run.path.end[1]))
            for name, run in two_by_two(Setting(apart), 4e3).items()
        }
        to_new, to_both = ends["reverse KL", "new only"], ends["reverse KL", "old and new"]
        forward = ends["forward KL", "new only"][0], ends["forward KL", "old and new"][0]
        checks += [
            close(f"reverse to new: beta, d={apart:g}", to_new[0], weight, 0.01),
            close(f"reverse to new: m_o, d={apart:g}", to_new[1], mean, 0.01),
            at_most(f"forward to new: beta, d={apart:g}", forward[0], 0.06),
            near(f"forward to both: beta, d={apart:g}", forward[1], 0.5, 1e-4),
            near(f"reverse to both: beta, d={apart:g}", to_both[0], 0.5, 1e-4),
            at_most(f"reverse to both: |m_o|, d={apart:g}", abs(to_both[1]), 1e-3),
        ]
    return checks


@claim(
    "L3",
    "Reward alone forgets like 1/t. A KL anchor turns it into reverse KL to a tilted base that "
    "contains the old mode: retention is exponential in reward gap over temperature.",
    "beta* = sigmoid(logit beta0 - D/tau)",
    control=Perturbation("formulas.anchored_weight"),
)
def _anchor_sets_the_floor() -> list[Check]:
    free = Setting(8.0, start_offset=0.0, trained="weight")
    alone = methods.policy_gradient(free, [1e5], 1.0).old_weight[0]
    checks = [close("D t beta at 1e5", alone * 1e5,
                    1.0, 0.01)]  # fmt: skip
    for start, gap, drift in ((0.5, 1.0, 5e-5), (0.8, 4.0, 4e-4)):
        setting = Setting(8.0, start_weight=start, start_offset=0.0)
        path = methods.kl_rl(setting, [400.0], gap, 1.0)
        law = float(formulas.anchored_weight(start, gap, 1.0))
        checks.append(close(f"beta*, D/tau={gap:g}", path.old_weight[0], law, 1e-3))
        checks.append(close(f"drift, D/tau={gap:g}", abs(path.end[1]), drift, 0.15))
    return checks
