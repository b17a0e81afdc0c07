"""GRPO with a KL penalty to the start (TRL).

    args = GRPOWithKL(beta=0.04).config(output_dir="out", num_generations=8)
    trainer = GRPOTrainer(model, reward_funcs=..., args=args, train_dataset=rows)

TRL's loss adds beta times k3 = s/q - 1 - log(s/q) at each token of the model's own completions (s
the start, q the model). Its value is an estimate of the reverse KL(q || s). Its gradient is not
that of the reverse KL: on samples of q, E_q[grad k3] = E_q[(1 - s/q) grad log q] =
-E_s[grad log q], the gradient of the *forward* KL(s || q) at these positions. TRL's default is
beta = 0: no penalty, and no start model in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from forgetmap._lazy import require
from forgetmap.errors import UsageError
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.groups import check_grpo
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class GRPOWithKL(Mitigation):
    """A GRPO config with a KL penalty; `protect` checks that the trainer uses it.

    Attributes:
        beta: weight of the KL penalty per token.
    """

    kind: ClassVar[str] = "grpo_with_kl"

    beta: float = 0.04

    def __post_init__(self) -> None:
        base.check_above_zero(beta=self.beta)

    def config(self, output_dir: str, **options: Any) -> Any:
        """Return TRL's `GRPOConfig`, with any further options."""
        return require("trl", "GRPO").GRPOConfig(output_dir=output_dir, beta=self.beta, **options)

    def apply(self, run: Protection) -> None:
        """Check the trainer; TRL creates the start model when the trainer is built.

        Raises:
            UsageError: the trainer was built without the penalty.
        """
        check_grpo(run.trainer, "GRPO")
        if run.trainer.beta != self.beta:
            raise UsageError(
                f"the trainer has beta {run.trainer.beta:g}, not {self.beta:g}",
                hint=f"build it with args=GRPOWithKL(beta={self.beta:g}).config(output_dir).",
            )
