"""Trim, elect sign, merge."""

from __future__ import annotations

import torch

from forgetmap.merge.method import PerModel, SharePerModel, Tensors, merge_method
from forgetmap.merge.methods.changes import kept, largest, merged_changes


@merge_method(
    "ties",
    says="the largest changes of each model, where the models agree on the sign",
    paper="Yadav et al. 2023, TIES-Merging, arXiv:2306.01708",
)
def ties(
    tensors: Tensors,
    base: torch.Tensor,
    *,
    weight: PerModel,
    density: SharePerModel = (1.0,),
    normalize: bool = True,
    lambda_: float = 1.0,
) -> torch.Tensor:
    """Keep the share `density` of each change, the largest; then the mean of what agrees in sign.

    The sign of a position is that of the weighted sum; `normalize` off gives the sum.
    """

    def trimmed(place: int, change: torch.Tensor) -> torch.Tensor:
        return change.mul_(largest(change, kept(change.numel(), density[place])))

    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=trimmed, elect=True
    )
