"""Trim, elect sign, merge."""

from __future__ import annotations

from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
from forgetmap.merge.method import ChunkedTensors, PerModel, SharePerModel, merge_method
from forgetmap.merge.methods.task_vectors import (
    PruneChunk,
    TaskVector,
    kept_count,
    largest_values,
    merge_task_vectors,
)


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
    """Keep the share `density` of each change, the largest; then the mean of what agrees in sign.

    The sign of a position is that of the weighted sum; `normalize` off gives the sum.
    """

    def prune(index: int, change: TaskVector) -> PruneChunk:
        stay = largest_values(change, kept_count(len(change), density[index]))
        return lambda part, chunk: part.mul_(stay.mask(part, chunk.start))

    return merge_task_vectors(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, prune=prune, elect=True
    )
