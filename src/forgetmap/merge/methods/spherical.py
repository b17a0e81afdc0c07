"""Interpolation on the great circle between two models."""

from __future__ import annotations

import math

import torch

from forgetmap.merge.method import One, Share, merge_method

ALMOST_PARALLEL = 0.9995
"""Above this cosine the straight line is taken, as is usual: it leaves the arc by at most 0.013 %
of its length, and dividing by the sine of a small angle costs more digits than that."""
PIECE = 1 << 20


@merge_method(
    "slerp",
    says="a point on the arc from the base to one other model",
    paper="Shoemake 1985, Animating rotation with quaternion curves, SIGGRAPH",
)
def slerp(tensors: One, base: torch.Tensor, *, t: Share) -> torch.Tensor:
    """At `t` 0 the base, at 1 the other model; the angle is that between the whole tensors."""
    other = tensors[0]
    if t in {0.0, 1.0}:
        # sin(angle) / sin(angle) times a tensor is not always that tensor.
        return other if t else base
    cosine = _cosine(base, other)
    if abs(cosine) > ALMOST_PARALLEL:
        return torch.lerp(base, other, t)
    angle = math.acos(cosine)
    of_base = math.sin((1.0 - t) * angle) / math.sin(angle)
    return (base * of_base).add_(other, alpha=math.sin(t * angle) / math.sin(angle))


def _cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    """Of the angle between two tensors as vectors; 1 where one of them is zero.

    A vector of zeros has no direction, and the way to it is straight.
    """
    # Not torch.dot: its sums in single precision are off by 1e-4 for tensors of 100 M values.
    length = math.sqrt(_product(one, one) * _product(other, other))
    return max(-1.0, min(1.0, _product(one, other) / length)) if length else 1.0


def _product(one: torch.Tensor, other: torch.Tensor) -> float:
    """Inner product, its partial sums added in double precision."""
    pairs = zip(one.flatten().split(PIECE), other.flatten().split(PIECE), strict=True)  # type: ignore[no-untyped-call]
    return math.fsum(torch.dot(a.double(), b.double()).item() for a, b in pairs)
