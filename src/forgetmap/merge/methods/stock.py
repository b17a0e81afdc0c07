"""Model stock: how far to go from the base towards the mean follows from the angles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
from forgetmap.merge.method import ChunkedTensors, merge_method
from forgetmap.merge.methods.angles import cosine, row_cosines
from forgetmap.merge.methods.task_vectors import TaskVector

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

OPPOSED = 1e-6
"""At the most obtuse angle that k changes can have among each other, 1 + (k - 1) c and their mean
are both 0 but for rounding: the base stays."""


@merge_method(
    "model_stock",
    summary="between base and mean, as far as the angle between the changes advises",
    paper="Jang et al. 2024, Model Stock, arXiv:2403.19522",
    min_models=2,
)
def model_stock(
    tensors: ChunkedTensors, base: ChunkedTensor, *, filter_wise: bool = False
) -> ChunkFunction:
    """The sum t * mean + (1 - t) * base, t = k c / (1 + (k - 1) c), c the mean cosine of changes.

    `filter_wise` takes the angle row by row instead of for the whole tensor.
    """
    changes = [TaskVector(tensor, base) for tensor in tensors]
    by_row = filter_wise and len(base.shape) > 1 and len(base) > 0
    part = _by_row(changes, base) if by_row else _for_all(changes)

    def merge_chunk(chunk: slice) -> torch.Tensor:
        total = changes[0][chunk]
        for change in changes[1:]:
            total += change[chunk]
        return base[chunk] + total * (part(chunk) / len(changes))

    return merge_chunk


def _for_all(changes: Sequence[TaskVector]) -> Callable[[slice], float]:
    part = _part([cosine(*pair) for pair in combinations(changes, 2)], len(changes))
    return lambda _: part


def _by_row(changes: Sequence[TaskVector], base: ChunkedTensor) -> ChunkFunction:
    rows = base.shape[0]
    size = len(base) // rows
    pairs = [row_cosines(*pair, rows).tolist() for pair in combinations(changes, 2)]
    parts = [_part(cosines, len(changes)) for cosines in zip(*pairs, strict=True)]
    values = torch.tensor(parts, dtype=base.dtype)
    return lambda chunk: values[torch.arange(chunk.start, chunk.stop) // size]


def _part(cosines: Sequence[float], count: int) -> float:
    """How far towards the mean."""
    mean = sum(cosines) / len(cosines)
    below = 1 + (count - 1) * mean
    return count * mean / below if below > OPPOSED else 0.0
