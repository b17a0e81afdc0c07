"""Interpolation on the great circle between two models."""

from __future__ import annotations

import math

from forgetmap.merge.method import OneValues, Share, merge_method
from forgetmap.merge.methods.angles import cosine
from forgetmap.merge.methods.averaging import along
from forgetmap.merge.stretches import Step, Values

ALMOST_PARALLEL = 0.9995
"""Above this cosine the straight line is taken, as is usual: it leaves the arc by at most 0.013 %
of its length, and dividing by the sine of a small angle costs more digits than that."""


@merge_method(
    "slerp",
    says="a point on the arc from the base to one other model",
    paper="Shoemake 1985, Animating rotation with quaternion curves, SIGGRAPH",
)
def slerp(tensors: OneValues, base: Values, *, t: Share) -> Step:
    """At `t` 0 the base, at 1 the other model; the angle is that between the whole tensors.

    A tensor of zeros counts as perpendicular to all others.
    """
    other = tensors[0]
    # The ends too: sin(angle) / sin(angle) times a tensor is not always that tensor.
    if t in {0.0, 1.0} or abs(between := cosine(base, other)) > ALMOST_PARALLEL:
        return lambda stretch: along(base[stretch], other[stretch], t)
    angle = math.acos(between)
    of_base = math.sin((1.0 - t) * angle) / math.sin(angle)
    of_other = math.sin(t * angle) / math.sin(angle)
    return lambda stretch: (base[stretch] * of_base).add_(other[stretch], alpha=of_other)
