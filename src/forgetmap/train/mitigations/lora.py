"""LoRA: training of a small adapter with frozen weights (PEFT).

The model can change in fewer directions, so it often forgets less and scores lower on the new task;
the rank controls this trade-off. TRL's trainers take the config themselves:

    SFTTrainer(model, ..., peft_config=LoRA(rank=16).peft_config())

For a plain `Trainer`, wrap the model first, `Trainer(LoRA(rank=16).wrap(model), ...)`, or pass LoRA
to `protect` as the first mitigation. Penalties that compare with the start weights then cover only
the adapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from forgetmap._lazy import require
from forgetmap.errors import UsageError
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class LoRA(Mitigation):
    """Train a low-rank adapter.

    Attributes:
        rank: rank of each change.
        alpha: the change is scaled by alpha / rank.
        dropout: dropout on the inputs of the adapter.
        targets: names of layers, or `all-linear`.
        rslora: scale by alpha / sqrt(rank) instead.
    """

    kind: ClassVar[str] = "lora"

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: str | tuple[str, ...] = "all-linear"
    rslora: bool = False

    def __post_init__(self) -> None:
        base.check_above_zero(rank=self.rank, alpha=self.alpha)
        base.check_not_negative(dropout=self.dropout)

    def peft_config(self) -> Any:
        """Return a config for TRL's `peft_config` or PEFT's `get_peft_model`."""
        peft = require("peft", "LoRA")
        return peft.LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=self.targets if isinstance(self.targets, str) else list(self.targets),
            use_rslora=self.rslora,
            task_type="CAUSAL_LM",
        )

    def wrap(self, model: Any) -> Any:
        """Return a model of which only the adapter is trained."""
        return require("peft", "LoRA").get_peft_model(model, self.peft_config())

    def apply(self, run: Protection) -> None:
        """Wrap the model of a plain `Trainer`.

        Raises:
            UsageError: it is not the first mitigation, an adapter or optimizer already exists, or
                the trainer wraps models itself.
        """
        if run.mitigations or run.penalties:
            raise UsageError("LoRA must be the first mitigation", hint="pass it first.")
        if hasattr(run.model, "peft_config"):
            raise UsageError("the model already has an adapter", hint="remove LoRA.")
        trainer = run.trainer
        if type(trainer).__module__.startswith("trl."):
            raise UsageError(
                "TRL's trainers wrap models themselves",
                hint=f"create it with {type(trainer).__name__}(..., "
                f"peft_config=LoRA(rank={self.rank}).peft_config()).",
            )
        if trainer.optimizer is not None:
            raise UsageError(
                "the optimizer was created before the adapter was added",
                hint="wrap the model first: Trainer(LoRA(...).wrap(model), ...).",
            )
        trainer.model = trainer.model_wrapped = self.wrap(trainer.model)
