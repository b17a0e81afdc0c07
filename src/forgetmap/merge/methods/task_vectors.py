"""Task arithmetic and TIES, and the common code of methods on task vectors.

A task vector is a model's tensor minus the base's. Its largest values are found without sorting or
copying it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction, chunk_slices
from forgetmap.merge.method import (
    ChunkedTensors,
    PerModel,
    SharePerModel,
    Tensors,
    merge_method,
)
from forgetmap.merge.methods.averaging import shares

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

DIGIT = 16
"""Number of bits that one pass over all values distinguishes."""


@dataclass(frozen=True, slots=True)
class TaskVector:
    """The change of a model, chunk by chunk."""

    tensor: ChunkedTensor
    base: ChunkedTensor

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.base)

    def __getitem__(self, chunk: slice) -> torch.Tensor:
        """Return a part of it."""
        return self.tensor[chunk] - self.base[chunk]


PruneChunk = Callable[["torch.Tensor", slice], "torch.Tensor"]
"""Sets some values of a chunk of a task vector to zero, in place."""
Pruning = Callable[[int, TaskVector], PruneChunk]
"""Reads the whole task vector of the model at an index, and selects the values to set to zero."""


@merge_method(
    "task_arithmetic",
    summary="the base plus the weighted changes of the models",
    paper="Ilharco et al. 2022, Editing models with task arithmetic, arXiv:2212.04089",
    elementwise=True,
)
def task_arithmetic(
    tensors: ChunkedTensors,
    base: ChunkedTensor,
    *,
    weight: PerModel,
    normalize: bool = False,
    lambda_: float = 1.0,
) -> ChunkFunction:
    """Return base + lambda * sum of weight * (tensor - base); negative weights unlearn."""
    return merge_task_vectors(tensors, base, weight=weight, normalize=normalize, scale=lambda_)


@merge_method(
    "ties",
    summary="the largest changes of each model, where the models agree on the sign",
    paper="Yadav et al. 2023, TIES-Merging, arXiv:2306.01708",
)
def ties(
    tensors: ChunkedTensors,
    base: ChunkedTensor,
    *,
    weight: PerModel,
    density: SharePerModel = (1.0,),
    normalize: bool = True,
    lambda_: float = 1.0,
) -> ChunkFunction:
    """Keep the largest share `density` of each change; average the values that agree in sign.

    The sign of a position is that of the weighted sum; without `normalize` the values are summed.
    """

    def prune(index: int, change: TaskVector) -> PruneChunk:
        stay = largest_values(change, kept_count(len(change), density[index]))
        return lambda part, chunk: part.mul_(stay.mask(part, chunk.start))

    return merge_task_vectors(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, prune=prune, elect=True
    )


def merge_task_vectors(
    tensors: ChunkedTensors,
    base: ChunkedTensor,
    *,
    weight: Sequence[float],
    normalize: bool,
    scale: float,
    prune: Pruning | None = None,
    elect: bool = False,
) -> ChunkFunction:
    """Add `scale` times the pruned and weighted task vectors to the base.

    Args:
        tensors: tensors of the models.
        base: tensor of the base.
        weight: weight of each model.
        normalize: divide by the sum of the weights; after an election, of those that count.
        scale: factor of the sum.
        prune: selects the values to leave out of each task vector.
        elect: at every position count only changes of the prevailing sign.
    """
    used = [index for index, share in enumerate(weight) if share]
    if not used or scale == 0:
        return base.__getitem__
    weights = [weight[index] for index in used]
    if normalize and not elect:
        weights = shares(weights)
    prunings = [prune(index, TaskVector(tensors[index], base)) for index in used] if prune else []

    def merge_chunk(chunk: slice) -> torch.Tensor:
        start = base[chunk]
        own = [tensors[index][chunk] for index in used]
        changes = [tensor - start for tensor in own]
        for prune_chunk, change in zip(prunings, changes, strict=False):
            prune_chunk(change, chunk)
        if elect:
            total = _sum_elected(changes, weights, normalize=normalize)
        else:
            total = _sum(changes, weights)
        return _add(start, total.mul_(scale), own)

    return merge_chunk


def _sum(changes: Sequence[torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    total = torch.zeros_like(changes[0])
    for change, weight in zip(changes, weights, strict=True):
        total.add_(change, alpha=weight)
    return total


def _sum_elected(
    changes: Sequence[torch.Tensor], weights: Sequence[float], *, normalize: bool
) -> torch.Tensor:
    """Sum the changes whose sign is that of the sum of all; 0 if that is 0.

    The changes are modified in place.
    """
    sign = torch.zeros_like(changes[0])
    for change, weight in zip(changes, weights, strict=True):
        # Not add_(..., alpha=weight): that rounds once for both steps, and leaves a remainder with
        # a meaningless sign where votes cancel.
        sign += change * weight
    sign.sign_()
    total, counted = torch.zeros_like(sign), torch.zeros_like(sign)
    for change, weight in zip(changes, weights, strict=True):
        vote = change * sign
        agrees = vote > 0 if weight > 0 else vote < 0
        total.add_(change.mul_(agrees), alpha=weight)
        counted.add_(agrees, alpha=weight)
    if normalize:
        # No value counts if none agrees; the sum is 0 as well there.
        total.div_(counted.masked_fill_(counted == 0, 1.0))
    return total


def _add(base: torch.Tensor, change: torch.Tensor, tensors: Tensors) -> torch.Tensor:
    """Add a change to the base.

    If the change is that of one model, the value of the model is used: b + (x - b) is not always x
    in floating point, and a model merged with weight 1 must be unchanged bit for bit.
    """
    result = base + change
    for tensor in tensors:
        result = torch.where(change == tensor - base, tensor, result)
    return result


@dataclass(frozen=True, slots=True)
class MagnitudeMask:
    """Selected values of a tensor: those above a limit, and the first of those equal to it.

    Attributes:
        limit: a magnitude, as an integer of the same bits.
        before: index up to which values equal to the limit are selected.
    """

    limit: int
    before: int

    def mask(self, change: torch.Tensor, start: int) -> torch.Tensor:
        """Return true where a chunk that begins at `start` is selected."""
        sizes = _sizes(change)
        chosen = sizes > self.limit
        equal = max(self.before - start, 0)
        chosen[:equal] |= sizes[:equal] == self.limit
        return chosen


def kept_count(count: int, share: float) -> int:
    """Return the number of values of a share; rounded down, but at least one above share 0."""
    return max(int(share * count), 1 if share > 0 else 0)


def largest_values(change: TaskVector, count: int) -> MagnitudeMask:
    """Select the `count` values of greatest magnitude; of equal ones the first."""
    if count >= len(change):
        return MagnitudeMask(-1, 0)
    if count <= 0:
        return MagnitudeMask(torch.iinfo(_integer_type(change.base.dtype)).max, 0)
    limit, missing = _limit(change, count)
    before = 0
    for chunk in chunk_slices(len(change)):
        equal = (_sizes(change[chunk]) == limit).nonzero().flatten()[:missing]
        missing -= len(equal)
        if not missing:
            before = chunk.start + int(equal[-1]) + 1
            break
    return MagnitudeMask(limit, before)


def _limit(change: TaskVector, count: int) -> tuple[int, int]:
    """Return the magnitude at this rank, and the number of values equal to it within the rank.

    Digit by digit from the highest: values are counted by their next digit, among those that share
    the digits so far.
    """
    known, missing = 0, count
    for shift in range(8 * change.base.dtype.itemsize - DIGIT, -1, -DIGIT):
        counts = torch.zeros(1 << DIGIT, dtype=torch.int64)
        for chunk in chunk_slices(len(change)):
            digits = (_sizes(change[chunk]) >> shift) - (known << DIGIT)
            among = (digits >= 0) & (digits < 1 << DIGIT)
            counts += torch.bincount(digits[among], minlength=1 << DIGIT)
        at_least = counts.flip(0).cumsum(0).flip(0)
        digit = int((at_least >= missing).nonzero()[-1])
        missing -= int(at_least[digit] - counts[digit])
        known = (known << DIGIT) + digit
    return known, missing


def _sizes(change: torch.Tensor) -> torch.Tensor:
    return change.abs().view(_integer_type(change.dtype))


def _integer_type(dtype: torch.dtype) -> torch.dtype:
    """Return the integer type of the same width: unsigned floats are ordered like their bits."""
    return {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
