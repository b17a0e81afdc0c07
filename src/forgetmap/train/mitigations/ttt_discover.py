"""TTT-Discover: the entropic utility of a group, with a KL penalty to the start.

The objective is log E[exp(eta R)] - strength KL(model || start). For a group of K rewards

    w_i = exp(eta r_i) / mean over j != i of exp(eta r_j),    advantage of i: w_i - 1

with eta either given or chosen for each group so that KL(softmax(eta r) || uniform) = log 2; if no
eta reaches that, a cap is used. To the advantage of token t is added

    strength ( mean over tokens of d - d_t ),    d_t = log pi(y_t) - log pi_start(y_t)

as in the public code (test-time-training/discover: `compute_advantages`, `incorporate_kl_penalty`;
its default strength is 0). It considers each token alone, not the following ones. Without strength
the mass of the old mode goes to 0; with it there is a floor that no reward changes (docs/theory.md,
TTT-Discover).

The groups are those of TRL's GRPOTrainer, whose advantages this replaces and whose loss it keeps. A
strength above 0 needs a start model (start.py: a frozen copy, or the adapter switched off), and two
more passes without gradient per generated batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.groups import (
    check_grpo,
    plain_log_probs,
    replace_advantages,
    token_log_probs,
)
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.start import StartModel

ETA_CAP = 1e6
BUDGET = math.log(2)
HALVINGS = 80


@dataclass(frozen=True)
class TTTDiscover(Mitigation):
    """The objective of TTT-Discover in TRL's GRPOTrainer.

    Attributes:
        eta: inverse temperature of the utility; by default chosen for log 2 nats in each group.
        strength: strength of the KL penalty to the start.
    """

    kind: ClassVar[str] = "ttt_discover"

    eta: float | None = None
    strength: float = 0.1

    def __post_init__(self) -> None:
        base.check_above_zero(eta=self.eta)
        base.check_not_negative(strength=self.strength)

    def apply(self, run: Protection) -> None:
        """Replace the advantages of the trainer."""
        trainer = run.trainer
        check_grpo(trainer, "TTT-Discover")
        start = StartModel(run.model) if self.strength else None

        def advantages_of(rewards: torch.Tensor) -> torch.Tensor:
            eta = (
                adaptive_eta(rewards)
                if self.eta is None
                else torch.full_like(rewards[:, :1], self.eta)
            )
            run.record("ttt_discover/eta", eta.median())
            return entropic_advantages(rewards, eta)

        def adjust(batch: dict[str, Any]) -> None:
            if start is None:
                return
            with torch.no_grad():
                logs = token_log_probs(trainer, trainer.model, batch)
            with start.use() as model:
                before = plain_log_probs(trainer, model, batch)
            mask = batch["completion_mask"]
            run.record("ttt_discover/kl", ((logs - before) * mask).sum() / mask.sum())
            pull = kl_advantages(logs, before, mask, self.strength)
            batch["advantages"] = batch["advantages"].unsqueeze(1) + pull

        replace_advantages(trainer, advantages_of, adjust)


def entropic_advantages(rewards: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
    """Return exp(eta r_i) over the mean of the others', minus 1, without missing rewards (NaN)."""
    known = ~torch.isnan(rewards)
    best = rewards.masked_fill(~known, float("-inf")).amax(-1, keepdim=True)
    tilts = torch.where(known, (eta * (rewards - best)).exp(), torch.zeros_like(rewards))
    others = (tilts.sum(-1, keepdim=True) - tilts) / (known.sum(-1, keepdim=True) - 1).clamp(min=1)
    smallest = torch.finfo(rewards.dtype).tiny  # all others may be 0 if eta is at its cap
    advantages = tilts / others.clamp(min=smallest**0.5) - 1
    return torch.where(known, advantages, torch.zeros_like(rewards))


def adaptive_eta(rewards: torch.Tensor, budget: float = BUDGET) -> torch.Tensor:
    """Return the eta at which each tilted group is `budget` nats from uniform: (groups, 1).

    The cap if there is none, as in groups of equal rewards.
    """
    values = torch.nan_to_num(rewards, nan=float("-inf")).double()
    low = torch.zeros_like(values[:, :1])
    high = torch.full_like(low, ETA_CAP)
    reaches = _spent(values, high) >= budget
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = _spent(values, middle) < budget
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return torch.where(reaches, high, torch.full_like(high, ETA_CAP)).to(rewards.dtype)


def _spent(values: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
    """Return KL(softmax(eta r) || uniform) of each group."""
    known = torch.isfinite(values)
    gaps = torch.where(known, values - values.amax(-1, keepdim=True), torch.zeros_like(values))
    logs = (eta * gaps).masked_fill(~known, float("-inf")).log_softmax(-1)
    shares = logs.exp()
    entropy = -torch.where(shares > 0, shares * logs, torch.zeros_like(logs)).sum(-1, keepdim=True)
    return known.sum(-1, keepdim=True).to(values.dtype).log() - entropy


def kl_advantages(
    logs: torch.Tensor, before: torch.Tensor, mask: torch.Tensor, strength: float
) -> torch.Tensor:
    """Return the addition of the KL penalty to the advantage of each token."""
    moved = (logs - before) * mask
    mean = moved.sum() / mask.sum().clamp(min=1)
    return strength * (mean - moved) * mask
