"""Methods of post-training in the two-mode model, and their phase diagrams."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.errors import ConvergenceError, ForgetmapError, UsageError
from forgetmap.report.figures.theory import run_figures
from forgetmap.theory import methods
from forgetmap.theory.chen import ChenToy
from forgetmap.theory.methods import Demonstrator, Distillation, Sampled, Setting
from forgetmap.theory.objectives import ForwardKL, ReverseKL
from forgetmap.theory.phase import PHASE_PARAMETERS, phase_diagram
from forgetmap.theory.simulation import RUNS, Hyperparameters, simulate, two_by_two


def test_sft_forgets_and_replay_keeps_its_fraction() -> None:
    setting = Setting(6.0)
    assert methods.sft(setting, [1e3]).old_weight[-1] < 2e-3
    assert methods.replay(setting, [1e3], 0.2).old_weight[-1] == pytest.approx(0.2, abs=1e-6)


def test_a_grid_of_fractions_is_one_call() -> None:
    found = methods.replay(Setting(6.0), [500.0], np.array([0.1, 0.3])).old_weight[:, -1]
    np.testing.assert_allclose(found, [0.1, 0.3], atol=1e-5)


def test_kl_anchored_reward_ends_at_the_tilted_base() -> None:
    path = methods.kl_rl(Setting(8.0, start_weight=0.8, start_offset=0.0), [300.0], 2.0, 1.0)
    odds = 0.8 / 0.2 * np.exp(-2.0)
    assert path.old_weight[-1] == pytest.approx(odds / (1 + odds), rel=1e-3)


def test_adaptive_eta_spends_log_two() -> None:
    rewards = np.random.default_rng(0).random(32)
    eta = methods.adaptive_eta(rewards)
    shares = np.exp(eta * rewards) / np.exp(eta * rewards).sum()
    assert (shares * np.log(shares * 32)).sum() == pytest.approx(np.log(2), abs=1e-9)
    assert methods.adaptive_eta(np.ones(8)) == methods.ETA_CAP


def test_adaptive_discovery_loses_more_than_a_gentle_one() -> None:
    setting = Setting(6.0, start_offset=0.0)
    gentle = methods.ttt_discover(setting, [100.0], 0.5, 0.5).old_weight[-1]
    adaptive = methods.ttt_discover(setting, [100.0], "adaptive", 0.5).old_weight[-1]
    assert adaptive < gentle


def test_oapl_lowers_the_log_odds_step_by_step() -> None:
    weights = methods.oapl(Setting(8.0, start_offset=0.0), 2, gap=1.0).old_weight
    odds = weights / (1 - weights)
    np.testing.assert_allclose(odds[:-1] / odds[1:], np.e, rtol=1e-3)


def test_an_impossible_minimum_is_said() -> None:
    class Slope:
        def value(self, model: np.ndarray) -> np.ndarray:
            return np.asarray(-model.sum())

        def gradient(self, model: np.ndarray) -> np.ndarray:
            return -np.ones_like(model)

    with pytest.raises(ConvergenceError, match="no minimum"):
        methods.minimiser(Slope(), np.zeros(3))


def test_student_follows_the_demonstrator() -> None:
    how = Distillation(0.5, 0.5, Demonstrator(0.3))
    student, average = methods.sdft(Setting(6.0, start_offset=0.0), [300.0], how)
    assert student.old_weight[-1] == pytest.approx(0.3, abs=1e-5)
    assert average.old_weight[-1] == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize("replay", [0.0, 0.3])
def test_sampled_gradients_are_unbiased(replay: float) -> None:
    model = np.array([0.3, 0.4, 3.5])
    sampled = Sampled(4.0, old_share=0.3, batch=200_000, replay=replay)
    terms = sampled.reverse_terms(model, np.random.default_rng(1))
    exact = ReverseKL(Setting(4.0, old_share=0.3).target).gradient(model)
    error = terms.std(axis=-1) / np.sqrt(200_000)
    assert (np.abs(terms.mean(axis=-1) - exact) < 4 * error).all()
    forward = sampled.forward(model, np.random.default_rng(2))
    expected = ForwardKL(Setting(4.0).new_only).gradient(model)
    np.testing.assert_allclose(forward, expected, atol=0.02)


def test_replay_without_weights_is_biased() -> None:
    model = np.array([0.3, 0.4, 3.5])
    sampled = Sampled(4.0, old_share=0.3, batch=200_000, replay=0.3, weighted=False)
    terms = sampled.reverse_terms(model, np.random.default_rng(1))
    exact = ReverseKL(Setting(4.0, old_share=0.3).target).gradient(model)
    error = terms.std(axis=-1) / np.sqrt(200_000)
    assert (np.abs(terms.mean(axis=-1) - exact) > 5 * error).any()


def test_toy_forgets_all_with_equal_rates() -> None:
    kept, equal = (ChenToy("sft", 0.15, slow).drops(3).mean() for slow in (0.005, 1.0))
    assert kept == pytest.approx(0.126, abs=0.02)
    assert equal == pytest.approx(0.801, abs=0.01)
    with pytest.raises(ConvergenceError, match="within 3 steps"):
        ChenToy("sft", 0.15).drops(1, most=3)


@pytest.mark.parametrize("parameter", PHASE_PARAMETERS)
def test_phase_diagrams_have_the_values_of_single_flows(parameter: str) -> None:
    apart, values = np.array([2.0, 5.0, 7.0]), np.array([0.2, 0.4, 0.8])
    diagram = phase_diagram(parameter, apart, values, 40.0)  # type: ignore[arg-type]
    for row, separation in enumerate(apart):
        for column, value in enumerate(values):
            setting = Setting(separation)
            if parameter == "replay":
                path = methods.replay(setting, [40.0], value)
            elif parameter == "temperature":
                path = methods.kl_rl(setting, [40.0], 1.0, value)
            else:
                path = methods.sdft(setting, [40.0], Distillation(value, 0.2, Demonstrator(0.2)))[0]
            assert diagram.mass[row, column] == pytest.approx(
                path.old_mass(separation)[-1], abs=1e-4
            )
            assert diagram.weight[row, column] == pytest.approx(path.old_weight[-1], abs=1e-4)


@pytest.mark.parametrize("method", RUNS)
def test_every_method_runs_from_its_start(method: str) -> None:
    run = simulate(method, Setting(5.0, precision=1e-7), Hyperparameters(refreshes=2), 20.0, 9)  # type: ignore[arg-type]
    assert run.path.times[0] == 0
    assert run.weight[0] == pytest.approx(0.5)
    assert np.isfinite(run.mass).all()
    assert [figure.name for figure in run_figures(run)] == ["densities", "old_mass", "drift"]


def test_only_the_target_with_the_old_mode_retains() -> None:
    left = {name: run.mass[-1] for name, run in two_by_two(Setting(5.0), 500.0).items()}
    assert all(left[way, "new only"] < 0.05 for way in ("forward KL", "reverse KL"))
    assert all(abs(left[way, "old and new"] - 0.5) < 1e-3 for way in ("forward KL", "reverse KL"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Setting(separation=0.0),
        lambda: Setting(separation=-2.0),
        lambda: Setting(separation=99.0),
        lambda: Setting(separation=np.nan),
        lambda: Setting(start_weight=1.0),
        lambda: Setting(old_share=0.0),
        lambda: Setting(start_offset=np.inf),
        lambda: methods.replay(Setting(), [1.0], 1.5),
        lambda: methods.kl_rl(Setting(), [1.0], 1.0, 0.0),
        lambda: methods.kl_rl(Setting(), [1.0], 1.0, -1.0),
        lambda: methods.oapl(Setting(), 1, 1.0, t2=0.0),
        lambda: Distillation(anchor=1.5),
        lambda: Distillation(refresh=0.0),
        lambda: Sampled(4.0, replay=1.0),
        lambda: ChenToy("sft", -1.0),
        lambda: simulate("sft", Setting(), Hyperparameters(), -1.0),
        lambda: phase_diagram("colour", np.ones(2), np.ones(2), 1.0),  # type: ignore[arg-type]
        lambda: methods.sft(Setting(trained="everything"), [1.0]),  # type: ignore[arg-type]
        lambda: methods.sft(Setting(geometry="em"), [1.0]),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(ForgetmapError) as caught:
        wrong()  # type: ignore[operator]
    assert caught.value.hint


def test_errors_say_which_and_why() -> None:
    with pytest.raises(ForgetmapError, match="separation is -2, but must be above 0 and below 30"):
        Setting(separation=-2.0)
    with pytest.raises(ForgetmapError, match="temperature is 0"):
        methods.kl_rl(Setting(), [1.0], 1.0, 0.0)
    with pytest.raises(UsageError, match="choose one of weight, weight"):
        methods.sft(Setting(trained="everything"), [1.0])  # type: ignore[arg-type]
