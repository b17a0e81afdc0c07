"""DARE: drop changes at random and rescale the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction, chunk_slices
from forgetmap.merge.method import (
    ChunkedTensors,
    Draws,
    MethodFunction,
    PerModel,
    SharePerModel,
    merge_method,
)
from forgetmap.merge.methods.task_vectors import PruneChunk, Pruning, TaskVector, merge_task_vectors

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

PAPER = "Yu et al. 2023, Language models are super Mario, arXiv:2311.03099"


def _dare(*, elect: bool) -> MethodFunction:
    def dare(  # noqa: PLR0913
        tensors: ChunkedTensors,
        base: ChunkedTensor,
        *,
        weight: PerModel,
        draws: Draws,
        density: SharePerModel = (1.0,),
        normalize: bool = False,
        lambda_: float = 1.0,
        rescale: bool = True,
        keep_norm: bool = False,
    ) -> ChunkFunction:
        """Keep each value of a change with probability `density`, and divide it by that.

        With `keep_norm` the remaining values are scaled so that the sum of magnitudes stays exactly
        the same, rather than only on average over all draws.
        """
        prune = _drop_at_random(density, draws, rescale=rescale, keep_norm=keep_norm)
        return merge_task_vectors(
            tensors, base, weight=weight, normalize=normalize, scale=lambda_, prune=prune,
            elect=elect,
        )  # fmt: skip

    return dare


dare_linear = merge_method(
    "dare_linear", summary="changes dropped at random, the rest enlarged and added up", paper=PAPER
)(_dare(elect=False))
dare_ties = merge_method(
    "dare_ties",
    summary="changes dropped at random, the rest enlarged and merged where the signs agree",
    paper=PAPER,
)(_dare(elect=True))


def _drop_at_random(
    density: tuple[float, ...], draws: Draws, *, rescale: bool, keep_norm: bool
) -> Pruning:
    def prune(index: int, change: TaskVector) -> PruneChunk:
        share = density[index]
        if share == 1:
            return lambda part, _: part
        factor = 1 / share if share and rescale else 1.0
        if rescale and keep_norm:
            mask = _mask(draws, index, share)
            left = _size(change[cut].mul_(mask(cut)) for cut in chunk_slices(len(change)))
            all_of_it = _size(change[cut] for cut in chunk_slices(len(change)))
            factor = all_of_it / left if left else 1.0
        mask = _mask(draws, index, share)

        def prune_chunk(part: torch.Tensor, chunk: slice) -> torch.Tensor:
            part.mul_(mask(chunk))
            return part.mul_(factor) if rescale else part

        return prune_chunk

    return prune


def _mask(draws: Draws, index: int, share: float) -> ChunkFunction:
    """Return true with probability `share`; chunks must be requested in order."""
    source = draws.generator(index)
    return lambda chunk: torch.rand(chunk.stop - chunk.start, generator=source) < share


def _size(parts: Iterable[torch.Tensor]) -> float:
    return math.fsum(part.abs().sum(dtype=torch.float64).item() for part in parts)
