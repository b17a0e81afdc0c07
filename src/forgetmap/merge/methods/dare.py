"""Drop changes at random and rescale the rest."""

from __future__ import annotations

import torch

from forgetmap.merge.method import Draws, PerModel, SharePerModel, Tensors, merge_method
from forgetmap.merge.methods.changes import Thinning, merged_changes

PAPER = "Yu et al. 2023, Language models are super Mario, arXiv:2311.03099"


@merge_method(
    "dare_linear", says="changes dropped at random, the rest enlarged and added up", paper=PAPER
)
def dare_linear(  # noqa: PLR0913
    tensors: Tensors,
    base: torch.Tensor,
    *,
    weight: PerModel,
    draws: Draws,
    density: SharePerModel = (1.0,),
    normalize: bool = False,
    lambda_: float = 1.0,
    rescale: bool = True,
    keep_norm: bool = False,
) -> torch.Tensor:
    """Each value of a change stays with probability `density`, and is then divided by it.

    With `keep_norm` what stays is enlarged so that the sum of magnitudes is what it was, rather
    than only in the mean over all draws.
    """
    thin = _dropped(density, draws, rescale=rescale, keep_norm=keep_norm)
    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=thin
    )


@merge_method(
    "dare_ties",
    says="changes dropped at random, the rest enlarged and merged where the signs agree",
    paper=PAPER,
)
def dare_ties(  # noqa: PLR0913
    tensors: Tensors,
    base: torch.Tensor,
    *,
    weight: PerModel,
    draws: Draws,
    density: SharePerModel = (1.0,),
    normalize: bool = False,
    lambda_: float = 1.0,
    rescale: bool = True,
    keep_norm: bool = False,
) -> torch.Tensor:
    """As `dare_linear`, but with the election of `ties`."""
    thin = _dropped(density, draws, rescale=rescale, keep_norm=keep_norm)
    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=thin, elect=True
    )


def _dropped(
    density: tuple[float, ...], draws: Draws, *, rescale: bool, keep_norm: bool
) -> Thinning:
    def thin(place: int, change: torch.Tensor) -> torch.Tensor:
        share = density[place]
        if share == 1:
            return change
        before = _size(change) if keep_norm else 0.0
        change.mul_(draws.uniform(place, change.shape) < share)
        if not rescale:
            return change
        left = _size(change) if keep_norm else share
        return change.mul_((before if keep_norm else 1.0) / left) if left else change

    return thin


def _size(change: torch.Tensor) -> float:
    return change.abs().sum(dtype=torch.float64).item()
