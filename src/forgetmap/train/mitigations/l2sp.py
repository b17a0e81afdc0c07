"""L2-SP: a penalty on the squared distance of trained weights from the start.

    penalty = 1/2 sum_i (w_i - w_i(start))^2

(Li, Grandvalet and Davoine 2018, arXiv 1802.01483.) It needs no data and no forward pass. The start
weights are stored once (with LoRA only those of the adapter, which start at no change).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.mitigation import Mitigation, Protection


@dataclass(frozen=True)
class L2SP(Mitigation):
    """Penalise the squared distance to the start weights.

    Attributes:
        weight: weight of half the squared distance.
    """

    kind: ClassVar[str] = "l2sp"

    weight: float = 0.01

    def __post_init__(self) -> None:
        base.check_not_negative(weight=self.weight)

    def apply(self, run: Protection) -> None:
        """Store the start weights, and add a penalty at each step."""
        start = trained_weights(run.model)

        def penalty(model: Any) -> torch.Tensor:
            return half_distance(model, start)

        run.add_penalty(self.kind, penalty, self.weight)


def trained_weights(model: Any) -> dict[str, torch.Tensor]:
    """Return copies of all trained weights."""
    return {
        name: weight.detach().clone()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }


def half_distance(
    model: Any, start: dict[str, torch.Tensor], scale: dict[str, torch.Tensor] | None = None
) -> torch.Tensor:
    """Return 1/2 sum of scale times (weight - start)^2 over the trained weights."""
    names = [name for name, _ in model.named_parameters() if name in start]
    weights = [weight for name, weight in model.named_parameters() if name in start]
    scales = None if scale is None else [scale[name] for name in names]
    total: torch.Tensor = _Spring.apply(  # type: ignore[no-untyped-call]
        [start[name] for name in names], scales, *weights
    )
    return total


class _Spring(torch.autograd.Function):
    """The half distance with its gradient in closed form: three calls for all weights."""

    @staticmethod
    def forward(
        ctx: Any,
        start: list[torch.Tensor],
        scales: list[torch.Tensor] | None,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        moved = torch._foreach_sub(weights, start)  # noqa: SLF001
        pulls = moved if scales is None else torch._foreach_mul(moved, scales)  # noqa: SLF001
        ctx.pulls = pulls
        energies = [(pull * move).sum() for pull, move in zip(pulls, moved, strict=True)]
        return 0.5 * torch.stack(energies).sum()

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[Any, ...]:
        return None, None, *torch._foreach_mul(ctx.pulls, slope)  # noqa: SLF001
