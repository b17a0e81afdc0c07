"""TTT-Discover, checked against advantages, temperatures and gradient of the theory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from forgetmap.errors import UsageError
from forgetmap.theory import methods
from forgetmap.theory.mixtures import Mixture
from forgetmap.theory.objectives import Entropic, NewMembership
from forgetmap.train import TTTDiscover
from forgetmap.train.mitigations.ttt_discover import (
    ETA_CAP,
    adaptive_eta,
    entropic_advantages,
    kl_advantages,
)
from two_modes import log_density, make_state, slope

pytestmark = pytest.mark.needs_torch


def groups(seed: int = 0, count: int = 5, size: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, size, generator=generator, dtype=torch.float64)


def test_advantages_leave_one_out() -> None:
    rewards = groups()
    found = entropic_advantages(rewards, torch.full((5, 1), 1.7, dtype=torch.float64))
    assert found.numpy() == pytest.approx(methods.leave_one_out_advantages(rewards.numpy(), 1.7))


def test_a_missing_reward_is_left_out() -> None:
    rewards = groups(size=4)
    holes = torch.cat([rewards, torch.full((5, 1), float("nan"))], dim=1)
    eta = torch.ones(5, 1, dtype=torch.float64)
    found = entropic_advantages(holes, eta)
    assert torch.allclose(found[:, :4], entropic_advantages(rewards, eta))
    assert found[:, 4].tolist() == [0.0] * 5
    assert torch.allclose(adaptive_eta(holes), adaptive_eta(rewards), rtol=1e-6)


def test_the_temperature_spends_log_2() -> None:
    rewards = groups()
    found = adaptive_eta(rewards).flatten().tolist()
    assert found == pytest.approx([methods.adaptive_eta(row) for row in rewards.numpy()], rel=1e-6)


def test_where_nothing_can_be_spent_the_cap_is_taken_and_advantages_stay_finite() -> None:
    rewards = torch.tensor([[1.0] * 8, [0.0] * 4 + [1.0] * 4, [0.0] * 7 + [1.0]])
    eta = adaptive_eta(rewards)
    assert float(eta[0]) == ETA_CAP
    found = entropic_advantages(rewards, eta)
    assert torch.isfinite(found).all()
    assert found[0].tolist() == [0.0] * 8
    assert found[1, :4].tolist() == pytest.approx([-1.0] * 4)  # as in the theory's TT4


def test_the_gradient_of_a_large_group_is_that_of_the_entropic_utility() -> None:
    state = make_state(0.6, 0.3, 4.7)
    base = Mixture.of_state(make_state(0.5, 0.0, 5.0).detach().numpy())
    reward = NewMembership(base, np.asarray(1.0))
    source = np.random.default_rng(3)
    old = source.random((40, 2000)) < 0.6
    x = np.where(old, 0.3, 4.7) + source.standard_normal(old.shape)
    eta = torch.full((40, 1), 1.5, dtype=torch.float64)
    advantages = entropic_advantages(torch.tensor(reward(x)), eta)
    slopes = np.stack(
        [
            slope(-(advantage * log_density(state, torch.tensor(row))).mean(), state)
            for advantage, row in zip(advantages, x, strict=True)
        ]
    )
    exact = Entropic(reward, np.asarray(1.5), base, np.asarray(0.0)).gradient(
        state.detach().numpy()
    )
    error = slopes.std(axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(slopes.mean(axis=0) - exact) < 4 * error).all()


def test_the_penalty_has_the_gradient_of_reverse_kl() -> None:
    logits = groups(1, 1, 6)[0].requires_grad_()
    start = groups(2, 1, 6)[0].log_softmax(-1)
    logs = logits.log_softmax(-1)
    fixed = logs.detach()
    pull = kl_advantages(fixed, start, torch.ones(6), 0.7)
    (found,) = torch.autograd.grad(-(fixed.exp() * pull * logs).sum(), logits, retain_graph=True)
    (exact,) = torch.autograd.grad(0.7 * (logs.exp() * (logs - start)).sum(), logits)
    assert torch.allclose(found, exact, atol=1e-10)


def test_tokens_that_are_padding_count_for_nothing() -> None:
    logs, before = torch.tensor([[1.0, 9.0]]), torch.tensor([[0.0, 0.0]])
    assert kl_advantages(logs, before, torch.tensor([[1.0, 0.0]]), 1.0).tolist() == [[0.0, 0.0]]


def test_options_that_make_no_sense() -> None:
    for options in ({"eta": 0.0}, {"strength": -1.0}):
        with pytest.raises(UsageError):
            TTTDiscover(**options)
