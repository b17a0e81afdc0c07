"""OAPL, checked against the exact objective of the theory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from forgetmap.errors import UsageError
from forgetmap.theory.mixtures import Mixture
from forgetmap.theory.objectives import NewMembership, OffPolicyRegression
from forgetmap.train import OAPL, TTTDiscover
from forgetmap.train.mitigations.oapl import regression_losses, soft_advantages
from protected_training import protected
from two_modes import GRID, STEP, log_density, make_state, slope

pytestmark = pytest.mark.needs_torch


@pytest.mark.parametrize(("t1", "t2"), [(1.0, 1.0), (1.0, 0.1), (0.5, 2.0)])
def test_loss_and_gradient_are_those_of_the_theory(t1: float, t2: float) -> None:
    state, lagged = make_state(0.3, 0.2, 4.6), make_state(0.5, 0.0, 5.0).detach()
    reward = NewMembership(Mixture.of_state(lagged.numpy()), np.asarray(1.5))
    exact = OffPolicyRegression(reward, lagged.numpy(), t1, t2)
    log_lag = log_density(lagged)
    mass = log_lag.exp() * STEP
    rewards = torch.tensor(reward(GRID.numpy()))
    baseline = t1 * ((rewards / t1).exp() * mass).sum().log()
    losses = regression_losses(log_density(state), log_lag, rewards - baseline, t2)
    loss = (mass * losses).sum()
    assert float(loss.detach()) == pytest.approx(float(exact.value(state.detach().numpy())), 1e-6)
    expected = exact.gradient(state.detach().numpy())
    assert slope(loss, state) == pytest.approx(expected, abs=1e-6)


def test_the_baseline_is_the_soft_maximum_of_a_group() -> None:
    rewards = torch.tensor([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]], dtype=torch.float64)
    found = soft_advantages(rewards, 0.5)
    value = 0.5 * np.log(np.mean(np.exp(rewards.numpy() / 0.5), axis=1, keepdims=True))
    assert found.numpy() == pytest.approx(rewards.numpy() - value)
    assert found[1].tolist() == pytest.approx([0.0] * 3)
    missing = soft_advantages(torch.tensor([[0.0, 1.0, 2.0, float("nan")]]), 0.5)
    assert missing[0, :3].tolist() == pytest.approx(found[0].tolist())


def test_slopes_agree_with_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    log_q = torch.randn(6, generator=generator, dtype=torch.float64, requires_grad=True)
    lagged, advantages = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda logs: regression_losses(logs, lagged, advantages, 0.3).mean(), (log_q,)
    )


def test_they_need_groups(tmp_path: Path) -> None:
    for config in (OAPL(), TTTDiscover()):
        with pytest.raises(UsageError, match="which Trainer does not have"):
            protected(tmp_path, config)
    with pytest.raises(UsageError):
        OAPL(t1=0)
