"""Angles between tensors as vectors."""

from __future__ import annotations

import math

import torch

PIECE = 1 << 20


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    """Of the angle between two tensors; 0 where one of them is zero, which has no direction."""
    length = math.sqrt(_product(one, one) * _product(other, other))
    return max(-1.0, min(1.0, _product(one, other) / length)) if length else 0.0


def _product(one: torch.Tensor, other: torch.Tensor) -> float:
    """Inner product in double precision, a piece at a time.

    Changes of different models are nearly perpendicular: their products cancel, and in single
    precision few digits would be left.
    """
    first, second = one.flatten(), other.flatten()
    starts = range(0, first.numel(), PIECE)
    pieces = [(first[at : at + PIECE], second[at : at + PIECE]) for at in starts]
    return math.fsum(torch.dot(a.double(), b.double()).item() for a, b in pieces)
