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
"""A model and the name of one of its tensors."""


@dataclass(frozen=True, slots=True)
class Computation:
    """A method with its parameter values: maps tensors as stored to the tensor to store.

    Attributes:
        dtype: dtype of the result.
        computed_in: dtype of the computation.
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
        """Merge into `result`, or into new memory."""
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
        """Refuse different integers and masks, which are not weights."""
        if not all(torch.equal(stored[0], tensor) for tensor in stored[1:]):
            raise ModelError(
                f"The tensor '{self.draws.tensor}' does not contain floating-point numbers and "
                "differs between the models",
                hint="merge only models that share it.",
            )
        return stored[0]


@dataclass(frozen=True, slots=True)
class TensorJob:
    """Computation of one tensor of the result.

    Attributes:
        name: name in the result.
        shape: shape of the result.
        dtype: torch dtype of the result.
        inputs: tensors to read, in the order of the arguments of `compute`.
        base: tensor to read from the base, if it is used.
        compute: computes the tensor from the stored ones.
        elementwise: `compute` also accepts equal pieces of all tensors, as one row.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    inputs: tuple[Source, ...]
    base: Source | None
    compute: Computation
    elementwise: bool = False
