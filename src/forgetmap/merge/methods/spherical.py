"""Interpolation on the great circle between two models."""

from __future__ import annotations

import math

from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
from forgetmap.merge.method import OneChunkedTensor, Share, merge_method
from forgetmap.merge.methods.angles import cosine
from forgetmap.merge.methods.averaging import along

ALMOST_PARALLEL = 0.9995
"""Above this cosine the straight line is taken, as is usual: it leaves the arc by at most 0.013 %
of its length, and dividing by the sine of a small angle costs more digits than that."""


@merge_method(
    "slerp",
    summary="a point on the arc from the base to one other model",
    direction="At `t` 0 the result is the base bit for bit, at 1 the other model.",
    paper="Shoemake 1985, Animating rotation with quaternion curves, SIGGRAPH",
)
def slerp(tensors: OneChunkedTensor, base: ChunkedTensor, *, t: Share) -> ChunkFunction:
    """At `t` 0 the base, at 1 the other model; the angle is that between the whole tensors.

    A tensor of zeros counts as perpendicular to all others.
    """
    other = tensors[0]
    # The ends too: sin(angle) / sin(angle) times a tensor is not always that tensor.
    if t in {0.0, 1.0} or abs(between := cosine(base, other)) > ALMOST_PARALLEL:
        return lambda chunk: along(base[chunk], other[chunk], t)
    angle = math.acos(between)
    of_base = math.sin((1.0 - t) * angle) / math.sin(angle)
    of_other = math.sin(t * angle) / math.sin(angle)
    return lambda chunk: (base[chunk] * of_base).add_(other[chunk], alpha=of_other)
