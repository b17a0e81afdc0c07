"""What methods that work on changes share: a change is a model's tensor minus the base's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from forgetmap.merge.method import ManyValues, Tensors
from forgetmap.merge.methods.averaging import shares
from forgetmap.merge.stretches import Step, Values


@dataclass(frozen=True, slots=True)
class Change:
    """What a model changed, a stretch at a time."""

    tensor: Values
    base: Values

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.base)

    def __getitem__(self, stretch: slice) -> torch.Tensor:
        """A part of it."""
        return self.tensor[stretch] - self.base[stretch]


Thin = Callable[[torch.Tensor, slice], torch.Tensor]
"""Sets a part of a stretch of a change to zero, in place."""
Thinning = Callable[[int, Change], Thin]
"""Looks at the whole change of the model at a place and decides what to set to zero."""


def merged_changes(
    tensors: ManyValues,
    base: Values,
    *,
    weight: Sequence[float],
    normalize: bool,
    scale: float,
    thin: Thinning | None = None,
    elect: bool = False,
) -> Step:
    """The base plus `scale` times the changes: thinned out, weighted, and added up.

    Args:
        tensors: of the models.
        base: of the base.
        weight: of each model.
        normalize: divide by the sum of the weights; after an election, of those that count.
        scale: of the sum.
        thin: what to leave out of each change.
        elect: at every position count only changes of the sign that outweighs the other.
    """
    used = [place for place, each in enumerate(weight) if each]
    if not used or scale == 0:
        return base.__getitem__
    weights = [weight[place] for place in used]
    if normalize and not elect:
        weights = shares(weights)
    thins = [thin(place, Change(tensors[place], base)) for place in used] if thin else []

    def step(stretch: slice) -> torch.Tensor:
        start = base[stretch]
        own = [tensors[place][stretch] for place in used]
        changes = [tensor - start for tensor in own]
        for each, change in zip(thins, changes, strict=False):
            each(change, stretch)
        if elect:
            total = _elected(changes, weights, normalize=normalize)
        else:
            total = _summed(changes, weights)
        return _added(start, total.mul_(scale), own)

    return step


def _summed(changes: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    total = torch.zeros_like(changes[0])
    for change, weight in zip(changes, weights, strict=True):
        total.add_(change, alpha=weight)
    return total


def _elected(
    changes: Sequence[torch.Tensor], weights: Sequence[float], *, normalize: bool
) -> torch.Tensor:
    """The sum of the changes whose sign is that of the sum of all; nothing where that is 0.

    The changes are used up.
    """
    sign = torch.zeros_like(changes[0])
    for change, weight in zip(changes, weights, strict=True):
        # Not add_(..., alpha=weight): that rounds once for both steps, and of votes that cancel
        # leaves a rest whose sign means nothing.
        sign += change * weight
    sign.sign_()
    total, counted = torch.zeros_like(sign), torch.zeros_like(sign)
    for change, weight in zip(changes, weights, strict=True):
        vote = change * sign
        agrees = vote > 0 if weight > 0 else vote < 0
        total.add_(change.mul_(agrees), alpha=weight)
        counted.add_(agrees, alpha=weight)
    if normalize:
        # Nothing counts where nothing agrees; there the sum is 0 as well.
        total.div_(counted.masked_fill_(counted == 0, 1.0))
    return total


def _added(base: torch.Tensor, change: torch.Tensor, tensors: Tensors) -> torch.Tensor:
    """The base plus a change.

    Where the change is just that of one model, its own value is taken: b + (x - b) is not always x
    in floating point, and a model that is merged with weight 1 has to come out bit for bit.
    """
    result = base + change
    for tensor in tensors:
        result = torch.where(change == tensor - base, tensor, result)
    return result
