"""Model breadcrumbs: changes without the smallest and the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
from forgetmap.merge.method import (
    ChunkedTensors,
    MethodFunction,
    PerModel,
    SharePerModel,
    merge_method,
)
from forgetmap.merge.methods.task_vectors import (
    PruneChunk,
    Pruning,
    TaskVector,
    largest_values,
    merge_task_vectors,
)

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

PAPER = "Davari and Belilovsky 2023, Model Breadcrumbs, arXiv:2312.06795"


def _breadcrumbs(*, elect: bool) -> MethodFunction:
    def merge(
        tensors: ChunkedTensors,
        base: ChunkedTensor,
        *,
        weight: PerModel,
        density: SharePerModel = (1.0,),
        gamma: SharePerModel = (0.01,),
        normalize: bool = False,
        lambda_: float = 1.0,
    ) -> ChunkFunction:
        """Leave out the share `gamma` of largest values, and small ones until `density` remain.

        The remaining share takes precedence: with `density` 1 nothing is left out.
        """
        prune = _keep_middle(density, gamma)
        return merge_task_vectors(
            tensors, base, weight=weight, normalize=normalize, scale=lambda_, prune=prune,
            elect=elect,
        )  # fmt: skip

    return merge


breadcrumbs = merge_method(
    "breadcrumbs",
    summary="changes without their smallest and largest values, added up",
    paper=PAPER,
)(_breadcrumbs(elect=False))
breadcrumbs_ties = merge_method(
    "breadcrumbs_ties",
    summary="changes without their smallest and largest values, merged where the signs agree",
    paper=PAPER,
)(_breadcrumbs(elect=True))


def _keep_middle(density: tuple[float, ...], gamma: tuple[float, ...]) -> Pruning:
    def prune(index: int, change: TaskVector) -> PruneChunk:
        count = len(change)
        stay = int(density[index] * count)
        top = min(int(gamma[index] * count), count - stay)
        # Of the largest `stay + top` values the largest `top` are left out too.
        large, too_large = largest_values(change, stay + top), largest_values(change, top)

        def prune_chunk(part: torch.Tensor, chunk: slice) -> torch.Tensor:
            start = chunk.start
            return part.mul_(large.mask(part, start) & ~too_large.mask(part, start))

        return prune_chunk

    return prune
