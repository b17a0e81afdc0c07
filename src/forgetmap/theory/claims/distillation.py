"""Claims about self-distillation fine-tuning with a moving-average teacher."""

from __future__ import annotations

import numpy as np

from forgetmap.theory import formulas, methods
from forgetmap.theory.claims.registry import Check, Perturbation, at_most, claim, close, near
from forgetmap.theory.flows import Trajectory
from forgetmap.theory.methods import Demonstrator, Distillation, Setting
from forgetmap.theory.mixtures import logit

ANCHOR = Perturbation("methods.anchored_parameters")
SECOND = "[D] derived here, for the method as described by a secondary source [SEC]"


def student(how: Distillation, until: float, apart: float = 6.0, start: float = 0.8) -> Trajectory:
    """Return the path of the student if only the weight is wrong."""
    setting = Setting(apart, start_weight=start, start_offset=0.0)
    return methods.sdft(setting, np.linspace(until / 400, until, 400), how)[0]


@claim(
    "SD1",
    "With any anchor the student converges to the demonstrator: it keeps exactly the old mass "
    "of the demonstration-conditioned teacher.",
    "anchor > 0: theta = phi = d, beta_inf = beta_d",
    control=ANCHOR,
    provenance=SECOND,
    cost=2,
)
def _student_becomes_demonstrator() -> list[Check]:
    checks = []
    for anchor, until in ((0.05, 1500.0), (0.2, 600.0), (0.5, 400.0), (1.0, 400.0)):
        end = student(Distillation(anchor, 0.2, Demonstrator(0.4)), until)
        checks.append(near(f"beta_inf, anchor {anchor:g}", end.old_weight[-1], 0.4, 1e-3))
    moved = student(Distillation(0.5, 0.5, Demonstrator(0.4, 0.3)), 600.0)
    return [*checks, near("m_o of a demonstrator 0.3 off", moved.end[1], 0.3, 1e-3)]


@claim(
    "SD2",
    "Near convergence the distance shrinks at a rate determined by anchor, refresh and curvature.",
    "s = ((h + r) - sqrt((h + r)^2 - 4 h r l)) / 2,  h = beta_d (1 - beta_d) - W",
    control=Perturbation("formulas.distillation_rate"),
)
def _anchor_sets_the_rate() -> list[Check]:
    curvature = 0.4 * 0.6 - formulas.shared_mass(0.4, 8.0)
    checks = []
    for anchor, refresh in ((0.05, 0.05), (0.2, 0.5), (0.5, 0.5)):
        law = formulas.distillation_rate(curvature, refresh, anchor)
        times = np.array([9.0, 13.0]) / law
        setting = Setting(
            8.0, start_weight=0.42, start_offset=0.0, trained="weight", precision=1e-10
        )
        how = Distillation(anchor, refresh, Demonstrator(0.4))
        left = logit(methods.sdft(setting, times, how)[0].old_weight) - logit(0.4)
        rate = np.log(left[0] / left[1]) / (times[1] - times[0])
        checks.append(close(f"rate, anchor {anchor:g}, refresh {refresh:g}", law, rate, 5e-3))
    return checks


@claim(
    "SD3",
    "Without an anchor nothing restores the student: it keeps part of a perturbation permanently.",
    "anchor = 0: u0 r / (h + r) stays",
    control=Perturbation("formulas.lasting_displacement"),
)
def _without_anchor_nothing_returns() -> list[Check]:
    curvature = 0.4 * 0.6
    checks = []
    for refresh, expected in ((0.05, 0.0508), (0.2, 0.1344), (1.0, 0.2404)):
        setting = Setting(8.0, start_weight=0.4, start_offset=0.0, trained="weight")
        shifted = setting.start + np.array([0.3, 0.0, 0.0])
        how = Distillation(0.0, refresh)
        end = methods.sdft(setting, [400.0], how, shifted)[0].end
        stays = float(end[0] - setting.start[0])
        law = formulas.lasting_displacement(0.3, curvature, refresh)
        checks.append(close(f"remaining shift, refresh {refresh:g}", law, stays, 0.03))
        checks.append(close(f"remaining shift, refresh {refresh:g}, known", stays, expected, 0.01))
    return checks


@claim(
    "SD4",
    "If the teacher is mixed with demonstrations of new behaviour only, self-distillation "
    "forgets: demonstrations must contain the true old mass.",
    "beta_T = (1 - l) beta_phi",
    control=Perturbation("methods.kept_weight"),
)
def _demonstrations_must_show_the_old() -> list[Check]:
    checks = []
    for anchor, expected in ((0.02, 0.1147), (0.1, 0.01565)):
        how = Distillation(anchor, 0.2, Demonstrator(0.0), anchor_kind="mixture")
        end = student(how, 800.0, start=0.5).old_weight[-1]
        checks.append(close(f"beta(800), anchor {anchor:g}", end, expected, 0.01))
    checks.append(at_most("beta(800), anchor 0.1", end, 0.02))
    how = Distillation(0.1, 0.2, Demonstrator(0.3), anchor_kind="mixture")
    kept = student(how, 1500.0, start=0.5).old_weight[-1]
    return [*checks, near("beta with old demonstrations of 0.3", kept, 0.3, 1e-3)]


@claim(
    "SD5",
    "Following the same teacher by forward KL has the same limit and the same retention: the "
    "teacher decides, not the direction.",
    "fixed points do not depend on the direction",
    control=ANCHOR,
    cost=2,
)
def _direction_does_not_matter() -> list[Check]:
    checks = []
    for apart in (5.0, 6.0, 7.0):
        how = Distillation(0.2, 0.2, Demonstrator(0.4))
        forward = Distillation(0.2, 0.2, Demonstrator(0.4), direction="forward")
        back, along = student(how, 600.0, apart), student(forward, 600.0, apart)
        checks += [
            near(f"reverse: beta, d={apart:g}", back.old_weight[-1], 0.4, 1e-4),
            near(f"forward: beta, d={apart:g}", along.old_weight[-1], 0.4, 1e-4),
            at_most(f"reverse: drift, d={apart:g}", back.drift(apart).max(), 0.01),
            at_most(f"forward: drift, d={apart:g}", along.drift(apart).max(), 0.01),
        ]
    return checks


@claim(
    "SD6",
    "While the weight moves, the old mean drifts by an amount that decays exponentially with the "
    "squared separation.",
    "max |m_o| ~ exp(-d^2/8)",
    control=Perturbation("mixtures.log_density_and_new", part=1),
    cost=2,
)
def _distillation_drift_is_small() -> list[Check]:
    how = Distillation(0.2, 0.2, Demonstrator(0.4))
    drifts = {apart: float(student(how, 300.0, float(apart)).drift(apart).max())
              for apart in range(5, 10)}  # fmt: skip
    expected = {5: 8.3e-3, 6: 2.0e-3, 7: 3.9e-4, 8: 5.9e-5, 9: 7.2e-6}
    exponent = np.log(drifts[9] / drifts[8]) / (81 - 64)
    return [
        near("exponent per d^2, 8 to 9", exponent, -0.125, 0.005),
        *(close(f"drift, d={apart}", drifts[apart], expected[apart], 0.03) for apart in expected),
    ]
