"""Model stock: how far to go from the base towards the mean follows from the angles."""

from __future__ import annotations

from itertools import combinations

import torch

from forgetmap.merge.method import Tensors, merge_method

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
    rows = base.shape[0] if filter_wise and base.ndim > 1 else 1
    changes = [(tensor - base).reshape(rows, -1) for tensor in tensors]
    pairs = list(combinations(changes, 2))
    cosine = torch.stack([_cosines(one, other) for one, other in pairs]).mean(dim=0)
    count = len(changes)
    below = 1 + (count - 1) * cosine
    part = torch.where(below > OPPOSED, count * cosine / below, 0.0)
    total = changes[0]
    for change in changes[1:]:
        total += change
    return base + total.mul_((part / count).to(total.dtype)[:, None]).reshape(base.shape)


def _cosines(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of the angle between each pair of rows; 0 where a row is zero, so that the base stays."""
    product = (one * other).sum(dim=1, dtype=torch.float64)
    lengths = one.norm(dim=1, dtype=torch.float64) * other.norm(dim=1, dtype=torch.float64)
    return torch.where(lengths > 0, product / lengths, 0.0).clamp(-1.0, 1.0)
