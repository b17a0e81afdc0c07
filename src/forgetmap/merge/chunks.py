"""Tensors in their stored type, computed chunk by chunk.

A tensor in bfloat16 takes twice its memory in float32, and every step of a computation as much
again. A chunk fits into the caches, and needs almost no memory.
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
"""Number of values that are computed at once; they fit into the caches."""
ChunkFunction = Callable[[slice], "torch.Tensor"]
"""Merges a chunk. Chunks are requested in order, from the first value to the last."""


@dataclass(frozen=True, slots=True)
class ChunkedTensor:
    """A contiguous tensor as stored; any part of it in the dtype of the computation.

    `values[start:stop]` counts in the order of storage, whatever the shape is. The result must not
    be changed in place.
    """

    stored: torch.Tensor
    dtype: torch.dtype

    @property
    def shape(self) -> torch.Size:
        """Shape of the tensor."""
        return self.stored.shape

    def __len__(self) -> int:
        """Return the number of values."""
        return self.stored.numel()

    def __getitem__(self, chunk: slice) -> torch.Tensor:
        """Return a part, as one row."""
        return self.stored.view(-1)[chunk].to(self.dtype)

    def whole(self) -> torch.Tensor:
        """Return the whole tensor, in its shape."""
        return self.stored.to(self.dtype)


def chunk_slices(count: int, size: int = CHUNK_VALUES) -> Iterator[slice]:
    """Return slices from the first of `count` values to the last."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def fill(result: torch.Tensor, merge_chunk: ChunkFunction) -> torch.Tensor:
    """Write merged chunks into a tensor, rounded to its dtype."""
    row = result.view(-1)
    for chunk in chunk_slices(len(row)):
        row[chunk] = merge_chunk(chunk)
    return result
