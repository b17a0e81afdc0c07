"""Angles between tensors as vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from forgetmap._lazy import LazyModule
from forgetmap.merge.chunks import CHUNK_VALUES, chunk_slices

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

PRODUCT_VALUES = 1 << 20
"""Values whose products are added up at once."""


class Vector(Protocol):
    """Numbers that can be read chunk by chunk."""

    def __len__(self) -> int: ...

    def __getitem__(self, chunk: slice) -> torch.Tensor: ...


def cosine(one: Vector, other: Vector) -> float:
    """Of the angle between two tensors; 0 where one of them is zero, which has no direction.

    In double precision: changes of different models are nearly perpendicular, their products
    cancel, and in single precision few digits would be left.
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
    """The same for every row of two tensors."""
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
