"""What methods that work on changes share: a change is a model's tensor minus the base's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from forgetmap.merge.method import Tensors
from forgetmap.merge.methods.averaging import shares

PIECE = 1 << 20
"""Values whose places are listed at once."""
Thinning = Callable[[int, torch.Tensor], torch.Tensor]
"""Sets a part of a change to zero: given the place of the model and its change."""


def merged_changes(
    tensors: Tensors,
    base: torch.Tensor,
    *,
    weight: Sequence[float],
    normalize: bool,
    scale: float,
    thin: Thinning | None = None,
    elect: bool = False,
) -> torch.Tensor:
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
        return base
    weights = [weight[place] for place in used]
    changes = [tensors[place] - base for place in used]
    if thin is not None:
        changes = [thin(place, change) for place, change in zip(used, changes, strict=True)]
    total = (_elected if elect else _summed)(changes, weights, normalize=normalize)
    del changes  # as large as the models
    return _added(base, total.mul_(scale), [tensors[place] for place in used])


def _summed(
    changes: Sequence[torch.Tensor], weights: Sequence[float], *, normalize: bool
) -> torch.Tensor:
    parts = shares(weights) if normalize else weights
    total = torch.zeros_like(changes[0])
    for change, part in zip(changes, parts, strict=True):
        total.add_(change, alpha=part)
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


def kept(count: int, share: float) -> int:
    """How many of `count` values a share is; rounded down, but never none of a share above 0."""
    return max(int(share * count), 1 if share > 0 else 0)


def largest(change: torch.Tensor, count: int) -> torch.Tensor:
    """True at the `count` positions of greatest magnitude; of equal ones the first are taken."""
    sizes = change.abs().flatten()
    if count >= sizes.numel():
        return torch.ones_like(change, dtype=torch.bool)
    if count <= 0:
        return torch.zeros_like(change, dtype=torch.bool)
    # Partitioning a copy needs neither the indices nor the time of a sort.
    values = sizes.cpu().numpy().copy()
    values.partition(values.size - count)
    limit = float(values[values.size - count])
    chosen = sizes > limit
    missing = count - int(chosen.sum())
    for start in range(0, sizes.numel(), PIECE):  # where most changes are 0, most are equal
        equal = (sizes[start : start + PIECE] == limit).nonzero().flatten()[:missing]
        chosen[start + equal] = True
        missing -= equal.numel()
        if not missing:
            break
    return chosen.reshape(change.shape)
