"""The job of one tensor: what to read, and how to compute the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from forgetmap.errors import ModelError
from forgetmap.merge.chunks import ChunkedTensor, fill
from forgetmap.merge.method import Draws, Method

Source = tuple[str, str]
"""A model and the name of a tensor of it."""


@dataclass(frozen=True, slots=True)
class Computation:
    """A method with all its values: tensors as stored in, the tensor to store out.

    Attributes:
        dtype: of the result.
        computed_in: the dtype of the computation.
    """

    method: Method
    values: Mapping[str, Any]
    draws: Draws
    dtype: str
    computed_in: str

    def __call__(
        self,
        tensors: Sequence[torch.Tensor],
        base: torch.Tensor | None,
        result: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Merge, into `result` if it is given, else into memory of its own."""
        stored = [*tensors, base] if base is not None else list(tensors)
        if not stored[0].is_floating_point():
            return self._require_equal(stored)
        dtype = getattr(torch, self.computed_in)
        inputs = [ChunkedTensor(tensor.contiguous(), dtype) for tensor in stored]
        own_base = inputs.pop() if base is not None else None
        if result is None:
            result = torch.empty(stored[0].shape, dtype=getattr(torch, self.dtype))
        return fill(result, self.method.chunk_function(inputs, own_base, self.values, self.draws))

    def _require_equal(self, stored: Sequence[torch.Tensor]) -> torch.Tensor:
        """Whole numbers and masks are no weights: they have to be the same everywhere."""
        if not all(torch.equal(stored[0], tensor) for tensor in stored[1:]):
            raise ModelError(
                f"The tensor '{self.draws.tensor}' does not contain floating-point numbers and "
                "differs between the models",
                hint="merge only models that share it.",
            )
        return stored[0]


@dataclass(frozen=True, slots=True)
class TensorJob:
    """How one tensor of the result is made.

    Attributes:
        name: in the result.
        shape: of the result.
        dtype: of the result, as torch calls it.
        inputs: what to read, in the order `compute` takes it.
        base: what to read of the base, if it is used.
        compute: makes the tensor from what was read, as it was stored.
        elementwise: `compute` may also be given equal pieces of all tensors, in one row.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    inputs: tuple[Source, ...]
    base: Source | None
    compute: Computation
    elementwise: bool = False
