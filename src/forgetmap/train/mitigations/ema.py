"""Averages of weights: over training (EMA), and between start and end (WiSE-FT).

    EMA       v <- d v + (1 - d) w after optimizer step t, with d = min(decay, (1 + t) / (10 + t))
    WiSE-FT   w <- start + alpha (w - start) at the end    (Wortsman et al. 2022, arXiv 2109.01903)

Both put their weights into the model when training ends, after the last checkpoint was written and
after `load_best_model_at_end`: `trainer.save_model()` saves them. Neither needs extra passes.
(TRL's `BEMACallback` writes a bias-corrected average to a separate folder instead.) A checkpoint
does not contain the average: a resumed training starts a new one, with the weights of the
checkpoint. Interpolating all weights of a LoRA adapter would not interpolate the model, as its
change is the product B A: there WiSE-FT scales only B, which is exact for adapters that start at B
= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.errors import UsageError
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.l2sp import trained_weights
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class EMAWeights(Mitigation):
    """Use the moving average of the weights at the end.

    Attributes:
        decay: share of the average that is kept at each step.
    """

    kind: ClassVar[str] = "ema_weights"

    decay: float = 0.99

    def __post_init__(self) -> None:
        base.check_below_one(decay=self.decay)

    def apply(self, run: Protection) -> None:
        """Update the average after each step, and put it into the model at the end."""
        from transformers import TrainerCallback

        average = trained_weights(run.model)
        decay = self.decay

        class Averaging(TrainerCallback):  # type: ignore[misc]
            """Updates the average."""

            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
                if state.global_step:  # resumed: checkpoints have no average, so start a new one
                    blend(average, run.model, 1.0)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
                step = state.global_step
                kept = min(decay, (1 + step) / (10 + step))
                blend(average, run.model, 1 - kept)

        run.trainer.add_callback(Averaging())
        run.add_ending(lambda: put(average, run.model))


@dataclass(frozen=True)
class WiSEFT(Mitigation):
    """Interpolate between start and trained weights at the end.

    Attributes:
        alpha: 0 is the start, 1 the trained model.
    """

    kind: ClassVar[str] = "wise_ft"

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise UsageError(f"alpha is {self.alpha}", hint="use a value from 0 to 1.")

    def apply(self, run: Protection) -> None:
        """Store the start weights, and interpolate at the end."""
        start = {
            name: weight
            for name, weight in trained_weights(run.model).items()
            if "lora_A" not in name
        }

        def interpolate() -> None:
            between = {name: weight.clone() for name, weight in start.items()}
            blend(between, run.model, self.alpha)
            put(between, run.model)

        run.add_ending(interpolate)


@torch.no_grad()
def blend(average: dict[str, torch.Tensor], model: Any, share: float) -> None:
    """Move the average by this share toward the model."""
    for name, weight in model.named_parameters():
        if name in average:
            average[name].lerp_(weight.detach().to(average[name].device), share)


@torch.no_grad()
def put(weights: dict[str, torch.Tensor], model: Any) -> None:
    """Put weights into the model."""
    for name, weight in model.named_parameters():
        if name in weights:
            weight.copy_(weights[name])
