"""Adding up changes."""

from __future__ import annotations

from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
from forgetmap.merge.method import ChunkedTensors, PerModel, merge_method
from forgetmap.merge.methods.task_vectors import merge_task_vectors


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
    """The base + lambda * sum of weight * (tensor - base); negative weights unlearn."""
    return merge_task_vectors(tensors, base, weight=weight, normalize=normalize, scale=lambda_)
