"""The effect of the KL term of GRPO in expectation."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.needs_torch


def test_the_slope_of_its_kl_term_is_that_of_forward_kl() -> None:
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(8, generator=generator, dtype=torch.float64, requires_grad=True)
    start = torch.randn(8, generator=generator, dtype=torch.float64).log_softmax(-1)
    logs = logits.log_softmax(-1)
    k3 = (start - logs).exp() - (start - logs) - 1  # as in TRL's GRPOTrainer
    sampled = logs.detach().exp()
    (found,) = torch.autograd.grad((sampled * k3).sum(), logits, retain_graph=True)
    forward, reverse = (start.exp() * (start - logs)).sum(), (logs.exp() * (logs - start)).sum()
    (of_forward,) = torch.autograd.grad(forward, logits, retain_graph=True)
    (of_reverse,) = torch.autograd.grad(reverse, logits, retain_graph=True)
    assert torch.allclose(found, of_forward)
    assert not torch.allclose(found, of_reverse, atol=0.05)
    assert float((sampled * k3).sum().detach()) == pytest.approx(float(reverse.detach()))
