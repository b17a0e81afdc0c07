"""Changes without the smallest and the largest."""

from __future__ import annotations

import torch

from forgetmap.merge.method import ManyValues, PerModel, SharePerModel, merge_method
from forgetmap.merge.methods.changes import Change, Thin, Thinning, merged_changes
from forgetmap.merge.methods.selection import largest
from forgetmap.merge.stretches import Step, Values

PAPER = "Davari and Belilovsky 2023, Model Breadcrumbs, arXiv:2312.06795"


@merge_method(
    "breadcrumbs", says="changes without their smallest and largest values, added up", paper=PAPER
)
def breadcrumbs(
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    density: SharePerModel = (1.0,),
    gamma: SharePerModel = (0.01,),
    normalize: bool = False,
    lambda_: float = 1.0,
) -> Step:
    """Leaves out the share `gamma` of largest values, and of small ones until `density` stay.

    The share that stays comes first: with `density` 1 nothing is left out.
    """
    thin = _middle(density, gamma)
    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=thin
    )


@merge_method(
    "breadcrumbs_ties",
    says="changes without their smallest and largest values, merged where the signs agree",
    paper=PAPER,
)
def breadcrumbs_ties(
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    density: SharePerModel = (1.0,),
    gamma: SharePerModel = (0.01,),
    normalize: bool = False,
    lambda_: float = 1.0,
) -> Step:
    """As `breadcrumbs`, but with the election of `ties`."""
    thin = _middle(density, gamma)
    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=thin, elect=True
    )


def _middle(density: tuple[float, ...], gamma: tuple[float, ...]) -> Thinning:
    def thin(place: int, change: Change) -> Thin:
        count = len(change)
        stay = int(density[place] * count)
        top = min(int(gamma[place] * count), count - stay)
        # Of the largest `stay + top` values the largest `top` go too.
        large, too_large = largest(change, stay + top), largest(change, top)

        def thinned(part: torch.Tensor, stretch: slice) -> torch.Tensor:
            start = stretch.start
            return part.mul_(large.mask(part, start) & ~too_large.mask(part, start))

        return thinned

    return thin
