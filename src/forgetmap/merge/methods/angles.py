"""Methods based on the angle between models: slerp and model stock."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import CHUNK_VALUES, ChunkedTensor, ChunkFunction, chunk_slices
from forgetmap.merge.method import ChunkedTensors, OneChunkedTensor, Share, merge_method
from forgetmap.merge.methods.averaging import along
from forgetmap.merge.methods.task_vectors import TaskVector

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

ALMOST_PARALLEL = 0.9995
"""Cosine above which the straight line is used, as is usual: it deviates from the arc by at most
0.013 % of its length, and dividing by the sine of a small angle costs more digits than that."""
OPPOSED = 1e-6
"""Tolerance for opposed changes: at the most obtuse angle that k changes can have to each other, 1
+ (k - 1) c and their mean are both 0 except for rounding, and the base stays."""
PRODUCT_VALUES = 1 << 20
"""Number of values whose products are summed at once."""


@merge_method(
    "slerp",
    summary="a point on the arc from the base to one other model",
    direction="At `t` 0 the result is the base bit for bit, at 1 the other model.",
    paper="Shoemake 1985, Animating rotation with quaternion curves, SIGGRAPH",
)
def slerp(tensors: OneChunkedTensor, base: ChunkedTensor, *, t: Share) -> ChunkFunction:
    """Return the base at `t` 0, the other model at 1; the angle is that of the whole tensors.

    A tensor of zeros counts as perpendicular to all others.
    """
    other = tensors[0]
    # Also at the ends: sin(angle) / sin(angle) times a tensor is not always that tensor.
    if t in {0.0, 1.0} or abs(between := cosine(base, other)) > ALMOST_PARALLEL:
        return lambda chunk: along(base[chunk], other[chunk], t)
    angle = math.acos(between)
    of_base = math.sin((1.0 - t) * angle) / math.sin(angle)
    of_other = math.sin(t * angle) / math.sin(angle)
    return lambda chunk: (base[chunk] * of_base).add_(other[chunk], alpha=of_other)


@merge_method(
    "model_stock",
    summary="between base and mean, at a point determined by the angle between the changes",
    paper="Jang et al. 2024, Model Stock, arXiv:2403.19522",
    min_models=2,
)
def model_stock(
    tensors: ChunkedTensors, base: ChunkedTensor, *, filter_wise: bool = False
) -> ChunkFunction:
    """Return t * mean + (1 - t) * base, t = k c / (1 + (k - 1) c), c the mean cosine of changes.

    `filter_wise` uses the angle of each row instead of the whole tensor.
    """
    changes = [TaskVector(tensor, base) for tensor in tensors]
    by_row = filter_wise and len(base.shape) > 1 and len(base) > 0
    part = _part_by_row(changes, base) if by_row else _part_of_all(changes)

    def merge_chunk(chunk: slice) -> torch.Tensor:
        total = changes[0][chunk]
        for change in changes[1:]:
            total += change[chunk]
        return base[chunk] + total * (part(chunk) / len(changes))

    return merge_chunk


def _part_of_all(changes: Sequence[TaskVector]) -> Callable[[slice], float]:
    part = _part([cosine(*pair) for pair in combinations(changes, 2)], len(changes))
    return lambda _: part


def _part_by_row(changes: Sequence[TaskVector], base: ChunkedTensor) -> ChunkFunction:
    rows = base.shape[0]
    size = len(base) // rows
    pairs = [row_cosines(*pair, rows).tolist() for pair in combinations(changes, 2)]
    parts = [_part(cosines, len(changes)) for cosines in zip(*pairs, strict=True)]
    values = torch.tensor(parts, dtype=base.dtype)
    return lambda chunk: values[torch.arange(chunk.start, chunk.stop) // size]


def _part(cosines: Sequence[float], count: int) -> float:
    """Return the share of the mean."""
    mean = sum(cosines) / len(cosines)
    below = 1 + (count - 1) * mean
    return count * mean / below if below > OPPOSED else 0.0


class Vector(Protocol):
    """Numbers that can be read chunk by chunk."""

    def __len__(self) -> int: ...

    def __getitem__(self, chunk: slice) -> torch.Tensor: ...


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two tensors; 0 if one is zero and has no direction.

    In double precision: changes of different models are nearly perpendicular, their products
    cancel, and single precision would leave few digits.
    """
    squares, others, products = [], [], []
    for piece in chunk_slices(len(one), PRODUCT_VALUES):
        a, b = one[piece].double(), other[piece].double()
        squares.append(torch.dot(a, a).item())
        others.append(torch.dot(b, b).item())
        products.append(torch.dot(a, b).item())
    length = math.sqrt(math.fsum(squares) * math.fsum(others))
    return max(-1.0, min(1.0, math.fsum(products) / length)) if length else 0.0


def row_cosines(one: Vector, other: Vector, rows: int) -> torch.Tensor:
    """Return the cosine for every row of two tensors."""
    lengths = (_row_products(one, one, rows) * _row_products(other, other, rows)).sqrt_()
    cosines = _row_products(one, other, rows).div_(lengths).clamp_(-1.0, 1.0)
    return cosines.masked_fill_(lengths == 0, 0.0)


def _row_products(one: Vector, other: Vector, rows: int) -> torch.Tensor:
    size = len(one) // rows
    products = torch.zeros(rows, dtype=torch.float64)
    for some in chunk_slices(rows, max(CHUNK_VALUES // size, 1)):
        for part in chunk_slices(size):  # the whole row, unless it is very long
            piece = slice(some.start * size + part.start, (some.stop - 1) * size + part.stop)
            terms = one[piece].double() * other[piece].double()
            products[some] += terms.view(some.stop - some.start, -1).sum(dim=1)
    return products
