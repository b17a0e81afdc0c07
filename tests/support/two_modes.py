"""The two-mode model of forgetmap.theory in torch, as a reference for losses of trainers."""

from __future__ import annotations

import math

import numpy as np
import torch

GRID = torch.linspace(-16.0, 24.0, 8001, dtype=torch.float64)
STEP = float(GRID[1] - GRID[0])


def normal(x: torch.Tensor, mean: torch.Tensor | float) -> torch.Tensor:
    return -0.5 * (x - mean) ** 2 - 0.5 * math.log(2 * math.pi)


def log_density(state: torch.Tensor, x: torch.Tensor = GRID) -> torch.Tensor:
    """Return the log density of a mixture with state (logit of old weight, old mean, new mean)."""
    return torch.logaddexp(
        torch.nn.functional.logsigmoid(state[0]) + normal(x, state[1]),
        torch.nn.functional.logsigmoid(-state[0]) + normal(x, state[2]),
    )


def slope(loss: torch.Tensor, state: torch.Tensor) -> np.ndarray:
    (found,) = torch.autograd.grad(loss, state)
    return np.asarray(found.detach().numpy())


def make_state(weight: float, old: float, new: float) -> torch.Tensor:
    odds = math.log(weight / (1 - weight))
    return torch.tensor([odds, old, new], dtype=torch.float64, requires_grad=True)
