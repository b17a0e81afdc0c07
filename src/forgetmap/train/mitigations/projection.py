"""Gradient projection: no step that raises the loss on old examples, to first order.

After backward, with g the gradient of the new loss (and of penalties) and h that of the
cross-entropy on a batch of old examples,

    g <- g - (g.h / h.h) h    if g.h < 0,    else g stays

(A-GEM, Chaudhry et al. 2019, arXiv 1812.00420.) The result is orthogonal to h. It is done once per
optimizer step: after all micro-batches have been accumulated and averaged over processes, and after
clipping. The order of clipping and projection does not change the direction, as projection is
linear in g and independent of the length of h; and it never lengthens g, so the clipped norm still
holds. The update of the optimizer (Adam's momentum and scaling) may still disagree with h. A step
costs one forward and backward pass of old examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.errors import ConvergenceError
from forgetmap.train.examples import ExampleSource
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.kl import answered
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import ExampleOrder, collate, predict


@dataclass(frozen=True)
class GradientProjection(Mitigation):
    """Project the gradient if it would raise the old loss.

    Attributes:
        examples: old prompts; those without completions get answers of the start model.
        batch_size: old examples per optimizer step and process.
        max_tokens: maximum length of an answer of the start model.
        temperature: sampling temperature of these answers.
        eos: end given completions with the end-of-sequence token.
        seed: random seed of answers and order.
    """

    kind: ClassVar[str] = "gradient_projection"

    examples: ExampleSource
    batch_size: int = 16
    max_tokens: int = 32
    temperature: float = 1.0
    eos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        base.check_not_negative(temperature=self.temperature)
        base.check_above_zero(batch_size=self.batch_size, max_tokens=self.max_tokens)

    def apply(self, run: Protection) -> None:
        """Add a hook before each optimizer step."""
        examples = answered(
            run, run.read(self.examples, eos=self.eos), max_tokens=self.max_tokens,
            temperature=self.temperature, seed=self.seed,
        )  # fmt: skip
        order = ExampleOrder(len(examples), self.batch_size, self.seed)

        def hook(model: Any) -> None:
            chosen = order.at(run.step, run.rank, run.processes)
            batch = collate([examples[at] for at in chosen], run.device)
            with run.trainer.compute_loss_context_manager():
                loss = torch.nn.functional.cross_entropy(predict(model, batch), batch.targets)
            weights = [weight for weight in model.parameters() if weight.grad is not None]
            old = torch.autograd.grad(loss, weights, allow_unused=True)
            known = [
                (weight, _over_processes(slope, run))
                for weight, slope in zip(weights, old, strict=True)
                if slope is not None
            ]
            cosine = project([weight.grad for weight, _ in known], [slope for _, slope in known])
            if not torch.isfinite(cosine):
                raise ConvergenceError(
                    f"the gradients are not finite at step {run.step}",
                    hint="lower the learning rate; the model has probably diverged.",
                )
            run.record("gradient_projection/old_loss", loss)
            run.record("gradient_projection/cosine", cosine)
            run.record("gradient_projection/conflict", (cosine < 0).float())

        run.add_gradient_hook(hook)


def _over_processes(slope: torch.Tensor, run: Protection) -> torch.Tensor:
    if run.processes == 1:
        return slope
    mean: torch.Tensor = run.trainer.accelerator.reduce(slope, reduction="mean")
    return mean


def project(new: list[torch.Tensor], old: list[torch.Tensor]) -> torch.Tensor:
    """Remove the part of `new` that is opposed to `old`, in place.

    Returns:
        The cosine between the two before the projection; negative if they disagreed.
    """
    dot = torch.stack([(one * other).sum() for one, other in zip(new, old, strict=True)]).sum()
    size = torch.stack([other.square().sum() for other in old]).sum()
    length = torch.stack([one.square().sum() for one in new]).sum()
    if dot < 0:
        torch._foreach_add_(new, torch._foreach_mul(old, -dot / size))  # noqa: SLF001
    return dot / (size * length).sqrt().clamp(min=torch.finfo(dot.dtype).tiny)
