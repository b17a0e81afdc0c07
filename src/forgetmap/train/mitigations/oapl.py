"""OAPL: off-policy regression on advantages, without importance weights or clipping.

For a group of G completions y_i of a lagged policy, with rewards r_i,

    V = t1 log mean_i exp(r_i / t1)
    loss = mean_i ( t2 (log pi(y_i) - log pi_lag(y_i)) - (r_i - V) )^2

With t1 = t2 = t its minimum is pi ~ pi_lag exp(r / t): the policy that maximises reward minus t
times KL to the lagged one. Each refresh multiplies the odds of an old mode by exp(-gap / t), where
gap is the extra reward of new behaviour (docs/theory.md, OAPL): high temperatures and few refreshes
retain more. Follows the public description in NeMo-RL (pull request 3825), where the defaults are
t1 = 1 and t2 = 0.001.

The groups are those of TRL's GRPOTrainer, whose loss this replaces; its `beta` and `epsilon` then
have no effect. The policy is lagged by `steps_per_generation * num_iterations` of its config,
divided by the accumulation steps. A step costs as much as in GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.groups import check_grpo, replace_advantages, token_log_probs
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class OAPL(Mitigation):
    """The objective of OAPL in TRL's GRPOTrainer.

    Attributes:
        t1: temperature of the soft maximum V.
        t2: temperature of the regression.
    """

    kind: ClassVar[str] = "oapl"

    t1: float = 1.0
    t2: float = 1.0

    def __post_init__(self) -> None:
        base.check_above_zero(t1=self.t1, t2=self.t2)

    def apply(self, run: Protection) -> None:
        """Replace the advantages and the loss of the trainer."""
        trainer = run.trainer
        check_grpo(trainer, "OAPL")
        replace_advantages(trainer, lambda rewards: soft_advantages(rewards, self.t1))

        def compute_loss(model: Any, batch: dict[str, Any]) -> torch.Tensor:
            logs = token_log_probs(trainer, model, batch)
            lagged = batch.get("old_per_token_logps")
            mask = batch["completion_mask"] * batch.get("tool_mask", 1)
            log_q = (logs * mask).sum(-1)
            log_lag = log_q.detach() if lagged is None else (lagged * mask).sum(-1)
            losses = regression_losses(log_q, log_lag, batch["advantages"], self.t2)
            run.record("oapl/log_ratio", (log_q.detach() - log_lag).mean())
            steps = trainer.current_gradient_accumulation_steps if trainer.model.training else 1
            return losses.mean() / steps

        trainer._compute_loss = compute_loss  # noqa: SLF001


def soft_advantages(rewards: torch.Tensor, t1: float) -> torch.Tensor:
    """Return rewards minus the soft maximum of their group; missing ones (NaN) are ignored."""
    known = ~torch.isnan(rewards)
    scaled = torch.where(known, rewards / t1, torch.full_like(rewards, float("-inf")))
    count = known.sum(-1, keepdim=True).clamp(min=1).to(rewards.dtype)
    return rewards - t1 * (scaled.logsumexp(-1, keepdim=True) - count.log())


def regression_losses(
    log_q: torch.Tensor, log_lagged: torch.Tensor, advantages: torch.Tensor, t2: float
) -> torch.Tensor:
    """Return the squared residual of each completion."""
    return (t2 * (log_q - log_lagged) - advantages).square()
