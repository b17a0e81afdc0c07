"""Claims about forward KL on new data: supervised fine-tuning without replay."""

from __future__ import annotations

import numpy as np

from forgetmap.theory import flows, formulas, methods, mixtures
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
from forgetmap.theory.methods import Setting
from forgetmap.theory.mixtures import Mixture, state
from forgetmap.theory.objectives import ForwardKL
from forgetmap.theory.quadrature import nodes

RESPONSIBILITY = Perturbation("mixtures.old_responsibility")


def new_only(separation: float) -> ForwardKL:
    """Return KL(new||model)."""
    return ForwardKL(Mixture.of([1.0], [separation]))


def weight_only(
    separation: float, times: list[float], geometry: flows.Geometry = "logit"
) -> Floats:
    """Return the old weight over time if both components are right and only the weight moves."""
    setting = Setting(separation, start_offset=0.0, trained="weight", geometry=geometry)
    return methods.sft(setting, times).old_weight


@claim(
    "F1",
    "New data alone pull the old weight to 0: the loss is convex in it, with its minimum at 0.",
    "R < beta for every beta; L''(0) = exp(d^2) - 1",
    control=RESPONSIBILITY,
    provenance=FITS,
)
def _mass_is_forgotten() -> list[Check]:
    random = np.random.default_rng(1)
    weights, apart = random.uniform(1e-4, 0.99, 100), random.uniform(0.5, 6.0, 100)
    loss = ForwardKL(Mixture.of([np.ones(100)], [apart]))
    pull = loss.gradient(mixtures.state(weights, 0.0, apart))[0]
    checks = [at_least("smallest beta - R of 100", pull.min(), 1e-12)]
    for separation in (1.0, 2.0):
        tiny = 1e-5 * np.exp(-(separation**2))
        slope = new_only(separation).gradient(state(tiny, 0.0, separation))[0] / tiny**2
        expected = float(formulas.new_only_curvature(separation))
        checks.append(close(f"L''(0), d={separation:g}", slope, expected, 1e-3))
    path = weight_only(4.0, [1e2, 1e4, 1e7])
    for time, measured, expected in zip(
        (2, 4, 7), path, (1.224e-2, 1.903e-4, 8.41e-7), strict=True
    ):
        checks.append(close(f"beta(1e{time}), d=4", measured, expected, 5e-3))
    return checks


@claim(
    "F2",
    "In logit flow the old weight falls like 1/t, and like 1/sqrt(t) once tails matter.",
    "-1/beta + logit(beta) = C - t;  beta ~ (2 (exp(d^2) - 1) t)^(-1/2)",
    control=Perturbation("formulas.sft_time"),
)
def _mass_falls_like_one_over_time() -> list[Check]:
    times = [1.0, 10.0, 1e2, 1e3, 1e4]
    measured = weight_only(8.0, times)
    law = np.array([formulas.sft_weight(time, 0.5) for time in times])
    checks = [at_most("implicit law, worst relative gap", np.abs(measured / law - 1).max(), 3e-3)]
    for separation, slope in ((6.0, -0.98), (4.0, -0.85), (1.0, -0.52)):
        ends = weight_only(separation, [0.99e4, 1.01e4])
        checks.append(
            near(f"slope at 1e4, d={separation:g}", _slope(ends, 1.01 / 0.99), slope, 0.01)
        )
    late = weight_only(1.0, [0.99e7, 1e7])
    checks.append(near("slope at 1e7, d=1", _slope(late, 1 / 0.99), -0.5, 0.01))
    for separation, factor, share in ((1.0, 1.002, 0.01), (2.0, 1.04, 0.01)):
        end = weight_only(separation, [1e7])[0]
        ratio = end / formulas.sft_late_weight(1e7, separation)
        checks.append(close(f"beta sqrt(2 chi2 t), d={separation:g}", ratio, factor, share))
    return [*checks, at_most("normal law of R/beta, worst gap", _normal_gap(), 0.25)]


def _slope(ends: Floats, step: float) -> float:
    return float(np.log(ends[1] / ends[0]) / np.log(step))


def _normal_gap() -> float:
    weights = np.logspace(-8, -2, 25)
    gaps = []
    for apart in (2.0, 3.0, 4.0, 5.0, 6.0):
        model = state(weights, 0.0, np.full(25, apart))
        on_old = sigmoid(model[0]) - new_only(apart).gradient(model)[0]
        gaps.append(np.abs(formulas.data_on_old(weights, apart) / on_old - 1).max())
    return float(max(gaps))


@claim(
    "F3",
    "The rate 1/t is specific to the logit: natural gradients lose mass exponentially, "
    "gradients in beta in finite time, expectation maximisation in a few steps.",
    "natural: beta0 exp(-t);  euclid: gone at beta0 - beta0^2/2;  em: beta <- R",
    control=Perturbation("formulas.natural_weight"),
)
def _geometry_sets_the_rate() -> list[Check]:
    natural = weight_only(8.0, [10.0, 15.0], "natural")
    gaps = np.abs(natural / formulas.natural_weight([10.0, 15.0], 0.5) - 1)
    times = [0.1, 0.2, 0.3, 0.37]
    euclid = weight_only(8.0, times, "euclid")
    em = flows.em_steps(new_only(8.0), state(0.5, 0.0, 8.0), 2).old_weight
    return [
        at_most("natural, relative gap at 10", gaps[0], 0.015),
        at_most("natural, relative gap at 15", gaps[1], 0.08),
        at_most("euclid", np.abs(euclid - formulas.euclid_weight(times, 0.5)).max(), 1e-4),
        close("em, first step", em[1], 4.9e-5, 0.02),
        close("em, second step", em[2], 1.8e-7, 0.03),
    ]


@claim(
    "F4",
    "If the old component is trained too and overlaps with the new one, it moves into the new "
    "mode: its weight stays although the old behaviour is lost.",
    "minima: {beta = 0, m_n = mu_n} and {m_o = m_n = mu_n, any beta}",
    control=RESPONSIBILITY,
)
def _label_stays_mass_goes() -> list[Check]:
    checks = []
    expected = {2.0: (0.256, 0.003, 2.0), 3.0: (0.0552, 0.001, 2.99), 4.0: (0.0039, 1e-4, 3.83)}
    for separation, (weight, within, mean) in expected.items():
        path = methods.sft(Setting(separation), [1e6])
        checks.append(near(f"end beta, d={separation:g}", path.old_weight[0], weight, within))
        checks.append(near(f"end m_o, d={separation:g}", path.end[1], mean, 0.01))
        kept = float(path.old_mass(separation)[0])
        checks.append(near(f"old region, d={separation:g}", kept, _new_in_old(separation), 2e-3))
    frozen = methods.sft(Setting(3.0, trained="weight+new"), [1e6])
    checks.append(close("beta with m_o frozen, d=3", frozen.old_weight[0], 1.9e-5, 0.03))
    return checks


def _new_in_old(separation: float) -> float:
    return float(mixtures.region_mass(state(0.5, separation, separation), separation))


@claim(
    "F5",
    "For any densities, no event keeps more mass than new data give it plus a term that "
    "vanishes with the loss.",
    "Q(A) <= p_n(A) + sqrt(KL(p_n||q)/2);  small shifts reach sqrt(2/pi) of it",
    control=Perturbation("objectives.ForwardKL.value"),
)
def _forgetting_needs_no_gaussians() -> list[Check]:
    worst = -np.inf
    for separation in (1.0, 2.0, 3.0, 4.0, 6.0):
        path = methods.sft(Setting(separation), np.logspace(-1, 5, 40))
        bound = np.sqrt(np.maximum(new_only(separation).value(path.states), 0.0) / 2)
        worst = max(
            worst, float((path.old_mass(separation) - _new_in_old(separation) - bound).max())
        )
    shift, separation = 1e-3, 2.0
    model = state(1e-12, 0.0, separation - shift)
    loss = float(new_only(separation).value(model))
    gain = float(mixtures.region_mass(model, 2 * separation) - 0.5)
    return [
        at_most("worst Q(A) - p_n(A) - bound", worst, 0.0, 1e-7),
        close("sharpness for small shifts", gain / np.sqrt(loss / 2), np.sqrt(2 / np.pi), 0.01),
    ]


@claim(
    "F6",
    "Under forward KL the old mean drifts only through new data that are assigned to the old "
    "component, but nothing restores it.",
    "|dL/dm_o| <= E_new[r_o |x - m_o|],  R <= 1/2 sqrt(beta/(1-beta)) BC",
    control=RESPONSIBILITY,
)
def _forward_drift_is_gated_but_unbounded() -> list[Check]:
    checks = []
    for separation, drift, weight in ((7.0, 0.093, 2.5e-4), (5.0, 1.92, 5.6e-4)):
        end = methods.sft(Setting(separation), [4e3])
        checks.append(close(f"drift, d={separation:g}", end.end[1], drift, 0.01))
        checks.append(close(f"beta, d={separation:g}", end.old_weight[0], weight, 0.02))
    growing = methods.sft(Setting(8.0), [1e2, 1e4, 1e6]).states[1]
    for measured, expected in zip(growing, (0.003, 0.022, 0.117), strict=True):
        checks.append(near(f"drift grows to {expected:g}, d=8", measured, expected, 6e-4))
    return [*checks, at_most("R over its bound, worst", _worst_ratio(), 1.0)]


def _worst_ratio() -> float:
    weights = np.logspace(-6, -0.05, 40)
    worst = 0.0
    for apart in np.linspace(0.5, 8, 16):
        model = state(weights, 0.0, np.full(40, apart))
        on_old = nodes().mean(
            mixtures.old_responsibility(nodes().around(np.full(40, apart)), model)
        )
        bound = 0.5 * np.sqrt(weights / (1 - weights)) * formulas.gaussian_overlap(apart)
        worst = max(worst, float((on_old / bound).max()))
    return worst
