"""Drop changes at random and rescale the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from forgetmap.merge.method import Draws, ManyValues, PerModel, SharePerModel, merge_method
from forgetmap.merge.methods.changes import Change, Thin, Thinning, merged_changes
from forgetmap.merge.stretches import Step, Values, stretches

PAPER = "Yu et al. 2023, Language models are super Mario, arXiv:2311.03099"


@merge_method(
    "dare_linear", says="changes dropped at random, the rest enlarged and added up", paper=PAPER
)
def dare_linear(  # noqa: PLR0913
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    draws: Draws,
    density: SharePerModel = (1.0,),
    normalize: bool = False,
    lambda_: float = 1.0,
    rescale: bool = True,
    keep_norm: bool = False,
) -> Step:
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
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    draws: Draws,
    density: SharePerModel = (1.0,),
    normalize: bool = False,
    lambda_: float = 1.0,
    rescale: bool = True,
    keep_norm: bool = False,
) -> Step:
    """As `dare_linear`, but with the election of `ties`."""
    thin = _dropped(density, draws, rescale=rescale, keep_norm=keep_norm)
    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=thin, elect=True
    )


def _dropped(
    density: tuple[float, ...], draws: Draws, *, rescale: bool, keep_norm: bool
) -> Thinning:
    def thin(place: int, change: Change) -> Thin:
        share = density[place]
        if share == 1:
            return lambda part, _: part
        factor = 1 / share if share and rescale else 1.0
        if rescale and keep_norm:
            mask = _mask(draws, place, share)
            left = _size(change[cut].mul_(mask(cut)) for cut in stretches(len(change)))
            all_of_it = _size(change[cut] for cut in stretches(len(change)))
            factor = all_of_it / left if left else 1.0
        mask = _mask(draws, place, share)

        def thinned(part: torch.Tensor, stretch: slice) -> torch.Tensor:
            part.mul_(mask(stretch))
            return part.mul_(factor) if rescale else part

        return thinned

    return thin


def _mask(draws: Draws, place: int, share: float) -> Step:
    """True with probability `share`; stretches have to be asked for in turn."""
    source = draws.generator(place)
    return lambda stretch: torch.rand(stretch.stop - stretch.start, generator=source) < share


def _size(parts: Iterable[torch.Tensor]) -> float:
    return math.fsum(part.abs().sum(dtype=torch.float64).item() for part in parts)
