"""Model stock: how far to go from the base towards the mean follows from the angles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch

from forgetmap.merge.method import Tensors, merge_method
from forgetmap.merge.methods.angles import cosine

OPPOSED = 1e-6
"""At the most obtuse angle that k changes can have among each other, 1 + (k - 1) c and their mean
are both 0 but for rounding: the base stays."""


@merge_method(
    "model_stock",
    says="between base and mean, as far as the angle between the changes advises",
    paper="Jang et al. 2024, Model Stock, arXiv:2403.19522",
    fewest=2,
)
def model_stock(tensors: Tensors, base: torch.Tensor, *, filter_wise: bool = False) -> torch.Tensor:
    """The sum t * mean + (1 - t) * base, t = k c / (1 + (k - 1) c), c the mean cosine of changes.

    `filter_wise` takes the angle row by row instead of for the whole tensor.
    """
    changes = [tensor - base for tensor in tensors]
    parts: float | torch.Tensor = _part(changes)
    if filter_wise and base.ndim > 1:
        rows = [_part([change[row] for change in changes]) for row in range(base.shape[0])]
        parts = torch.tensor(rows, dtype=base.dtype).reshape(-1, *[1] * (base.ndim - 1))
    total = changes[0]
    for change in changes[1:]:
        total += change
    return base + total * (parts / len(changes))


def _part(changes: Sequence[torch.Tensor]) -> float:
    """How far towards the mean."""
    cosines = [cosine(one, other) for one, other in combinations(changes, 2)]
    mean, count = sum(cosines) / len(cosines), len(changes)
    below = 1 + (count - 1) * mean
    return count * mean / below if below > OPPOSED else 0.0
