"""Tensors in their stored type, computed chunk by chunk.

A tensor in bfloat16 takes twice its memory in float32, and every step of a computation as much
again. A chunk fits into the caches, and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")

CHUNK_VALUES = 1 << 16
"""Values that are computed at once: few enough for the caches."""
ChunkFunction = Callable[[slice], "torch.Tensor"]
"""Merges a chunk. Chunks are asked for in turn, from the first value to the last."""


@dataclass(frozen=True, slots=True)
class ChunkedTensor:
    """A contiguous tensor as stored; any part of it in the dtype of the computation.

    `values[start:stop]` counts in the order of storage, whatever the shape is. What comes out must
    not be changed in place.
    """

    stored: torch.Tensor
    dtype: torch.dtype

    @property
    def shape(self) -> torch.Size:
        """Of the tensor."""
        return self.stored.shape

    def __len__(self) -> int:
        """How many values there are."""
        return self.stored.numel()

    def __getitem__(self, chunk: slice) -> torch.Tensor:
        """A part, in one row."""
        return self.stored.view(-1)[chunk].to(self.dtype)

    def whole(self) -> torch.Tensor:
        """All of it, in its shape."""
        return self.stored.to(self.dtype)


def chunk_slices(count: int, size: int = CHUNK_VALUES) -> Iterator[slice]:
    """From the first of `count` values to the last."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def fill(result: torch.Tensor, merge_chunk: ChunkFunction) -> torch.Tensor:
    """Put merged chunks into a tensor, rounded to its dtype."""
    row = result.view(-1)
    for chunk in chunk_slices(len(row)):
        row[chunk] = merge_chunk(chunk)
    return result
