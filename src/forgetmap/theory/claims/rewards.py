"""Claims about TTT-Discover, OAPL, and the toy model of Chen et al."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from forgetmap.theory import flows, formulas, methods
from forgetmap.theory.chen import ChenToy
from forgetmap.theory.claims.registry import (
    CODE,
    Check,
    Perturbation,
    at_most,
    claim,
    close,
    near,
)
from forgetmap.theory.estimators import Floats, sigmoid
from forgetmap.theory.methods import ETA_CAP, Setting
from forgetmap.theory.mixtures import logit, state
from forgetmap.theory.objectives import Entropic, OffPolicyRegression
from forgetmap.theory.quadrature import nodes

# ------------------------------------------------------------------------------------ TTT-Discover


@claim(
    "TT1",
    "Without a KL penalty the entropic objective forgets like 1/t.",
    "beta ~ 1 / ((1 - g) t),  g = E_old[exp(eta R)] / E_new[exp(eta R)]",
    control=Perturbation("objectives.Entropic.gradient"),
    provenance=CODE,
)
def _entropic_reward_forgets() -> list[Check]:
    checks = []
    for eta in (1.0, 2.0):
        setting = Setting(8.0, start_offset=0.0, trained="weight")
        path = methods.ttt_discover(setting, [1e4], eta, 0.0)
        law = path.old_weight[0] * 1e4 * (1 - math.exp(-eta))
        checks.append(close(f"t beta (1 - g), eta={eta:g}", law, 1.0, 0.01))
    return checks


@claim(
    "TT2",
    "With a KL penalty some old mass stays for any rewards: the floor depends only on the "
    "strength.",
    "logit beta* = logit beta0 - (1 - g) / (lambda (1 - beta* (1 - g)))",
    control=Perturbation("formulas.entropic_weight"),
    provenance=CODE,
    cost=4,
)
def _penalty_leaves_a_floor() -> list[Check]:
    table = ((0.5, 0.2914), (2.0, 0.1256), (10.0, 0.0982), (100.0, 0.0982))
    checks = [
        near(
            f"beta*, eta D={tilt:g}",
            formulas.entropic_weight(0.5, math.exp(-tilt), 0.5),
            kept,
            1e-4,
        )
        for tilt, kept in table
    ]
    for start, eta, strength, until in (
        (0.5, 2.0, 0.5, 800.0),
        (0.5, 10.0, 0.5, 800.0),
        (0.8, 10.0, 0.2, 4000.0),
    ):
        setting = Setting(8.0, start_weight=start, start_offset=0.0)
        end = methods.ttt_discover(setting, [until], eta, strength).old_weight[0]
        law = formulas.entropic_weight(start, math.exp(-eta), strength)
        checks.append(near(f"flow, eta={eta:g}, lambda={strength:g}", end, law, 1e-3))
    checks.append(near("flow, slowest, known", end, 0.023347, 2e-5))
    close_modes = methods.ttt_discover(Setting(4.0, start_offset=0.0), [800.0], 2.0, 0.5)
    checks.append(near("flow, d=4", close_modes.old_weight[0], 0.1188, 1e-3))
    needed = formulas.strength_for(0.5, math.exp(-2.0), 0.2)
    kept = formulas.entropic_weight(0.5, math.exp(-2.0), needed)
    return [*checks, near("floor of the advised strength", kept, 0.2, 1e-3)]


@claim(
    "TT3",
    "If rewards are flat on old behaviour, the old mean moves only through overlap; if they "
    "have a slope, it moves at any separation.",
    "m_o = (eta c / lambda) E_old[exp(eta R)] / E_q[exp(eta R)]",
    control=Perturbation("formulas.sloped_drift"),
    provenance=CODE,
    cost=6,
)
def _slope_moves_the_old() -> list[Check]:
    checks = []
    for apart, drift in ((4.0, 0.10), (6.0, 0.011), (8.0, 3.8e-4)):
        end = methods.ttt_discover(Setting(apart, start_offset=0.0), [2000.0], 2.0, 0.5).end
        checks.append(close(f"flat rewards: m_o, d={apart:g}", abs(end[1]), drift, 0.05))
    end, tilts = _sloped(0.05)
    law = formulas.sloped_drift(2.0, 0.05, 0.5, *tilts)
    return [*checks, close("sloped rewards: m_o, d=8", law, float(end[1]), 0.02)]


def _sloped(slope: float) -> tuple[Floats, tuple[float, float]]:
    """Return the end of a flow with this slope of the reward on the old mode, and mean tilts."""
    setting, at, eta = Setting(8.0, start_offset=0.0), nodes(), 2.0
    member = setting.reward(1.0)

    def reward(x: Floats) -> Floats:
        share = member(x)
        return share + (1 - share) * slope * x

    goal = Entropic(reward, np.asarray(eta), setting.base, np.asarray(0.5))
    end = flows.follow(goal, setting.start, [2000.0]).end
    old, new = (float(at.mean(np.exp(eta * reward(at.around(mean))))) for mean in end[1:])
    beta = float(sigmoid(end[0]))
    return end, (old, beta * old + (1 - beta) * new)


@claim(
    "TT4",
    "The adaptive temperature spends log 2 nats per group; once half of a group is new, it "
    "cannot, and old samples get the lowest possible advantage.",
    "KL_Bern(nu'||nu) = log 2;  nu >= 1/2: advantage of old samples -1",
    control=Perturbation("methods.adaptive_eta"),
    provenance=CODE,
)
def _adaptive_eta_hits_its_cap() -> list[Check]:
    few, half = (np.r_[np.ones(new), np.zeros(64 - new)] for new in (16, 32))
    eta = methods.adaptive_eta(few)
    law = float(logit(formulas.tilted_share(0.25)) - logit(0.25))
    capped = methods.adaptive_eta(half)
    return [
        near("eta, 16 of 64 new", eta, law, 1e-6),
        near("eta, 16 of 64 new, rounded", eta, 2.55, 5e-3),
        near("advantage of old", methods.leave_one_out_advantages(few, eta)[-1], -0.75, 2e-3),
        near("eta, 32 of 64 new", capped, ETA_CAP, 1e-6),
        near("advantage of old at the cap", methods.leave_one_out_advantages(half, capped)[-1],
             -1.0, 1e-12),
    ]  # fmt: skip


@claim(
    "TT5",
    "The leave-one-out estimate makes the mean advantage positive, by an amount that falls with "
    "the size of the group.",
    "E[w - 1] ~ Var(e) / ((K - 1) E[e]^2)",
    control=Perturbation("formulas.leave_one_out_bias"),
    provenance=CODE,
)
def _leaving_one_out_is_biased() -> list[Check]:
    tilts = np.array([1.0, math.exp(2.0)])
    chance = np.array([0.7, 0.3])
    middle = float(chance @ tilts)
    spread = float(chance @ tilts**2 - middle**2)
    checks = [
        near("bias, K=64", _exact_bias(64, 0.3, 2.0), 0.01655, 3e-4),
        near("bias, K=8", _exact_bias(8, 0.3, 2.0), 0.198, 2e-3),
        close("first order, K=64", formulas.leave_one_out_bias(spread, middle, 64), 0.01599, 1e-3),
    ]
    exact, law = _exact_bias(1024, 0.3, 2.0), formulas.leave_one_out_bias(spread, middle, 1024)
    return [*checks, close("first order, K=1024", law, exact, 0.01)]


def _exact_bias(group: int, share: float, eta: float) -> float:
    """Return the mean advantage over all groups: a binomial sum over the new ones of the others."""
    others = group - 1
    counts = np.arange(others + 1)
    weights = binom.pmf(counts, others, share)
    means = (counts * math.exp(eta) + others - counts) / others
    own = share * math.exp(eta) + 1 - share
    return float(own * (weights / means).sum() - 1)


# -------------------------------------------------------------------------------------------- OAPL


@claim(
    "OA1",
    "Every refresh, solved to its optimum, lowers the log-odds of old behaviour by the same "
    "amount: retention limits the number of refreshes.",
    "logit beta_K = logit beta_0 - K Delta,  Delta = log(a_n / a_o)",
    control=Perturbation("formulas.oapl_weight"),
    provenance=CODE,
    cost=3,
)
def _refreshes_are_a_budget() -> list[Check]:
    path = methods.oapl(Setting(8.0, start_offset=0.0), 6, gap=1.0)
    law = formulas.oapl_weight(0.5, 1.0, np.arange(7))
    checks = [
        close(f"beta after {count}", path.old_weight[count], law[count], 1e-3)
        for count in range(1, 7)
    ]
    same = methods.oapl(Setting(8.0, start_offset=0.0, start_weight=0.3), 2, gap=0.0)
    allowed = formulas.oapl_refreshes(0.5, 0.01, 1.0)
    return [
        *checks,
        near("equal rewards keep", same.old_weight[-1], 0.3, 1e-6),
        near("refreshes that keep 0.01", allowed, 4, 0.1),
    ]


@claim(
    "OA2",
    "With a small second temperature one solved refresh removes any mode of lower reward; only "
    "the number of gradient steps protects it.",
    "beta_1 ~ beta_lag exp(-(V - R_o)/t2);  first step 2 t2 beta (1-beta) (A_n - A_o)",
    control=Perturbation("formulas.oapl_sharp_log_weight"),
    provenance=CODE,
)
def _small_temperature_wipes_out() -> list[Check]:
    checks = []
    for lagged, expected in ((0.5, -6.89), (0.1, -11.65)):
        value = formulas.mode_value(lagged, 0.0, 1.0, 1.0)
        law = formulas.oapl_sharp_log_weight(lagged, value, 0.1)
        measured = _mode_optimum(lagged, value, 0.1)
        checks.append(near(f"logit, beta_lag={lagged:g}", law, measured, 0.02))
        checks.append(near(f"logit, beta_lag={lagged:g}, known", law, expected, 0.02))
    setting = Setting(8.0, start_offset=0.0)
    loss = OffPolicyRegression(setting.reward(1.0), setting.start, 1.0, 1e-3)
    first = float(loss.gradient(setting.start)[0])
    return [*checks, close("first step in b", first, 2e-3 * 0.25, 1e-2)]


def _mode_optimum(lagged: float, value: float, t2: float) -> float:
    """Return the logit of the weight that solves the regression on two flat modes."""

    def loss(b: float) -> float:
        old = t2 * (-np.logaddexp(0, -b) - math.log(lagged)) + value
        new = t2 * (-np.logaddexp(0, b) - math.log1p(-lagged)) - (1 - value)
        return float(lagged * old**2 + (1 - lagged) * new**2)

    return float(
        minimize_scalar(loss, bounds=(-40, 5), method="bounded", options={"xatol": 1e-9}).x
    )


@claim(
    "OA3",
    "Each refresh moves the old mean only through overlap, and these moves add up: nothing "
    "restores it once the lagged policy has moved.",
    "|m_o| ~ exp(-d^2/8) per refresh",
    control=Perturbation("objectives.NewMembership.__call__"),
    provenance=CODE,
    cost=4,
)
def _refresh_drift_adds_up() -> list[Check]:
    expected = {4: 1.2e-2, 5: 4.4e-3, 6: 1.2e-3, 7: 2.6e-4, 8: 4.1e-5, 9: 5.1e-6}
    drifts = {}
    for apart in expected:
        path = methods.oapl(Setting(float(apart), start_offset=0.0), 1, gap=1.0)
        drifts[apart] = abs(float(path.end[1]))
    exponent = np.log(drifts[9] / drifts[8]) / (81 - 64)
    six = methods.oapl(Setting(8.0, start_offset=0.0), 6, gap=1.0)
    return [
        near("exponent per d^2, 8 to 9", exponent, -0.123, 0.004),
        *(close(f"m_o, d={apart}", drifts[apart], expected[apart], 0.03) for apart in expected),
        close("m_o after 6 refreshes, d=8", abs(float(six.end[1])), 2.9e-3, 0.03),
    ]


@claim(
    "OA4",
    "The loss covers only samples of the lagged policy: mass that this policy has lost is not "
    "recovered.",
    "equal rewards: beta_1 = beta_lag, from any student",
    control=Perturbation("objectives.OffPolicyRegression.lagged_log_density"),
    provenance=CODE,
)
def _lost_mass_is_not_seen() -> list[Check]:
    checks = []
    for lagged in (1e-4, 1e-8):
        setting = Setting(8.0, start_offset=0.0)
        loss = OffPolicyRegression(setting.reward(0.0), state(lagged, 0.0, 8.0), 1.0, 1.0)
        measured = _weight_optimum(loss)
        checks.append(close(f"beta_1, beta_lag={lagged:g}", measured, lagged, 1e-3))
    return checks


def _weight_optimum(loss: OffPolicyRegression) -> float:
    """Return the weight of the minimiser with fixed components."""
    measured = minimize_scalar(
        lambda b: float(loss.value(np.array([b, 0.0, 8.0]))),
        bounds=(-30, 3),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(sigmoid(measured.x))


# -------------------------------------------------------------------------------------------- Chen


@claim(
    "CHEN",
    "In the toy model of Chen et al. RL forgets less than SFT because its old parameters learn "
    "200 times slower and its samples never reach the old mode: with equal rates it forgets "
    "everything.",
    "loss of the old mode when 0.9 of the new one is gained (medians of 5 or 21 runs)",
    control=Perturbation("chen.accuracies"),
    provenance="[CODE] princeton-pli/retaining-by-doing, reimplemented; [D] rerun here",
    cost=12,
)
def _toy_depends_on_slow_parameters() -> list[Check]:
    expected = (
        ("SFT, fast", ChenToy("sft", 0.15), 0.125),
        ("SFT, slow", ChenToy("sft", 0.01), 0.054),
        ("RL", ChenToy("rl", 0.01), 0.032),
        ("RL, whitened rewards", ChenToy("rl", 0.01, normalised=True), 0.010),
        ("SFT, fast, factor 0.05", ChenToy("sft", 0.15, 0.05), 0.715),
        ("SFT, slow, factor 0.05", ChenToy("sft", 0.01, 0.05), 0.316),
        ("RL, factor 0.05", ChenToy("rl", 0.01, 0.05), 0.169),
        ("SFT, slow, factor 1", ChenToy("sft", 0.01, 1.0), 0.801),
        ("RL, factor 1", ChenToy("rl", 0.01, 1.0), 0.802),
    )
    checks = [
        near(name, np.median(toy.drops(21 if toy.method == "rl" else 5)), drop, 0.03)
        for name, toy, drop in expected
    ]
    exact = ChenToy("rl", 0.01, samples=None).drops(1)[0]
    gap = checks[2].measured - checks[0].measured
    return [
        *checks,
        near("RL, exact integrals", exact, 0.128, 0.03),
        at_most("RL minus fast SFT", gap, -0.05),
    ]
